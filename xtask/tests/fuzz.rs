//! `cargo xtask fuzz` for a minute: a plugin that is as it should be passes, one that forgets waits is caught and the program that shows it
//! comes back small.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("fuzz").args(arguments).env_remove("ECHO_SR_MUTANT");
    command
}

fn fuzz(arguments: &[&str]) -> Output {
    command(arguments).output().expect("xtask starts")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report:\n{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn random_programs_print_the_same_with_the_plugin() {
    let output = fuzz(&["--seed", "20", "--programs", "40", "--json"]);
    let report = json(&output);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(report["programs"], 40);
    // 2 inputs; 4 schedules; two access modes but for the build that needs concurrent access, which even batches have.
    assert_eq!(report["runs"], 40 * 2 * 4 * (2 + 2 + 1));
    // Nothing is shown where nothing, or everything, is merged.
    for access in ["exclusive", "concurrent"] {
        let pairs = |outcome: &str| report["pairs"][access][outcome].as_u64().unwrap_or(0);
        assert!(pairs("merged") >= 10 && pairs("declined") >= 10, "{access}: {}", report["pairs"]);
    }
}

#[test]
fn random_programs_print_the_same_merged_by_echo_dr() {
    let output = fuzz(&["--dr", "--seed", "5", "--programs", "40", "--json"]);
    let report = json(&output);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // 2 inputs; the program alone in 4 schedules and two access modes; recorded, watched, and merged in 4 schedules, in both modes.
    assert_eq!(report["runs"], 40 * 2 * (4 * 2 + (1 + 1 + 4) * 2));
    let pairs = |outcome: &str| report["pairs"]["preloaded"][outcome].as_u64().unwrap_or(0);
    assert!(pairs("merged") >= 10 && pairs("declined") >= 10, "{}", report["pairs"]);
    assert!(report["merged"]["copies_skipped"].as_u64().is_some_and(|count| count > 100), "{}", report["merged"]);
}

/// Without this the test above would prove nothing.
#[test]
fn merges_that_were_not_validated_are_found() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let folder = keep.path().to_str().expect("a name in UTF-8");
    let arguments =
        ["--dr", "--unsound-without-validation", "--seed", "5", "--programs", "40", "--reduce", "0", "--json"];
    let output = fuzz(&[&arguments[..], &["--keep", folder]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&output);
    let findings = report["findings"].as_array().map_or(0, Vec::len);
    assert!(findings >= 2, "{}", report["findings"]);
    assert!(report["findings"].as_array().is_some_and(|all| all.iter().all(|finding| finding["build"] == "preloaded")));
}

/// Without this the first test would prove nothing.
#[test]
fn a_plugin_that_forgets_waits_is_caught_and_the_program_is_reduced() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository");
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["build", "--quiet", "--package", "echo-sr", "--lib", "--features", "mutants"])
        .status()
        .expect("cargo starts");
    assert!(status.success());
    let keep = tempfile::tempdir().expect("a temporary folder");
    // (A copy, which no other build replaces meanwhile.)
    let plugin = keep.path().join("libecho_sr_mutants.so");
    fs::copy(root.join("target/debug/libecho_sr.so"), &plugin).expect("the plugin was built");
    let folder = keep.path().to_str().expect("a name in UTF-8");
    let plugin = plugin.to_str().expect("a name in UTF-8");
    let output =
        command(&["--seed", "1", "--first", "12", "--programs", "1", "--keep", folder, "--plugin", plugin, "--json"])
            .env("ECHO_SR_MUTANT", "R3Wait")
            .output()
            .expect("xtask starts");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));

    let report = json(&output);
    let finding = &report["findings"][0];
    assert_eq!(finding["program"], 12, "{report}");
    assert!(finding["pair"].as_str().is_some_and(|pair| pair.contains('h') && pair.contains('d')), "{finding}");
    let text = fs::read_to_string(finding["file"].as_str().expect("a file is kept")).expect("the file");
    assert!(text.starts_with("// cargo xtask fuzz --seed 1 --first 0 --programs "), "{text}");
    let (_, function) = text.split_once("program_12(").expect("the program's function");
    let (function, _) = function.split_once("\n}").expect("its end");
    assert!(function.lines().count() < 30, "not reduced:\n{function}");
    assert!(function.contains("cudaMemcpyDeviceToHost"), "only a download leaves a wait:\n{function}");
}

#[test]
fn a_plugin_that_is_not_there_is_named() {
    let output = fuzz(&["--plugin", "/nonexistent/plugin.so", "--programs", "1"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent/plugin.so"));
}
