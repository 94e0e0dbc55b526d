//! The device half: clang compiles the kernels of a .cu file to nvptx64 bitcode, as for a GPU.

use crate::driver::{Request, spawn};
use crate::toolchain::Toolchain;
use std::process::Command;

/// The bitcode of a file's kernels.
pub(crate) fn compile(request: &Request, tools: &Toolchain, input: &str) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("error: temporary files: {error}");
    let output = tempfile::Builder::new().suffix(".bc").tempfile().map_err(failed)?;
    let mut command = Command::new(&tools.clang);
    command.args(request.flags().filter(|flag| is_for_device(flag)).flatten());
    command.arg(format!("--cuda-path={}", tools.cuda.display())).args([
        "--cuda-device-only",
        "--cuda-gpu-arch=sm_90",
        "-Wno-unknown-cuda-version",
        // Calls of mathematical functions stay calls, for the device library of the CPU.
        "-nocudalib",
        // (What clang would have said itself with the library.)
        "-Xclang",
        &format!("-target-sdk-version={}", tools.cuda_version()),
        // Messages name the line.
        "-gline-tables-only",
        "-emit-llvm",
        "-c",
        "-x",
        "cuda",
        input,
        "-o",
    ]);
    command.arg(output.path());
    spawn(command, tools)?;
    std::fs::read(output.path()).map_err(failed)
}

/// Not what describes the host's CPU, linking, debug information, or files that the host half writes.
fn is_for_device(flag: &[String]) -> bool {
    let name = flag[0].as_str();
    let is_host = name.starts_with("-m") && name != "-mllvm";
    let links = [
        "-L",
        "-l",
        "-Wl,",
        "-shared",
        "-static",
        "-rdynamic",
        "-fuse-ld",
        "-rpath",
        "-Xlinker",
        "-z",
        "-T",
        "-u",
        "-e",
        "-pie",
    ];
    let emits = [
        "-M",
        "-g",
        "-fPIC",
        "-fpic",
        "-fPIE",
        "-fpie",
        "-no-pie",
        "-pthread",
        "-fsanitize",
        "-fprofile",
        "-fcoverage",
        "-flto",
        "-save-temps",
        "-emit-llvm",
    ];
    !is_host && !links.iter().chain(&emits).any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::is_for_device;

    #[test]
    fn options_of_the_other_half_are_left_out() {
        let keeps = |text: &str| is_for_device(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for option in
            ["-O3", "-std=c++20", "-I inc", "-DN=1", "-fpass-plugin=x.so", "-mllvm -x", "-ffast-math", "-Xclang -load"]
        {
            assert!(keeps(option), "{option}");
        }
        for option in
            ["-march=native", "-Llib", "-lm", "-Wl,-rpath,x", "-MD", "-MF x.d", "-g", "-fPIC", "-pthread", "-shared"]
        {
            assert!(!keeps(option), "{option}");
        }
    }
}
