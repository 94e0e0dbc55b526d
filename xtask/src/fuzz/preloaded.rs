//! Programs as they are, with Echo-DR's library in them: a run that records, one that is watched, and runs that merge what passed.
//!
//! Every run of them must print what the program prints alone: recording and watching change nothing, and a merge of what validation let pass
//! changes nothing either, in whatever schedule. Calibration is left out, since what it decides is about time: every pair that passes is merged,
//! and a seed chooses the kind of memory among those that the device and the pair allow.

use std::ffi::OsString;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use echo_dr_engine::{Options, analyze, judge, possible_backends};
use echo_dr_format::counters::Counters;
use echo_dr_format::plan::{Pair, Plan, State};
use echo_dr_format::reason::Reason;
use echo_dr_format::trace::Trace;

use super::build::{Build, Files};
use super::execute::{self, Difference, Mode, Process};
use super::machine::Expected;
use super::report::{Merged, Pairs};
use crate::context::Context;
use crate::failure::Failure;

/// The smallest block that is recorded, which is the smallest that can be.
const THRESHOLD: u64 = 4096;
/// As many times as large as usual are the buffers: the smallest has 16 bytes then.
pub(super) const LARGER: usize = THRESHOLD as usize / 16;

/// Which run of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its calls are recorded.
    Record,
    /// What passes the analysis is watched.
    Watch,
    /// What passes that too is merged.
    Merge,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Record => "profile",
            Step::Watch => "validate",
            Step::Merge => "optimise",
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ECHO_DR_MODE={}", self.name())
    }
}

/// The steps with the schedules that they run in. The first two take turns, since a program that is recorded in one order must be right in all.
pub(super) fn modes(number: u64) -> Vec<Mode> {
    let random = |more: u64| format!("random:{}", 2 * number + more);
    let schedules = [
        (Step::Record, ["eager", "lazy"][(number % 2) as usize].to_owned(), false),
        (Step::Watch, ["lazy", "eager"][(number / 2 % 2) as usize].to_owned(), number.is_multiple_of(3)),
        (Step::Merge, "lazy".to_owned(), true),
        (Step::Merge, "eager".to_owned(), false),
        (Step::Merge, random(1), false),
        (Step::Merge, random(2), true),
    ];
    let mut modes = Vec::new();
    for access in ["exclusive", "concurrent"] {
        for (position, (step, schedule, poison)) in schedules.iter().cloned().enumerate() {
            let mixture = Some(8 * number + position as u64);
            modes.push(Mode { schedule, access, poison, mixture, step: Some(step) });
        }
    }
    modes
}

/// Programs `first` to `last` of a file on one input, in one access mode: what a plan is for.
#[derive(Clone, Copy, Debug)]
struct Run<'a> {
    context: &'a Context,
    files: &'a Files,
    access: &'static str,
    input: usize,
    first: usize,
    last: usize,
    /// What the analysis lets pass is merged without being watched: for the test that the comparison finds something.
    unvalidated: bool,
}

/// As [`execute::differences`], for a step.
pub(super) fn differences(
    context: &Context,
    unvalidated: bool,
    files: &Files,
    mode: &Mode,
    step: Step,
    input: usize,
    expected: &[&Expected],
) -> Result<Vec<Difference>, Failure> {
    execute::differences(mode, input, expected, |first| {
        let run = Run { context, files, access: mode.access, input, first, last: expected.len() - 1, unvalidated };
        run.step(mode, step)
    })
}

impl Run<'_> {
    fn step(&self, mode: &Mode, step: Step) -> Result<Process, Failure> {
        match step {
            Step::Record => {
                let process = self.process(mode, step, &[("ECHO_DR_THETA_MIN", THRESHOLD.to_string().into())])?;
                let options = Options { threshold: THRESHOLD, recurrences: 1 };
                let plan = match trace(&self.file("profile"))? {
                    Some(trace) => analyze(&trace, options),
                    None => return Ok(process.but("it wrote no trace")),
                };
                write(&plan, &self.file("plan"))?;
                Ok(process)
            }
            Step::Watch => {
                self.after(mode, Step::Record)?;
                let mut plan = read(&self.file("plan"))?;
                if self.unvalidated {
                    plan.pairs.iter_mut().for_each(|pair| pair.state = State::Validated);
                    write(&plan, &self.file("judged"))?;
                    return execute::run(self.context, &self.program(), mode, &self.arguments(), &[]);
                }
                let exclusive = OsString::from(if self.access == "exclusive" { "1" } else { "0" });
                let file = self.file("plan").into();
                let process = self.process(mode, step, &[("ECHO_DR_PLAN", file), ("ECHO_DR_EXCLUSIVE", exclusive)])?;
                let Some(trace) = trace(&self.file("validate"))? else { return Ok(process.but("it wrote no trace")) };
                if let Err(error) = judge(&mut plan, &trace) {
                    return Ok(process.but(&error.to_string()));
                }
                write(&plan, &self.file("judged"))?;
                Ok(process)
            }
            Step::Merge => {
                self.after(mode, Step::Watch)?;
                let mut plan = read(&self.file("judged"))?;
                enable(&mut plan, mode.mixture.unwrap_or(0));
                write(&plan, &self.file("enabled"))?;
                self.process(mode, step, &[("ECHO_DR_PLAN", self.file("enabled").into())])
            }
        }
    }

    /// Does `step` if the plan that it leaves is not there: the programs from another one on have other arguments.
    fn after(&self, mode: &Mode, step: Step) -> Result<(), Failure> {
        let leaves = self.file(if step == Step::Record { "plan" } else { "judged" });
        if leaves.exists() { Ok(()) } else { self.step(mode, step).map(drop) }
    }

    fn process(&self, mode: &Mode, step: Step, more: &[(&str, OsString)]) -> Result<Process, Failure> {
        let library = self.context.target.join("release/libecho_dr.so");
        let mut environment: Vec<(&str, OsString)> = vec![
            ("LD_PRELOAD", library.into()),
            ("ECHO_DR_MODE", step.name().into()),
            ("ECHO_DR_COUNTERS", self.counters(mode).into()),
        ];
        if step != Step::Merge {
            environment.push(("ECHO_DR_TRACE", self.file(step.name()).into()));
            let _ = fs::remove_file(self.file(step.name())); // Absent, the first time.
        }
        environment.extend(more.iter().cloned());
        execute::run(self.context, &self.program(), mode, &self.arguments(), &environment)
    }

    fn program(&self) -> PathBuf {
        self.files.program(Build::Preloaded)
    }

    fn arguments(&self) -> [usize; 3] {
        [self.first, self.last, self.input]
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.near(&format!("{}-{}-{}-{name}", self.access, self.input, self.first))
    }

    fn counters(&self, mode: &Mode) -> PathBuf {
        self.file(&format!("counters-{}", mode.mixture.unwrap_or(0)))
    }
}

/// What was decided of the pairs of a file, and what the merging runs did.
pub(super) fn count(files: &Files, number: u64) -> Result<(Pairs, Merged), Failure> {
    let (mut pairs, mut merged) = (Pairs::default(), Merged::default());
    for mode in modes(number) {
        for input in 0..2 {
            let name = |what: &str| files.near(&format!("{}-{input}-0-{what}", mode.access));
            if mode.step == Some(Step::Watch) && name("judged").exists() {
                let plan = read(&name("judged"))?;
                plan.pairs.iter().for_each(|pair| count_pair(&mut pairs, pair));
                for ineligible in &plan.ineligible {
                    let codes: Vec<String> = ineligible.reasons.iter().map(code).collect();
                    pairs.count(false, &codes);
                }
            }
            let counters = name(&format!("counters-{}", mode.mixture.unwrap_or(0)));
            if let (Some(Step::Merge), Ok(text)) = (mode.step, fs::read(counters)) {
                let counters = Counters::read(&text).map_err(|error| Failure::Build(error.to_string()))?;
                merged.blocks += counters.pairs.iter().map(|pair| pair.merged).sum::<u64>();
                merged.copies_skipped += counters.pairs.iter().map(|pair| pair.copies_skipped).sum::<u64>();
                for (deviation, times) in &counters.deviations {
                    *merged.deviations.entry(deviation.clone()).or_default() += times;
                }
            }
        }
    }
    Ok((pairs, merged))
}

fn count_pair(pairs: &mut Pairs, pair: &Pair) {
    match &pair.state {
        State::Rejected(rejection) => pairs.count(false, &[code(&rejection.reason)]),
        _ => pairs.count(true, &[]),
    }
}

fn code(reason: &impl Reason) -> String {
    format!("{} {}", reason.number(), reason.name())
}

/// Merges what passed; `seed` chooses what of.
fn enable(plan: &mut Plan, seed: u64) {
    let attributes = plan.context.device.as_ref().map(|device| device.attributes).unwrap_or_default();
    for pair in plan.pairs.iter_mut().filter(|pair| pair.state == State::Validated) {
        let possible = possible_backends(attributes, pair.exclusive);
        let choice = (seed.wrapping_add(u64::from(pair.id))).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        if let Some(&backend) = possible.get(choice as usize % possible.len().max(1)) {
            pair.backend = backend;
        }
        pair.state = State::Enabled;
    }
}

/// A trace; `None` if there is none.
fn trace(path: &Path) -> Result<Option<Trace>, Failure> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::io("read", path, &error)),
    };
    let wrong = |error| Failure::Build(format!("{} is no trace: {error}", path.display()));
    Trace::read(BufReader::new(file)).map(Some).map_err(wrong)
}

fn read(path: &Path) -> Result<Plan, Failure> {
    let text = fs::read(path).map_err(|error| Failure::io("read", path, &error))?;
    Plan::read(&text).map_err(|error| Failure::Build(format!("{} is no plan: {error}", path.display())))
}

/// Only its owner may write it: the library asks for that.
fn write(plan: &Plan, path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::io("write", path, &error);
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    plan.write(&mut file).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_access_mode_is_recorded_and_watched_before_it_is_merged() {
        for number in 0..6 {
            for modes in modes(number).chunks(6) {
                let steps: Vec<_> = modes.iter().map(|mode| mode.step).collect();
                let merged = [Some(Step::Merge); 4];
                assert_eq!(steps, [&[Some(Step::Record), Some(Step::Watch)][..], &merged].concat());
                assert!(modes.iter().all(|mode| mode.access == modes[0].access));
            }
        }
    }
}
