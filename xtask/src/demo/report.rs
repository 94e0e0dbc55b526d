//! What the demo found, as data: the table and the JSON show the same.

use serde::Serialize;

use super::compile::Variant;
use super::execute::Run;
use super::verdicts::Pair;
use crate::samples::{Expectation, Outcome, Sample};

/// All samples.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// In the order of `samples.toml`.
    pub(crate) samples: Vec<SampleReport>,
}

/// One sample.
#[derive(Debug, Serialize)]
pub(crate) struct SampleReport {
    /// Its name.
    pub(crate) name: String,
    /// Its candidate pairs and their verdicts.
    pub(crate) pairs: Vec<Pair>,
    /// Host-device copies of a run that the plugin removed.
    pub(crate) copies_removed: u64,
    /// Bytes that these copies moved, in MiB.
    pub(crate) mib_saved: f64,
    /// Median loop time without the plugin, in milliseconds.
    pub(crate) before_ms: f64,
    /// Median loop time with the plugin.
    pub(crate) after_ms: f64,
    /// Median loop time of the variant merged by hand, if there is one.
    pub(crate) merged_ms: Option<f64>,
    /// All runs of all variants printed the same.
    pub(crate) outputs_equal: bool,
    /// What the plain build printed.
    pub(crate) output: String,
    /// The schedule matrix, if it was asked for.
    pub(crate) schedules: Option<Matrix>,
    /// Verdicts that are not what `samples.toml` says.
    pub(crate) unexpected: Vec<String>,
}

/// A sample in the schedule matrix.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Matrix {
    /// Runs.
    pub(crate) runs: usize,
    /// Runs that failed or printed something else, each in words.
    pub(crate) differences: Vec<String>,
}

impl SampleReport {
    /// From the verdicts, what they should be, and the runs of all variants.
    pub(super) fn new(sample: &Sample, pairs: Vec<Pair>, expected: &[Expectation], runs: &[(Variant, Run)]) -> Self {
        let of = |variant: Variant| runs.iter().filter(move |(of, _)| *of == variant).map(|(_, run)| run);
        let time = |variant| median(of(variant).map(|run| run.loop_ms).collect());
        let output = of(Variant::Plain).next().map(|run| run.output.clone()).unwrap_or_default();
        let (copies_removed, bytes) = match (of(Variant::Plain).next(), of(Variant::Echo).next()) {
            (Some(before), Some(after)) => {
                (before.copies.saturating_sub(after.copies), before.copied_bytes.saturating_sub(after.copied_bytes))
            }
            _ => (0, 0),
        };
        SampleReport {
            name: sample.name.clone(),
            unexpected: unexpected(sample, &pairs, expected),
            pairs,
            copies_removed,
            mib_saved: bytes as f64 / f64::from(1 << 20),
            before_ms: time(Variant::Plain).unwrap_or_default(),
            after_ms: time(Variant::Echo).unwrap_or_default(),
            merged_ms: time(Variant::Merged),
            outputs_equal: runs.iter().all(|(_, run)| run.output == output),
            output,
            schedules: None,
        }
    }
}

impl Report {
    /// Everything that is wrong, each in words.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for sample in &self.samples {
            if !sample.outputs_equal {
                problems.push(format!("{}: outputs differ between builds or runs", sample.name));
            }
            problems.extend(sample.unexpected.iter().cloned());
            problems.extend(sample.schedules.iter().flat_map(|matrix| matrix.differences.iter().cloned()));
        }
        problems
    }
}

/// Compares verdicts with what they should be; pairs that nobody expects are fine if they are declined.
fn unexpected(sample: &Sample, pairs: &[Pair], expected: &[Expectation]) -> Vec<String> {
    let mut problems = Vec::new();
    let same = |pair: &Pair, expectation: &Expectation| {
        pair.host.site.line == expectation.host && pair.device.site.line == expectation.device
    };
    for expectation in expected {
        let here = format!("{}.cu: pair of lines {} and {}", sample.name, expectation.host, expectation.device);
        let mut found = pairs.iter().filter(|pair| same(pair, expectation)).peekable();
        if found.peek().is_none() {
            problems.push(format!("{here}: no verdict"));
        }
        for pair in found {
            if pair.outcome != expectation.verdict {
                problems.push(format!("{here}: {}, expected {:?}", pair.describe(), expectation.verdict));
            } else if let (Some(code), Some(at)) = (&expectation.code, expectation.at)
                && !pair.reasons.iter().any(|reason| &reason.code == code && reason.at.line == at)
            {
                problems.push(format!("{here}: {}, expected {code} at line {at}", pair.describe()));
            }
        }
    }
    for pair in
        pairs.iter().filter(|pair| pair.outcome == Outcome::Merged && !expected.iter().any(|one| same(pair, one)))
    {
        problems.push(format!("{}.cu: {} was merged, but samples.toml has no such pair", sample.name, pair.place()));
    }
    problems
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
