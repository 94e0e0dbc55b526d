//! The command as users run it, on programs that run on the CPU device.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use echo_dr_format::counters::Counters;
use echo_dr_format::plan::{Plan, State};
use serde_json::Value;

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("crates/echo-dr/cli is three folders down")
}

/// The CPU device: `bin/uma-clang++` and `lib`.
pub(crate) fn uma() -> PathBuf {
    let uma = root().join("target/uma");
    assert!(uma.join("bin/uma-clang++").exists(), "no CPU device in target/uma: run `cargo xtask build`");
    uma
}

/// The library, built where this test program was.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let program = std::env::current_exe().expect("a test program has a path");
        let profile = program.ancestors().nth(2).expect("target/<profile>/deps/<program>");
        let target = profile.parent().expect("target");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--package", "echo-dr-preload", "--target-dir"])
            .arg(target)
            .current_dir(root());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo runs").success(), "the library does not build");
        profile.join("libecho_dr.so")
    })
}

/// Which CUDA runtime a program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    /// The shared library.
    Shared,
    /// Linked in, as nvcc does where nothing is said.
    Static,
}

/// A program with the shared runtime.
pub(crate) fn program(source: &Path) -> PathBuf {
    program_with(source, Runtime::Shared)
}

/// A program, compiled without any plugin, for the CPU device. Kept, and compiled again when a source is younger.
pub(crate) fn program_with(source: &Path, runtime: Runtime) -> PathBuf {
    // Two tests may want the same program.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = root().join("target/dr-tests");
    fs::create_dir_all(&folder).expect("a folder for programs");
    let program = folder.join(source.file_stem().expect("a source has a name"));
    let program = if runtime == Runtime::Static { program.with_extension("static") } else { program };
    let driver = uma().join("bin/uma-clang++");
    if !is_fresh(&program, source, &driver) {
        let unfinished = folder.join("unfinished");
        let mut command = Command::new(&driver);
        command.args(["-O2", "-g"]).arg(source).arg("-o").arg(&unfinished).env_remove("ECHO_SR_OPTIONS");
        command.arg("-L").arg(uma().join("lib")).arg("-lpthread");
        command.arg(if runtime == Runtime::Static { "-cudart=static" } else { "-cudart=shared" });
        let output = command.output().expect("the driver starts");
        assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
        fs::rename(&unfinished, &program).expect("the program");
    }
    program
}

fn is_fresh(program: &Path, source: &Path, driver: &Path) -> bool {
    let modified = |path: &Path| path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::now());
    let Ok(built) = program.metadata().and_then(|data| data.modified()) else { return false };
    let folder = source.parent().expect("a source is in a folder");
    let mut inputs = vec![driver.to_owned()];
    for folder in [folder.to_owned(), folder.join("common")] {
        inputs.extend(fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    inputs.iter().all(|input| input.is_dir() || modified(input) < built)
}

/// A program of this folder.
pub(crate) fn own(name: &str) -> PathBuf {
    program(&root().join("crates/echo-dr/cli/tests/programs").join(format!("{name}.cu")))
}

/// What a run gave.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Run {
    /// Fails with all that was said if the exit code is another.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "standard output:\n{}\nstandard error:\n{}", self.out, self.err);
        self
    }

    /// Standard output as one JSON object.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}:\n{}\n{}", self.out, self.err))
    }
}

/// A command in which programs find the CPU device, and nothing of the surroundings counts.
pub(crate) fn prepared(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", uma().join("lib")).env("ECHO_DR_LIBRARY", library()).env_remove("LD_PRELOAD");
    for name in ["UMA_DEVICE_SCHEDULE", "UMA_DEVICE_ACCESS", "UMA_DEVICE_LINK", "UMA_DEVICE_POISON", "UMA_DEVICE_STATS"]
    {
        command.env_remove(name);
    }
    command
}

/// `echo-dr` in a folder; what hangs ends, and all that it has started.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = prepared("timeout");
    command.arg("300").arg(env!("CARGO_BIN_EXE_echo-dr")).current_dir(folder);
    command
}

/// `echo-dr` with arguments in a folder.
pub(crate) fn echo_dr<S: AsRef<OsStr>>(folder: &Path, arguments: &[S]) -> Run {
    command(folder).args(arguments).output().expect("echo-dr starts").into()
}

/// `echo-dr` where no program is run.
pub(crate) fn bare<S: AsRef<OsStr>>(folder: &Path, arguments: &[S]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_echo-dr"));
    command.current_dir(folder).args(arguments).output().expect("echo-dr starts").into()
}

/// A program by itself, in modes of the device.
pub(crate) fn plain(program: &Path, arguments: &[&str], modes: &[(&str, &str)]) -> Run {
    let mut command = prepared(program);
    command.args(arguments).envs(modes.iter().copied());
    command.output().expect("the program starts").into()
}

/// Text of a path, for argument lists.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// The plan in a file.
pub(crate) fn plan(path: &Path) -> Plan {
    Plan::read(&fs::read(path).expect("a plan")).expect("it is valid")
}

/// Writes a plan as the command does: for this user alone.
pub(crate) fn write_plan(plan: &Plan, path: &Path) {
    let mut text = Vec::new();
    plan.write(&mut text).expect("text");
    let _ = fs::remove_file(path);
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("for us alone");
}

/// Enables every pair that passed validation, whatever it gains: small buffers gain too little to be sure of.
pub(crate) fn enable(path: &Path) -> Plan {
    let mut plan = plan(path);
    for pair in plan.pairs.iter_mut().filter(|pair| pair.state.passed_validation()) {
        pair.state = State::Enabled;
    }
    write_plan(&plan, path);
    plan
}

/// What the library counted.
pub(crate) fn counters(path: &Path) -> Counters {
    Counters::read(&fs::read(path).expect("counters")).expect("they are valid")
}
