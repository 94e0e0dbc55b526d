//! `echo-dr validate`: a run in which the host is watched.

use std::path::PathBuf;

use clap::Args;
use echo_dr_format::plan::State;

use crate::failure::{Failure, Status};
use crate::files;
use crate::launch::Launch;
use crate::places::Places;
use crate::steps::{self, PlanFile};
use crate::summary;

/// Run the program with the plan's host buffers watched, and reject pairs that the host touches while the GPU uses them
#[derive(Debug, Args)]
#[command(after_help = "\
The buffers stay two. While the GPU uses a pair, the pages of its host buffer are closed; an access is recorded, let through, and the pair is
rejected, with the place of the access. Page-locked host buffers are such that the GPU can't reach them; if the program fails for that, it runs once
more, without their pairs.

Exit codes:
  0  some pair passed
  1  none did
  2  wrong usage or set-up
  3  the program failed")]
pub(crate) struct Validate {
    #[command(flatten)]
    file: PlanFile,
    /// Keep the trace of the run
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The pairs as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    launch: Launch,
}

impl Validate {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let mut plan = files::plan(&self.file.plan)?;
        let folder = steps::temporary()?;
        let file = self.trace.clone().unwrap_or_else(|| folder.path().join("validation.trace"));
        let trace = steps::validate(&self.launch, &mut plan, &file)?;
        files::write_plan(&plan, self.file.output())?;
        let report = summary::report(&plan, self.file.output(), &mut Places::of([&trace]));
        summary::show(&report, self.json, &[])?;
        let passed = plan.pairs.iter().any(|pair| pair.state == State::Validated);
        Ok(if passed { Status::Done } else { Status::No })
    }
}
