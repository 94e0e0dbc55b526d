//! CUDA programs through lowering, analysis and rewrite, as clang's pipeline hands them to the pass.

mod common;

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use common::{clang_without_plugin, opt, plugin, scratch, succeed, with_module, write};
use echo_sr::analysis::program::{Program, WaitScope};
use echo_sr::analysis::verdict::{Decision, FreeAction, MergePlan, SyncAction, Verdict};
use echo_sr::analysis::{Options, analyse};
use echo_sr::effects::{EffectTable, KernelEffects, ParamEffect};
use echo_sr::lower::{Context, has_device_allocation, lower_function};
use echo_sr::rewrite;

/// What every program starts with: a kernel that changes `d` in place and is known to keep nothing, error checks, and loops that the
/// compiler cannot remove.
const PRELUDE: &str = r#"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <vector>
#include <cuda_runtime.h>
__global__ void scale(float *d, size_t n) { size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; if (i < n) d[i] *= 2.0f; }
__global__ void copy(float *to, const float *from, size_t n) { size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; if (i < n) to[i] = from[i]; }
static void check(cudaError_t error, const char *file, int line) {
  if (error != cudaSuccess) { fprintf(stderr, "%s:%d: %s\n", file, line, cudaGetErrorString(error)); exit(1); }
}
#define CHECK(call) check((call), __FILE__, __LINE__)
static inline void fill(float *h, size_t n) { for (size_t i = 0; i < n; ++i) h[i] = (float)i; }
static inline double sum(const float *h, size_t n) { double s = 0; for (size_t i = 0; i < n; ++i) s += h[i]; return s; }
static inline unsigned blocks(size_t n) { return (unsigned)((n + 255) / 256); }
"#;

/// What the prelude's kernels do.
fn effects() -> EffectTable {
    let touches = |reads, writes| Some(ParamEffect { reads, writes, captures: false, writes_all: None });
    let kernel = |params| KernelEffects { params, touches_other_memory: false };
    let kernels = [
        ("_Z5scalePfm".to_owned(), kernel(vec![touches(true, true), None])),
        ("_Z4copyPfPKfm".to_owned(), kernel(vec![touches(false, true), touches(true, false), None])),
    ];
    EffectTable { kernels: kernels.into() }
}

/// The host half of a program, as it is when the plugin's `echo-sr` pass runs.
fn host_ir(program: &str) -> String {
    let directory = scratch();
    write(directory.path(), "program.cu", &format!("{PRELUDE}\n#line 1\n{program}"));
    let arguments =
        ["-g", "--cuda-host-only", "-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes", "program.cu", "-o", "raw.ll"];
    succeed(clang_without_plugin(directory.path()).args(arguments));
    let passes = format!("-passes=echo-sr-prepare,{}", before_optimizer_early(directory.path()));
    succeed(opt("22", plugin()).current_dir(directory.path()).args(["-S", &passes, "raw.ll", "-o", "out.ll"]));
    std::fs::read_to_string(directory.path().join("out.ll")).expect("opt wrote its output")
}

/// The passes of `default<O2>` that run before the plugin's.
fn before_optimizer_early(directory: &Path) -> String {
    let arguments = ["-passes=default<O2>", "-print-pipeline-passes", "-disable-output", "raw.ll"];
    let (all, _) = succeed(Command::new("opt-22").current_dir(directory).args(arguments));
    let (before, _) =
        all.rsplit_once("recompute-globalsaa").expect("the optimisation half starts with recompute-globalsaa");
    before.trim_end_matches(',').to_owned()
}

/// The verdicts on `main`, one a line, and the IR of `main` after the accepted merges.
fn judge(program: &str) -> (String, String) {
    with_module(&host_ir(program), |module| {
        let context = Context::new(module, effects());
        let main = context.module.functions().find(|function| function.name() == "main").expect("main");
        assert!(has_device_allocation(main), "no device allocation in main");
        let lowered = lower_function(&context, main).expect("a body");
        let verdicts = analyse(&lowered.program, &Options { theta_min: 0, ..Options::default() });
        let mut lines = String::new();
        for verdict in &verdicts {
            let _ = writeln!(lines, "{}", line(&lowered.program, verdict));
        }
        if verdicts.is_empty() {
            let _ = writeln!(
                lines,
                "no pair: {:#?} {:#?} {:#?}",
                lowered.program.objects, lowered.program.uses, lowered.program.blemishes
            );
        }
        let plans: Vec<&MergePlan> = verdicts
            .iter()
            .filter_map(|verdict| match &verdict.decision {
                Decision::Accept(plan) => Some(plan),
                Decision::Decline(_) => None,
            })
            .collect();
        rewrite::apply(context.module, lowered, &plans);
        module.verify().unwrap_or_else(|reason| panic!("{reason}\n{program}"));
        (lines, String::new())
    })
}

/// `h d: merged; <what stays of each copy>; <what stays of each free>`, or `h d: <codes>`.
fn line(program: &Program, verdict: &Verdict) -> String {
    let name = |object| program.object(object).name.as_str();
    let pair = format!("{} {}", name(verdict.host), name(verdict.device));
    let wait = |scope: WaitScope| match scope {
        WaitScope::Device => "device",
        WaitScope::Stream(_) => "stream",
        WaitScope::Event(_) => "event",
    };
    match &verdict.decision {
        Decision::Accept(plan) => {
            let copies: Vec<_> = plan
                .copies()
                .iter()
                .map(|(_, action)| match action {
                    SyncAction::Nothing => "-",
                    SyncAction::Wait(scope) => wait(*scope),
                })
                .collect();
            let frees: Vec<_> = plan
                .frees()
                .iter()
                .map(|(_, action)| match action {
                    FreeAction::Drop { wait: None } => "drop".to_owned(),
                    FreeAction::Drop { wait: Some(scope) } => format!("wait-{}", wait(*scope)),
                    FreeAction::Release { wait: None } => "release".to_owned(),
                    FreeAction::Release { wait: Some(scope) } => format!("wait-{}-release", wait(*scope)),
                })
                .collect();
            format!("{pair}: merged; {}; {}", copies.join(" "), frees.join(" "))
        }
        Decision::Decline(reasons) => {
            let codes: Vec<_> =
                reasons.iter().map(|reason| format!("{}@{}", reason.decline.code(), reason.at.line)).collect();
            format!("{pair}: {}", codes.join(" "))
        }
    }
}

#[track_caller]
fn expect(program: &str, expected: &str) -> String {
    let (verdicts, ir) = judge(program);
    assert_eq!(verdicts.trim_end(), expected, "{program}");
    ir
}

#[test]
fn explore() {
    for path in std::env::var("EXPLORE").unwrap_or_default().split(',') {
        let text = std::fs::read_to_string(path).unwrap();
        for part in text.split("////").filter(|p| !p.trim().is_empty()) {
            let (v, _ir) = judge(&format!("//{part}"));
            println!("{}\n   {v}", part.lines().next().unwrap());
        }
    }
}
