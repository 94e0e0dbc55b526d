//! Compiles samples with the CPU device's driver, several at a time, and only what is older than what it is made of.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::context::Context;
use crate::failure::Failure;
use crate::samples::Sample;
use crate::tool;
use crate::ui::Step;

/// One build of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// As it is.
    Plain,
    /// With the plugin.
    Echo,
    /// The source that was merged by hand.
    Merged,
}

impl Variant {
    /// The variants that a sample has.
    pub(crate) fn of(sample: &Sample) -> &'static [Variant] {
        if sample.merged { &[Variant::Plain, Variant::Echo, Variant::Merged] } else { &[Variant::Plain, Variant::Echo] }
    }

    /// How files and tables call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Variant::Plain => "plain",
            Variant::Echo => "echo",
            Variant::Merged => "merged",
        }
    }
}

/// The program of a variant.
pub(crate) fn program(context: &Context, sample: &Sample, variant: Variant) -> PathBuf {
    context.target.join("samples").join(format!("{}-{}", sample.name, variant.name()))
}

/// The plugin's report on a sample.
pub(crate) fn report(context: &Context, sample: &Sample) -> PathBuf {
    context.target.join("samples").join(format!("{}.jsonl", sample.name))
}

/// Everything that a build of `samples` consists of.
fn jobs(samples: &[Sample]) -> Vec<(&Sample, Variant)> {
    samples.iter().flat_map(|sample| Variant::of(sample).iter().map(move |variant| (sample, *variant))).collect()
}

/// Compiles all variants of `samples`.
pub(crate) fn all(context: &Context, samples: &[Sample]) -> Result<(), Failure> {
    let folder = context.target.join("samples");
    fs::create_dir_all(&folder).map_err(|error| Failure::io("create", &folder, &error))?;
    let jobs = jobs(samples);
    let step = context.ui.steps("compiling the samples", jobs.len());
    super::parallel(&jobs, |(sample, variant)| compile(context, sample, *variant, &step))?;
    step.done();
    Ok(())
}

fn compile(context: &Context, sample: &Sample, variant: Variant, step: &Step) -> Result<(), Failure> {
    let program = program(context, sample, variant);
    if !is_fresh(context, &program, variant)? {
        step.detail(&sample.name);
        // A failed build must leave nothing that looks fresh.
        let unfinished = program.with_extension("new");
        let source = sample.source(context, variant == Variant::Merged);
        let mut command = Command::new(context.uma().join("bin/uma-clang++"));
        command.args(["-O2", "-g"]).arg(&source).arg("-o").arg(&unfinished);
        command.arg("-L").arg(context.uma().join("lib")).arg("-lcudart");
        if variant == Variant::Echo {
            let report = report(context, sample);
            let _ = fs::remove_file(&report); // The plugin appends.
            command.arg(format!("-fpass-plugin={}", context.plugin().display()));
            command.env("ECHO_SR_OPTIONS", format!("report={}", report.display()));
        } else {
            command.env_remove("ECHO_SR_OPTIONS");
        }
        tool::run(&mut command)?;
        fs::rename(&unfinished, &program).map_err(|error| Failure::io("create", &program, &error))?;
    }
    step.advance();
    Ok(())
}

/// `program` is younger than the samples' sources, the driver and (for [`Variant::Echo`]) the plugin.
fn is_fresh(context: &Context, program: &Path, variant: Variant) -> Result<bool, Failure> {
    let Ok(built) = program.metadata().and_then(|data| data.modified()) else { return Ok(false) };
    let mut inputs = vec![context.uma().join("bin/uma-clang++")];
    if variant == Variant::Echo {
        inputs.push(context.plugin());
    }
    for folder in [context.samples(), context.samples().join("common")] {
        let entries = fs::read_dir(&folder).map_err(|error| Failure::io("read", &folder, &error))?;
        let is_source =
            |path: &PathBuf| path.extension().is_some_and(|kind| kind == "cu" || kind == "cuh" || kind == "h");
        inputs.extend(entries.flatten().map(|entry| entry.path()).filter(is_source));
    }
    let modified = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::now());
    Ok(inputs.iter().all(|input| modified(input) < built))
}
