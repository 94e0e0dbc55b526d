//! What the host does to a buffer while the GPU uses the pair is seen, named by its place, and ends the pair.

use std::fs;

use crate::common::{echo_dr, own, plain, root, text};
use serde_json::Value;

/// `tune` of the program `touch` with an access of this kind: the pair's line of the report.
fn pair(how: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let program = own("touch");
    let arguments = ["tune", "--json", "--trials", "1", "--compare-stdout", "--", text(&program), how, "4"];
    let run = echo_dr(folder.path(), &arguments);
    assert!(run.code == 0 || run.code == 1, "{how}: {} {}", run.out, run.err);
    let report = run.json();
    let pairs = report["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 1, "{how}: {report}");
    pairs[0].clone()
}

/// The pair is rejected because of the line with the comment `HERE how`.
fn is_rejected_at_its_line(how: &str) {
    let source = fs::read_to_string(root().join("crates/echo-dr/cli/tests/programs/touch.cu")).unwrap();
    let marker = format!("// HERE {how}");
    let line = 1 + source.lines().position(|line| line.ends_with(&marker)).expect("the line of the access");
    let pair = pair(how);
    assert_eq!(pair["why_not"]["number"], "EDR340", "{how}: {pair}");
    let place = pair["access"]["text"].as_str().unwrap_or_else(|| panic!("{how}: the access has no place: {pair}"));
    assert!(place.contains(&format!("touch.cu:{line}")), "{how}: {place}, not line {line}");
}

#[test]
fn a_program_that_keeps_its_hands_off_keeps_its_pair() {
    let pair = pair("none");
    let number = pair["why_not"]["number"].as_str();
    assert!(pair["state"] == "enabled" || number == Some("EDR350"), "{pair}");
    assert_eq!(pair["copies_per_iteration_milli"], 2000);
    assert!(pair["host"]["text"].as_str().unwrap().starts_with("main touch.cu:"), "{pair}");
}

#[test]
fn a_write_between_the_copies_is_seen() {
    is_rejected_at_its_line("write");
}

#[test]
fn a_write_through_another_name_is_seen() {
    is_rejected_at_its_line("alias");
}

#[test]
fn a_write_by_another_thread_is_seen() {
    is_rejected_at_its_line("thread");
}

#[test]
fn a_read_call_into_the_buffer_is_seen_and_works() {
    is_rejected_at_its_line("read-call");
}

#[test]
fn fread_into_the_buffer_is_seen_and_works() {
    is_rejected_at_its_line("fread");
}

#[test]
fn a_load_between_the_copies_is_seen() {
    is_rejected_at_its_line("load");
}

#[test]
fn a_load_by_a_function_that_the_stream_calls_is_seen() {
    is_rejected_at_its_line("host-function");
}

#[test]
fn the_program_never_notices() {
    let program = own("touch");
    for how in ["none", "write", "alias", "thread", "read-call", "fread", "load", "host-function"] {
        let folder = tempfile::tempdir().unwrap();
        let arguments = [how, "3"];
        let expected = plain(&program, &arguments, &[]).ends(0).out;
        echo_dr(folder.path(), &[&["profile", "--", text(&program)], &arguments[..]].concat()).ends(0);
        echo_dr(folder.path(), &["analyze", "echo-dr.trace"]).ends(0);
        // Its output goes to standard error, for once.
        let validate = ["validate", "--show-output", "echo-dr.plan.json", "--", text(&program)];
        let run = echo_dr(folder.path(), &[&validate[..], &arguments[..]].concat());
        assert!(run.err.contains(expected.trim()), "{how}: {expected} is not in {}", run.err);
    }
}

#[test]
fn managed_memory_gives_no_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let program = own("managed");
    let report = echo_dr(folder.path(), &["tune", "--json", "--", text(&program)]).ends(1).json();
    assert_eq!(report["pairs"].as_array().map(Vec::len), Some(0), "{report}");
    assert_eq!(report["notes"][0], "uses_managed_memory", "{report}");
    let text = echo_dr(folder.path(), &["tune", "--", text(&program)]).ends(1).out;
    assert!(text.contains("No pair") && text.contains("managed memory"), "{text}");
}
