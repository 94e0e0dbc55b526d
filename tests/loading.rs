//! The plugin loads where users load it, and says so where it can't.

#![cfg(any(feature = "llvm19", feature = "llvm22"))]

mod common;

use common::{MAJOR, fail, opt, plugin, plugin_for, scratch, succeed, write};

const PLAIN: &str = "define i32 @f(i32 %x) {\n  %y = add i32 %x, 1\n  ret i32 %y\n}\n";

#[test]
fn the_three_passes_have_names_in_opt() {
    let directory = scratch();
    let input = write(directory.path(), "plain.ll", PLAIN);
    for pass in ["echo-sr", "echo-sr-prepare", "echo-sr-effects", "echo-sr<target=managed;repair=off>"] {
        succeed(opt(MAJOR, plugin()).arg(format!("-passes={pass}")).arg("-disable-output").arg(&input));
    }
    let message = fail(opt(MAJOR, plugin()).arg("-passes=echo-srx").arg("-disable-output").arg(&input));
    assert!(message.contains("echo-srx"), "{message}");
}

#[test]
fn a_module_without_cuda_stays_as_it_is() {
    let directory = scratch();
    let input = write(directory.path(), "plain.ll", PLAIN);
    let passes = "echo-sr-prepare,echo-sr,echo-sr-effects";
    let (with, _) = succeed(opt(MAJOR, plugin()).arg(format!("-passes={passes}")).arg("-S").arg(&input));
    let (without, _) = succeed(opt(MAJOR, plugin()).arg("-passes=no-op-module").arg("-S").arg(&input));
    assert_eq!(with, without);
}

#[test]
fn a_bad_option_ends_the_compilation_and_names_the_valid_ones() {
    let directory = scratch();
    let input = write(directory.path(), "plain.ll", PLAIN);
    let message = fail(opt(MAJOR, plugin()).args(["-passes=echo-sr<trget=managed>", "-disable-output"]).arg(&input));
    assert!(message.contains("`trget=managed`") && message.contains("merge-limit=N"), "{message}");
    let message = fail(opt(MAJOR, plugin()).args(["-passes=echo-sr<target=mapped>", "-disable-output"]).arg(&input));
    assert!(message.contains("`target`") && message.contains("managed, adaptive"), "{message}");
    let message = fail(
        opt(MAJOR, plugin())
            .args(["-passes=echo-sr", "-disable-output"])
            .arg(&input)
            .env("ECHO_SR_OPTIONS", "access=shared"),
    );
    assert!(message.contains("access") && message.contains("exclusive"), "{message}");
}

#[test]
fn parameters_of_a_named_pass_go_before_the_environment() {
    let directory = scratch();
    let input = write(directory.path(), "plain.ll", PLAIN);
    succeed(
        opt(MAJOR, plugin())
            .args(["-passes=echo-sr<repair=on>", "-disable-output"])
            .arg(&input)
            .env("ECHO_SR_OPTIONS", "nonsense"),
    );
}

#[test]
fn llvm_19_loads_the_plugin_that_is_built_for_it() {
    let Some(plugin) = plugin_for("19") else { return };
    let directory = scratch();
    let input = write(directory.path(), "plain.ll", PLAIN);
    for pass in ["echo-sr", "echo-sr-prepare", "echo-sr-effects"] {
        succeed(opt("19", &plugin).arg(format!("-passes={pass}")).arg("-disable-output").arg(&input));
    }
    let message = fail(opt("19", &plugin).args(["-passes=echo-sr<off=1>", "-disable-output"]).arg(&input));
    assert!(message.contains("no value"), "{message}");
}

#[test]
fn another_llvm_refuses_the_plugin_with_a_sentence() {
    let directory = scratch();
    let input = write(directory.path(), "plain.ll", PLAIN);
    for (built, running) in [("22", "19"), ("19", "22")] {
        let Some(plugin) = plugin_for(built) else { return };
        let message = fail(opt(running, &plugin).args(["-passes=echo-sr", "-disable-output"]).arg(&input));
        let sentence = format!("built for LLVM {built}, but LLVM {running} loads it");
        assert!(message.contains(&sentence), "{message}");
        assert!(message.contains(&format!("--features llvm{running}")), "{message}");
    }
}

/// A whole program in CUDA C++.
#[cfg(feature = "llvm22")]
const PROGRAM: &str = r#"
#include <cstdio>
#include <cstdlib>
__global__ void twice(float *data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= 2;
}
int main() {
  const int n = 1 << 20;
  float *h = (float *)malloc(n * sizeof(float)), *d;
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

#[test]
#[cfg(feature = "llvm22")]
fn clang_compiles_and_links_both_halves_with_either_driver() {
    for flags in [&[][..], &["--no-offload-new-driver"], &["-fgpu-rdc"]] {
        let directory = scratch();
        write(directory.path(), "program.cu", PROGRAM);
        let library = format!("-L{}", common::cuda().join("lib").display());
        let arguments = ["program.cu", "-o", "program", &library, "-lcudart"];
        succeed(common::clang(directory.path()).args(flags).args(arguments));
        assert!(directory.path().join("program").exists());
    }
}

#[test]
#[cfg(feature = "llvm22")]
fn a_bad_option_ends_a_clang_compilation() {
    let directory = scratch();
    write(directory.path(), "program.cu", PROGRAM);
    let message =
        fail(common::clang(directory.path()).args(["-c", "program.cu"]).env("ECHO_SR_OPTIONS", "repair=perhaps"));
    assert!(message.contains("error: ") && message.contains("`repair`") && message.contains("on, off"), "{message}");
    assert!(!directory.path().join("program.o").exists());
}

#[test]
#[cfg(feature = "llvm22")]
fn code_without_optimisation_gets_one_warning() {
    let directory = scratch();
    write(directory.path(), "program.cu", PROGRAM);
    let (_, message) = succeed(common::clang(directory.path()).args(["-O0", "-c", "program.cu"]));
    assert_eq!(message.matches("without optimisation").count(), 1, "{message}");
    let (_, message) = succeed(common::clang(directory.path()).args(["-O1", "-c", "program.cu"]));
    assert!(!message.contains("without optimisation"), "{message}");
}

#[test]
#[cfg(feature = "llvm22")]
fn nvcc_takes_the_plugin_through_its_host_compiler() {
    let directory = scratch();
    write(directory.path(), "program.cu", PROGRAM);
    let nvcc = |plugin: &str, options: &str| {
        let mut command = std::process::Command::new(common::cuda().join("bin/nvcc"));
        command
            .current_dir(directory.path())
            .args(["-ccbin", "clang++-22", "-allow-unsupported-compiler", "-arch=sm_90", "-O2", "-c", "program.cu"])
            .arg(format!("-Xcompiler=-fpass-plugin={plugin}"))
            .env("ECHO_SR_OPTIONS", options);
        command
    };
    let plugin = plugin().display().to_string();
    succeed(&mut nvcc(&plugin, ""));
    // It did run: it answers to its options.
    let message = fail(&mut nvcc(&plugin, "nonsense"));
    assert!(message.contains("`nonsense`"), "{message}");
}

#[test]
#[cfg(feature = "llvm22")]
fn switched_off_the_pass_leaves_no_trace() {
    let directory = scratch();
    write(directory.path(), "program.cu", PROGRAM);
    let ir = |command: &mut std::process::Command| {
        succeed(command.args(["--cuda-host-only", "-S", "-emit-llvm", "program.cu", "-o", "-"])).0
    };
    let off = ir(common::clang(directory.path()).env("ECHO_SR_OPTIONS", "off"));
    assert_eq!(off, ir(&mut common::clang_without_plugin(directory.path())));
    let device = |command: &mut std::process::Command| {
        succeed(command.args(["--cuda-device-only", "-S", "-emit-llvm", "program.cu", "-o", "-"])).0
    };
    let off = device(common::clang(directory.path()).env("ECHO_SR_OPTIONS", "off"));
    assert_eq!(off, device(&mut common::clang_without_plugin(directory.path())));
}
