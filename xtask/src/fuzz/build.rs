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
}

pub(super) const BUILDS: [Build; 3] = [Build::Plain, Build::Exclusive, Build::Concurrent];

impl Build {
    pub(super) fn name(self) -> &'static str {
        match self {
            Build::Plain => "plain",
            Build::Exclusive => "exclusive",
            Build::Concurrent => "concurrent",
        }
    }

    /// What the plugin is told; every size is worth merging here.
    fn options(self) -> Option<String> {
        match self {
            Build::Plain => None,
            Build::Exclusive | Build::Concurrent => Some(format!("theta-min=0;access={}", self.name())),
        }
    }
}

/// How files are compiled.
#[derive(Clone, Debug)]
pub(super) struct Compiler<'a> {
    pub(super) context: &'a Context,
    pub(super) plugin: &'a Path,
    pub(super) level: &'static str,
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
}

impl Files {
    /// Writes `text` to a folder of its own.
    pub(super) fn new(text: &str) -> Result<Files, Failure> {
        let folder = tempfile::tempdir()
            .map_err(|error| Failure::io("create a temporary folder in", &std::env::temp_dir(), &error))?;
        let files = Files { folder };
        fs::write(files.source(), text).map_err(|error| Failure::io("write", &files.source(), &error))?;
        Ok(files)
    }

    pub(super) fn source(&self) -> PathBuf {
        self.folder.path().join("programs.cu")
    }

    pub(super) fn program(&self, build: Build) -> PathBuf {
        self.folder.path().join(build.name())
    }

    /// The plugin's report of a build.
    pub(super) fn report(&self, build: Build) -> PathBuf {
        self.folder.path().join(format!("{}.jsonl", build.name()))
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("kernels.img")
    }
}

impl Compiler<'_> {
    /// All builds.
    pub(super) fn all(&self, files: &Files) -> Result<(), Failure> {
        self.plain(files)?;
        self.kernels(files)?;
        self.host(files, Build::Exclusive, "")?;
        self.host(files, Build::Concurrent, "")
    }

    /// The build without the plugin.
    pub(super) fn plain(&self, files: &Files) -> Result<(), Failure> {
        let uma = self.context.uma();
        let mut command = Command::new(uma.join("bin/uma-clang++"));
        command.args(self.flags()).arg(files.source()).arg("-o").arg(files.program(Build::Plain));
        command.arg("-L").arg(uma.join("lib")).arg("-lcudart").env_remove("ECHO_SR_OPTIONS");
        tool::run(&mut command).map(drop)
    }

    /// The device half with the plugin, which both host halves embed.
    pub(super) fn kernels(&self, files: &Files) -> Result<(), Failure> {
        let mut command = Command::new(self.context.uma().join("bin/uma-clang++"));
        command.args(self.flags()).arg("--image-only").arg(files.source()).arg("-o").arg(files.image());
        command.arg(format!("-fpass-plugin={}", self.plugin.display())).env_remove("ECHO_SR_OPTIONS");
        tool::run(&mut command).map(drop)
    }

    /// A host half with the plugin, linked. `more`: options of the plugin besides those of the build.
    pub(super) fn host(&self, files: &Files, build: Build, more: &str) -> Result<(), Failure> {
        let report = files.report(build);
        let _ = fs::remove_file(&report); // The plugin appends.
        let mut command = Command::new(format!("clang++-{LLVM_PREFERRED}"));
        command.args(self.flags());
        command.arg(format!("--cuda-path={}", self.context.cuda().display()));
        command.args(["--cuda-host-only", "-Wno-unknown-cuda-version", "-Xclang", "-fcuda-include-gpubinary"]);
        command.arg("-Xclang").arg(files.image());
        command.arg(format!("-fpass-plugin={}", self.plugin.display()));
        if self.verify {
            command.args(["-Xclang", "-llvm-verify-each"]);
        }
        command.args(["-x", "cuda"]).arg(files.source()).args(["-x", "none", "-o"]).arg(files.program(build));
        command.arg("-L").arg(self.context.uma().join("lib")).arg("-lcudart");
        let options = build.options().unwrap_or_default();
        command.env("ECHO_SR_OPTIONS", format!("{options};report={};{more}", report.display()));
        tool::run(&mut command).map(drop)
    }

    fn flags(&self) -> Vec<&'static str> {
        let debug: &[_] = if self.debug { &["-g"] } else { &[] };
        [&[self.level, "-w"], debug].concat()
    }
}
