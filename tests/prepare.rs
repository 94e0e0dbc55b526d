//! Thin wrappers around CUDA calls are dissolved; what is to stay apart stays.

#![cfg(any(feature = "llvm19", feature = "llvm22"))]

mod common;

use common::{MAJOR, opt, plugin, scratch, succeed, with_module, write};
use echo_sr::pass::prepare;

/// Names of the functions of a module that the pass marks.
#[track_caller]
fn marked(ir: &str) -> Vec<String> {
    with_module(ir, |module| {
        prepare::run(module);
        module
            .functions()
            .filter(|function| function.has_attribute("alwaysinline"))
            .map(|function| function.name())
            .collect()
    })
}

const DECLARATIONS: &str = "
    declare i32 @cudaMalloc(ptr, i64)
    declare i32 @cudaFree(ptr)
    declare void @other()
    define i32 @user(ptr %p) {
      %a = call i32 @wrapper(ptr %p, i64 4)
      ret i32 %a
    }";

/// The module with the definition of `@wrapper`.
#[track_caller]
fn marked_wrapper(definition: &str) -> Vec<String> {
    marked(&format!("{DECLARATIONS}\n{definition}"))
}

#[test]
fn a_function_that_calls_cuda_is_a_wrapper_and_so_is_its_small_caller() {
    let ir = "define i32 @wrapper(ptr %p, i64 %n) {
               %a = call i32 @cudaMalloc(ptr %p, i64 %n)
               ret i32 %a
             }
             define i32 @outer(ptr %p) {
               %a = call i32 @wrapper(ptr %p, i64 8)
               ret i32 %a
             }
             define i32 @caller(ptr %p) {
               %a = call i32 @outer(ptr %p)
               ret i32 %a
             }";
    // `@user` and `@caller` have no caller: there is nothing to dissolve them in.
    assert_eq!(marked_wrapper(ir), ["wrapper", "outer"]);
}

#[test]
fn a_module_without_cuda_calls_is_left_alone() {
    let ir = "declare i32 @cudaMalloc(ptr, i64)
             define void @f() {\n ret void\n}
             define void @g() {\n call void @f()\n ret void\n}";
    assert_eq!(marked(ir), Vec::<String>::new());
}

#[test]
fn what_is_kept_apart_stays_apart() {
    let body = "{\n %a = call i32 @cudaMalloc(ptr %p, i64 %n)\n ret i32 %a\n}";
    assert_eq!(marked_wrapper(&format!("define i32 @wrapper(ptr %p, i64 %n) {body}")), ["wrapper"]);
    assert_eq!(marked_wrapper(&format!("define linkonce_odr i32 @wrapper(ptr %p, i64 %n) {body}")), ["wrapper"]);
    for (definition, why) in [
        (format!("define i32 @wrapper(ptr %p, i64 %n) noinline {body}"), "noinline"),
        (format!("define i32 @wrapper(ptr %p, i64 %n) noinline optnone {body}"), "optnone"),
        (format!("define weak i32 @wrapper(ptr %p, i64 %n) {body}"), "replaceable"),
        (format!("define i32 @wrapper(ptr %p, i64 %n, ...) {body}"), "variadic"),
        (format!("define i32 @wrapper(ptr %p, i64 %n) \"target-features\"=\"+avx512f\" {body}"), "another target"),
        (format!("define i32 @wrapper(ptr %p, i64 %n) sanitize_address {body}"), "another sanitizer"),
        ("define i32 @wrapper(ptr %p, i64 %n) {\n call void @other()\n ret i32 0\n}".to_owned(), "no CUDA call"),
        (
            "define i32 @wrapper(ptr %p, i64 %n) {
               %a = call i32 @cudaMalloc(ptr %p, i64 %n)
               %b = call i32 @wrapper(ptr %p, i64 %n)
               ret i32 %b
             }"
            .to_owned(),
            "recursive",
        ),
        (
            "define i32 @wrapper(ptr %p, i64 %n) {
               %a = call i32 @cudaMalloc(ptr %p, i64 %n)
               %b = call i32 @again(ptr %p, i64 %n)
               ret i32 %b
             }
             define i32 @again(ptr %p, i64 %n) {
               %b = call i32 @wrapper(ptr %p, i64 %n)
               ret i32 %b
             }"
            .to_owned(),
            "recursive through another",
        ),
    ] {
        assert_eq!(marked_wrapper(&definition), Vec::<String>::new(), "{why}");
    }
}

#[test]
fn a_function_that_only_goes_by_address_is_no_wrapper() {
    let ir = "declare i32 @cudaFree(ptr)
             declare void @atexit(ptr)
             define i32 @wrapper(ptr %p) {\n %a = call i32 @cudaFree(ptr %p)\n ret i32 %a\n}
             define void @f() {\n call void @atexit(ptr @wrapper)\n ret void\n}";
    assert_eq!(marked(ir), Vec::<String>::new());
}

#[test]
fn the_budget_bounds_a_wrapper_with_all_that_it_dissolves() {
    // Each inner wrapper has 2 instructions, each outer one `calls` of them and a return.
    let ir = |calls: usize| {
        let body = " call i32 @wrapper(ptr %p, i64 4)\n".repeat(calls);
        format!(
            "define i32 @wrapper(ptr %p, i64 %n) {{\n %a = call i32 @cudaMalloc(ptr %p, i64 %n)\n ret i32 %a\n}}
             define void @outer(ptr %p) {{\n{body} ret void\n}}
             define void @caller(ptr %p) {{\n call void @outer(ptr %p)\n ret void\n}}"
        )
    };
    // An outer wrapper with c calls counts c + 1 of its own and 2c dissolved.
    let fits = (prepare::WRAPPER_BUDGET - 1) / 3;
    assert_eq!(marked_wrapper(&ir(fits)), ["wrapper", "outer"]);
    assert_eq!(marked_wrapper(&ir(fits + 1)), ["wrapper"]);
}

#[test]
fn the_inliner_dissolves_what_is_marked() {
    let directory = scratch();
    let ir = format!(
        "{DECLARATIONS}
         define internal i32 @wrapper(ptr %p, i64 %n) {{\n %a = call i32 @cudaMalloc(ptr %p, i64 %n)\n ret i32 %a\n}}"
    );
    let input = write(directory.path(), "input.ll", &ir);
    let passes = "-passes=echo-sr-prepare,always-inline";
    let (output, _) = succeed(opt(MAJOR, plugin()).args([passes, "-S"]).arg(&input));
    assert!(!output.contains("@wrapper"), "{output}");
}

/// A device buffer as C++ programs write it. The helpers are too large for the inliner's own liking at four uses each.
#[cfg(feature = "llvm22")]
const RAII: &str = r#"
#include <cstdio>
#include <cstdlib>
static void check(cudaError_t code, const char *what, const char *file, int line) {
  if (code == cudaSuccess) return;
  fprintf(stderr, "%s failed at %s:%d\n", what, file, line);
  fprintf(stderr, "code %d, name %s\n", (int)code, cudaGetErrorName(code));
  fprintf(stderr, "meaning: %s\n", cudaGetErrorString(code));
  fprintf(stderr, "last error: %s\n", cudaGetErrorString(cudaGetLastError()));
  fflush(stderr);
  exit(1);
}
#define CHECK(call) check(call, #call, __FILE__, __LINE__)
template <class T> class DeviceBuffer {
  T *data_ = nullptr;
  size_t count_;
public:
  explicit DeviceBuffer(size_t count) : count_(count) { CHECK(cudaMalloc(&data_, count * sizeof(T))); }
  ~DeviceBuffer() { CHECK(cudaFree(data_)); }
  DeviceBuffer(const DeviceBuffer &) = delete;
  T *get() { return data_; }
  void upload(const T *from) { CHECK(cudaMemcpy(data_, from, count_ * sizeof(T), cudaMemcpyHostToDevice)); }
  void download(T *to) { CHECK(cudaMemcpy(to, data_, count_ * sizeof(T), cudaMemcpyDeviceToHost)); }
};
template <class T> __global__ void add(const T *a, const T *b, T *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
template <class T> void launch_add(DeviceBuffer<T> &a, DeviceBuffer<T> &b, DeviceBuffer<T> &c, int n) {
  add<<<(n + 255) / 256, 256>>>(a.get(), b.get(), c.get(), n);
  CHECK(cudaGetLastError());
}
int main(int argc, char **argv) {
  const int n = atoi(argv[1]);
  float *x = new float[n], *y = new float[n];
  for (int i = 0; i < n; ++i) x[i] = y[i] = i;
  DeviceBuffer<float> a(n), b(n), c(n), d(n);
  a.upload(x);
  b.upload(y);
  launch_add(a, b, c, n);
  launch_add(c, b, d, n);
  launch_add(d, b, c, n);
  c.download(x);
  d.download(y);
  printf("%f %f\n", x[n - 1], y[n - 1]);
  delete[] x;
  delete[] y;
}
"#;

#[test]
#[cfg(feature = "llvm22")]
fn device_buffers_and_launch_helpers_dissolve_in_main() {
    let directory = scratch();
    write(directory.path(), "raii.cu", RAII);
    let (ir, _) = succeed(
        common::clang(directory.path())
            .args(["--cuda-host-only", "-S", "-emit-llvm", "-fno-discard-value-names"])
            .args(["raii.cu", "-o", "-"])
            // What is counted below are the calls before anything is merged.
            .env("ECHO_SR_OPTIONS", "merge-limit=0"),
    );
    let main = ir.split("define ").find(|function| function.contains("@main(")).expect("main is defined");
    let main = &main[..main.find("\n}").expect("it ends")];
    for (call, count) in [("@cudaMalloc(", 4), ("@cudaFree(", 4), ("@cudaMemcpy(", 4), ("@cudaLaunchKernel(", 3)] {
        assert!(main.matches(call).count() >= count, "{call} is not {count} times in main:\n{main}");
    }
    for helper in ["@_ZL5check", "launch_add", "DeviceBuffer", "device_stub"] {
        let called = main.lines().any(|line| {
            line.trim_start()
                .split("call ")
                .nth(1)
                .or(line.split("invoke ").nth(1))
                .is_some_and(|call| call.split('(').next().is_some_and(|callee| callee.contains(helper)))
        });
        assert!(!called, "{helper} is still called in main:\n{main}");
    }
}
