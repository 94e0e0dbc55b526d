//! `echo-dr tune`: everything from the program to a plan that is ready to run.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::calibrate::Calibration;
use crate::failure::{Failure, Status};
use crate::files;
use crate::launch::Launch;
use crate::places::Places;
use crate::report;
use crate::steps::{self, Asking, Finding};
use crate::summary;

/// Profile a program, validate and measure what could be merged, and write the plan to run it with
#[derive(Debug, Args)]
#[command(after_help = "\
The program runs several times: once to record it, once to watch the host, and for each pair three times without and with each kind of memory; with
--report or --keep once more, with the plan. It must end by itself, and do the same in each run.

Exit codes:
  0  the plan merges something: echo-dr run echo-dr.plan.json -- PROGRAM
  1  nothing can be merged, or nothing is worth merging; why is shown
  2  wrong usage or set-up
  3  the program failed without being changed

Examples:
  echo-dr tune -- ./app --input data
  echo-dr tune --compare-stdout --report app.html -- ./app --input data")]
pub(crate) struct Tune {
    /// The plan
    #[arg(short, long, value_name = "FILE", default_value = "echo-dr.plan.json")]
    output: PathBuf,
    #[command(flatten)]
    finding: Finding,
    #[command(flatten)]
    asking: Asking,
    #[command(flatten)]
    calibration: Calibration,
    /// Keep the traces of profiling, of validation and of a run with the plan in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Write a report as one HTML file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The table as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    launch: Launch,
}

impl Tune {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let temporary = steps::temporary()?;
        let folder = self.keep.as_deref().unwrap_or(temporary.path());
        fs::create_dir_all(folder).map_err(|error| Failure::io(folder, "create", &error))?;

        let profiled = steps::profile(&self.launch, &self.finding, &folder.join("profile.trace"))?;
        let mut plan = steps::analyze(&profiled, self.asking);
        let mut traces = vec![profiled];
        if !plan.pairs.is_empty() {
            traces.push(steps::validate(&self.launch, &mut plan, &folder.join("validation.trace"))?);
        }
        let mut said = steps::calibrate(&self.launch, &mut plan, &self.calibration)?;
        files::write_plan(&plan, &self.output)?;
        let enabled = plan.enabled().next().is_some();
        if enabled && (self.report.is_some() || self.keep.is_some()) {
            // The plan stands without this run, which only shows it.
            match steps::follow(&self.launch, &self.output, &folder.join("optimised.trace")) {
                Ok(trace) => traces.push(trace),
                Err(failure) => said.push(failure.to_string()),
            }
        }

        let report = summary::report(&plan, &self.output, &mut Places::of(&traces));
        if let Some(path) = &self.report {
            report::write(path, &plan, &report, &traces)?;
        }
        summary::show(&report, self.json, &said)?;
        if enabled && !self.json {
            eprintln!("run it: echo-dr run {} -- {}", quoted(&self.output), self.launch.program.words());
        }
        Ok(if enabled { Status::Done } else { Status::No })
    }
}

fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    shlex::try_quote(&text).map_or(text.clone(), std::borrow::Cow::into_owned)
}
