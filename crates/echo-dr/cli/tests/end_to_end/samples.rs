//! `tune` on the samples, compiled without the plugin: it finds the pairs that Echo-SR merges, outputs stay, and each copy that goes is counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::common::{Runtime, command, counters, echo_dr, enable, plain, program_with, root, text};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Catalogue {
    sample: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    name: String,
    test: Vec<String>,
    pair: Vec<Pair>,
}

#[derive(Deserialize)]
struct Pair {
    host: String,
    device: String,
    verdict: String,
}

/// Pairs of which the two products say different things, by text of the line that allocates the host buffer.
#[derive(Default)]
struct Difference {
    /// Echo-SR declines them: Echo-DR sees a run, not all runs.
    more: &'static [&'static str],
    /// Validation or calibration rejects them; Echo-SR declines them too.
    rejected: &'static [&'static str],
}

fn difference(name: &str) -> Difference {
    match name {
        // The host writes between the copies.
        "figure2_s1" => Difference { rejected: &["malloc(N)"], ..Difference::default() },
        // The pointers are compared, and the outputs tell.
        "figure2_s3" => Difference { rejected: &["malloc(N)"], ..Difference::default() },
        // The sizes are equal in every run, which Echo-SR can't prove.
        "histogram" => Difference { more: &["frame(size)"], ..Difference::default() },
        "prefix_sum" => Difference { more: &["calloc(n"], ..Difference::default() },
        _ => Difference::default(),
    }
}

fn catalogue() -> Vec<Sample> {
    let path = root().join("cuda-samples/samples.toml");
    toml::from_str::<Catalogue>(&fs::read_to_string(path).unwrap()).unwrap().sample
}

/// `name.cu:LINE` of the only line with this text.
fn place(name: &str, part: &str) -> String {
    let source = fs::read_to_string(root().join(format!("cuda-samples/{name}.cu"))).unwrap();
    let lines: Vec<_> =
        (1..).zip(source.lines()).filter(|(_, line)| line.contains(part)).map(|(number, _)| number).collect();
    assert_eq!(lines.len(), 1, "{part} in {name}.cu");
    format!("{name}.cu:{}", lines[0])
}

/// What `UMA_DEVICE_STATS` has after a run.
fn copies(stats: &Path) -> u64 {
    let value: Value = serde_json::from_str(&fs::read_to_string(stats).unwrap()).unwrap();
    value["copies"].as_u64().unwrap()
}

/// What is wrong with a sample.
fn check(sample: &Sample, runtime: Runtime) -> String {
    let mut wrong = String::new();
    let folder = tempfile::tempdir().unwrap();
    let app = program_with(&root().join(format!("cuda-samples/{}.cu", sample.name)), runtime);
    let arguments: Vec<&str> = sample.test.iter().map(String::as_str).collect();
    let stats = folder.path().join("stats.json");
    let expected = plain(&app, &arguments, &[("UMA_DEVICE_STATS", text(&stats))]).ends(0).out;
    let copies_before = copies(&stats);

    // The tests' buffers are small, and one sample copies once each way.
    let head = [
        "tune",
        "--json",
        "--trials",
        "1",
        "--compare-stdout",
        "--threshold",
        "10000",
        "--k-min",
        "1",
        "--report",
        "report.html",
        "--",
        text(&app),
    ];
    let run = echo_dr(folder.path(), &[&head[..], &arguments].concat());
    if run.code != 0 && run.code != 1 {
        return format!("tune ended with {}: {}", run.code, run.err);
    }
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    // Of a program that copies once there is no iteration to show.
    let has_loop = page.contains("Before: ");
    if page.contains("Recorded in a run with the plan") != (has_loop && run.code == 0) {
        writeln!(wrong, "the report should show an iteration with the plan if something is merged: {}", run.err)
            .unwrap();
    }
    let report = run.json();
    let passes = |pair: &Value| pair["state"] == "enabled" || pair["why_not"]["number"] == "EDR350";
    let found: BTreeMap<(String, String), bool> = report["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| {
            let last = |side: &str| pair[side]["text"].as_str().unwrap().rsplit(' ').next().unwrap().to_owned();
            ((last("host"), last("device")), passes(pair))
        })
        .collect();
    let different = difference(&sample.name);
    for pair in &sample.pair {
        let wanted = match pair.verdict.as_str() {
            "merged" => Some(true),
            _ if different.more.contains(&pair.host.as_str()) => Some(true),
            _ if different.rejected.contains(&pair.host.as_str()) => Some(false),
            _ => None,
        };
        let key = (place(&sample.name, &pair.host), place(&sample.name, &pair.device));
        if found.get(&key).copied() != wanted {
            writeln!(wrong, "{key:?} should be {wanted:?}, found are {found:?}").unwrap();
        }
    }
    if found.len() != sample.pair.len() {
        writeln!(wrong, "{} pairs instead of {}: {found:?}", found.len(), sample.pair.len()).unwrap();
    }

    // With all that passed validation merged, gain or not.
    let plan = enable(&folder.path().join("echo-dr.plan.json"));
    if plan.enabled().next().is_none() {
        return wrong;
    }
    for schedule in ["lazy", "eager", "random:1"] {
        let mut run = command(folder.path());
        run.args(["run", "--counters", "counters.json", "echo-dr.plan.json", "--", text(&app)]).args(&arguments);
        run.env("UMA_DEVICE_SCHEDULE", schedule).env("UMA_DEVICE_STATS", &stats);
        let output = run.output().unwrap();
        if String::from_utf8_lossy(&output.stdout) != expected {
            writeln!(wrong, "{schedule}: another output: {output:?}").unwrap();
            continue;
        }
        let counted = counters(&folder.path().join("counters.json"));
        let skipped: u64 = counted.pairs.iter().map(|pair| pair.copies_skipped).sum();
        let gone = copies_before - copies(&stats);
        if skipped == 0 || skipped != gone {
            writeln!(wrong, "{schedule}: {skipped} copies counted as skipped, {gone} gone: {counted:?}").unwrap();
        }
    }
    wrong
}

#[test]
fn tune_finds_what_echo_sr_merges_and_the_outputs_stay() {
    let mut wrong = String::new();
    for sample in catalogue() {
        let found = check(&sample, Runtime::Shared);
        if !found.is_empty() {
            writeln!(wrong, "{}:\n{found}", sample.name).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Binaries as nvcc links them: only the driver's functions can be seen, and the driver is opened at the first CUDA call, which in figure1
/// comes after the host block.
#[test]
fn so_it_does_where_the_runtime_is_linked_in() {
    let mut wrong = String::new();
    for sample in catalogue()
        .iter()
        .filter(|sample| ["figure1", "figure2_s1", "transpose", "vector_add"].contains(&&*sample.name))
    {
        let found = check(sample, Runtime::Static);
        if !found.is_empty() {
            writeln!(wrong, "{}:\n{found}", sample.name).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
