//! `cargo xtask bench dr`: what Echo-DR costs a program. Each sample by itself, profiled and under heaptrack, and with its plan beside what a
//! programmer merged by hand. The bounds are those of docs/performance.md; a broken one is a failure.
//!
//! A cost of less than a hundredth can't be seen in runs of a busy machine, so it is measured twice:
//!
//! 1. **What a round costs more**, in µs: small buffers, all processes of a run on one processor. The round is short, nothing runs beside it, and
//!    what Echo-DR's own thread does takes the program's time too: rounds are looked at in pieces that it comes to twice. Echo-DR never touches
//!    what is in the buffers, so larger ones cost no more.
//! 2. **The rounds with usual buffers**, as the demo runs them, on all processors. Their ratios show whether anything was forgotten, as surely as
//!    the machine lets them; the first measurement, divided by these rounds, is the cost.
//!
//! All ways to run a sample take turns, forth and back (A B C C B A), and are compared within such a turn only.

mod report;
mod runs;
mod stats;

use std::fs;
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::demo::{self, Variant};
use crate::failure::Failure;
use crate::samples::{self, Sample, Size};
use crate::{products, setup, tool};

use super::measure::median;
use report::{Measured, Report, SampleReport};
use runs::{Rounds, Subject, Way};
use stats::Estimate;

/// What the user asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Only these samples; all if there are none.
    pub(crate) names: Vec<String>,
    /// How long the turns of each sample and size go on.
    pub(crate) time: Duration,
    /// Print JSON instead of the tables.
    pub(crate) json: bool,
}

/// A run with small buffers takes about as long.
const SMALL_RUN: Duration = Duration::from_millis(300);
/// Its rounds; the first run, which finds out how long one takes, has the fewest.
const SMALL_ROUNDS: std::ops::RangeInclusive<usize> = 20..=10_000;
/// Rounds of a run with usual buffers, at least.
const USUAL_ROUNDS: usize = 6;
/// Turns of each sample and size, at least: of fewer no interval of 99 % can be told.
const TURNS: usize = 10;

/// Runs the benchmark. [`Failure::Result`] after the tables if a bound is broken.
pub(crate) fn run(context: &Context, options: &Options) -> Result<(), Failure> {
    let samples = samples::load(context, &options.names)?;
    setup::complete(context, None)?;
    products::build(context)?;
    demo::compile(context, &samples)?;
    let has_heaptrack = tool::find("heaptrack").is_some();

    let mut report = Report { has_heaptrack, samples: Vec::new() };
    let step = context.ui.steps("measuring", samples.len());
    for sample in &samples {
        step.detail(&sample.name);
        report.samples.push(measure(context, sample, options, has_heaptrack)?);
        step.advance();
    }
    step.done();

    super::conclude(&report, &report.problems(), options.json)
}

fn measure(
    context: &Context,
    sample: &Sample,
    options: &Options,
    has_heaptrack: bool,
) -> Result<SampleReport, Failure> {
    let folder = context.target.join("bench/dr").join(&sample.name);
    fs::create_dir_all(&folder).map_err(|error| Failure::io("create", &folder, &error))?;
    let mut subject = Subject {
        context,
        program: demo::program(context, sample, Variant::Plain),
        by_hand: sample.merged.then(|| demo::program(context, sample, Variant::Merged)),
        arguments: with_iterations(sample.arguments(Size::Short), |_| *SMALL_ROUNDS.start()),
        rounds: Rounds::Short(last_core()),
        folder,
    };
    let round = Duration::from_secs_f64(subject.round(Way::Plain)? * 1e-9).max(Duration::from_nanos(1));
    let rounds = usize::try_from(SMALL_RUN.as_nanos() / round.as_nanos()).unwrap_or(usize::MAX);
    let rounds = rounds.clamp(*SMALL_ROUNDS.start(), *SMALL_ROUNDS.end());
    subject.arguments = with_iterations(&subject.arguments, |_| rounds);
    let small = turns(&subject, options.time, has_heaptrack)?;

    subject.arguments = with_iterations(sample.arguments(Size::Demo), |usual| usual.max(USUAL_ROUNDS));
    subject.rounds = Rounds::Usual;
    let usual = turns(&subject, options.time, has_heaptrack)?;
    Ok(SampleReport { name: sample.name.clone(), small, usual })
}

/// Runs a sample in each way in turns, until the time is over.
fn turns(subject: &Subject<'_>, time: Duration, has_heaptrack: bool) -> Result<Measured, Failure> {
    let pairs = if subject.by_hand.is_some() { subject.tune()? } else { 0 };
    let mut ways = vec![Way::Plain, Way::Profiled, Way::Again];
    if has_heaptrack {
        ways.push(Way::Tracked);
    }
    if subject.by_hand.is_some() {
        ways.push(Way::ByHand);
    }
    if pairs > 0 {
        ways.push(Way::Planned);
    }
    let mut times = vec![Vec::new(); ways.len()];
    let start = Instant::now();
    while times[0].len() < TURNS || start.elapsed() < time {
        let mut turn = vec![0.0; ways.len()];
        for at in (0..ways.len()).chain((0..ways.len()).rev()) {
            turn[at] += subject.round(ways[at])? / 2.0;
        }
        times.iter_mut().zip(turn).for_each(|(times, time)| times.push(time));
    }
    let of = |way: Way| ways.iter().position(|known| *known == way).map(|at| times[at].as_slice());
    let against = |way: Way, base: Way, compare: fn(f64, f64) -> f64| {
        let (times, bases) = (of(way)?, of(base)?);
        Estimate::of(&times.iter().zip(bases).map(|(time, base)| compare(*time, *base)).collect::<Vec<_>>())
    };
    let ratio = |way, base| against(way, base, |time, base| time / base);
    let cost = |way, base| against(way, base, |time, base| (time - base) / 1e3);
    let round = |way| of(way).map(|times| median(times) / 1e3);
    Ok(Measured {
        arguments: subject.arguments.join(" "),
        turns: times[0].len(),
        pairs,
        events: subject.events_a_round()?,
        plain_us: round(Way::Plain),
        by_hand_us: round(Way::ByHand),
        again: ratio(Way::Again, Way::Plain),
        again_us: cost(Way::Again, Way::Plain),
        profiled: ratio(Way::Profiled, Way::Plain),
        profiled_us: cost(Way::Profiled, Way::Plain),
        tracked: ratio(Way::Tracked, Way::Plain),
        tracked_us: cost(Way::Tracked, Way::Plain),
        planned: ratio(Way::Planned, Way::ByHand),
        planned_us: cost(Way::Planned, Way::ByHand),
    })
}

/// The arguments with another number of rounds.
fn with_iterations(arguments: &[String], change: impl Fn(usize) -> usize) -> Vec<String> {
    let mut arguments = arguments.to_vec();
    if let Some(at) = arguments.iter().position(|argument| argument == "--iterations")
        && let Some(number) = arguments.get_mut(at + 1)
    {
        *number = change(number.parse().unwrap_or(1)).to_string();
    }
    arguments
}

/// The last processor that this process may use: interrupts mostly go to the first.
fn last_core() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_of_rounds_changes() {
        let arguments = ["100", "--iterations", "3"].map(String::from);
        assert_eq!(with_iterations(&arguments, |usual| usual.max(6)), ["100", "--iterations", "6"]);
        assert_eq!(with_iterations(&arguments[..1], |_| 6), ["100"]);
    }

    #[test]
    fn there_is_a_processor_to_be_alone_on() {
        assert!(last_core().is_some());
    }
}
