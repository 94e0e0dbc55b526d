//! Runs of a sample: by itself, profiled, under heaptrack, with its plan, and as it was merged by hand; and how long a round of its loop took.
//!
//! The CPU device notes when each kernel was asked for, in every variant alike, so the median round of a run can be had without anything of
//! the program's. A round in which another program had the processor doesn't count then, whereas it does in the time of the whole loop. Only
//! where the loop asks for all its kernels without waiting for any (`nbody_step`) does that time have to do.

use std::fs;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use echo_dr_format::plan::{Plan, State};
use echo_dr_format::trace::Trace;
use serde::Deserialize;

use crate::bench::measure::median;
use crate::context::Context;
use crate::demo::loop_time;
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

/// What the rounds of a run are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounds {
    /// Short ones, of small buffers, show what a round costs more. All processes are on one processor, where it is known.
    Short(Option<usize>),
    /// With the demo's buffers, on all processors, and with Echo-DR's own settings.
    Usual,
}

/// Short rounds are looked at in pieces that take so long. Echo-DR's thread writes what was recorded every 20 ms: the median of single rounds would
/// leave out what that takes.
const PIECE: Duration = Duration::from_millis(40);
/// θ_min of short rounds, the least: otherwise their small buffers would not be recorded.
const SHORT_THRESHOLD: [&str; 2] = ["--threshold", "4096"];

/// A sample with arguments, ready to be run in each way.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) context: &'a Context,
    pub(super) program: PathBuf,
    pub(super) by_hand: Option<PathBuf>,
    pub(super) arguments: Vec<String>,
    pub(super) rounds: Rounds,
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
        let mut command = match self.rounds {
            Rounds::Short(Some(core)) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &core.to_string()]).arg(name);
                command
            }
            Rounds::Short(None) | Rounds::Usual => Command::new(name),
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

    /// Arguments of `echo-dr profile` and `tune`.
    fn recorded<'b>(&self, arguments: &[&'b str]) -> Vec<&'b str> {
        let threshold = match self.rounds {
            Rounds::Short(_) => SHORT_THRESHOLD.as_slice(),
            Rounds::Usual => &[],
        };
        [arguments, threshold].concat()
    }

    /// Nanoseconds of a round of one run: the median of its pieces.
    pub(super) fn round(&self, way: Way) -> Result<f64, Failure> {
        let mut command = match way {
            Way::Plain | Way::Again => self.command(&self.program),
            Way::ByHand => self.command(self.by_hand.as_deref().unwrap_or(&self.program)),
            Way::Tracked => {
                let mut command = self.command(Path::new("heaptrack"));
                command.arg(&self.program);
                command
            }
            Way::Profiled => self.echo_dr(&self.recorded(&["profile", "--show-output"])),
            Way::Planned => self.echo_dr(&["run", "echo-dr.plan.json"]),
        };
        if !matches!(way, Way::Profiled | Way::Planned) {
            command.args(&self.arguments);
        }
        let file = self.folder.join("statistics.json");
        let _ = fs::remove_file(&file); // It must be this run's.
        let output = tool::run(command.env("UMA_DEVICE_STATS", &file))?;
        let text = fs::read_to_string(&file).map_err(|error| Failure::io("read", &file, &error))?;
        let Statistics { launches } = serde_json::from_str(&text)
            .map_err(|error| Failure::Build(format!("the device's statistics are not its: {error}: {text}")))?;
        let failed = |what: &str| Failure::Build(format!("{} {what}", tool::line(&command)));
        let whole = loop_time(&String::from_utf8_lossy(&output.stderr))
            .ok_or_else(|| failed("did not say its loop time"))?
            * 1e6;
        let asked = launches.last().zip(launches.first()).map_or(0, |(last, first)| last - first);
        if (asked as f64) < whole / 2.0 {
            return Ok(whole / self.iterations() as f64);
        }
        let least = if self.rounds == Rounds::Usual { Duration::ZERO } else { PIECE };
        let pieces = pieces(&launches, self.iterations(), least);
        if pieces.is_empty() { Err(failed("has no loop to measure")) } else { Ok(median(&pieces)) }
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
        let mut command = self.echo_dr(&self.recorded(&["tune", "--trials", "1", "--backend", "managed"]));
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

/// How long a round took in each piece of at least `least`, in nanoseconds. Rounds have equally many launches each; the first tenth is left out
/// (what is touched and looked up once), and so is what remains after the last whole piece, unless it is all there is.
fn pieces(launches: &[u64], iterations: usize, least: Duration) -> Vec<f64> {
    let each = (launches.len() / iterations.max(1)).max(1);
    let begins: Vec<u64> = launches.iter().step_by(each).copied().collect();
    let first = (begins.len() / 10).max(usize::from(begins.len() > 2));
    let begins = begins.get(first..).unwrap_or_default();
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, now) in begins.iter().enumerate().skip(1) {
        let time = now.saturating_sub(begins[start]);
        let is_all = pieces.is_empty() && at + 1 == begins.len();
        if u128::from(time) >= least.as_nanos() || is_all {
            pieces.push(time as f64 / (at - start) as f64);
            start = at;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_go_from_a_rounds_first_launch_to_the_next_rounds() {
        let rounds = |launches: &[u64], iterations| pieces(launches, iterations, Duration::ZERO);
        // Two launches a round; the first round is longer.
        assert_eq!(rounds(&[0, 10, 100, 110, 150, 160, 200, 210], 4), [50.0, 50.0]);
        assert_eq!(rounds(&[0, 70], 2), [70.0]);
        assert_eq!(rounds(&[5], 1), [0.0; 0]);
        assert_eq!(rounds(&[], 3), [0.0; 0]);
    }

    #[test]
    fn what_comes_only_to_some_rounds_counts_in_pieces() {
        // Every fourth round takes 100 ns more.
        let launches: Vec<u64> = (0..41_u64).map(|round| round * 10 + round / 4 * 100).collect();
        assert_eq!(median(&pieces(&launches, 41, Duration::ZERO)), 10.0);
        let pieces = pieces(&launches, 41, Duration::from_nanos(280));
        assert!(pieces.len() >= 3 && (median(&pieces) - 35.0).abs() < 1.0, "{pieces:?}");
    }

    #[test]
    fn a_run_shorter_than_a_piece_is_one() {
        assert_eq!(pieces(&[0, 10, 30, 60], 4, Duration::from_nanos(1000)), [25.0]);
    }
}
