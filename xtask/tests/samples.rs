//! The samples through the whole product: what the plugin says of the paper's figures, and that every build of every sample prints the
//! same in every schedule and access mode of the CPU device.
//!
//! All tests look at one run of `cargo xtask demo --schedules`, which completes set-up and build itself.

use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// The demo's JSON, from one run for all tests; a panic with the demo's messages if it left none.
fn demo() -> &'static Value {
    static REPORT: OnceLock<Value> = OnceLock::new();
    REPORT.get_or_init(|| {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(["demo", "--json", "--small", "--schedules", "--repeats", "1"])
            .output()
            .expect("xtask starts");
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("the demo left no report:\n{}", String::from_utf8_lossy(&output.stderr)))
    })
}

fn samples() -> &'static [Value] {
    demo()["samples"].as_array().expect("the report has samples")
}

fn sample(name: &str) -> &'static Value {
    samples().iter().find(|sample| sample["name"] == name).unwrap_or_else(|| panic!("{name} is not in the report"))
}

/// The line of `NAME.cu` that contains `text`.
fn line(name: &str, text: &str) -> u64 {
    let path = format!("{}/../cuda-samples/{name}.cu", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(path).expect("the sample's source");
    let index =
        source.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{name}.cu has no '{text}'"));
    index as u64 + 1
}

/// The only pair of a figure.
fn pair(name: &str) -> &'static Value {
    let pairs = sample(name)["pairs"].as_array().expect("a sample has pairs");
    assert_eq!(pairs.len(), 1, "{name}: {pairs:?}");
    &pairs[0]
}

fn assert_merged(name: &str) {
    let pair = pair(name);
    assert_eq!(pair["outcome"], "merged", "{name}: {pair}");
    assert_eq!(pair["host"]["site"]["line"], line(name, "malloc(N)"), "{name}");
    assert_eq!(pair["device"]["site"]["line"], line(name, "cudaMalloc(&d, N)"), "{name}");
}

fn assert_declined(name: &str, condition: &str, at: &str) {
    let pair = pair(name);
    assert_eq!(pair["outcome"], "declined", "{name}: {pair}");
    let reason = &pair["reasons"][0];
    let code = reason["code"].as_str().expect("a reason has a code");
    assert!(code.starts_with(condition), "{name}: {code}");
    assert_eq!(reason["at"]["line"], line(name, at), "{name}: {pair}");
    assert_eq!(sample(name)["copies_removed"], 0, "{name}");
}

#[test]
fn figure_1_is_merged_and_both_its_copies_go() {
    assert_merged("figure1");
    // Three rounds (samples.toml), one copy in each direction.
    assert_eq!(sample("figure1")["copies_removed"], 6);
}

#[test]
fn figure_2_s1_is_left_alone_because_of_the_store_after_the_copy() {
    assert_declined("figure2_s1", "S1-", "h[0] = 999.0f");
}

#[test]
fn figure_2_s2_is_merged_and_waits_where_the_copy_back_was() {
    assert_merged("figure2_s2");
    let waits = pair("figure2_s2")["waits"].as_array().expect("waits");
    let copy_back = line("figure2_s2", "cudaMemcpy(h, d, N, D2H)");
    assert!(waits.iter().any(|wait| wait["site"]["line"] == copy_back), "{waits:?}");
}

#[test]
fn figure_2_s3_is_left_alone_because_of_the_comparison() {
    assert_declined("figure2_s3", "S3-", "if (h == d)");
}

#[test]
fn figure_2_s4_is_merged_and_its_only_copy_goes() {
    assert_merged("figure2_s4");
    // Two rounds (samples.toml), one upload each.
    assert_eq!(sample("figure2_s4")["copies_removed"], 2);
}

#[test]
fn every_verdict_is_the_expected_one() {
    for sample in samples() {
        assert_eq!(sample["unexpected"], serde_json::json!([]), "{}", sample["name"]);
    }
}

#[test]
fn outputs_are_equal_in_every_schedule_and_access_mode() {
    assert!(samples().len() >= 15, "{} samples", samples().len());
    for sample in samples() {
        let name = &sample["name"];
        assert_eq!(sample["outputs_equal"], true, "{name}");
        assert!(sample["output"].as_str().is_some_and(|output| !output.is_empty()), "{name} printed nothing");
        assert_eq!(sample["schedules"]["differences"], serde_json::json!([]), "{name}");
        // lazy, eager and 20 random schedules, in two access modes, of at least the plain and the merged build
        assert!(sample["schedules"]["runs"].as_u64() >= Some(2 * 22 * 2), "{name}");
    }
}
