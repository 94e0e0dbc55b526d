//! What stands between a program, its runtime and the driver: a preloaded library sees the runtime's calls of the driver under the names that
//! NVIDIA's runtime uses, also where the program has the runtime in itself and calls no `cudaMalloc` that could be preloaded.

mod support;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use support::{Bench, cuda, program, static_runtime, succeeds, workspace};

/// The library to preload.
fn counter(bench: &Bench) -> PathBuf {
    let library = bench.path().join("libcount_driver.so");
    let mut command = Command::new("clang-22");
    command.args(["-std=c17", "-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-I"]).arg(cuda().join("include"));
    succeeds(command.arg(program("count_driver.c")).arg("-o").arg(&library));
    library
}

/// What a program prints, and how often it calls what.
fn counts(bench: &Bench, name: &str) -> (String, BTreeMap<String, u32>) {
    let file = bench.path().join(format!("{name}.counts"));
    let mut command = bench.command(name, &[], &[]);
    command.env("LD_PRELOAD", bench.path().join("libcount_driver.so")).env("COUNT_DRIVER", &file);
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
    let text = std::fs::read_to_string(file).expect("counts");
    let rows = text.lines().filter_map(|line| line.split_once(' '));
    let rows = rows.map(|(name, count)| (name.to_owned(), count.parse().expect("a number"))).collect();
    (String::from_utf8(output.stdout).expect("text"), rows)
}

#[test]
fn the_drivers_calls_are_seen() {
    let bench = Bench::empty();
    counter(&bench);
    std::os::unix::fs::symlink(static_runtime(), bench.path().join("libcudart_static.a")).expect("a link");
    // `*` stands for the suffix of the functions that have two kinds of null stream.
    let expected = [
        ("cuMemAlloc_v2", 2),
        ("cuMemAllocManaged", 1),
        ("cuMemHostAlloc", 2),
        ("cuMemFree_v2", 3),
        ("cuMemFreeHost", 2),
        ("cuCtxSynchronize", 1),
        ("cuMemsetD8_v2*ptds", 1),
        ("cuMemcpyHtoD_v2*ptds", 3),
        ("cuMemcpyDtoH_v2*ptds", 2),
        ("cuMemcpy*ptds", 1),
        ("cuMemcpyDtoDAsync_v2*ptsz", 1),
        ("cuMemcpyDtoHAsync_v2*ptsz", 1),
        ("cuStreamSynchronize*ptsz", 1),
        ("cuLaunchKernel*ptsz", 4),
    ];
    let source = program("known_calls.cu");
    let per_thread = ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM", "-Xclang", "-fgpu-default-stream=per-thread"];
    for (name, cudart, options) in [
        ("shared", "-cudart=shared", &[][..]),
        ("static", "-cudart=static", &[]),
        ("static_ptds", "-cudart=static", &per_thread),
    ] {
        bench.compile_with(&source, name, &[&[cudart], options].concat());
        let (text, counted) = counts(&bench, name);
        assert_eq!(text, "2997000\n", "{name}");
        let mut wanted: BTreeMap<String, u32> = BTreeMap::new();
        for (row, count) in expected {
            let (base, suffix) = row.split_once('*').unwrap_or((row, ""));
            let exported =
                if options.is_empty() || suffix.is_empty() { base.to_owned() } else { format!("{base}_{suffix}") };
            wanted.insert(exported, count);
        }
        if name.starts_with("shared") {
            wanted.insert("cudaMalloc".to_owned(), 2);
        }
        assert_eq!(counted, wanted, "{name}");
    }
}

/// A sample, too, does the same with either runtime; and with the static one it needs no libcudart at all.
#[test]
fn a_sample_prints_the_same_with_either_runtime() {
    let bench = Bench::empty();
    std::os::unix::fs::symlink(static_runtime(), bench.path().join("libcudart_static.a")).expect("a link");
    let source = workspace().join("cuda-samples/reduction.cu");
    for kind in ["shared", "static"] {
        bench.compile_with(&source, kind, &["-cudart", kind]);
    }
    let libraries = Command::new("ldd").arg(bench.path().join("static")).output().expect("ldd runs");
    let libraries = String::from_utf8_lossy(&libraries.stdout).into_owned();
    assert!(libraries.contains("libc.so") && !libraries.contains("libcuda"), "{libraries}");
    for modes in [&[][..], &["SCHEDULE=lazy"]] {
        let outputs = ["shared", "static"].map(|name| bench.output(name, &[], modes));
        assert!(outputs.iter().all(|output| output.status.success()), "{modes:?}");
        assert!(!outputs[0].stdout.is_empty());
        assert_eq!(outputs[0].stdout, outputs[1].stdout, "{modes:?}");
    }
}

/// Without a driver library a program gets an error that it can report, and one sentence says what to do.
#[test]
fn a_missing_driver_is_named() {
    let bench = Bench::empty();
    std::fs::remove_file(bench.path().join("libcuda.so.1")).expect("the driver's link");
    let source = bench.path().join("alone.c");
    std::fs::write(
        &source,
        "#include <cuda_runtime_api.h>\n#include <stdio.h>\n\
         int main(void) { void *p; for (int i = 0; i < 2; ++i) puts(cudaGetErrorName(cudaMalloc(&p, 10))); }\n",
    )
    .expect("a file");
    let mut command = Command::new("clang-22");
    command.arg("-I").arg(cuda().join("include")).arg(&source).arg("-o").arg(bench.path().join("alone"));
    succeeds(command.arg("-L").arg(bench.path()).arg("-lcudart"));
    let output = bench.output("alone", &[], &[]);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(text, "cudaErrorInsufficientDriver\ncudaErrorInsufficientDriver\n");
    assert_eq!(errors.matches("put the device's libcuda.so.1 beside its libcudart").count(), 1, "{errors}");
}

/// A program may use both libraries: the contexts, memory and kernels of one are those of the other.
#[test]
fn a_program_may_use_both_libraries() {
    let bench = Bench::empty();
    bench.compile_with(&program("both.cu"), "both", &["-cudart=shared", "-lcuda"]);
    for modes in [&[][..], &["SCHEDULE=lazy"]] {
        let output = bench.output("both", &[], modes);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{modes:?}");
        assert!(output.status.success(), "{modes:?}");
    }
}
