//! Why a command can't do its work: what happened, where, and what to do. (That a unit does not compile is no failure of the command; it
//! is part of the result.)

use std::io;
use std::path::{Path, PathBuf};

/// An error of usage or set-up: exit code 2.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The plugin is not where it is looked for.
    #[error("the plugin libecho_sr.so was not found (looked at {}). Build it with `cargo build --release`, or set ECHO_SR_PLUGIN to its path", list(.0))]
    NoPlugin(Vec<PathBuf>),
    /// The file is no plugin of ours.
    #[error("{path} is not Echo's plugin: {reason}", path = .path.display())]
    NotAPlugin {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// No clang of the right version.
    #[error("no clang of LLVM {major} was found (looked for {}). Install clang-{major}, or name it with --clang PATH", .tried.join(", "))]
    NoClang {
        /// The major that the plugin is built for.
        major: u32,
        /// Names that were tried.
        tried: Vec<String>,
    },
    /// A compiler can't load the plugin.
    #[error("{compiler} {found}, and the plugin {plugin} is built for LLVM {major}. Name a clang of LLVM {major} with --clang PATH, or build the plugin for this compiler with `cargo build --no-default-features --features llvm<major>`", plugin = .plugin.display())]
    Compiler {
        /// As it was called.
        compiler: String,
        /// What it is.
        found: String,
        /// The plugin.
        plugin: PathBuf,
        /// What it is built for.
        major: u32,
    },
    /// The compiler does not run the plugin.
    #[error("{compiler} does not run the plugin:\n{output}")]
    Probe {
        /// As it was called.
        compiler: String,
        /// What it said.
        output: String,
    },
    /// Nothing to lint.
    #[error("{0}")]
    Nothing(String),
    /// A file of the user's is not what it should be.
    #[error("{path}: {reason}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl Failure {
    /// A file that can't be read or written.
    pub(crate) fn io(path: &Path, action: &str, error: &io::Error) -> Self {
        Self::File { path: path.to_owned(), reason: format!("can't {action} it: {error}") }
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
