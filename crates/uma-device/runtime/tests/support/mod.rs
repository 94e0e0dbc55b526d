//! Builds the test programs once and runs them on the CPU device.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The workspace's folder.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().expect("the workspace exists")
}

/// The CUDA toolkit that `cargo xtask setup` unpacks.
pub(crate) fn cuda() -> PathBuf {
    std::env::var_os("CUDA_PATH").map_or_else(|| workspace().join("target/cuda"), PathBuf::from)
}

/// A file of `programs`.
pub(crate) fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Runs a compiler, which must succeed.
pub(crate) fn succeeds(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// A folder with the libraries under both of their names, the device process, and what is built there.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    /// Builds `programs/NAME.cu` with uma-clang++.
    pub(crate) fn new(name: &str) -> Bench {
        let bench = Bench::empty();
        bench.compile(&format!("{name}.cu"), name);
        bench
    }

    /// The libraries alone.
    pub(crate) fn empty() -> Bench {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Beside the test itself: there cargo always puts the library of this very build.
        let library = std::env::current_exe().expect("a path").with_file_name("libcudart.so");
        for name in ["libcudart.so", "libcudart.so.13"] {
            std::os::unix::fs::symlink(&library, folder.path().join(name)).expect("a link to the library");
        }
        let driver = driver();
        for (file, name) in
            [("libcuda.so", "libcuda.so"), ("libcuda.so", "libcuda.so.1"), ("uma-deviced", "uma-deviced")]
        {
            std::os::unix::fs::symlink(driver.join(file), folder.path().join(name)).expect("a link to the driver");
        }
        Bench { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn compile(&self, source: &str, name: &str) {
        self.compile_with(&program(source), name, &["-lcudart", "-pthread"]);
    }

    /// Builds a program from `source` with uma-clang++ and `options`; libraries are looked for here.
    pub(crate) fn compile_with(&self, source: &Path, name: &str, options: &[&str]) {
        let mut command = Command::new(compiler());
        command.arg("-O2").arg(format!("--cuda-path={}", cuda().display())).arg(source);
        succeeds(command.arg("-o").arg(self.path().join(name)).arg("-L").arg(self.path()).args(options));
    }

    /// Builds the image of a file of `programs`, without a host half; its path.
    pub(crate) fn compile_image(&self, source: &str) -> String {
        let image = self.path().join(source).with_extension("img");
        let mut command = Command::new(compiler());
        command.args(["--image-only", "-O2"]).arg(format!("--cuda-path={}", cuda().display())).arg(program(source));
        succeeds(command.arg("-o").arg(&image));
        image.to_str().expect("a path of plain letters").to_owned()
    }

    /// A command that runs a program with `modes` (`NAME=value`, without `UMA_DEVICE_`) set.
    pub(crate) fn command(&self, program: &str, arguments: &[&str], modes: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.arg("120").arg(self.path().join(program)).args(arguments);
        command.env("LD_LIBRARY_PATH", self.path()).stdin(Stdio::null());
        for name in ["ACCESS", "SCHEDULE", "LINK", "POISON", "PROCESS"] {
            command.env_remove(format!("UMA_DEVICE_{name}"));
        }
        for mode in modes {
            let (name, value) = mode.split_once('=').expect("a mode is NAME=value");
            command.env(format!("UMA_DEVICE_{name}"), value);
        }
        command
    }

    pub(crate) fn output(&self, program: &str, arguments: &[&str], modes: &[&str]) -> Output {
        self.command(program, arguments, modes).output().expect("the program starts")
    }

    /// Runs a case that must succeed; what it prints.
    pub(crate) fn run(&self, program: &str, case: &str, modes: &[&str]) -> String {
        let output = self.output(program, &[case], modes);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {case} {modes:?}: {}\n{text}{errors}", output.status);
        text
    }
}

/// The folder that cargo builds into: this test is in its folder `deps`.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    test.parent().and_then(Path::parent).expect("cargo's folder").to_owned()
}

/// Has cargo build a package of the workspace as this test was built, and says where the products are.
fn build(package: &str) -> PathBuf {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--quiet", "--package", package]).current_dir(workspace());
    if built().ends_with("release") {
        command.arg("--release");
    }
    assert!(command.status().expect("cargo runs").success(), "{package} does not build");
    built()
}

/// Where the driver library and the device process are, built if need be.
fn driver() -> &'static Path {
    static DRIVER: OnceLock<PathBuf> = OnceLock::new();
    DRIVER.get_or_init(|| build("uma-driver"))
}

/// The runtime as an archive, built if need be. `cargo xtask build` hides its symbols; here they are as rustc leaves them.
pub(crate) fn static_runtime() -> &'static Path {
    static ARCHIVE: OnceLock<PathBuf> = OnceLock::new();
    ARCHIVE.get_or_init(|| build("uma-runtime-static").join("libcudart_static.a"))
}

/// The kernel compiler, built if need be.
fn compiler() -> &'static Path {
    static COMPILER: OnceLock<PathBuf> = OnceLock::new();
    COMPILER.get_or_init(|| build("uma-compiler").join("uma-clang"))
}
