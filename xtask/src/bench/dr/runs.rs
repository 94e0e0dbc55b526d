//! Runs of a sample: by itself, profiled, under heaptrack, with its plan, and as it was merged by hand; and how long a round of its loop took.
//!
//! The CPU device notes when each kernel was asked for, in every variant alike, so the median round of a run can be had without anything of
//! the program's. A round in which another program had the processor doesn't count then, whereas it does in the time of the whole loop.

use std::fs;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use echo_dr_format::plan::{Plan, State};
use echo_dr_format::trace::Trace;
use serde::Deserialize;

use crate::bench::measure::median;
use crate::context::Context;
use crate::failure::Failure;
use crate::tool;

/// A way to run a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By itself.
    Plain,
    /// By itself once more: how far two runs of the same are apart.
    Again,
    /// `echo-dr profile`.
    Profiled,
    /// heaptrack.
    Tracked,
    /// `echo-dr run` with its plan.
    Planned,
    /// The source that was merged by hand.
    ByHand,
}

/// A sample with arguments, ready to be run in each way.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) context: &'a Context,
    pub(super) program: PathBuf,
    pub(super) by_hand: Option<PathBuf>,
    pub(super) arguments: Vec<String>,
    /// The processor that all of a run is on, if it is on one.
    pub(super) core: Option<usize>,
    /// For traces, plans and what heaptrack writes.
    pub(super) folder: PathBuf,
}

/// What the device writes to the file that `UMA_DEVICE_STATS` names.
#[derive(Debug, Deserialize)]
struct Statistics {
    launches: Vec<u64>,
}

impl Subject<'_> {
    /// Rounds of the loop.
    pub(super) fn iterations(&self) -> usize {
        let at = self.arguments.iter().position(|argument| argument == "--iterations");
        at.and_then(|at| self.arguments.get(at + 1)?.parse().ok()).unwrap_or(1)
    }

    fn trace(&self) -> PathBuf {
        self.folder.join("echo-dr.trace")
    }

    fn plan(&self) -> PathBuf {
        self.folder.join("echo-dr.plan.json")
    }

    fn command(&self, name: &Path) -> Command {
        let mut command = match self.core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &core.to_string()]).arg(name);
                command
            }
            None => Command::new(name),
        };
        command.current_dir(&self.folder).env("LD_LIBRARY_PATH", self.context.uma().join("lib"));
        for name in ["SCHEDULE", "ACCESS", "LINK", "POISON", "MEMORY"] {
            command.env_remove(format!("UMA_DEVICE_{name}"));
        }
        command.env_remove("LD_PRELOAD").env_remove("ECHO_DR_LIBRARY");
        command
    }

    fn echo_dr(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.context.target.join("release/echo-dr"));
        command.args(arguments).arg("--").arg(&self.program).args(&self.arguments);
        command
    }

    /// Nanoseconds of the median round of one run.
    pub(super) fn round(&self, way: Way) -> Result<f64, Failure> {
        let mut command = match way {
            Way::Plain | Way::Again => self.command(&self.program),
            Way::ByHand => self.command(self.by_hand.as_deref().unwrap_or(&self.program)),
            Way::Tracked => {
                let mut command = self.command(Path::new("heaptrack"));
                command.arg(&self.program);
                command
            }
            Way::Profiled => self.echo_dr(&["profile"]),
            Way::Planned => self.echo_dr(&["run", "echo-dr.plan.json"]),
        };
        if !matches!(way, Way::Profiled | Way::Planned) {
            command.args(&self.arguments);
        }
        let file = self.folder.join("statistics.json");
        let _ = fs::remove_file(&file); // It must be this run's.
        tool::run(command.env("UMA_DEVICE_STATS", &file))?;
        let text = fs::read_to_string(&file).map_err(|error| Failure::io("read", &file, &error))?;
        let Statistics { launches } = serde_json::from_str(&text)
            .map_err(|error| Failure::Build(format!("the device's statistics are not its: {error}: {text}")))?;
        let rounds = rounds(&launches, self.iterations());
        if rounds.is_empty() {
            return Err(Failure::Build(format!("{} has no loop to measure", tool::line(&command))));
        }
        Ok(median(&rounds))
    }

    /// Events of each kind that the last profiled run recorded a round, all together.
    pub(super) fn events_a_round(&self) -> Result<f64, Failure> {
        let path = self.trace();
        let file = fs::File::open(&path).map_err(|error| Failure::io("read", &path, &error))?;
        let trace = Trace::read(BufReader::new(file))
            .map_err(|error| Failure::Build(format!("{}: {error}", path.display())))?;
        Ok(trace.events.len() as f64 / self.iterations() as f64)
    }

    /// Makes a plan in which each pair that passed validation is enabled, whatever it gained; says how many these are. Small buffers gain
    /// too little to be sure of, and here the same must be merged as by hand.
    pub(super) fn tune(&self) -> Result<usize, Failure> {
        let path = self.plan();
        let _ = fs::remove_file(&path);
        // Exit code 1: no pair, or none enabled. The plan says so too.
        let mut command = self.echo_dr(&["tune", "--trials", "1", "--backend", "managed"]);
        let output = command.output().map_err(|error| Failure::Build(format!("{}: {error}", tool::line(&command))))?;
        let failed = |what: &str| Failure::Build(format!("{} {what}\n{}", tool::line(&command), tool::tail(&output)));
        let Ok(text) = fs::read(&path) else {
            return if output.status.code() == Some(1) { Ok(0) } else { Err(failed("left no plan")) };
        };
        let mut plan = Plan::read(&text).map_err(|error| failed(&format!("left a plan that is none: {error}")))?;
        for pair in plan.pairs.iter_mut().filter(|pair| pair.state.passed_validation()) {
            pair.state = State::Enabled;
        }
        let mut text = Vec::new();
        plan.write(&mut text).map_err(|error| Failure::io("write", &path, &error))?;
        let private = fs::Permissions::from_mode(0o600);
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, private))
            .map_err(|error| Failure::io("write", &path, &error))?;
        Ok(plan.enabled().count())
    }
}

/// The lengths of the rounds, which have equally many launches each; the first tenth is left out (what is touched and looked up once).
fn rounds(launches: &[u64], iterations: usize) -> Vec<f64> {
    let each = (launches.len() / iterations.max(1)).max(1);
    let begins: Vec<u64> = launches.iter().step_by(each).copied().collect();
    let first = (begins.len() / 10).max(usize::from(begins.len() > 2));
    let rounds = begins.get(first..).unwrap_or_default().windows(2);
    rounds.map(|two| two[1].saturating_sub(two[0]) as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_go_from_a_rounds_first_launch_to_the_next_rounds() {
        // Two launches a round; the first round is longer.
        assert_eq!(rounds(&[0, 10, 100, 110, 150, 160, 200, 210], 4), [50.0, 50.0]);
        assert_eq!(rounds(&[0, 70], 2), [70.0]);
        assert_eq!(rounds(&[5], 1), [0.0; 0]);
        assert_eq!(rounds(&[], 3), [0.0; 0]);
    }
}
