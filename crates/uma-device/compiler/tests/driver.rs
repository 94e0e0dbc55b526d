//! The command line: outputs, several files, and what ends up in them.

mod common;

use common::uma_clang;
use std::path::{Path, PathBuf};
use std::process::Output;
use uma_abi::IMAGE_MAGIC;
use uma_exec::read_metadata;

const MAIN: &str = "__device__ int counter;
__global__ void first(int *o, double d) { o[threadIdx.x] = threadIdx.x; atomicAdd(&counter, 1); }
void other();
int main() { first<<<1, 32>>>(nullptr, 1.0); other(); return VALUE - 3; }
";
const OTHER: &str = "__global__ void second(float *o) { o[0] = 1; }\nvoid other() { second<<<1, 1>>>(nullptr); }\n";

/// A folder with a program of two CUDA files and one C++ file.
fn program() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.cu"), MAIN).unwrap();
    std::fs::write(folder.path().join("other.cu"), OTHER).unwrap();
    std::fs::write(folder.path().join("plain.cpp"), "int plain() { return VALUE; }\n").unwrap();
    folder
}

fn cuda_libraries() -> String {
    let near = PathBuf::from(env!("CARGO_BIN_EXE_uma-clang"));
    let found = near.ancestors().map(|folder| folder.join("cuda/lib")).find(|folder| folder.exists());
    format!("-L{}", found.expect("target/cuda").display())
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    uma_clang().current_dir(folder).args(arguments).output().unwrap()
}

fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

/// Names of the kernels in all images that a file holds.
fn kernels_in(file: &Path) -> Vec<String> {
    let bytes = std::fs::read(file).unwrap();
    let starts = bytes.windows(IMAGE_MAGIC.len()).enumerate().filter(|(_, window)| *window == IMAGE_MAGIC);
    let mut names: Vec<_> =
        starts.flat_map(|(at, _)| read_metadata(&bytes[at..]).unwrap().kernels).map(|kernel| kernel.name).collect();
    names.sort();
    names
}

#[test]
fn files_compile_and_link_at_once() {
    let folder = program();
    let libraries = cuda_libraries();
    succeed(folder.path(), &["-O1", "-DVALUE=3", "main.cu", "other.cu", "plain.cpp", "-o", "program", &libraries]);
    assert_eq!(kernels_in(&folder.path().join("program")), ["_Z5firstPid", "_Z6secondPf"]);
}

#[test]
fn files_compile_apart() {
    let folder = program();
    succeed(folder.path(), &["-c", "-D", "VALUE=3", "main.cu"]);
    succeed(folder.path(), &["-c", "-x", "cuda", "other.cu", "-oother-object.o"]);
    succeed(folder.path(), &["-c", "-DVALUE=1", "plain.cpp"]);
    assert_eq!(kernels_in(&folder.path().join("main.o")), ["_Z5firstPid"]);
    assert!(kernels_in(&folder.path().join("plain.o")).is_empty());
    succeed(folder.path(), &["main.o", "other-object.o", "plain.o", "-o", "program", &cuda_libraries()]);
    assert_eq!(kernels_in(&folder.path().join("program")), ["_Z5firstPid", "_Z6secondPf"]);
}

#[test]
fn metadata_says_what_the_host_needs() {
    let folder = program();
    succeed(folder.path(), &["--image-only", "-DVALUE=3", "main.cu"]);
    let metadata = read_metadata(&std::fs::read(folder.path().join("main.img")).unwrap()).unwrap();
    let kernel = &metadata.kernels[0];
    assert_eq!(kernel.param_offsets().collect::<Vec<_>>(), [0, 8]);
    assert_eq!((kernel.packed_len(), kernel.static_shared, kernel.max_threads), (16, 0, 1024));
    assert_eq!(metadata.globals.len(), 1);
    assert_eq!((metadata.globals[0].name.as_str(), metadata.globals[0].size), ("counter", 4));
    assert_eq!(metadata.globals[0].init_symbol, None);
}

#[test]
fn options_reach_both_halves() {
    let folder = program();
    let text =
        succeed(folder.path(), &["--verbose", "-c", "-O3", "-DVALUE=3", "-std=c++17", "-march=native", "main.cu"]);
    let lines: Vec<_> = text.lines().filter(|line| line.contains("main.cu")).collect();
    let [device, host] = lines[..] else { panic!("{text}") };
    for option in ["-O3", "-DVALUE=3", "-std=c++17"] {
        assert!(device.contains(option) && host.contains(option), "{option}: {text}");
    }
    assert!(device.contains("--cuda-device-only") && !device.contains("-march"), "{device}");
    assert!(host.contains("--cuda-host-only") && host.contains("-march=native"), "{host}");
}

#[test]
fn plugins_are_loaded_in_both_halves() {
    let folder = program();
    let output = run(folder.path(), &["--verbose", "-c", "-DVALUE=3", "-fpass-plugin=./missing.so", "main.cu"]);
    let text = String::from_utf8_lossy(&output.stderr);
    // The device half comes first and fails for want of the plugin.
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains("missing.so") && text.contains("--cuda-device-only") && !text.contains("--cuda-host-only"),
        "{text}"
    );
}

#[test]
fn host_ir_can_be_asked_for() {
    let folder = program();
    succeed(folder.path(), &["-S", "-emit-llvm", "-O2", "other.cu", "-o", "other.ll"]);
    let ir = std::fs::read_to_string(folder.path().join("other.ll")).unwrap();
    assert!(ir.contains("UMAIMG") && ir.contains("__cudaRegisterFatBinary"), "{ir}");
}

#[test]
fn a_wrong_command_line_says_why() {
    let folder = program();
    let says = |arguments: &[&str], message: &str| {
        let output = run(folder.path(), arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && text.contains(message), "{arguments:?}: {text}");
    };
    says(&["-c", "main.cu", "other.cu", "-o", "x.o"], "one output for several files");
    says(&["--image-only", "plain.cpp"], "--image-only takes one .cu file");
    says(&["-c", "main.cu", "-o"], "-o needs a value");
    says(&["--cuda-path=/nonexistent", "-c", "main.cu"], "no CUDA headers in /nonexistent");
}
