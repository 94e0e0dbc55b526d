//! CUDA programs through lowering, analysis and rewrite, as clang's pipeline hands them to the pass.

#![cfg(feature = "llvm22")]

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
    // With a device half to embed (what it holds does not matter here), clang registers the kernels.
    write(directory.path(), "program.fatbin", "a device half");
    let arguments =
        ["-g", "--cuda-host-only", "-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes", "program.cu", "-o", "raw.ll"];
    let device_half = ["-Xclang", "-fcuda-include-gpubinary", "-Xclang", "program.fatbin"];
    succeed(clang_without_plugin(directory.path()).args(arguments).args(device_half));
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

/// The verdicts on `main`, one a line. The accepted merges are carried out, and the result is valid IR.
fn judge(program: &str) -> String {
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
        rewrite::apply(context.module, lowered, &plans, rewrite::Target::Managed);
        module.verify().unwrap_or_else(|reason| panic!("{reason}\n{program}"));
        lines
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
                    FreeAction::Count { wait: None } => "count".to_owned(),
                    FreeAction::Count { wait: Some(scope) } => format!("wait-{}-count", wait(*scope)),
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

/// `body` of `main(int argc, char **argv)`; the verdicts, one a line.
#[track_caller]
fn expect(body: &str, expected: &str) {
    expect_program(&format!("int main(int argc, char **argv) {{\n{body}\n}}"), expected);
}

#[track_caller]
fn expect_program(program: &str, expected: &str) {
    assert_eq!(judge(program).trim_end(), expected, "{program}");
}

#[test]
fn figure_1_with_a_size_from_the_command_line() {
    expect(
        "size_t n = argc > 1 ? strtoull(argv[1], 0, 10) : 1 << 20;
         float *h = (float *)malloc(n * sizeof(float));
         float *d;
         CHECK(cudaMalloc(&d, n * sizeof(float)));
         fill(h, n);
         CHECK(cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice));
         scale<<<blocks(n), 256>>>(d, n);
         CHECK(cudaGetLastError());
         CHECK(cudaMemcpy(h, d, n * sizeof(float), cudaMemcpyDeviceToHost));
         printf(\"%f\\n\", sum(h, n));
         free(h);
         CHECK(cudaFree(d));",
        "h d: merged; - stream; drop release",
    );
}

/// A program of constant size, with statements at the three places where the paper's figure 2 changes it.
fn figure_2(allocated: &str, copied: &str, launched: &str, release: &str) -> String {
    format!(
        "const size_t n = 1 << 20;
         float *h = (float *)malloc(n * 4), *d; {allocated}
         CHECK(cudaMalloc(&d, n * 4));
         fill(h, n);
         CHECK(cudaMemcpy(d, h, n * 4, cudaMemcpyHostToDevice)); {copied}
         scale<<<blocks(n), 256>>>(d, n); {launched}
         {release}"
    )
}

const BACK: &str = "CHECK(cudaMemcpy(h, d, n * 4, cudaMemcpyDeviceToHost)); printf(\"%f\\n\", h[0]);";
const RELEASE: &str = "free(h); cudaFree(d);";

#[test]
fn a_host_store_over_a_device_value_that_is_still_needed_declines() {
    expect(&figure_2("", "h[0] = 999;", BACK, RELEASE), "h d: S1-device-value-overwritten@6");
}

#[test]
fn a_read_after_the_download_leaves_a_wait() {
    expect(&figure_2("", "", BACK, RELEASE), "h d: merged; - stream; drop release");
}

#[test]
fn comparing_the_pointers_declines_and_a_null_check_does_not() {
    let compared = "if (h == d) printf(\"same\\n\");";
    expect(&figure_2("", compared, BACK, RELEASE), "h d: S3-compared@6 S3-compared@6");
    let checked = "if (h == NULL) return 1;";
    expect(&figure_2(checked, "", BACK, RELEASE), "h d: merged; - stream; drop release");
}

#[test]
fn a_host_buffer_that_is_freed_before_the_kernel_lives_on() {
    expect(
        &figure_2("", "free(h);", "CHECK(cudaDeviceSynchronize());", "cudaFree(d);"),
        "h d: merged; -; drop release",
    );
}

#[test]
fn vectors_and_owning_classes_dissolve() {
    expect(
        "const size_t n = 1 << 20;
         std::vector<float> h(n);
         float *d;
         CHECK(cudaMalloc(&d, n * 4));
         fill(h.data(), n);
         CHECK(cudaMemcpy(d, h.data(), n * 4, cudaMemcpyHostToDevice));
         scale<<<blocks(n), 256>>>(d, n);
         CHECK(cudaMemcpy(h.data(), d, n * 4, cudaMemcpyDeviceToHost));
         double s = 0; for (float x : h) s += x;
         printf(\"%f\\n\", s);
         cudaFree(d);",
        "h d: merged; - stream; drop release",
    );
}

#[test]
fn new_arrays_and_allocating_helpers() {
    expect_program(
        "static float *device_buffer(size_t n) { float *d = nullptr; CHECK(cudaMalloc((void **)&d, n * sizeof(float))); return d; }
         static void launch(float *d, size_t n) { scale<<<blocks(n), 256>>>(d, n); CHECK(cudaGetLastError()); }
         int main(int argc, char **argv) {
           int n = argc > 1 ? atoi(argv[1]) : 1000;
           float *h = new float[n];
           float *d = device_buffer(n);
           auto start = std::chrono::steady_clock::now();
           for (int i = 0; i < n; ++i) h[i] = i;
           CHECK(cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice));
           launch(d, n);
           CHECK(cudaMemcpy(h, d, n * sizeof(float), cudaMemcpyDeviceToHost));
           auto end = std::chrono::steady_clock::now();
           std::cout << std::chrono::duration<double>(end - start).count() << h[3] << std::endl;
           delete[] h; cudaFree(d);
         }",
        "h d: merged; - stream; drop release",
    );
}

#[test]
fn output_only_buffers_keep_callocs_zeroes() {
    expect(
        "const size_t n = 1 << 20;
         float *h = (float *)calloc(n, 4), *a = (float *)malloc(n * 4), *d, *e;
         CHECK(cudaMalloc(&d, n * 4));
         CHECK(cudaMalloc(&e, n * 4));
         fill(a, n);
         CHECK(cudaMemcpy(e, a, n * 4, cudaMemcpyHostToDevice));
         copy<<<blocks(n), 256>>>(d, e, n);
         CHECK(cudaMemcpy(h, d, n * 4, cudaMemcpyDeviceToHost));
         printf(\"%f\\n\", sum(h, n));
         free(h); cudaFree(d); free(a); cudaFree(e);",
        "h d: merged; stream; drop release\na e: merged; -; drop release",
    );
}

#[test]
fn a_loop_on_a_stream_with_timing_events() {
    expect(
        "const size_t n = 1 << 20;
         float *h, *d;
         CHECK(cudaMallocHost(&h, n * 4));
         CHECK(cudaMalloc(&d, n * 4));
         cudaStream_t s; CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
         cudaEvent_t a, b; cudaEventCreate(&a); cudaEventCreate(&b);
         double total = 0;
         for (int i = 0; i < 10; ++i) {
           fill(h, n);
           cudaEventRecord(a, s);
           CHECK(cudaMemcpyAsync(d, h, n * 4, cudaMemcpyHostToDevice, s));
           scale<<<blocks(n), 256, 0, s>>>(d, n);
           CHECK(cudaMemcpyAsync(h, d, n * 4, cudaMemcpyDeviceToHost, s));
           cudaEventRecord(b, s);
           CHECK(cudaStreamSynchronize(s));
           float ms; cudaEventElapsedTime(&ms, a, b); total += ms;
           printf(\"%f\\n\", h[i]);
         }
         printf(\"%f\\n\", total);
         cudaFreeHost(h); cudaFree(d); cudaStreamDestroy(s); cudaEventDestroy(a); cudaEventDestroy(b);",
        "h d: merged; - -; drop release",
    );
}

#[test]
fn a_loop_that_fills_again_without_a_wait_declines() {
    expect(
        "const size_t n = 1 << 20;
         float *h = (float *)malloc(n * 4), *d;
         CHECK(cudaMalloc(&d, n * 4));
         for (int i = 0; i < 10; ++i) {
           fill(h, n);
           CHECK(cudaMemcpy(d, h, n * 4, cudaMemcpyHostToDevice));
           scale<<<blocks(n), 256>>>(d, n);
         }
         cudaFree(d); free(h);",
        "h d: S1-host-value-overwritten@8 S2-kernel-pending@16 S5-host-access-in-flight@16",
    );
}

#[test]
fn one_of_two_device_buffers_is_merged() {
    expect(
        "const size_t n = 1 << 20;
         float *h = (float *)malloc(n * 4), *d, *e;
         CHECK(cudaMalloc(&d, n * 4));
         CHECK(cudaMalloc(&e, n * 4));
         fill(h, n);
         CHECK(cudaMemcpy(d, h, n * 4, cudaMemcpyHostToDevice));
         CHECK(cudaMemcpy(e, h, n * 4, cudaMemcpyHostToDevice));
         scale<<<blocks(n), 256>>>(d, n);
         scale<<<blocks(n), 256>>>(e, n);
         CHECK(cudaDeviceSynchronize());
         CHECK(cudaMemcpy(h, d, n * 4, cudaMemcpyDeviceToHost));
         printf(\"%f\\n\", sum(h, n));
         free(h); cudaFree(d); cudaFree(e);",
        "h d: merged; - -; drop release\nh e: CAND-better-partner@8",
    );
}

#[test]
fn a_unique_ptr_and_an_owning_device_buffer() {
    expect_program(
        "template <typename T> struct DeviceBuffer {
           T *p = nullptr; size_t n = 0;
           explicit DeviceBuffer(size_t n) : n(n) { CHECK(cudaMalloc(&p, n * sizeof(T))); }
           ~DeviceBuffer() { if (p) cudaFree(p); }
         };
         int main(int argc, char **) {
           size_t n = argc * 1000;
           std::unique_ptr<float[]> h(new float[n]);
           DeviceBuffer<float> d(n);
           fill(h.get(), n);
           CHECK(cudaMemcpy(d.p, h.get(), n * 4, cudaMemcpyHostToDevice));
           scale<<<blocks(n), 256>>>(d.p, n);
           CHECK(cudaMemcpy(h.get(), d.p, n * 4, cudaMemcpyDeviceToHost));
           std::cout << sum(h.get(), n) << std::endl;
         }",
        "h d: merged; - stream; drop release drop release",
    );
}
