//! Loops over the threads of a block are vectorised, and only where threads are independent.

mod common;

use common::compile_text;

/// The optimised IR of the kernel `k` in this source.
fn optimized(source: &str) -> String {
    // The same CPU on every machine that runs the test.
    let cpu = if cfg!(target_arch = "x86_64") { "-march=x86-64-v3" } else { "-march=native" };
    let (folder, output) = compile_text(source, &["--save-ir=kernel", cpu]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ir = std::fs::read_to_string(folder.path().join("kernel.optimized.ll")).expect("saved IR");
    let start = ir.find("define void @uma.kernel.k(").expect("the entry of k");
    ir[start..start + ir[start..].find("\n}").expect("its end")].to_owned()
}

/// Stores of whole vectors of floats.
fn vector_stores(ir: &str) -> usize {
    ir.lines()
        .filter(|line| {
            line.contains("store <") || line.contains("llvm.masked.store") || line.contains("llvm.masked.scatter")
        })
        .count()
}

const SAXPY: &str = "extern \"C\" __global__ void k(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}";

#[test]
fn a_guarded_saxpy_is_vectorised_without_alias_checks() {
    let ir = optimized(SAXPY);
    assert!(vector_stores(&ir) > 0, "{ir}");
    // The check for overlap would order x and y by their addresses.
    assert!(!ir.contains("vector.memcheck"), "{ir}");
}

#[test]
fn a_stencil_is_vectorised() {
    let ir = optimized(
        "extern \"C\" __global__ void k(const float *in, float *out, int n) {
          int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
          if (x > 0 && x < n - 1 && y > 0 && y < n - 1)
            out[y * n + x] = 0.25f * (in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x] + in[(y + 1) * n + x]);
        }",
    );
    assert!(vector_stores(&ir) > 0, "{ir}");
}

#[test]
fn atomics_keep_threads_in_order() {
    let ir = optimized(
        "extern \"C\" __global__ void k(float *y, unsigned *next) {
          unsigned i = atomicAdd(next, 1u);
          y[i] = y[i + 1] * 2;
        }",
    );
    assert_eq!(vector_stores(&ir), 0, "{ir}");
    assert!(!ir.contains("llvm.access.group"), "{ir}");
}

#[test]
fn a_local_array_in_memory_is_not_shared_by_threads() {
    let ir = optimized(
        "extern \"C\" __global__ void k(const int *at, float *y) {
          int i = threadIdx.x;
          float t[64];
          for (int j = 0; j < 64; j++) t[j] = y[j * 32];
          y[i] = t[at[i] & 63];
        }",
    );
    assert!(!ir.contains("llvm.access.group"), "{ir}");
}

#[test]
fn volatile_accesses_are_left_alone() {
    let ir = optimized(
        "extern \"C\" __global__ void k(volatile float *y) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          y[i] = y[i] + 1;
        }",
    );
    assert_eq!(vector_stores(&ir), 0, "{ir}");
    assert!(!ir.contains("llvm.access.group"), "{ir}");
}
