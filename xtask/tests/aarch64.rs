//! What runs in a program, on aarch64 (Jetson's architecture), in an emulator: programs with kernels print what they print on this machine,
//! without and with the plugin. On an aarch64 machine the other tests are that test.
#![cfg(not(target_arch = "aarch64"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Once;

use echo_dr_engine::{Options, analyze, judge};
use echo_dr_format::counters::{Counters, PairCounters};
use echo_dr_format::finding::Trouble;
use echo_dr_format::plan::{Plan, State};
use echo_dr_format::trace::Trace;

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

/// One program, run in the modes of Echo-DR's library one after the other.
struct Watched<'a> {
    program: &'a Path,
    /// Of its data.
    size: &'a str,
    folder: &'a Path,
}

impl Watched<'_> {
    fn arguments(&self) -> [&str; 3] {
        [self.size, "--iterations", "4"]
    }

    /// What it prints in a mode.
    fn run(&self, mode: &str, plan: Option<&Plan>) -> Vec<u8> {
        let setting = |name: &str, value: &Path| format!("{name}={}", value.display());
        let mut settings = vec![
            setting("LD_PRELOAD", &library().join("libecho_dr.so")),
            format!("ECHO_DR_MODE={mode}"),
            setting("ECHO_DR_COUNTERS", &self.folder.join("counters")),
        ];
        if mode != "optimise" {
            settings.push(setting("ECHO_DR_TRACE", &self.folder.join(mode)));
        }
        if let Some(plan) = plan {
            let path = self.folder.join("plan.json");
            let mut text = Vec::new();
            plan.write(&mut text).expect("a plan");
            std::fs::write(&path, text).expect("written");
            settings.push(setting("ECHO_DR_PLAN", &path));
        }
        let mut command = Command::new("timeout");
        command.args(["120", "qemu-aarch64"]).env("UMA_DEVICE_MEMORY", "256M");
        // They are for the program, not for the emulator.
        command.args(settings.iter().flat_map(|setting| ["-E", setting])).arg(self.program);
        succeed(command.args(self.arguments())).stdout
    }

    fn trace(&self, mode: &str) -> Trace {
        let file = std::fs::File::open(self.folder.join(mode)).expect("a trace");
        Trace::read(std::io::BufReader::new(file)).expect("a trace that can be read")
    }

    /// The plan of a profile, judged by a validation run.
    fn validated(&self) -> (Plan, Trace) {
        self.run("profile", None);
        let mut plan = analyze(&self.trace("profile"), Options::default());
        self.run("validate", Some(&plan));
        let trace = self.trace("validate");
        judge(&mut plan, &trace).expect("the same program");
        (plan, trace)
    }
}

#[test]
fn the_run_time_library_finds_tests_and_merges_pairs() {
    built();
    // Host memory from malloc, and page-locked.
    for (sample, size, pairs) in [("figure1", "100000", 1), ("transpose", "512", 2)] {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(sample);
        let source = root().join(format!("cuda-samples/{sample}.cu"));
        compile(&source, &program, &library(), &[TARGET, "-g"]);
        let watched = Watched { program: &program, size, folder: folder.path() };
        let plain = succeed(emulator().arg(&program).args(watched.arguments())).stdout;
        let (mut plan, trace) = watched.validated();
        assert_eq!(trace.findings, [], "{sample}");
        assert_eq!(plan.pairs.len(), pairs, "{sample}: {:?}", plan.ineligible);
        for pair in &mut plan.pairs {
            assert_eq!((&pair.state, pair.page_locked), (&State::Validated, sample == "transpose"));
            pair.state = State::Enabled;
        }
        assert_eq!(watched.run("optimise", Some(&plan)), plain, "{sample}");
        let counters = std::fs::read(folder.path().join("counters")).expect("counters");
        let counters = Counters::read(&counters).expect("counters that can be read");
        let all = |of: fn(&PairCounters) -> u64| counters.pairs.iter().map(of).sum::<u64>();
        let made = [all(|pair| pair.merged), all(|pair| pair.met), all(|pair| pair.released)];
        assert_eq!((made, all(|pair| pair.copies_skipped)), ([pairs as u64; 3], 8), "{sample}: {counters:?}");
    }
}

#[test]
fn the_run_time_library_sees_the_host_touch_a_buffer() {
    built();
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("figure2_s1");
    compile(&root().join("cuda-samples/figure2_s1.cu"), &program, &library(), &[TARGET, "-g"]);
    let (plan, trace) = Watched { program: &program, size: "100000", folder: folder.path() }.validated();
    assert_eq!(plan.pairs.len(), 1, "{:?}", plan.ineligible);
    assert!(matches!(plan.pairs[0].state, State::Rejected(_)), "{:?}", plan.pairs[0].state);
    let touches = trace.findings.iter().filter(|finding| matches!(finding.trouble, Trouble::HostTouched(_)));
    assert!(touches.count() > 0, "{:?}", trace.findings);
}
