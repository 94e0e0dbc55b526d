//! The modules that the passes are measured on are what they claim to be, and what a module without CUDA pays.

#![cfg(feature = "llvm22")]

mod common;

use common::{MAJOR, opt, plugin, scratch, short, succeed, with_module, write};
use echo_sr::effects::host;
use echo_sr::report::pair::{Outcome, PairReport};
use echo_synth::{Request, Shape, module};

fn request(shape: Shape, instructions: usize, pairs: usize) -> Request {
    Request { instructions, pairs, shape, seed: 1, locations: false }
}

/// Processor time of Echo's passes in milliseconds, from the report of `-time-passes`.
fn pass_time(report: &str) -> f64 {
    let mut column = 0;
    let mut total = None;
    for line in report.lines() {
        if line.contains("--- Name ---") {
            let before = ["---User Time---", "--System Time--"].iter().filter(|name| line.contains(**name)).count();
            column = if line.contains("--User+System--") { before } else { 0 };
        } else if line.trim_end().ends_with("RustPass") {
            let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            *total.get_or_insert(0.0) += numbers[column];
        }
    }
    total.unwrap_or_else(|| panic!("the passes ran: {report}")) * 1e3
}

#[test]
fn the_embedded_record_is_one_that_the_host_half_reads() {
    with_module(&module(&request(Shape::ManyFunctions, 2_000, 4)).text, |module| {
        let effects = host::effects_or_reason(module).expect("a record");
        let known: Vec<_> = effects.kernels.iter().map(|(name, kernel)| format!("{name}: {}", short(kernel))).collect();
        assert_eq!(known, ["change: rw .", "look: r .", "make: w ."]);
        let stubs = host::kernels_of_module(module);
        assert_eq!(stubs.get("__device_stub__other").map(String::as_str), Some("other"));
    });
}

#[test]
fn pairs_are_merged_and_declined_in_comparable_numbers() {
    for shape in [Shape::ManyFunctions, Shape::FewFunctions] {
        let directory = scratch();
        let input = write(
            directory.path(),
            "module.ll",
            &module(&Request { locations: true, ..request(shape, 12_000, 30) }).text,
        );
        let report = directory.path().join("report.jsonl");
        let mut command = opt(MAJOR, plugin());
        command.args(["-O2", "-disable-output"]).arg(input);
        succeed(command.env("ECHO_SR_OPTIONS", format!("report={}", report.display())));
        let text = std::fs::read_to_string(&report).expect("a report");
        let reports: Vec<PairReport> =
            text.lines().map(|line| serde_json::from_str(line).expect("each line is a report")).collect();
        assert_eq!(reports.len(), 30, "{shape:?}");
        let merged = reports.iter().filter(|report| report.outcome == Outcome::Merged).count();
        assert!((8..=22).contains(&merged), "{shape:?}: {merged} of 30 are merged");
        for condition in ["S1-", "S2-", "S3-"] {
            let broken =
                reports.iter().flat_map(|report| &report.reasons).any(|reason| reason.code.starts_with(condition));
            assert!(broken, "{shape:?}: no pair breaks {condition}");
        }
    }
}

// What is measured is processor time, so that a busy machine changes little; it is about 0.1 ms.
#[test]
fn a_module_without_cuda_costs_less_than_a_millisecond() {
    let directory = scratch();
    let input = write(directory.path(), "module.ll", &module(&request(Shape::Plain, 200_000, 0)).text);
    let mut command = opt(MAJOR, plugin());
    command.args(["-passes=echo-sr-prepare,echo-sr", "-disable-output", "-time-passes"]).arg(input);
    let (_, report) = succeed(&mut command);
    let cost = pass_time(&report);
    assert!(cost < 1.0, "{cost} ms:\n{report}");
}
