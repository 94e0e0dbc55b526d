//! Checks each piece by letting it do, on something tiny, what Echo needs it for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::pieces::{LLVM_OLD, LLVM_PREFERRED, llvm_tool};
use crate::context::Context;
use crate::failure::Failure;
use crate::tool;

/// The GPU architecture that the checks and the GPU tests compile for.
const GPU: &str = "sm_90";

const KERNEL: &str = "\
#include <cstdio>
__global__ void twice(float *d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] *= 2;
}
int main() {
    float *d;
    if (cudaMalloc(&d, 400) != cudaSuccess) return 1;
    twice<<<1, 100>>>(d, 100);
    printf(\"%s\\n\", cudaGetErrorString(cudaDeviceSynchronize()));
}
";

type Check<'a> = &'a dyn Fn() -> Result<(), Failure>;

/// Runs all checks.
pub(crate) fn all(context: &Context) -> Result<(), Failure> {
    let work = tempfile::Builder::new()
        .prefix("setup.tmp-")
        .tempdir_in(&context.target)
        .map_err(|error| Failure::io("create a folder in", &context.target, &error))?;
    let checks: [(&str, Check<'_>); 6] = [
        ("opt 22", &|| opt(LLVM_PREFERRED, work.path())),
        ("opt 19", &|| opt(LLVM_OLD, work.path())),
        ("FileCheck 22", &|| file_check(work.path())),
        ("clang++ 22 with CUDA", &|| clang(&context.cuda(), work.path())),
        ("nvcc", &|| nvcc(&context.cuda(), work.path())),
        ("g++", &|| gxx(work.path())),
    ];
    let step = context.ui.steps("checking what is installed", checks.len());
    for (name, check) in checks {
        step.detail(name);
        check().map_err(|error| Failure::Setup(format!("{name} is installed but does not work.\n{error}")))?;
        step.advance();
    }
    step.done();
    Ok(())
}

fn llvm(name: &str, major: u32) -> Result<PathBuf, Failure> {
    llvm_tool(name, major).ok_or_else(|| Failure::Setup(format!("{name}-{major} vanished")))
}

fn file(work: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = work.join(name);
    fs::write(&path, text).map_err(|error| Failure::io("write", &path, &error))?;
    Ok(path)
}

/// It optimises, and is the major it should be.
fn opt(major: u32, work: &Path) -> Result<(), Failure> {
    let input = file(work, "constant.ll", "define i32 @f() {\n  %sum = add i32 40, 2\n  ret i32 %sum\n}\n")?;
    let output = tool::run(Command::new(llvm("opt", major)?).args(["-passes=instcombine", "-S"]).arg(&input))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("ret i32 42") {
        return Err(Failure::Setup(format!("it did not fold a constant:\n{text}")));
    }
    let version = tool::run(Command::new(llvm("llvm-config", major)?).arg("--version"))?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_string();
    if version.starts_with(&format!("{major}.")) {
        Ok(())
    } else {
        Err(Failure::Setup(format!("it is LLVM {version}")))
    }
}

fn file_check(work: &Path) -> Result<(), Failure> {
    let pattern = file(work, "pattern.txt", "CHECK: one\nCHECK-NEXT: two\n")?;
    let input = file(work, "input.txt", "one\ntwo\n")?;
    tool::run(Command::new(llvm("FileCheck", LLVM_PREFERRED)?).arg(&pattern).arg("--input-file").arg(&input))
        .map(|_| ())
}

/// Compiles and links a CUDA program: clang, lld, ptxas, fatbinary, the linker wrapper, headers and libcudart.
fn clang(cuda: &Path, work: &Path) -> Result<(), Failure> {
    let source = file(work, "twice.cu", KERNEL)?;
    let mut command = Command::new(llvm("clang++", LLVM_PREFERRED)?);
    command.args(["-O2", "-fuse-ld=lld", "-Wno-unknown-cuda-version"]).arg(format!("--cuda-gpu-arch={GPU}"));
    command.arg(format!("--cuda-path={}", cuda.display())).arg(&source).arg("-o").arg(work.join("twice"));
    tool::run(command.arg("-L").arg(cuda.join("lib")).arg("-lcudart")).map(|_| ())
}

/// Compiles the same program, with clang as its host compiler.
fn nvcc(cuda: &Path, work: &Path) -> Result<(), Failure> {
    let source = file(work, "twice_nvcc.cu", KERNEL)?;
    let mut command = Command::new(cuda.join("bin/nvcc"));
    command.arg(format!("-arch={GPU}")).arg("-ccbin").arg(llvm("clang++", LLVM_PREFERRED)?);
    command.args(["-allow-unsupported-compiler", "-c"]).arg(&source).arg("-o").arg(work.join("twice_nvcc.o"));
    tool::run(&mut command).map(|_| ())
}

/// Compiles and runs C++ with the standard library: the plugin's shim is built with it.
fn gxx(work: &Path) -> Result<(), Failure> {
    let source = file(
        work,
        "hello.cpp",
        "#include <string>\nint main() { return std::string(\"echo\").size() == 4 ? 0 : 1; }\n",
    )?;
    let program = work.join("hello");
    tool::run(Command::new("g++").arg(&source).arg("-o").arg(&program))?;
    tool::run(&mut Command::new(&program)).map(|_| ())
}
