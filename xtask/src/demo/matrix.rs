//! The schedule matrix: every sample in every schedule and access mode of the CPU device must print what the plain build prints.
//!
//! A merged program that lost a wait prints something else in the lazy schedule, one that lost an order between streams in some random
//! one, and one whose host touches managed memory while the device works ends with a signal in exclusive mode.

use std::fmt::Write;

use super::compile::{self, Variant};
use super::execute::{self, Modes};
use super::report::{Matrix, Report};
use crate::context::Context;
use crate::failure::Failure;
use crate::samples::{Sample, Size};

/// Seeds of the random schedules.
const SEEDS: std::ops::RangeInclusive<u32> = 1..=20;

const ACCESS: [&str; 2] = ["exclusive", "concurrent"];

/// All combinations of modes.
fn modes() -> Vec<Modes> {
    let schedules =
        ["lazy".to_string(), "eager".to_string()].into_iter().chain(SEEDS.map(|seed| format!("random:{seed}")));
    schedules
        .flat_map(|schedule| ACCESS.map(|access| Modes { schedule: Some(schedule.clone()), access: Some(access) }))
        .collect()
}

/// Runs the matrix, several programs at a time, and enters what it finds into `report` (whose samples are `samples`, in this order).
pub(super) fn run(context: &Context, samples: &[Sample], size: Size, report: &mut Report) -> Result<(), Failure> {
    let modes = modes();
    let jobs: Vec<(usize, Variant, &Modes)> = samples
        .iter()
        .enumerate()
        .flat_map(|(index, sample)| Variant::of(sample).iter().map(move |variant| (index, *variant)))
        .flat_map(|(index, variant)| modes.iter().map(move |modes| (index, variant, modes)))
        .collect();
    let expected: Vec<String> = report.samples.iter().map(|sample| sample.output.clone()).collect();

    let step = context.ui.steps("running the samples in every schedule and access mode", jobs.len());
    let differences = super::parallel(&jobs, |(index, variant, modes)| {
        let sample = &samples[*index];
        let program = compile::program(context, sample, *variant);
        let difference = match execute::run(context, &program, sample.arguments(size), modes) {
            Ok(run) if run.output == expected[*index] => None,
            Ok(run) => {
                Some(format!("{} ({modes}) printed\n{}instead of\n{}", program.display(), run.output, expected[*index]))
            }
            Err(Failure::Result(text)) => Some(text),
            Err(other) => return Err(other),
        };
        step.advance();
        Ok((*index, difference))
    })?;
    step.done();

    for sample in &mut report.samples {
        sample.schedules = Some(Matrix::default());
    }
    for (index, difference) in differences {
        if let Some(matrix) = &mut report.samples[index].schedules {
            matrix.runs += 1;
            matrix.differences.extend(difference);
        }
    }
    Ok(())
}

/// One sentence on a sample's matrix.
pub(super) fn summary(matrix: &Matrix) -> String {
    let mut text = format!("{} runs", matrix.runs);
    if !matrix.differences.is_empty() {
        let _ = write!(text, ", {} differ", matrix.differences.len()); // Writing to a String cannot fail.
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schedule_meets_every_access_mode_once() {
        let all: Vec<String> = modes().iter().map(ToString::to_string).collect();
        assert_eq!(all.len(), 2 * 22);
        for expected in [
            "SCHEDULE=lazy ACCESS=exclusive",
            "SCHEDULE=eager ACCESS=concurrent",
            "SCHEDULE=random:20 ACCESS=exclusive",
        ] {
            assert_eq!(all.iter().filter(|modes| *modes == expected).count(), 1, "{expected}");
        }
    }
}
