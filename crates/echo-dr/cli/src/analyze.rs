//! `echo-dr analyze`: from a trace to a plan of candidates.

use std::path::PathBuf;

use clap::Args;
use echo_dr_format::trace::Mode;

use crate::failure::{Failure, Status};
use crate::files;
use crate::places::Places;
use crate::steps::{self, Asking};
use crate::summary;

/// Find the pairs of a trace, and say why everything else is none
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  there are candidates
  1  there are none; what was copied, and why it can't be merged, is shown
  2  the trace can't be read")]
pub(crate) struct Analyze {
    /// The trace of `echo-dr profile`
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The plan
    #[arg(short, long, value_name = "FILE", default_value = "echo-dr.plan.json")]
    output: PathBuf,
    #[command(flatten)]
    asking: Asking,
    /// The pairs as one JSON object
    #[arg(long)]
    json: bool,
}

impl Analyze {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let trace = files::trace(&self.trace)?;
        if trace.header.mode == Mode::Optimise {
            let reason = "a run with a plan was recorded here, without the copies that the plan skips; analyze the trace of `echo-dr profile`";
            return Err(Failure::File { path: self.trace.clone(), reason: reason.to_owned() });
        }
        let plan = steps::analyze(&trace, self.asking);
        files::write_plan(&plan, &self.output)?;
        let report = summary::report(&plan, &self.output, &mut Places::of([&trace]));
        summary::show(&report, self.json, &[])?;
        Ok(if plan.pairs.is_empty() { Status::No } else { Status::Done })
    }
}
