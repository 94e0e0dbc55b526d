//! `echo-dr calibrate`: does merging pay, pair by pair, and with what kind of memory?

mod check;
mod times;
mod trials;

use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use echo_dr_format::plan::{BackendName, Plan};
use indicatif::ProgressBar;

use crate::failure::{Failure, Status};
use crate::files;
use crate::launch::Launch;
use crate::library;
use crate::places::Places;
use crate::steps::{PlanFile, temporary};
use crate::summary;
use check::Comparison;
use trials::{Sample, Variant, Wishes};

/// Measure a validated plan's pairs, each without and with it, and enable those that gain
#[derive(Debug, Args)]
#[command(after_help = "\
In each trial the program runs once without the plan and once with each kind of memory that the device has; the order turns round from trial
to trial. What is compared is the median interval between recurrences of the loop's dominant copy, or the whole run if there is no loop. A
pair is enabled if the median gain of its best kind of memory is positive. Several that are enabled are then measured together.

Exit codes:
  0  some pair is enabled
  1  none is
  2  wrong usage or set-up
  3  the program failed without the plan, or its outputs differ without it")]
pub(crate) struct Calibrate {
    #[command(flatten)]
    file: PlanFile,
    #[command(flatten)]
    calibration: Calibration,
    /// A trace of the program, to name places in the table
    #[arg(long = "trace", value_name = "FILE")]
    traces: Vec<PathBuf>,
    /// The pairs as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    launch: Launch,
}

/// How the plan is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct Calibration {
    /// Trials of each pair
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    trials: u32,
    /// So many pairs, those that copy most, are measured alone; the others all at once
    #[arg(long, value_name = "N", default_value_t = 8)]
    alone: usize,
    /// Only these kinds of memory
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    backend: Vec<Backend>,
    #[command(flatten)]
    comparison: Comparison,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Backend {
    /// Managed memory
    Managed,
    /// Managed memory, moved ahead of its use
    #[value(name = "managed+prefetch")]
    Prefetched,
    /// Mapped page-locked memory
    Mapped,
    /// Heap memory that the GPU reaches
    System,
}

impl From<Backend> for BackendName {
    fn from(from: Backend) -> Self {
        match from {
            Backend::Managed => Self::Managed,
            Backend::Prefetched => Self::Prefetched,
            Backend::Mapped => Self::Mapped,
            Backend::System => Self::System,
        }
    }
}

impl Calibrate {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let mut plan = files::plan(&self.file.plan)?;
        let said = self.calibration.run(&self.launch, &mut plan)?;
        files::write_plan(&plan, self.file.output())?;
        let traces = self.traces.iter().map(|path| files::trace(path)).collect::<Result<Vec<_>, _>>()?;
        let report = summary::report(&plan, self.file.output(), &mut Places::of(&traces));
        summary::show(&report, self.json, &said)?;
        Ok(if plan.enabled().next().is_some() { Status::Done } else { Status::No })
    }
}

impl Calibration {
    /// Decides on each validated pair of the plan. Returns sentences on trouble.
    pub(crate) fn run(&self, launch: &Launch, plan: &mut Plan) -> Result<Vec<String>, Failure> {
        if !plan.pairs.iter().any(|pair| trials::is_open(&pair.state)) {
            return Ok(Vec::new());
        }
        let chosen: Vec<BackendName> = self.backend.iter().copied().map(BackendName::from).collect();
        let wishes = Wishes {
            trials: self.trials,
            alone: self.alone,
            backends: if chosen.is_empty() { BackendName::ALL.to_vec() } else { chosen },
        };
        let library = library::find()?;
        let bar = echo_cli::progress("calibrating", 0);
        let base = plan.clone();
        let mut reference: Option<File> = None;
        let result = trials::decide(plan, &wishes, &mut |variant| {
            bar.inc_length(1);
            bar.set_message(describe(variant));
            let sample = self.sample(launch, &library, &trials::plan_of(&base, variant), variant, &mut reference);
            bar.inc(1);
            sample
        });
        ProgressBar::finish_and_clear(&bar);
        result
    }

    /// One run.
    fn sample(
        &self,
        launch: &Launch,
        library: &std::path::Path,
        plan: &Plan,
        variant: &Variant,
        reference: &mut Option<File>,
    ) -> Result<Sample, Failure> {
        let folder = temporary()?;
        let [file, stamps, counted] = ["plan.json", "times", "counters.json"].map(|name| folder.path().join(name));
        files::write_plan(plan, &file)?;
        let environment = [
            ("ECHO_DR_MODE", OsStr::new("optimise")),
            ("ECHO_DR_PLAN", file.as_os_str()),
            ("ECHO_DR_TIMES", stamps.as_os_str()),
            ("ECHO_DR_COUNTERS", counted.as_os_str()),
        ];
        let merges = !variant.is_empty();
        let during = if merges { "it ran with pairs merged" } else { "it ran without a pair merged" };
        let run = match launch.run(during, library, &environment, self.comparison.keeps_stdout()) {
            Ok(run) => run,
            Err(failure @ Failure::Program { .. }) if merges => return Ok(Sample::Failed(failure.to_string())),
            Err(failure) => return Err(failure),
        };
        if let Some(what) = self.comparison.judge(run.stdout.as_ref(), reference.as_ref())? {
            if merges {
                return Ok(Sample::Differs(what));
            }
            return Err(Failure::Program {
                program: launch.program.words(),
                what: format!("has outputs that can't be compared: {what}"),
                during: during.to_owned(),
                said: String::new(),
            });
        }
        let counters = files::counters(&counted)?;
        if let Some(refusal) = counters.refused {
            let reason = format!("the library does not use this plan: {refusal}; make it again with `echo-dr tune`");
            return Err(Failure::Usage(reason));
        }
        let merged = |id: u32| counters.pairs.iter().any(|pair| pair.pair == id && pair.met > 0);
        if merges && !variant.iter().any(|(id, _)| merged(*id)) {
            return Ok(Sample::NotMerged);
        }
        if !merges && reference.is_none() {
            *reference = run.stdout;
        }
        Ok(Sample::Took(times::iteration(&stamps, run.wall)?))
    }
}

fn describe(variant: &Variant) -> String {
    if variant.is_empty() {
        return "without".to_owned();
    }
    variant.iter().map(|(id, backend)| format!("{id} {}", backend.name())).collect::<Vec<_>>().join(", ")
}
