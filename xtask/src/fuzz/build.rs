//! Compiles a file of programs without the plugin and with it, once for each access mode that the plugin can be told to assume.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::context::Context;
use crate::failure::Failure;
use crate::setup::LLVM_PREFERRED;
use crate::tool;

/// One build of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Build {
    /// Without the plugin.
    Plain,
    /// The plugin assumes that the host must keep off managed memory while the GPU works.
    Exclusive,
    /// It assumes that both may touch managed memory.
    Concurrent,
    /// What merged memory is made of is decided at run time (`target=adaptive`), here by a runtime that mixes the kinds.
    Adaptive,
    /// As [`Build::Plain`], with Echo-DR's library loaded into it.
    Preloaded,
}

/// The builds of a batch: two of the plugin's at a time, since compiling is what takes time.
pub(super) fn builds(number: u64) -> [Build; 3] {
    [Build::Plain, Build::Exclusive, if number.is_multiple_of(2) { Build::Concurrent } else { Build::Adaptive }]
}

impl Build {
    pub(super) fn name(self) -> &'static str {
        match self {
            Build::Plain => "plain",
            Build::Exclusive => "exclusive",
            Build::Concurrent => "concurrent",
            Build::Adaptive => "adaptive",
            Build::Preloaded => "preloaded",
        }
    }

    /// What the plugin is told; every size is worth merging here.
    pub(super) fn options(self) -> Option<String> {
        match self {
            Build::Plain | Build::Preloaded => None,
            Build::Exclusive | Build::Concurrent => Some(format!("theta-min=0;access={}", self.name())),
            Build::Adaptive => Some("theta-min=0;target=adaptive".into()),
        }
    }
}

/// What comes behind the plugin in the pipeline and makes code longer, not more interesting: a fifth of the time.
const SHORT: [&str; 3] = ["-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops"];

/// Optimisation with the plugin and without, by the number of a batch.
pub(super) fn levels(number: u64) -> (&'static [&'static str], &'static [&'static str]) {
    match number % 4 {
        0 | 1 => (&["-O2", SHORT[0], SHORT[1], SHORT[2]], &["-O0"]),
        2 => (&["-O3"], &["-O3"]),
        _ => (&["-O1", SHORT[0], SHORT[1], SHORT[2]], &["-O0"]),
    }
}

/// Compiles the runtime that deals out kinds of memory by a seed.
pub(super) fn mixed_runtime(context: &Context, folder: &Path) -> Result<PathBuf, Failure> {
    let object = folder.join("mixed_runtime.o");
    let mut command = Command::new(format!("clang-{LLVM_PREFERRED}"));
    command.args(["-O1", "-c"]).arg(context.root.join("tests/programs/mixed_runtime.c")).arg("-o").arg(&object);
    tool::run(&mut command)?;
    Ok(object)
}

/// How files are compiled.
#[derive(Clone, Debug)]
pub(super) struct Compiler<'a> {
    pub(super) context: &'a Context,
    /// `None`: nothing is compiled with it.
    pub(super) plugin: Option<&'a Path>,
    /// Echo-DR merges what it has not watched.
    pub(super) unvalidated: bool,
    /// An object file that stands for libecho_rt.a.
    pub(super) runtime: &'a Path,
    /// Optimisation, as options of clang.
    pub(super) level: &'static [&'static str],
    /// Optimisation of the build without the plugin.
    pub(super) plain_level: &'static [&'static str],
    /// With debug information, as most people compile; and the names of buffers are known.
    pub(super) debug: bool,
    /// LLVM's verifier runs after each pass, not only behind the last. (A module that the rewrite left invalid may still run.) That makes
    /// a file take ten times as long.
    pub(super) verify: bool,
}

/// A file with its builds.
#[derive(Debug)]
pub(super) struct Files {
    folder: tempfile::TempDir,
    /// The device half of all builds.
    image: PathBuf,
}

impl Files {
    /// Writes `text` to a folder of its own.
    pub(super) fn new(text: &str) -> Result<Files, Failure> {
        let folder = tempfile::tempdir()
            .map_err(|error| Failure::io("create a temporary folder in", &std::env::temp_dir(), &error))?;
        let image = folder.path().join("kernels.img");
        let files = Files { folder, image };
        fs::write(files.source(), text).map_err(|error| Failure::io("write", &files.source(), &error))?;
        Ok(files)
    }

    pub(super) fn source(&self) -> PathBuf {
        self.folder.path().join("programs.cu")
    }

    pub(super) fn program(&self, build: Build) -> PathBuf {
        let build = if build == Build::Preloaded { Build::Plain } else { build };
        self.folder.path().join(build.name())
    }

    /// Another file of this folder.
    pub(super) fn near(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The plugin's report of a build.
    pub(super) fn report(&self, build: Build) -> PathBuf {
        self.folder.path().join(format!("{}.jsonl", build.name()))
    }

    /// Another program with the kernels of this one, which are not compiled again.
    pub(super) fn with_same_kernels(&self, text: &str) -> Result<Files, Failure> {
        Ok(Files { image: self.image.clone(), ..Files::new(text)? })
    }
}

fn load(plugin: &Path) -> String {
    format!("-fpass-plugin={}", plugin.display())
}

impl Compiler<'_> {
    /// All builds.
    pub(super) fn all(&self, files: &Files, builds: &[Build]) -> Result<(), Failure> {
        self.kernels(files)?;
        builds.iter().try_for_each(|build| self.host(files, *build, ""))
    }

    /// The device half with the plugin, which only notes there what the kernels do. All builds embed it.
    pub(super) fn kernels(&self, files: &Files) -> Result<(), Failure> {
        let mut command = Command::new(self.context.uma().join("bin/uma-clang++"));
        command.args(self.flags(Build::Exclusive)).arg("--image-only").arg(files.source()).arg("-o").arg(&files.image);
        command.env_remove("ECHO_SR_OPTIONS").args(self.plugin.map(load));
        tool::run(&mut command).map(drop)
    }

    /// A host half, linked. `more`: options of the plugin besides those of the build.
    pub(super) fn host(&self, files: &Files, build: Build, more: &str) -> Result<(), Failure> {
        if build == Build::Preloaded && files.program(build).exists() {
            return Ok(());
        }
        let report = files.report(build);
        let _ = fs::remove_file(&report); // The plugin appends.
        let mut command = Command::new(format!("clang++-{LLVM_PREFERRED}"));
        command.args(self.flags(build));
        command.arg(format!("--cuda-path={}", self.context.cuda().display()));
        command.args(["--cuda-host-only", "-Wno-unknown-cuda-version", "-Xclang", "-fcuda-include-gpubinary"]);
        command.arg("-Xclang").arg(&files.image);
        command.env_remove("ECHO_SR_OPTIONS");
        if let Some(options) = build.options() {
            command.args(self.plugin.map(load));
            command.env("ECHO_SR_OPTIONS", format!("{options};report={};{more}", report.display()));
        }
        if self.verify && build.options().is_some() {
            command.args(["-Xclang", "-llvm-verify-each"]);
        }
        command.args(["-x", "cuda"]).arg(files.source()).args(["-x", "none"]);
        if build == Build::Adaptive {
            command.arg(self.runtime);
        }
        command.arg("-o").arg(files.program(build));
        command.arg("-L").arg(self.context.uma().join("lib")).arg("-lcudart");
        tool::run(&mut command).map(drop)
    }

    fn flags(&self, build: Build) -> Vec<&'static str> {
        let debug: &[_] = if self.debug { &["-g"] } else { &[] };
        let level = if build.options().is_none() { self.plain_level } else { self.level };
        [level, &["-w"], debug].concat()
    }
}
