//! `cargo xtask gpu-bundle`: the samples as programs for a real GPU, in one folder that can be carried to a machine that has one.
//!
//! They are built with plain clang and the toolkit's own runtime; what the CPU device needs is not involved. `run-on-gpu.sh` in the folder
//! runs and compares them there. Each is also built with nvcc as it is shipped, with the static runtime and g++: for `tune-on-gpu.sh`, which
//! lets Echo-DR find their pairs.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::context::Context;
use crate::demo::{Variant, parallel};
use crate::failure::Failure;
use crate::samples::{self, Sample, Size};
use crate::tool;

/// Builds the bundle for GPU architecture `arch` (such as `sm_90`) into `folder`.
pub(crate) fn bundle(context: &Context, arch: &str, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::io("create", folder, &error))?;
    let samples = samples::load(context, &[])?;
    let jobs: Vec<_> = samples.iter().flat_map(|sample| Build::of(sample).map(move |build| (sample, build))).collect();
    let step = context.ui.steps("building the samples for a GPU", jobs.len());
    parallel(&jobs, |(sample, what)| {
        step.detail(&sample.name);
        build(context, arch, folder, sample, *what)?;
        step.advance();
        Ok(())
    })?;
    step.done();

    let mut list = String::new();
    for sample in &samples {
        let builds = Build::of(sample).filter(|build| *build != Build::Nvcc).map(Build::name);
        let builds: Vec<&str> = builds.collect();
        let arguments = sample.arguments(Size::Demo).join(" ");
        let _ = writeln!(list, "{} {} {arguments}", sample.name, builds.join(",")); // Writing to a String cannot fail.
    }
    let path = folder.join("samples.list");
    fs::write(&path, list).map_err(|error| Failure::io("write", &path, &error))?;
    let release = context.target.join("release");
    for (from, name) in [
        (context.samples().join("run-on-gpu.sh"), "run-on-gpu.sh"),
        (context.samples().join("tune-on-gpu.sh"), "tune-on-gpu.sh"),
        (release.join("echo-dr"), "echo-dr"),
        (release.join("libecho_dr.so"), "libecho_dr.so"),
        (context.cuda().join("lib/libcudart.so.13"), "libcudart.so.13"),
    ] {
        fs::copy(&from, folder.join(name)).map_err(|error| Failure::io("copy", &from, &error))?;
    }
    context.ui.say(&format!(
        "{} holds the programs; run run-on-gpu.sh and tune-on-gpu.sh in it on a machine with a GPU",
        folder.display()
    ));
    Ok(())
}

/// One build of a sample.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Build {
    /// As for the CPU device.
    Of(Variant),
    /// With the plugin and `target=adaptive`.
    Adaptive,
    /// With nvcc, as it is.
    Nvcc,
}

impl Build {
    fn of(sample: &Sample) -> impl Iterator<Item = Self> {
        Variant::of(sample).iter().map(|variant| Self::Of(*variant)).chain([Self::Adaptive, Self::Nvcc])
    }

    fn name(self) -> &'static str {
        match self {
            Self::Of(variant) => variant.name(),
            Self::Adaptive => "adaptive",
            Self::Nvcc => "nvcc",
        }
    }
}

fn build(context: &Context, arch: &str, folder: &Path, sample: &Sample, what: Build) -> Result<(), Failure> {
    let program = folder.join(format!("{}-{}", sample.name, what.name()));
    if what == Build::Nvcc {
        let mut command = Command::new(context.cuda().join("bin/nvcc"));
        command.args(["-O2", "-g", "-lineinfo", "-arch", arch]).arg(sample.source(context, false));
        return tool::run(command.arg("-o").arg(program)).map(drop);
    }
    let mut command = Command::new("clang++-22");
    command.arg(format!("--cuda-path={}", context.cuda().display()));
    // 13.0 is newer than the newest toolkit that clang 22 knows by name.
    command.arg("-Wno-unknown-cuda-version").arg(format!("--cuda-gpu-arch={arch}")).args(["-O2", "-g"]);
    command.arg(sample.source(context, what == Build::Of(Variant::Merged))).arg("-o").arg(program);
    command.env_remove("ECHO_SR_OPTIONS");
    if what == Build::Of(Variant::Echo) || what == Build::Adaptive {
        command.arg(format!("-fpass-plugin={}", context.plugin().display()));
    }
    if what == Build::Adaptive {
        command.env("ECHO_SR_OPTIONS", "target=adaptive");
        command.arg("-L").arg(context.target.join("release")).arg("-lecho_rt");
    }
    command.arg("-L").arg(context.cuda().join("lib")).args(["-lcudart", "-Wl,-rpath,$ORIGIN"]);
    tool::run(&mut command).map(drop)
}
