//! `cargo xtask demo`: every sample without and with the plugin (and merged by hand), run on the CPU device, outputs compared byte by
//! byte, and one table. With `--schedules` also in every schedule and access mode of the device, which is a test.

mod compile;
mod execute;
mod matrix;
mod report;
mod table;
mod verdicts;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::context::Context;
use crate::failure::Failure;
use crate::samples::{self, Sample, Size};
use crate::{products, setup};

pub(crate) use compile::{Variant, all as compile, program};
pub(crate) use execute::loop_time;
use execute::{Modes, Run};
use report::{Report, SampleReport};

/// What the user asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Only these samples; all if there are none.
    pub(crate) names: Vec<String>,
    /// Runs of each program; the table has medians.
    pub(crate) repeats: usize,
    /// How large the runs are.
    pub(crate) size: Size,
    /// Also run in every schedule and access mode.
    pub(crate) schedules: bool,
    /// Print JSON instead of the table.
    pub(crate) json: bool,
}

/// Runs the demo. [`Failure::Result`] after the table if an output differs or a verdict is not what `samples.toml` says.
pub(crate) fn run(context: &Context, options: &Options) -> Result<(), Failure> {
    let samples = samples::load(context, &options.names)?;
    setup::complete(context, None)?;
    products::build(context)?;
    compile::all(context, &samples)?;

    let mut report = Report { samples: Vec::new() };
    let step = context.ui.steps("running the samples", samples.len());
    for sample in &samples {
        step.detail(&sample.name);
        report.samples.push(measure(context, sample, options)?);
        step.advance();
    }
    step.done();
    if options.schedules {
        matrix::run(context, &samples, options.size, &mut report)?;
    }

    if options.json {
        let text = serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::Build(format!("cannot write the report: {error}")))?;
        println!("{text}");
    } else {
        println!("{}", table::render(&report));
    }
    let problems = report.problems();
    if problems.is_empty() { Ok(()) } else { Err(Failure::Result(problems.join("\n"))) }
}

/// Runs the variants of a sample in turns, so that what slows the machine for a while slows all of them.
fn measure(context: &Context, sample: &Sample, options: &Options) -> Result<SampleReport, Failure> {
    let variants = Variant::of(sample);
    let mut runs: Vec<(Variant, Run)> = Vec::new();
    for _ in 0..options.repeats {
        for variant in variants {
            let program = compile::program(context, sample, *variant);
            let run = execute::run(context, &program, sample.arguments(options.size), &Modes::default())?;
            runs.push((*variant, run));
        }
    }
    let pairs = verdicts::read(&compile::report(context, sample))?;
    Ok(SampleReport::new(sample, pairs, &sample.expectations(context)?, &runs))
}

/// Applies `work` to all of `items` on as many threads as there are processors; results in order. The first failure ends it.
pub(crate) fn parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    let failure: Mutex<Option<Failure>> = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                while let Some((index, item)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
                {
                    match work(item) {
                        Ok(result) => results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result),
                        Err(error) => {
                            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                            next.store(items.len(), Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..100).collect();
        assert_eq!(parallel(&items, |item| Ok(item * 2)).unwrap(), (0..100).map(|item| item * 2).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_is_returned_and_ends_the_work() {
        let done = AtomicUsize::new(0);
        let items: Vec<usize> = (0..10_000).collect();
        let failure = parallel(&items, |item| {
            done.fetch_add(1, Ordering::Relaxed);
            if *item == 5 { Err(Failure::Result("five".into())) } else { Ok(()) }
        });
        assert_eq!(failure.unwrap_err().to_string(), "five");
        assert!(done.load(Ordering::Relaxed) < items.len());
    }
}
