//! The host half: clang compiles the rest of a .cu file and embeds the image where a GPU build has the fat binary.

use crate::driver::{Request, spawn};
use crate::toolchain::Toolchain;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Compiles the host half; `mode` is `-c` or another option that says how far.
pub(crate) fn compile(
    request: &Request,
    tools: &Toolchain,
    input: &str,
    image: &Path,
    mode: &str,
    output: Option<OsString>,
) -> Result<(), String> {
    let mut command = Command::new(&tools.clang);
    command.args(request.flags().flatten());
    command.arg(format!("--cuda-path={}", tools.cuda.display()));
    command.args(["--cuda-host-only", "-Wno-unknown-cuda-version", "-Wno-unused-command-line-argument"]);
    if image.exists() {
        command.args(["-Xclang", "-fcuda-include-gpubinary", "-Xclang"]).arg(image);
    }
    command.args([mode, "-x", "cuda", input]);
    if let Some(output) = output {
        command.arg("-o").arg(output);
    }
    spawn(command, tools)
}
