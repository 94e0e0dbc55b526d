//! Pairs whose host buffer is page-locked: merged as others are, unless a kernel uses the host buffer without a copy or a CUDA call takes it for device
//! memory.

use std::fs;
use std::path::PathBuf;

use crate::common::{Run, Runtime, command, counters, enable, plain, program_with, root, text};
use serde_json::Value;

fn source() -> PathBuf {
    root().join("crates/echo-dr/cli/tests/programs/locked.cu")
}

/// The number of the line with this text.
fn line(part: &str) -> usize {
    let text = fs::read_to_string(source()).unwrap();
    1 + text.lines().position(|line| line.contains(part)).expect("the line")
}

fn passes(pair: &Value) -> bool {
    pair["state"] == "enabled" || pair["why_not"]["number"] == "EDR350"
}

/// What `tune` says of the program with this argument, with all merged that passed validation checked to give the same output and to skip copies.
fn tuned(how: &str, runtime: Runtime) -> Value {
    tuned_in(None, how, runtime)
}

/// As [`tuned`], with `tune`'s own runs in a schedule of the device's.
fn tuned_in(schedule: Option<&str>, how: &str, runtime: Runtime) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let program = program_with(&source(), runtime);
    let arguments = [how, "4"];
    let expected = plain(&program, &arguments, &[]).ends(0).out;
    let tune = ["tune", "--json", "--trials", "1", "--compare-stdout", "--", text(&program)];
    let mut command_line = command(folder.path());
    command_line.args(tune).args(arguments).envs(schedule.map(|schedule| ("UMA_DEVICE_SCHEDULE", schedule)));
    let run = Run::from(command_line.output().expect("echo-dr starts"));
    assert!(run.code == 0 || run.code == 1, "{how}: {} {}", run.out, run.err);
    let plan = enable(&folder.path().join("echo-dr.plan.json"));
    for schedule in ["lazy", "eager", "random:1"] {
        let mut run = command(folder.path());
        run.args(["run", "--counters", "counters.json", "echo-dr.plan.json", "--", text(&program)]).args(arguments);
        let output = run.env("UMA_DEVICE_SCHEDULE", schedule).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{how} {schedule}: {output:?}");
        let counted = counters(&folder.path().join("counters.json"));
        for pair in plan.enabled() {
            let counted = counted.pairs.iter().find(|counted| counted.pair == pair.id).expect("its counters");
            assert_eq!((counted.copies_skipped, counted.released), (8, 1), "{how} {schedule}: {counted:?}");
        }
        assert!(counted.deviations.is_empty(), "{how} {schedule}: {counted:?}");
    }
    run.json()
}

/// The page-locked pair and the ordinary one.
fn pairs(report: &Value) -> (Value, Value) {
    let at = |line: usize| {
        let place = format!("locked.cu:{line}");
        let is_it = |pair: &&Value| pair["host"]["text"].as_str().is_some_and(|text| text.ends_with(&place));
        let pairs = report["pairs"].as_array().unwrap();
        pairs.iter().find(is_it).unwrap_or_else(|| panic!("no pair at line {line}: {report}")).clone()
    };
    (at(line("// HERE h")), at(line("g = (int *)malloc")))
}

#[test]
fn page_locked_pairs_are_merged() {
    for runtime in [Runtime::Shared, Runtime::Static] {
        for how in ["none", "async"] {
            let report = tuned(how, runtime);
            let (locked, heap) = pairs(&report);
            assert!(passes(&locked) && passes(&heap), "{how}: {report}");
        }
    }
}

#[test]
fn so_are_those_of_cuda_host_alloc() {
    let (locked, heap) = pairs(&tuned("flags", Runtime::Shared));
    assert!(passes(&locked) && passes(&heap), "{locked} {heap}");
}

#[test]
fn a_write_between_the_copies_is_seen() {
    let (locked, heap) = pairs(&tuned("write", Runtime::Shared));
    assert_eq!(locked["why_not"]["number"], "EDR340", "{locked}");
    let place = locked["access"]["text"].as_str().expect("a place");
    assert!(place.contains(&format!("locked.cu:{}", line("// HERE write"))), "{place}");
    assert!(passes(&heap), "{heap}");
}

/// An asynchronous copy to page-locked memory makes nobody wait, so work after it may change d before the host looks at h.
#[test]
fn work_behind_a_download_that_nobody_has_waited_for_is_seen() {
    let (locked, _) = pairs(&tuned("late", Runtime::Shared));
    assert_eq!(locked["why_not"]["number"], "EDR340", "{locked}");
    let place = locked["access"]["text"].as_str().expect("a place");
    assert!(place.contains(&format!("locked.cu:{}", line("// HERE late"))), "{place}");
}

/// In a validation run the block is pageable, and a copy from such memory may return while its last part is still on the way. Were it so, the kernel
/// would go first here, and the copy would put back what it changed.
#[test]
fn a_synchronous_copy_is_over_when_it_returns() {
    for runtime in [Runtime::Shared, Runtime::Static] {
        let (locked, heap) = pairs(&tuned_in(Some("lazy"), "kept", runtime));
        assert_eq!(locked["why_not"]["number"], "EDR340", "{locked}");
        let place = locked["access"]["text"].as_str().expect("a place");
        assert!(place.contains(&format!("locked.cu:{}", line("// HERE late"))), "{place}");
        assert!(passes(&heap), "{heap}");
    }
}

#[test]
fn a_kernel_that_uses_the_host_buffer_ends_the_pair() {
    for runtime in [Runtime::Shared, Runtime::Static] {
        // The one program fails in the validation run, the other doesn't look at errors.
        for how in ["kernel", "hidden"] {
            let (locked, heap) = pairs(&tuned(how, runtime));
            assert_eq!(locked["why_not"]["number"], "EDR345", "{how}: {locked}");
            assert!(passes(&heap), "{how}: the other pair is validated all the same: {heap}");
        }
    }
}

#[test]
fn calls_that_take_it_for_device_memory_end_the_pair() {
    for (how, number) in [("set", "EDR310"), ("asked", "EDR326")] {
        let report = tuned(how, Runtime::Shared);
        let ineligible = report["ineligible"].as_array().unwrap();
        let is_it = |copies: &Value| {
            let place = format!("locked.cu:{}", line("// HERE h"));
            copies["host"]["text"].as_str().is_some_and(|text| text.ends_with(&place))
                && copies["reasons"].as_array().is_some_and(|reasons| reasons.iter().any(|it| it["number"] == number))
        };
        assert!(ineligible.iter().any(is_it), "{how}: {report}");
    }
}
