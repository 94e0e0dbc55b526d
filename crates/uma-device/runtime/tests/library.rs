//! The library as linkers and loaders see it, and what calls cost.

mod support;
use cudart::exports::{IMPLEMENTED, REFUSED, SPECIAL};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use support::{Bench, cuda};

fn names_of(library: &std::path::Path) -> BTreeSet<String> {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().expect("nm runs");
    let text = String::from_utf8(output.stdout).expect("names are text");
    let names = text.lines().filter_map(|line| line.split_whitespace().nth(2));
    names.filter(|name| name.contains("cuda")).map(|name| name.split('@').next().unwrap_or(name).to_owned()).collect()
}

/// The table, the library's exports, and the exports of CUDA's own library are the same set.
#[test]
fn every_function_of_the_runtime_is_exported() {
    let bench = Bench::empty();
    let mut ours = names_of(&bench.path().join("libcudart.so"));
    let mut theirs = names_of(&cuda().join("lib/libcudart.so.13"));
    for set in [&mut ours, &mut theirs] {
        set.remove("libcudart.so.13");
    }
    let table: Vec<&str> = [IMPLEMENTED, SPECIAL, REFUSED].concat();
    let as_set: BTreeSet<String> = table.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(as_set.len(), table.len(), "a name is in the table twice");
    assert_eq!(as_set, ours);
    assert_eq!(ours, theirs);
}

/// A program that was linked against CUDA's own library runs with ours, with no word from the loader.
#[test]
fn a_program_linked_against_cudas_library_loads_ours() {
    let bench = Bench::empty();
    let source = bench.path().join("plain.cpp");
    std::fs::write(
        &source,
        "#include <cstdio>\n#include <cuda_runtime_api.h>\nint main() { char *p; cudaError_t e = cudaMallocManaged((void **)&p, 10); \
         if (e == cudaSuccess) p[3] = 7; std::printf(\"%s %d\\n\", cudaGetErrorName(e), p[3]); }\n",
    )
    .unwrap();
    let mut command = Command::new("clang++-22");
    command.arg("-I").arg(cuda().join("include")).arg(&source).arg("-o").arg(bench.path().join("plain"));
    command.arg("-L").arg(cuda().join("lib")).arg("-lcudart");
    assert!(command.status().expect("clang++-22 runs").success());
    let output = bench.output("plain", &[], &[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "cudaSuccess 7\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Generous bounds: the machine that runs the tests has other things to do. The figures are printed with `--nocapture`.
#[test]
fn calls_are_quick() {
    let bench = Bench::new("latency");
    let output = bench.output("latency", &[], &[]);
    let text = String::from_utf8(output.stdout).expect("text");
    print!("{text}");
    let figures: BTreeMap<&str, f64> =
        text.lines().filter_map(|line| line.split_once(' ')).map(|(k, v)| (k, v.parse().expect("a number"))).collect();
    assert!(figures["launch_and_synchronize"] < 200.0);
    assert!(figures["small_copy"] < 100.0);
    assert!(figures["first_call"] < 200_000.0);
    assert!(figures["copy_64_mib"] < 4.0 * figures["memcpy_64_mib"] + 5_000.0);
}
