//! `cargo xtask bench`: what Echo-SR's passes cost in `opt -O2`, on modules of 10⁴ to 10⁶ instructions with a pair of buffers in every
//! thousand, and what a module without CUDA pays. The bounds are those of docs/performance.md; a broken one is a failure.

pub(crate) mod dr;
mod measure;
mod report;

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use echo_synth::{Request, Shape};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::setup::{LLVM_PREFERRED, llvm_tool};
use crate::{products, setup, tool};

use measure::{Run, median};
use report::{Measured, Report};

/// What the user asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Runs of each compilation; medians count.
    pub(crate) repeats: usize,
    /// No larger modules than this.
    pub(crate) up_to: usize,
    /// Print JSON instead of the table.
    pub(crate) json: bool,
}

/// Sizes in instructions; growth is measured from the first to the last.
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
const INSTRUCTIONS_PER_PAIR: usize = 1_000;
const SHAPES: [(&str, Shape); 2] = [("many functions", Shape::ManyFunctions), ("huge functions", Shape::FewFunctions)];
/// A module without CUDA is measured at this size, whatever `up_to` says: its passes look at no instruction.
const PLAIN_SIZE: usize = 1_000_000;
/// Starts of `opt` on an empty module, with and without the plugin.
const LOADS: usize = 31;
/// So that two runs of the program make the same modules.
const SEED: u64 = 1;

/// Runs the benchmark. [`Failure::Result`] after the table if a bound is broken.
pub(crate) fn run(context: &Context, options: &Options) -> Result<(), Failure> {
    setup::complete(context, None)?;
    products::plugin(context, LLVM_PREFERRED)?;
    let bench = Bench { opt: tool_path("opt")?, plugin: context.plugin(), folder: context.target.join("bench") };
    fs::create_dir_all(&bench.folder).map_err(|error| Failure::io("create", &bench.folder, &error))?;

    let sizes: Vec<usize> = SIZES.into_iter().filter(|size| *size <= options.up_to).collect();
    let steps = SHAPES.len() * sizes.len() * (1 + 2 * options.repeats) + 2 * options.repeats.max(LOADS) + 1;
    let step = context.ui.steps("measuring", steps);
    let mut report = Report::default();
    for (name, shape) in SHAPES {
        for &size in &sizes {
            step.detail(&format!("{name}, {size} instructions"));
            let module = bench.write(shape, size)?;
            step.advance();
            let (mut plain, mut with) = (Vec::new(), Vec::new());
            // In turns, so that what slows the machine for a while slows both.
            for _ in 0..options.repeats {
                plain.push(measure::optimise(&bench.opt, &module.path, None)?);
                step.advance();
                with.push(measure::optimise(&bench.opt, &module.path, Some(&bench.plugin))?);
                step.advance();
            }
            report.modules.push(measured(name, &module, &plain, &with));
        }
    }
    step.detail("a module without CUDA");
    let module = bench.write(Shape::Plain, PLAIN_SIZE)?;
    step.advance();
    let mut passes = Vec::new();
    for _ in 0..LOADS.max(options.repeats) {
        passes.push(measure::passes_alone(&bench.opt, &module.path, &bench.plugin)?);
        step.advance();
    }
    report.cuda_free_ms = median(&passes) * 1e3;
    step.detail("loading the plugin");
    let empty = bench.folder.join("empty.ll");
    fs::write(&empty, "").map_err(|error| Failure::io("write", &empty, &error))?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..LOADS.max(options.repeats) {
        without.push(measure::start(&bench.opt, &empty, None)?);
        with.push(measure::start(&bench.opt, &empty, Some(&bench.plugin))?);
        step.advance();
    }
    report.start_ms = median(&without) * 1e3;
    report.start_with_plugin_ms = median(&with) * 1e3;
    step.done();

    conclude(&report, &report.problems(), options.json)
}

/// Shows a report; bounds that are broken are the command's failure.
fn conclude(report: &(impl Serialize + Display), problems: &[String], json: bool) -> Result<(), Failure> {
    if json {
        let text = serde_json::to_string_pretty(report)
            .map_err(|error| Failure::Build(format!("cannot write the report: {error}")))?;
        println!("{text}");
    } else {
        println!("{report}");
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::Result(problems.join("\n"))) }
}

fn measured(name: &str, module: &Written, plain: &[Run], with: &[Run]) -> Measured {
    let of = |runs: &[Run], what: fn(&Run) -> f64| median(&runs.iter().map(what).collect::<Vec<_>>());
    Measured {
        shape: name.to_owned(),
        instructions: module.instructions,
        pairs: module.pairs,
        optimise_s: of(plain, |run| run.cpu_s),
        passes_s: of(with, |run| run.passes_s),
        optimise_with_plugin_s: of(with, |run| run.cpu_s),
        memory_mib: of(plain, |run| run.memory_mib),
        memory_with_plugin_mib: of(with, |run| run.memory_mib),
    }
}

/// The tools, and where the modules go.
struct Bench {
    opt: PathBuf,
    plugin: PathBuf,
    folder: PathBuf,
}

/// A module in a file.
struct Written {
    path: PathBuf,
    instructions: usize,
    pairs: usize,
}

impl Bench {
    /// Makes a module, as bitcode.
    fn write(&self, shape: Shape, instructions: usize) -> Result<Written, Failure> {
        let pairs = instructions / INSTRUCTIONS_PER_PAIR;
        let module = echo_synth::module(&Request { instructions, pairs, shape, seed: SEED, locations: false });
        let text = self.folder.join("module.ll");
        let path = self.folder.join(format!("{shape:?}-{instructions}.bc"));
        fs::write(&text, &module.text).map_err(|error| Failure::io("write", &text, &error))?;
        tool::run(Command::new(&self.opt).arg("-passes=verify").arg(&text).arg("-o").arg(&path))?;
        Ok(Written { path, instructions: module.instructions, pairs: module.pairs })
    }
}

fn tool_path(name: &str) -> Result<PathBuf, Failure> {
    llvm_tool(name, LLVM_PREFERRED).ok_or_else(|| Failure::Setup(format!("{name}-{LLVM_PREFERRED} is not installed")))
}

/// `opt` on a module, with the plugin or without; what it makes is thrown away.
fn opt(opt: &Path, module: &Path, plugin: Option<&Path>) -> Command {
    let mut command = Command::new(opt);
    command.env_remove("ECHO_SR_OPTIONS").arg("-disable-output").arg(module).stdin(Stdio::null());
    if let Some(plugin) = plugin {
        command.arg(format!("-load-pass-plugin={}", plugin.display()));
    }
    command
}
