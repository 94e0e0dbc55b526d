//! What the device cannot run is refused at compile time, by file, line and name; what is merely not used is not.

mod common;

use common::compile_text;

/// Compiles a kernel file and expects exactly these messages (each after `kernel.cu:LINE: error: `) and no image.
fn refuses(source: &str, messages: &[&str]) {
    let (folder, output) = compile_text(source, &["-Wno-everything"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let lines: Vec<_> = text.lines().collect();
    let expected: Vec<_> =
        messages.iter().map(|message| format!("kernel.cu:{message} is not supported by the CPU device")).collect();
    assert_eq!(lines, expected);
    assert!(!folder.path().join("kernel.img").exists());
}

fn accepts(source: &str) {
    let (folder, output) = compile_text(source, &["-Wno-everything"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(folder.path().join("kernel.img").exists());
}

#[test]
fn inline_ptx() {
    refuses(
        "__global__ void k(int *o) {\n  int x;\n  asm(\"add.s32 %0, %1, 1;\" : \"=r\"(x) : \"r\"(o[0]));\n  o[1] = x;\n}",
        &["3: error: inline PTX (`add.s32`)"],
    );
}

#[test]
fn ptx_of_an_unknown_register() {
    refuses(
        "__global__ void k(unsigned *o) {\n  asm(\"mov.u32 %0, %%smid;\" : \"=r\"(o[0]));\n}",
        &["2: error: inline PTX (`mov.u32`)"],
    );
}

#[test]
fn textures() {
    refuses(
        "__global__ void k(cudaTextureObject_t t, float *o) {\n  o[0] = tex2D<float>(t, 0.5f, 0.5f);\n}",
        &["2: error: a texture (`tex.2d.v4.f32.f32`)"],
    );
}

#[test]
fn surfaces() {
    refuses(
        "__global__ void k(cudaSurfaceObject_t s) {\n\n  surf2Dwrite(1.0f, s, 4, 5);\n}",
        &["3: error: a surface (`sust.b.2d.b32.trap`)"],
    );
}

#[test]
fn grid_wide_cooperative_groups() {
    let source = "#include <cooperative_groups.h>\n__global__ void k(int *o) {\n  cooperative_groups::this_grid().sync();\n  o[0] = 1;\n}";
    let (_folder, output) = compile_text(source, &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.lines().any(|line| line.starts_with("kernel.cu:3: error: grid-wide cooperative groups")), "{text}");
}

#[test]
fn dynamic_parallelism() {
    let source = "__global__ void child(int *o) { o[0] = 1; }\n__global__ void k(int *o) {\n  child<<<1, 1>>>(o);\n}";
    let (_folder, output) = compile_text(source, &[]);
    // The front end itself refuses it.
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.starts_with("kernel.cu:3:8: error: kernel launch from __device__ or __global__ function"), "{text}");
    let (_folder, output) = compile_text(source, &["-fgpu-rdc"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("-fgpu-rdc is not supported by the CPU device"));
}

#[test]
fn undefined_device_functions() {
    refuses(
        "extern \"C\" __device__ int elsewhere(int);\n__global__ void k(int *o) {\n  o[0] = elsewhere(1);\n}",
        &["3: error: a call of `elsewhere`, which this file does not define,"],
    );
}

#[test]
fn the_address_of_an_undefined_device_function() {
    refuses(
        "extern \"C\" __device__ int elsewhere(int);\n__global__ void k(int (**o)(int)) {\n  o[0] = elsewhere;\n}",
        &["3: error: the address of `elsewhere`, which this file does not define,"],
    );
}

#[test]
fn variables_of_other_files() {
    let source = "extern __device__ int elsewhere[3];\n__global__ void k(int *o) { o[0] = elsewhere[1]; }";
    let (_folder, output) = compile_text(source, &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("elsewhere"), "{text}");
}

#[test]
fn memory_allocation_in_kernels() {
    refuses(
        "__global__ void k(int **o) {\n  o[0] = (int *)malloc(4);\n}",
        &["2: error: memory allocation in a kernel (`malloc`)"],
    );
}

#[test]
fn named_barriers() {
    refuses(
        "__global__ void k(int *o) {\n  __nvvm_barrier_sync(1);\n  o[0] = 1;\n}",
        &["2: error: a barrier other than number 0"],
    );
    refuses(
        "__global__ void k(int *o) {\n  __nvvm_barrier_sync_cnt(0, 32);\n  o[0] = 1;\n}",
        &["2: error: the intrinsic `llvm.nvvm.barrier.cta.sync.count`"],
    );
}

#[test]
fn unknown_intrinsics_and_functions() {
    refuses(
        "__global__ void k(float *o) {\n  o[0] = erfinvf(o[1]);\n}",
        &["2: error: a call of `__nv_erfinvf`, which this file does not define,"],
    );
    refuses(
        "__global__ void k(unsigned *o) {\n  o[0] = __nvvm_read_ptx_sreg_clusterid_x();\n}",
        &["2: error: the intrinsic `llvm.nvvm.read.ptx.sreg.clusterid.x`"],
    );
}

#[test]
fn the_address_of_another_device_variable() {
    let source = "__device__ int a;\n__device__ int *b = &a;\n__global__ void k(int *o) { o[0] = *b; }";
    let (_folder, output) = compile_text(source, &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("a variable that starts with the address of another device variable (`b`)"), "{text}");
}

#[test]
fn a_helper_is_blamed_on_the_line_that_has_it() {
    refuses(
        "__device__ int f(int x) {\n  asm volatile(\"bar.arrive 1, 64;\");\n  return x;\n}\n__global__ void k(int *o) { o[0] = f(1); }",
        &["2: error: inline PTX (`bar.arrive`)"],
    );
}

#[test]
fn several_faults_come_in_order() {
    refuses(
        "__global__ void a(int **o) {\n  o[0] = (int *)malloc(4);\n}\n__global__ void b() {\n  asm volatile(\"exit;\");\n}",
        &["2: error: memory allocation in a kernel (`malloc`)", "5: error: inline PTX (`exit`)"],
    );
}

#[test]
fn what_no_kernel_uses_is_not_refused() {
    accepts("__device__ void unused() { asm volatile(\"exit;\"); }\n__global__ void k(int *o) { o[0] = 1; }");
    accepts("#include <cooperative_groups.h>\n#include <cuda_fp16.h>\n__global__ void k(int *o) { o[0] = 1; }");
    accepts("__global__ void k(int *o) { o[0] = 1; asm volatile(\"\" ::: \"memory\"); o[1] = 2; }");
}

#[test]
fn errors_of_the_front_end_are_its_own() {
    let (_folder, output) = compile_text("__global__ int k() { return 1; }", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("kernel.cu:1:"));
}
