//! `cargo xtask aarch64`: what runs in or beside a program, built for aarch64 (Jetson's architecture) and put together in `target/aarch64/uma`
//! as in `target/uma`, for qemu-user. The kernel compiler is not among it: `uma-clang++ --target=aarch64-linux-gnu` runs here.
//!
//! On an aarch64 machine there is nothing to do: all of Echo is built and tested for it there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::context::Context;
use crate::failure::Failure;
use crate::products::{cargo, install, install_hidden, link};
use crate::setup::{self, AARCH64_GCC, AARCH64_RUSTC};
use crate::tool;

const TRIPLE: &str = "aarch64-unknown-linux-gnu";

/// What is built.
const PACKAGES: [&str; 5] = ["uma-driver", "uma-runtime", "uma-runtime-static", "echo-rt-static", "echo-dr-preload"];

/// Starts the device process in the emulator too: a program in an emulator starts other programs as the kernel would, and the kernel does not
/// know this machine's code.
const DEVICE_PROCESS: &str = "\
#!/bin/sh
exec qemu-aarch64 \"$(dirname \"$0\")/uma-deviced.aarch64\" \"$@\"
";

/// Where it all goes.
pub(crate) fn folder(context: &Context) -> PathBuf {
    context.target.join("aarch64")
}

/// Builds it.
pub(crate) fn build(context: &Context) -> Result<(), Failure> {
    if cfg!(target_arch = "aarch64") {
        context.ui.say("this is an aarch64 machine: `cargo xtask build` builds for it");
        return Ok(());
    }
    setup::complete_aarch64(context)?;
    let target = folder(context);
    let mut command = cargo(context);
    command.args(["build", "--release", "--target", TRIPLE]).arg("--target-dir").arg(&target);
    command.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    command.env("RUSTC", AARCH64_RUSTC).env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", AARCH64_GCC);
    // They are for the compiler that runs us, not for the other one.
    command.env_remove("RUSTC_WRAPPER").env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("RUSTUP_TOOLCHAIN");
    tool::run_visibly(&mut command)?;

    let (release, library) = (target.join(TRIPLE).join("release"), target.join("uma/lib"));
    fs::create_dir_all(&library).map_err(|error| Failure::io("create", &library, &error))?;
    install(&release.join("libcudart.so"), &library.join("libcudart.so.13"))?;
    install_hidden(&release.join("libcudart_static.a"), &library.join("libcudart_static.a"))?;
    install(&release.join("libcuda.so"), &library.join("libcuda.so.1"))?;
    install(&release.join("libecho_dr.so"), &library.join("libecho_dr.so"))?;
    install(&release.join("uma-deviced"), &library.join("uma-deviced.aarch64"))?;
    script(&library.join("uma-deviced"), DEVICE_PROCESS)?;
    link("libcudart.so.13", &library.join("libcudart.so"))?;
    link("libcuda.so.1", &library.join("libcuda.so"))
}

fn script(path: &Path, text: &str) -> Result<(), Failure> {
    let written = fs::write(path, text).and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| Failure::io("write", path, &error))
}
