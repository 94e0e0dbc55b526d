//! Where things are, and how the user wants to be talked to.

use std::path::{Path, PathBuf};

use crate::ui::Ui;

/// What every command is given.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// The repository.
    pub(crate) root: PathBuf,
    /// Cargo's target folder.
    pub(crate) target: PathBuf,
    /// Progress and questions.
    pub(crate) ui: Ui,
    /// Install without asking: `--yes`, or `CI` is set.
    pub(crate) install_without_asking: bool,
}

impl Context {
    /// `yes`: the user said `--yes`.
    pub(crate) fn new(yes: bool) -> Self {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().unwrap_or(manifest).to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => std::path::absolute(&folder).unwrap_or_else(|_| folder.into()),
            None => root.join("target"),
        };
        let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
        Context { root, target, ui: Ui::new(), install_without_asking: yes || ci }
    }

    /// The unpacked CUDA toolkit.
    pub(crate) fn cuda(&self) -> PathBuf {
        self.target.join("cuda")
    }

    /// The CPU device: `bin/uma-clang++`, `lib/libcudart.so.13` and `lib/libcuda.so.1`.
    pub(crate) fn uma(&self) -> PathBuf {
        self.target.join("uma")
    }

    /// The plugin for LLVM 22.
    pub(crate) fn plugin(&self) -> PathBuf {
        self.target.join("release/libecho_sr.so")
    }

    /// The samples' sources.
    pub(crate) fn samples(&self) -> PathBuf {
        self.root.join("cuda-samples")
    }
}
