//! Builds Echo itself: the plugin (for each LLVM major that is asked for), both commands, Echo-DR's library and the CPU device, and puts the
//! device together in `target/uma` in the layout that its parts expect: `bin/uma-clang++` next to `lib/libcudart.so.13` and
//! `lib/libcuda.so.1`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::archive;
use crate::context::Context;
use crate::failure::Failure;
use crate::setup::{LLVM_OLD, LLVM_PREFERRED};
use crate::tool;

/// Builds the plugin for LLVM 22, both commands, Echo-DR's library, the runtime of the adaptive target and the CPU device.
pub(crate) fn build(context: &Context) -> Result<(), Failure> {
    plugin(context, LLVM_PREFERRED)?;
    commands(context)?;
    runtime(context)?;
    device(context)
}

/// Builds `target/release/echo-sr`, `echo-dr` and what the latter loads into programs, `libecho_dr.so`.
pub(crate) fn commands(context: &Context) -> Result<(), Failure> {
    let packages = ["echo-sr-cli", "echo-dr-cli", "echo-dr-preload"];
    let arguments = packages.iter().flat_map(|package| ["--package", package]);
    tool::run_visibly(cargo(context).args(["build", "--release"]).args(arguments))
}

/// Builds what programs compiled with `target=adaptive` link: `target/release/libecho_rt.a`.
fn runtime(context: &Context) -> Result<(), Failure> {
    let release = context.target.join("release");
    tool::run_visibly(cargo(context).args(["build", "--release", "--package", "echo-rt-static"]))?;
    install(&release.join("libecho_rt_static.a"), &release.join("libecho_rt.a"))
}

/// Builds the plugin for one LLVM major: `target/release/libecho_sr.so` for the preferred one, `target/llvm19/release/…` for the old one
/// (cargo would otherwise rebuild it each time the feature changes).
pub(crate) fn plugin(context: &Context, major: u32) -> Result<(), Failure> {
    let mut command = cargo(context);
    command.args(["build", "--release", "--package", "echo-sr", "--lib"]);
    if major == LLVM_OLD {
        command
            .args(["--no-default-features", "--features", "llvm19", "--target-dir"])
            .arg(context.target.join("llvm19"));
    }
    // It can name one major only, and we build for two; without it the build script looks for llvm-config-MAJOR.
    command.env_remove("LLVM_CONFIG");
    tool::run_visibly(&mut command)
}

/// Builds the CPU device.
pub(crate) fn device(context: &Context) -> Result<(), Failure> {
    tool::run_visibly(cargo(context).args([
        "build",
        "--release",
        "--package",
        "uma-compiler",
        "--package",
        "uma-driver",
        "--package",
        "uma-runtime",
        "--package",
        "uma-runtime-static",
    ]))?;

    let (release, uma) = (context.target.join("release"), context.uma());
    for folder in ["bin", "lib"] {
        let folder = uma.join(folder);
        fs::create_dir_all(&folder).map_err(|error| Failure::io("create", &folder, &error))?;
    }
    install(&release.join("uma-clang"), &uma.join("bin/uma-clang++"))?;
    install(&release.join("libcudart.so"), &uma.join("lib/libcudart.so.13"))?;
    install(&release.join("libcuda.so"), &uma.join("lib/libcuda.so.1"))?;
    install_hidden(&release.join("libcudart_static.a"), &uma.join("lib/libcudart_static.a"))?;
    install(&release.join("uma-deviced"), &uma.join("lib/uma-deviced"))?;
    link("libcudart.so.13", &uma.join("lib/libcudart.so"))?;
    link("libcuda.so.1", &uma.join("lib/libcuda.so"))
}

/// Copies `from` over `to` if it is another file by now; by a rename, since a program that runs from `to` must keep its file.
pub(crate) fn install(from: &Path, to: &Path) -> Result<(), Failure> {
    replace(from, to, |fresh| fs::copy(from, fresh).map(drop).map_err(|error| Failure::io("copy", from, &error)))
}

/// As [`install`], for a static archive, whose symbols are hidden in the copy.
pub(crate) fn install_hidden(from: &Path, to: &Path) -> Result<(), Failure> {
    replace(from, to, |fresh| {
        let mut bytes = fs::read(from).map_err(|error| Failure::io("read", from, &error))?;
        archive::hide_symbols(&mut bytes)
            .map_err(|error| Failure::io("hide the symbols of", from, &std::io::Error::other(error)))?;
        fs::write(fresh, bytes).map_err(|error| Failure::io("write", fresh, &error))
    })
}

/// Puts what `write` writes in the place of `to`, unless `from` is no newer.
fn replace(from: &Path, to: &Path, write: impl FnOnce(&Path) -> Result<(), Failure>) -> Result<(), Failure> {
    let newer =
        |from: &Path, to: &Path| Some(from.metadata().ok()?.modified().ok()? > to.metadata().ok()?.modified().ok()?);
    if newer(from, to) == Some(false) {
        return Ok(());
    }
    // Commands that run at once (tests do) may each install.
    let fresh = to.with_extension(format!("new.{}", std::process::id()));
    write(&fresh)?;
    fs::rename(&fresh, to).map_err(|error| Failure::io("write", to, &error))
}

pub(crate) fn link(target: &str, at: &Path) -> Result<(), Failure> {
    match fs::read_link(at) {
        Ok(present) if present == Path::new(target) => Ok(()),
        _ => {
            // Absent, or something else: either way the link takes its place.
            let _ = fs::remove_file(at);
            symlink(target, at).map_err(|error| Failure::io("create", at, &error))
        }
    }
}

/// The cargo that runs us, in the repository's root.
pub(crate) fn cargo(context: &Context) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(&context.root);
    command
}
