//! What the end-to-end tests of the plugin share: building it, and running compilers with it.

#![allow(dead_code, reason = "each test program uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The LLVM major that this test run is for.
pub(crate) const MAJOR: &str = if cfg!(feature = "llvm19") { "19" } else { "22" };

/// The plugin for [`MAJOR`], built as this test program was.
pub(crate) fn plugin() -> &'static Path {
    static PLUGIN: OnceLock<PathBuf> = OnceLock::new();
    PLUGIN.get_or_init(|| build_plugin(MAJOR, &target_dir()))
}

/// The plugin for another major, in a target directory of its own; `None` (said on standard error) where that LLVM is not installed.
pub(crate) fn plugin_for(major: &str) -> Option<PathBuf> {
    if major == MAJOR {
        return Some(plugin().to_owned());
    }
    let config = format!("llvm-config-{major}");
    if Command::new(&config).arg("--version").output().is_err() {
        eprintln!("skipped: {config} is not installed");
        return None;
    }
    Some(build_plugin(major, &target_dir().join(format!("llvm{major}"))))
}

fn build_plugin(major: &str, target: &Path) -> PathBuf {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--lib", "--no-default-features", "--features", &format!("llvm{major}")])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), "--target-dir"])
        .arg(target)
        .env_remove("LLVM_CONFIG")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the plugin for LLVM {major} does not build");
    target.join("debug/libecho_sr.so")
}

/// Cargo's target directory: two levels above the test program's own (`target/debug/deps/…`).
pub(crate) fn target_dir() -> PathBuf {
    let program = std::env::current_exe().expect("a test program has a path");
    program.ancestors().nth(3).expect("target/<profile>/deps/<program>").to_owned()
}

/// Where the CUDA toolkit is unpacked.
pub(crate) fn cuda() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/cuda");
    assert!(path.join("bin/ptxas").exists(), "no CUDA toolkit in target/cuda: run `cargo xtask setup`");
    path
}

/// `opt-<major>` with the plugin; options of the environment are cleared.
pub(crate) fn opt(major: &str, plugin: &Path) -> Command {
    let mut command = Command::new(format!("opt-{major}"));
    command.arg(format!("-load-pass-plugin={}", plugin.display())).env_remove("ECHO_SR_OPTIONS");
    command
}

/// clang for CUDA with the plugin, in the given directory; `ECHO_SR_OPTIONS` is cleared.
pub(crate) fn clang(directory: &Path) -> Command {
    let mut command = clang_without_plugin(directory);
    command.arg(format!("-fpass-plugin={}", plugin().display()));
    command
}

/// The same without the plugin.
pub(crate) fn clang_without_plugin(directory: &Path) -> Command {
    let mut command = Command::new("clang++-22");
    command
        .current_dir(directory)
        .env_remove("ECHO_SR_OPTIONS")
        .arg(format!("--cuda-path={}", cuda().display()))
        .args(["-Wno-unknown-cuda-version", "--cuda-gpu-arch=sm_90", "-O2"]);
    command
}

/// A directory of its own, removed at the end.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

/// Writes a file and gives its path.
pub(crate) fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).expect("the temporary directory is writable");
    path
}

/// Runs a command that has to succeed, and gives its standard output and standard error.
#[track_caller]
pub(crate) fn succeed(command: &mut Command) -> (String, String) {
    let output = run(command);
    assert!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    text(&output)
}

/// Runs a command that has to fail in an orderly way (an exit status, no signal), and gives its standard error.
#[track_caller]
pub(crate) fn fail(command: &mut Command) -> String {
    let output = run(command);
    let (_, stderr) = text(&output);
    let code = output.status.code();
    assert!(code.is_some_and(|code| code != 0 && code < 128), "{command:?} ended with {:?}:\n{stderr}", output.status);
    assert!(!stderr.contains("PLEASE submit a bug report"), "{command:?} crashed:\n{stderr}");
    stderr
}

/// Runs a command.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn text(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Parses IR and lends the module.
#[cfg(any(feature = "llvm19", feature = "llvm22"))]
#[track_caller]
pub(crate) fn with_module<R>(ir: &str, use_it: impl FnOnce(echo_sr::ir::Module<'_>) -> R) -> R {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;
    let context = Context::create();
    let mut text = ir.as_bytes().to_vec();
    text.push(0);
    let buffer = MemoryBuffer::create_from_memory_range_copy(&text, "test.ll");
    let module =
        context.create_module_from_ir(buffer).unwrap_or_else(|error| panic!("{}\n{ir}", error.to_string_lossy()));
    // SAFETY: the module lives until the end of this function, and nobody else has it.
    use_it(unsafe { echo_sr::ir::Module::new(module.as_mut_ptr()) })
}

/// Short form of what is known: for each parameter `.` (no pointer), or of `r`, `w`, `c` what it may do, `-` if nothing; then `+` if the
/// kernel may touch other memory.
pub(crate) fn short(effects: &echo_sr::effects::KernelEffects) -> String {
    let params = effects.params.iter().map(|param| match param {
        None => ".".to_owned(),
        Some(effect) => {
            let letters = [(effect.reads, 'r'), (effect.writes, 'w'), (effect.captures, 'c')];
            let text: String = letters.iter().filter(|(holds, _)| *holds).map(|(_, letter)| letter).collect();
            if text.is_empty() { "-".to_owned() } else { text }
        }
    });
    let mut text = params.collect::<Vec<_>>().join(" ");
    if effects.touches_other_memory {
        text += " +";
    }
    text
}
