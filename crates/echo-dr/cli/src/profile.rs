//! `echo-dr profile`: one run, recorded.

use std::path::PathBuf;

use clap::Args;
use echo_dr_format::event::{Call, CopyKind, DeviceKind};
use echo_dr_format::trace::Trace;
use serde::Serialize;

use crate::failure::{Failure, Status, print, print_json};
use crate::launch::Launch;
use crate::steps::{self, Finding};

/// Run a program once and record its allocations, copies, launches and waits
#[derive(Debug, Args)]
#[command(after_help = "\
The program runs as it is; the library in it watches its calls. Its output is hidden unless --show-output is given.

Exit codes:
  0  the trace was written
  1  the trace was written, and nothing in it is copied between host and device
  2  wrong usage or set-up
  3  the program failed

Example:
  echo-dr profile -o app.trace -- ./app --input data")]
pub(crate) struct Profile {
    /// The trace
    #[arg(short, long, value_name = "FILE", default_value = "echo-dr.trace")]
    output: PathBuf,
    #[command(flatten)]
    finding: Finding,
    /// A summary as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    launch: Launch,
}

/// What a trace has.
#[derive(Debug, Default, Serialize)]
struct Summary {
    trace: String,
    events: usize,
    host_blocks: u64,
    device_blocks: u64,
    managed_blocks: u64,
    copies: u64,
    copied_bytes: u64,
    launches: u64,
    events_lost: u64,
    /// The program did not end by itself.
    truncated: bool,
}

impl Profile {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<Status, Failure> {
        let trace = steps::profile(&self.launch, &self.finding, &self.output)?;
        let summary = Summary { trace: self.output.display().to_string(), ..summary(&trace) };
        if self.json {
            print_json(&summary)?;
        } else {
            print(&text(&summary))?;
        }
        Ok(if summary.copies > 0 { Status::Done } else { Status::No })
    }
}

fn summary(trace: &Trace) -> Summary {
    let mut summary = Summary {
        events: trace.events.len(),
        truncated: trace.truncated || trace.end.is_none(),
        events_lost: trace.end.map_or(0, |end| end.lost),
        ..Summary::default()
    };
    for event in &trace.events {
        match event.call {
            Call::HostAlloc { .. } => summary.host_blocks += 1,
            Call::DeviceAlloc { kind: DeviceKind::Managed, .. } => summary.managed_blocks += 1,
            Call::DeviceAlloc { .. } => summary.device_blocks += 1,
            Call::Copy { kind: CopyKind::HostToDevice | CopyKind::DeviceToHost | CopyKind::Default, bytes, .. } => {
                summary.copies += 1;
                summary.copied_bytes += bytes;
            }
            Call::Launch { .. } => summary.launches += 1,
            _ => {}
        }
    }
    summary
}

fn text(summary: &Summary) -> String {
    let mut text = format!(
        "{}: {} events; {} host and {} device blocks above the threshold; {} copies between host and device ({}); {} launches\n",
        summary.trace,
        summary.events,
        summary.host_blocks,
        summary.device_blocks + summary.managed_blocks,
        summary.copies,
        echo_cli::size(summary.copied_bytes),
        summary.launches
    );
    if summary.truncated {
        text += "The trace has no end: the program was killed.\n";
    }
    if summary.events_lost > 0 {
        text += &format!("{} events could not be written; no pair will be found.\n", summary.events_lost);
    }
    if summary.copies == 0 {
        text += "Nothing is copied between host and device. If the program starts another one that does, profile that one.\n";
    }
    text
}
