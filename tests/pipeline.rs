//! One host module through the whole pass, in the compilers that run it.

#![cfg(feature = "llvm22")]

mod common;

use std::path::Path;
use std::process::Command;

use common::{MAJOR, clang, fail, opt, plugin, scratch, succeed, write};
use echo_sr::report::pair::{Outcome, PairReport};

/// The paper's first figure; the lines are named in the tests.
const PROGRAM: &str = r#"
#include <cstdio>
#include <cstdlib>
__global__ void twice(float *data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= 2;
}
int main() {
  const int n = 1 << 20;
  float *h = (float *)malloc(n * sizeof(float));
  float *d;
  for (int i = 0; i < n; ++i) h[i] = i;
  cudaMalloc(&d, n * sizeof(float));
  cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice);
  twice<<<n / 256, 256>>>(d, n);
  cudaMemcpy(h, d, n * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", h[12]);
  cudaFree(d);
  free(h);
}
"#;

/// The program with a line put before the launch.
fn with_line(line: &str) -> String {
    PROGRAM.replace("  twice<<<", &format!("  {line}\n  twice<<<"))
}

/// Compiles a program, with options, and gives its reports and what the compiler said.
#[track_caller]
fn compile(directory: &Path, program: &str, options: &str, flags: &[&str]) -> (Vec<PairReport>, String) {
    write(directory, "program.cu", program);
    let report = directory.join("report.jsonl");
    let options = format!("report={};{options}", report.display());
    let mut command = clang(directory);
    let (_, message) = succeed(command.args(["-g", "-c", "program.cu"]).args(flags).env("ECHO_SR_OPTIONS", options));
    (reports(&report), message)
}

fn reports(path: &Path) -> Vec<PairReport> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("each line is a report")).collect()
}

#[test]
fn a_pair_is_merged_and_reported_with_its_places() {
    let directory = scratch();
    let (reports, remarks) = compile(directory.path(), PROGRAM, "", &["-Rpass=echo-sr", "-Rpass-missed=echo-sr"]);
    let [report] = &reports[..] else { panic!("one pair, not {reports:?}") };
    assert_eq!(report.outcome, Outcome::Merged, "{report}");
    assert_eq!((report.host.name.as_str(), report.host.site.line), ("h", 10), "{report}");
    assert_eq!((report.device.name.as_str(), report.device.site.line), ("d", 13), "{report}");
    assert_eq!(report.bytes, Some(4 << 20));
    assert_eq!(report.copies.iter().map(|copy| copy.line).collect::<Vec<_>>(), [14, 16], "{report}");
    assert_eq!(report.waits.iter().map(|wait| wait.site.line).collect::<Vec<_>>(), [16], "{report}");
    assert!(remarks.contains("program.cu:10:") && remarks.contains("2 copies removed"), "{remarks}");
    assert!(remarks.contains("[-Rpass=echo-sr]"), "{remarks}");
}

#[test]
fn the_copies_are_gone_from_the_code() {
    let directory = scratch();
    write(directory.path(), "program.cu", PROGRAM);
    let ir = ["--cuda-host-only", "-S", "-emit-llvm", "program.cu", "-o", "-"];
    let (before, _) = succeed(common::clang_without_plugin(directory.path()).args(ir));
    assert!(before.contains("@cudaMemcpy(") && !before.contains("@cudaMallocManaged("), "{before}");
    let (after, _) = succeed(clang(directory.path()).args(ir));
    assert!(!after.contains("@cudaMemcpy("), "{after}");
    assert!(after.contains("@cudaMallocManaged("), "{after}");
}

#[test]
fn a_declined_pair_says_which_line_breaks_what() {
    let directory = scratch();
    let program = with_line("h[0] = 999;");
    let (reports, remarks) = compile(directory.path(), &program, "", &["-Rpass-missed=echo-sr"]);
    let [report] = &reports[..] else { panic!("one pair, not {reports:?}") };
    assert_eq!(report.outcome, Outcome::Declined);
    let reason = report.reasons.iter().find(|reason| reason.code == "S1-device-value-overwritten");
    let reason = reason.unwrap_or_else(|| panic!("S1 is broken: {report}"));
    assert_eq!(reason.at.line, 15, "{report}");
    assert!(!reason.witness.is_empty() && !reason.help.is_empty(), "{report}");
    assert!(remarks.contains("[-Rpass-missed=echo-sr]") && remarks.contains(&reason.number), "{remarks}");
}

#[test]
fn remarks_go_to_the_optimization_record() {
    let directory = scratch();
    compile(directory.path(), PROGRAM, "", &["-fsave-optimization-record"]);
    let record = std::fs::read_dir(directory.path())
        .expect("the directory is there")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .find(|text| text.contains("echo-sr"))
        .expect("clang wrote the record");
    let remark = record.split("---").find(|remark| remark.contains("echo-sr")).expect("it is in there");
    let facts = ["HostBuffer:      h", "DeviceBuffer:    d", "CopiesRemoved:   '2'", "Number:          ESR101"];
    for part in ["!Passed", "Name:            Merged", "Line: 10", "Function:        main"].into_iter().chain(facts) {
        assert!(remark.contains(part), "no {part} in {remark}");
    }
}

#[test]
fn a_wrong_option_is_told_once_however_many_passes_see_it() {
    let directory = scratch();
    write(directory.path(), "program.cu", PROGRAM);
    let mut command = clang(directory.path());
    let message = fail(command.args(["-c", "program.cu"]).env("ECHO_SR_OPTIONS", "acess=concurrent"));
    assert_eq!(message.matches("unknown option `acess=concurrent`").count(), 1, "{message}");
}

#[test]
fn an_analysis_reports_and_leaves_the_module_as_it_is() {
    let directory = scratch();
    let (reports, remarks) = compile(directory.path(), PROGRAM, "analyse-only", &["-Rpass-missed=echo-sr"]);
    assert_eq!(reports.iter().map(|report| report.outcome).collect::<Vec<_>>(), [Outcome::Mergeable]);
    assert!(remarks.contains("can be merged [ESR103]"), "{remarks}");
    let ir = ["--cuda-host-only", "-S", "-emit-llvm", "program.cu", "-o", "-"];
    let (after, _) = succeed(clang(directory.path()).args(ir).env("ECHO_SR_OPTIONS", "analyse-only"));
    assert!(after.contains("@cudaMemcpy(") && !after.contains("@cudaMallocManaged("), "{after}");
}

#[test]
fn what_a_loop_saves_is_reported() {
    let directory = scratch();
    let program = PROGRAM
        .replace("  cudaMemcpy(d, h", "  for (int round = 0; round < 9; ++round) {\n  cudaMemcpy(d, h")
        .replace("  printf(", "  }\n  printf(");
    let (reports, _) = compile(directory.path(), &program, "", &[]);
    assert_eq!(reports[0].saved_per_iteration, Some(2 * (4 << 20)), "{}", reports[0]);
    let directory = scratch();
    let (reports, _) = compile(directory.path(), PROGRAM, "", &[]);
    assert_eq!(reports[0].saved_per_iteration, None, "{}", reports[0]);
}

#[test]
fn at_the_merge_limit_a_pair_stays() {
    let directory = scratch();
    let (reports, remarks) = compile(directory.path(), PROGRAM, "merge-limit=0", &["-Rpass-missed=echo-sr"]);
    assert_eq!(reports.iter().map(|report| report.outcome).collect::<Vec<_>>(), [Outcome::OverLimit]);
    assert!(remarks.contains("merge-limit"), "{remarks}");
}

#[test]
fn the_merge_limit_counts_the_pairs_of_a_module() {
    let directory = scratch();
    let second = PROGRAM[PROGRAM.find("int main()").expect("main")..].replace("int main()", "int second()");
    let second = second.replace("  free(h);\n", "  free(h);\n  return 0;\n");
    let both = format!("{}{}", PROGRAM.replace("int main() {", "int second();\nint main() {\n  second();"), second);
    for (limit, merged) in [(0, 0), (1, 1), (2, 2)] {
        let (reports, _) = compile(directory.path(), &both, &format!("access=concurrent;merge-limit={limit}"), &[]);
        let outcomes = reports.iter().skip(reports.len().saturating_sub(2)).map(|report| report.outcome);
        assert_eq!(outcomes.clone().count(), 2);
        assert_eq!(outcomes.filter(|outcome| *outcome == Outcome::Merged).count(), merged, "limit {limit}");
    }
}

#[test]
fn the_threshold_is_an_option() {
    let directory = scratch();
    let (reports, _) = compile(directory.path(), PROGRAM, "theta-min=9999999", &[]);
    assert_eq!(reports[0].reasons[0].code, "CAND-below-threshold", "{}", reports[0]);
}

#[test]
fn the_text_report_goes_to_standard_error_when_asked_for() {
    let directory = scratch();
    let (_, silent) = compile(directory.path(), PROGRAM, "", &[]);
    assert_eq!(silent, "");
    let (_, text) = compile(directory.path(), PROGRAM, "verbose", &[]);
    assert!(text.contains("program.cu:10 h <-> program.cu:13"), "{text}");
}

#[test]
fn a_report_that_can_not_be_written_is_an_error() {
    let directory = scratch();
    write(directory.path(), "program.cu", PROGRAM);
    let mut command = clang(directory.path());
    let message = fail(command.args(["-c", "program.cu"]).env("ECHO_SR_OPTIONS", "report=/nonexistent/report.jsonl"));
    assert!(message.contains("/nonexistent/report.jsonl"), "{message}");
}

#[test]
fn the_pass_runs_in_optimisation_and_link_time_pipelines_of_opt() {
    let directory = scratch();
    write(directory.path(), "program.cu", PROGRAM);
    let arguments = ["-g", "--cuda-host-only", "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", "program.cu"];
    succeed(common::clang_without_plugin(directory.path()).args(arguments).args(["-o", "raw.ll"]));
    let run = |pipeline: &str, input: &str, output: &str| -> Vec<PairReport> {
        let report = directory.path().join(format!("{output}.jsonl"));
        let mut command: Command = opt(MAJOR, plugin());
        command.current_dir(directory.path()).args([&format!("-passes={pipeline}"), input, "-o", output]);
        // The module embeds no device code, so the kernel may do anything: declined or not, the pair is reported.
        succeed(command.env("ECHO_SR_OPTIONS", format!("report={}", report.display())));
        reports(&report)
    };
    assert_eq!(run("default<O2>", "raw.ll", "default.bc").len(), 1);
    // Compile step without the plugin, link step with it.
    let pre_link = ["-passes=lto-pre-link<O2>", "raw.ll", "-o", "pre.bc"];
    succeed(Command::new(format!("opt-{MAJOR}")).current_dir(directory.path()).args(pre_link));
    assert_eq!(run("lto<O2>", "pre.bc", "lto.bc").len(), 1);
}
