//! What Echo adds to a call, in instructions: the same in every run and on every machine of an architecture, so these are bounds that can be kept.
//! The calls go to a CUDA runtime that does nothing. Times are measured by `cargo xtask bench dr`.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use common::{program, read, run, scratch};
use echo_dr_engine::{Options, analyze};
use echo_dr_format::plan::State;

/// Calls in the shorter run; the longer one has twice as many, and the difference is counted. Their events fit a thread's buffer, so what the
/// writer does is never done by the program's thread.
const CALLS: u64 = 200;

/// The library as it is shipped: what the compiler doesn't optimise says nothing.
fn shipped() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let program = std::env::current_exe().expect("a path");
        let target = program.ancestors().nth(3).expect("target/<profile>/deps/<program>");
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "--package", "echo-dr-preload"])
            .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
            .arg("--target-dir")
            .arg(target)
            .status();
        assert!(status.expect("cargo runs").success(), "the library does not build");
        target.join("release/libecho_dr.so")
    })
}

fn library_of(name: &str) -> PathBuf {
    let made = program(name, &["-shared", "-fPIC", "-O2"]);
    let folder = made.parent().expect("a folder").join(format!("{name}-lib"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("libcudart.so");
    if !file.exists() {
        // A copy: tests that run side by side may both get here, and what is loaded must be whole.
        let fresh = folder.join(format!("{:?}", std::thread::current().id()));
        std::fs::copy(&made, &fresh).and_then(|_| std::fs::rename(&fresh, &file)).expect("copied");
    }
    file
}

/// Blocks in place of [`CALLS`]: all of the thread is counted with them, and who writes the few lines at the end is not the same in every run.
const BLOCKS: u64 = 50 * CALLS;

/// A program that makes calls, and where it finds the runtime that does nothing.
fn calls() -> (PathBuf, PathBuf) {
    let runtime = library_of("nothing_cudart").parent().expect("a folder").to_owned();
    (program("calls", &[&format!("-L{}", runtime.display()), "-lcudart"]), runtime)
}

/// What is preloaded.
enum With<'a> {
    /// The floor of interposers.
    Forwarder,
    Echo(&'a [(&'a str, &'a Path)]),
}

fn prepared(mut command: Command, runtime: &Path, calls: u64) -> Command {
    for name in ["MODE", "TRACE", "PLAN", "COUNTERS", "THETA_MIN", "TIMES", "EXCLUSIVE"] {
        command.env_remove(format!("ECHO_DR_{name}"));
    }
    command.env("LD_LIBRARY_PATH", runtime).env("CALLS", calls.to_string());
    command
}

/// Instructions of the program's own thread; those inside of `function` if one is given. (Echo's, without those of the runtime's function of that name:
/// counting is turned on and off where a function of the name is entered and left, and the one is called by the other.)
fn instructions(what: &str, calls_made: u64, function: Option<&str>, with: &With<'_>) -> u64 {
    let folder = scratch();
    let (program, runtime) = calls();
    let mut command = prepared(Command::new("valgrind"), &runtime, calls_made);
    let out = folder.path().join("out");
    command.args(["--tool=callgrind", "--separate-threads=yes"]).arg(format!("--callgrind-out-file={}", out.display()));
    command.args(function.map(|function| format!("--toggle-collect={function}"))).arg(program).arg(what);
    match with {
        With::Forwarder => drop(command.env("LD_PRELOAD", library_of("forward"))),
        With::Echo(settings) => drop(command.env("LD_PRELOAD", shipped()).envs(settings.iter().copied())),
    }
    run(&mut command);
    let text = std::fs::read_to_string(folder.path().join("out-01")).expect("the first thread's counts");
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    total.expect("a total")
}

/// Instructions of one more call.
fn of_a_call(what: &str, function: Option<&str>, with: &With<'_>) -> f64 {
    let calls = if function.is_some() { CALLS } else { BLOCKS };
    let [fewer, more] = [calls, 2 * calls].map(|calls| instructions(what, calls, function, with) as f64);
    (more - fewer) / calls as f64
}

/// What Echo adds to a call of `function` is some instructions, and at most `bound`.
#[track_caller]
fn added(what: &str, function: &str, settings: &[(&str, &Path)], bound: f64) {
    let added = of_a_call(what, Some(function), &With::Echo(settings));
    println!("{what}: {added:.0} instructions of Echo");
    assert!((20.0..=bound).contains(&added), "{what}: {added:.0} instructions, of at most {bound}");
}

#[test]
fn a_small_block_costs_what_the_least_interposer_costs() {
    let folder = scratch();
    let trace = folder.path().join("trace");
    let settings: [(&str, &Path); 2] = [("ECHO_DR_MODE", Path::new("profile")), ("ECHO_DR_TRACE", &trace)];
    let (floor, with) = (of_a_call("pair", None, &With::Forwarder), of_a_call("pair", None, &With::Echo(&settings)));
    println!("malloc and free: {floor:.1} instructions with a bare forwarder, with Echo {with:.1}");
    assert!(with <= 1.05 * floor, "{with:.1} instructions in place of {floor:.1}");
}

#[test]
fn a_recorded_call_costs_hundreds_of_instructions_not_thousands() {
    let folder = scratch();
    let trace = folder.path().join("trace");
    let settings: [(&str, &Path); 2] = [("ECHO_DR_MODE", Path::new("profile")), ("ECHO_DR_TRACE", &trace)];
    for (what, function, bound) in [
        ("copy", "cudaMemcpy", 1200.0),
        ("round", "cudaMemcpy", 2400.0),
        ("launch", "cudaLaunchKernel", 500.0),
        ("wait", "cudaDeviceSynchronize", 500.0),
    ] {
        added(what, function, &settings, bound);
    }
}

#[test]
fn a_skipped_copy_costs_hundreds_of_instructions() {
    for (what, bound) in [("copy", 1000.0), ("round", 2000.0)] {
        let folder = scratch();
        let (trace, file) = (folder.path().join("trace"), folder.path().join("plan.json"));
        let (program, runtime) = calls();
        let mut profile = prepared(Command::new(program), &runtime, CALLS);
        profile.arg(what).env("LD_PRELOAD", shipped()).env("ECHO_DR_MODE", "profile").env("ECHO_DR_TRACE", &trace);
        run(&mut profile);
        let mut plan = analyze(&read(&trace), Options::default());
        assert_eq!(plan.pairs.len(), 1, "{what}: {:?}", plan.ineligible);
        plan.pairs[0].state = State::Enabled;
        let mut text = Vec::new();
        plan.write(&mut text).expect("text");
        std::fs::write(&file, text).expect("written");
        let counters = folder.path().join("counters");
        let settings: [(&str, &Path); 3] =
            [("ECHO_DR_MODE", Path::new("optimise")), ("ECHO_DR_PLAN", &file), ("ECHO_DR_COUNTERS", &counters)];
        added(what, "cudaMemcpy", &settings, bound);
        let counters = std::fs::read(&counters).expect("counters");
        let counters = echo_dr_format::counters::Counters::read(&counters).expect("they are valid");
        let each = if what == "round" { 2 } else { 1 };
        assert_eq!(counters.pairs[0].copies_skipped, 2 * CALLS * each, "{what}: {counters:?}");
    }
}
