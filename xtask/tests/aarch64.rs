//! What runs in a program, on aarch64 (Jetson's architecture), in an emulator: programs with kernels print what they print on this machine,
//! without and with the plugin. On an aarch64 machine the other tests are that test.
#![cfg(not(target_arch = "aarch64"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Once;

const TARGET: &str = "--target=aarch64-linux-gnu";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository")
}

fn built() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        for command in ["build", "aarch64"] {
            succeed(Command::new(env!("CARGO_BIN_EXE_xtask")).arg(command));
        }
    });
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} ended with {}:\n{said}", output.status);
    output
}

/// Compiles for the CPU that `library` is for.
fn compile(source: &Path, program: &Path, library: &Path, options: &[&str]) {
    let mut command = Command::new(root().join("target/uma/bin/uma-clang++"));
    command.env_remove("ECHO_SR_OPTIONS").args(["-O2", "-ffp-contract=off"]).args(options);
    command.arg(source).arg("-o").arg(program).arg("-L").arg(library);
    command.arg(format!("-Wl,-rpath,{}", library.display()));
    succeed(&mut command);
}

fn native_library() -> PathBuf {
    root().join("target/uma/lib")
}

fn library() -> PathBuf {
    root().join("target/aarch64/uma/lib")
}

/// The emulator; a table of the device's whole address space would take it minutes.
fn emulator() -> Command {
    let mut command = Command::new("timeout");
    command.args(["120", "qemu-aarch64"]).env("UMA_DEVICE_MEMORY", "256M").env("UMA_DEVICE_SCHEDULE", "lazy");
    command
}

#[test]
fn kernels_compute_what_they_compute_here() {
    built();
    let folder = tempfile::tempdir().expect("a folder");
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    let source = root().join("xtask/tests/aarch64/numbers.cu");
    compile(&source, &here, &native_library(), &[]);
    compile(&source, &there, &library(), &[TARGET]);
    let expected = succeed(&mut Command::new(&here)).stdout;
    assert!(String::from_utf8_lossy(&expected).contains("thread 63 of 64"));
    let found = succeed(emulator().arg(&there)).stdout;
    assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&expected));
}

#[test]
fn samples_print_the_same_merged_and_not() {
    built();
    let folder = tempfile::tempdir().expect("a folder");
    let plugin = format!("-fpass-plugin={}", root().join("target/release/libecho_sr.so").display());
    for sample in ["figure1", "vector_add"] {
        let arguments = ["100000", "--iterations", "3"];
        let source = root().join("cuda-samples").join(sample).with_extension("cu");
        let program = |name: &str| folder.path().join(format!("{sample}.{name}"));
        compile(&source, &program("here"), &native_library(), &[]);
        let expected = succeed(Command::new(program("here")).args(arguments)).stdout;
        assert!(!expected.is_empty());
        compile(&source, &program("plain"), &library(), &[TARGET]);
        compile(&source, &program("merged"), &library(), &[TARGET, &plugin]);
        for (name, copies) in [("plain", true), ("merged", false)] {
            let counts = program(name).with_extension("json");
            let found = succeed(emulator().env("UMA_DEVICE_STATS", &counts).arg(program(name)).args(arguments)).stdout;
            assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&expected), "{sample}, {name}");
            let counts: serde_json::Value =
                serde_json::from_slice(&std::fs::read(counts).expect("counts")).expect("counts are JSON");
            assert_eq!(counts["copies"].as_u64().is_some_and(|count| count > 0), copies, "{sample}, {name}: {counts}");
        }
    }
}

/// What the plugin says of the pairs of a program of `tests/programs`, sorted.
fn verdicts(program: &str, options: &[&str], folder: &Path) -> Vec<String> {
    let report = folder.join("report.jsonl");
    let _ = std::fs::remove_file(&report);
    let mut command = Command::new(root().join("target/uma/bin/uma-clang++"));
    command.args(["-O2", "-g", "-c", "-o"]).arg(folder.join("object.o")).args(options);
    command.arg(format!("-fpass-plugin={}", root().join("target/release/libecho_sr.so").display()));
    command.env("ECHO_SR_OPTIONS", format!("analyse-only;report={}", report.display()));
    command.arg(root().join("tests/programs").join(program).with_extension("cu"));
    succeed(&mut command);
    let lines = std::fs::read_to_string(&report).expect("a report");
    let mut verdicts: Vec<_> = lines
        .lines()
        .map(|line| {
            let pair: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
            format!("{} {} {}", pair["host"]["name"], pair["device"]["name"], pair["outcome"])
        })
        .collect();
    verdicts.sort();
    verdicts
}

/// Calls look otherwise on AArch64, and LLVM arranges code by other costs.
#[test]
fn verdicts_are_those_of_this_machine() {
    built();
    let folder = tempfile::tempdir().expect("a folder");
    for program in [
        "accept_conditional_device",
        "accept_device_buffer_each_round",
        "accept_splice_exceptions",
        "accept_splice_solve",
        "accept_splice_two_sites",
        "vector_of_dynamic_size",
        "vector_that_may_be_empty",
    ] {
        let here = verdicts(program, &[], folder.path());
        assert!(here.iter().any(|pair| pair.ends_with("\"mergeable\"")), "{program}: {here:?}");
        assert_eq!(verdicts(program, &[TARGET], folder.path()), here, "{program}");
    }
}
