//! The record of a device half reaches the host half, through real compilers.

#![cfg(feature = "llvm22")]

mod common;

use std::path::Path;
use std::process::Command;

use common::{clang, clang_without_plugin, scratch, short, succeed, with_module, write};
use echo_sr::effects::{EffectTable, fatbin, host};

const PROGRAM: &str = r#"
#include <cstdio>
struct View { const float *data; int n; };
struct Empty {};
__device__ int counter;
__constant__ float factor[4];
__global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void fill(float *out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = factor[i & 3];
}
__global__ void view(Empty, View v, float *out) { if (threadIdx.x < v.n) out[threadIdx.x] = v.data[threadIdx.x]; }
template <class T> __global__ void twice(T *data) { data[threadIdx.x] *= 2; }
static __global__ void count(int *out) { atomicAdd(&counter, 1); *out = 1; }
__global__ void reduce(const float *in, float *out) {
  __shared__ float tile[256];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (threadIdx.x < s) tile[threadIdx.x] += tile[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, tile[0]);
}
__global__ void show(const float *in, float *out) {
  float v = __ldg(in) + __shfl_down_sync(~0u, expf(in[threadIdx.x]), 1);
  __threadfence();
  printf("thread %d has %f\n", threadIdx.x, v);
  if (__ballot_sync(~0u, v > 1)) *out = v;
}
void launches(float *p, int *q, View v) {
  saxpy<<<1, 32>>>(32, 2.0f, p, p);
  fill<<<1, 32>>>(p, 32);
  view<<<1, 32>>>(Empty(), v, p);
  twice<float><<<1, 32>>>(p);
  count<<<1, 1>>>(q);
  reduce<<<1, 256>>>(p, p);
  show<<<1, 32>>>(p, p);
}
"#;

fn expected() -> Vec<(&'static str, &'static str)> {
    vec![
        ("_Z4fillPfi", "w ."),
        ("_Z4showPKfPf", "r w"),
        ("_Z4view5Empty4ViewPf", ". r w"),
        ("_Z5saxpyifPKfPf", ". . r rw"),
        ("_Z5twiceIfEvPT_", "rw"),
        ("_Z6reducePKfPf", "r rw"),
        ("_ZL5countPi", "w +"),
    ]
}

/// The host module as the pass sees it, as the given clang compiles it.
fn host_module<R>(clang: &mut Command, directory: &Path, read: impl FnOnce(echo_sr::ir::Module<'_>) -> R) -> R {
    write(directory, "program.cu", PROGRAM);
    succeed(clang.args(["-save-temps", "-c", "program.cu", "-o", "program.o"]));
    let bitcode = std::fs::read_dir(directory)
        .expect("the directory is there")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ext| ext == "bc") && !path.to_string_lossy().contains("sm_"))
        .expect("clang kept the host half's bitcode");
    let (text, _) = succeed(Command::new("llvm-dis-22").args(["-o", "-"]).arg(bitcode));
    with_module(&text, read)
}

#[test]
fn the_record_reaches_the_host_half_through_a_real_cubin() {
    // New and old driver; the old one embeds compressed PTX as well; relocatable code has no fat binary in the unit.
    for flags in
        [&[][..], &["--no-offload-new-driver"], &["-fgpu-rdc"], &["--cuda-gpu-arch=sm_80"], &["--cuda-include-ptx=all"]]
    {
        let directory = scratch();
        host_module(clang(directory.path()).args(flags), directory.path(), |module| {
            let table = host::effects_or_reason(module).unwrap_or_else(|reason| panic!("{flags:?}: {reason}"));
            let stubs = host::kernels_of_module(module);
            assert_eq!(stubs.len(), 7, "{flags:?}: {stubs:?}");
            for (name, effects) in expected() {
                let found = table.kernels.iter().find(|(kernel, _)| kernel.starts_with(name));
                let (kernel, found) = found.unwrap_or_else(|| panic!("{flags:?}: {name} is not in {table:?}"));
                assert_eq!(short(found), effects, "{flags:?}: {name}");
                let stub = stubs.iter().find(|(_, known)| *known == kernel).map(|(stub, _)| stub.as_str());
                assert!(
                    stub.is_some_and(|stub| stub.contains("__device_stub__")),
                    "{flags:?}: {name} has stub {stub:?}"
                );
                assert!(module.function(stub.unwrap()).is_some());
            }
        });
    }
}

#[test]
fn without_the_plugin_on_the_device_half_nothing_is_known() {
    let directory = scratch();
    host_module(&mut clang_without_plugin(directory.path()), directory.path(), |module| {
        let reason = host::effects_or_reason(module).expect_err("no record was made");
        assert!(matches!(reason, fatbin::FatbinError::NoRecord(_)), "{reason}");
        assert_eq!(host::effects_of_module(module), EffectTable::default());
    });
}
