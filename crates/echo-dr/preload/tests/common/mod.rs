//! What the tests of the preloaded library share: the library, programs in C, and traces.

#![allow(dead_code, reason = "each test program uses a part")]

use std::io::BufReader;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use echo_dr_format::event::{Call, Event, HostKind};
use echo_dr_format::trace::Trace;

/// The library, built where this test program was. (Cargo builds no shared library for a package's own tests.)
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let program = std::env::current_exe().expect("a test program has a path");
        let profile = program.ancestors().nth(2).expect("target/<profile>/deps/<program>");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "echo-dr-preload"]);
        cargo.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
        cargo.arg("--target-dir").arg(profile.parent().expect("target"));
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo runs").success(), "the library does not build");
        profile.join("libecho_dr.so")
    })
}

/// A folder of its own, removed at the end.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

/// Compiles `tests/programs/NAME.c`, once a test program, with `flags`.
pub(crate) fn program(name: &str, flags: &[&str]) -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
    let mark: String = flags.concat().chars().filter(|letter| letter.is_ascii_alphanumeric()).collect();
    let path = FOLDER.get_or_init(scratch).path().join(format!("{name}{mark}"));
    if !path.exists() {
        // Compiled under another name first: tests of one program run side by side.
        let fresh = path.with_extension(format!("{:?}", std::thread::current().id()));
        let mut command = Command::new("cc");
        command.args(["-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror"]).arg(&source).args(flags);
        let output = command.arg("-o").arg(&fresh).arg("-ldl").output().expect("cc runs");
        assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
        std::fs::rename(&fresh, &path).expect("renamed");
    }
    path
}

/// A command with the library preloaded, in profile mode.
pub(crate) fn profiled(program: impl AsRef<std::ffi::OsStr>, trace: &Path) -> Command {
    let mut command = preloaded(program);
    command.env("ECHO_DR_MODE", "profile").env("ECHO_DR_TRACE", trace);
    command
}

/// A command with the library preloaded and no mode.
pub(crate) fn preloaded(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library());
    for name in ["MODE", "TRACE", "PLAN", "COUNTERS", "THETA_MIN", "TIMES", "EXCLUSIVE"] {
        command.env_remove(format!("ECHO_DR_{name}"));
    }
    command
}

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {} (signal {:?})\n{}\n{}",
        output.status,
        output.status.signal(),
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

/// Reads a trace that must be whole up to its last line.
pub(crate) fn read(path: &Path) -> Trace {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Trace::read(BufReader::new(file)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Allocations of host memory from the heap with exactly this size.
pub(crate) fn heap_blocks(trace: &Trace, size: u64) -> Vec<&Event> {
    let is = |event: &&Event| match event.call {
        Call::HostAlloc { bytes, kind, .. } => bytes == size && kind != HostKind::PageLocked,
        _ => false,
    };
    trace.events.iter().filter(is).collect()
}

/// All traces beside `path`: its own and those of children.
pub(crate) fn traces(path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().expect("a folder");
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&name)))
        .collect();
    found.sort();
    found
}
