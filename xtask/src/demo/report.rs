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
            unexpected: unexpected(&sample.name, &pairs, expected),
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
fn unexpected(sample: &str, pairs: &[Pair], expected: &[Expectation]) -> Vec<String> {
    let mut problems = Vec::new();
    let same = |pair: &Pair, expectation: &Expectation| {
        pair.host.site.line == expectation.host && pair.device.site.line == expectation.device
    };
    for expectation in expected {
        let here = format!("{sample}.cu: pair of lines {} and {}", expectation.host, expectation.device);
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
        problems.push(format!("{sample}.cu: {} was merged, but samples.toml has no such pair", pair.place()));
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
    use super::super::verdicts::{Buffer, Place, Reason};
    use super::*;

    fn place(line: u32) -> Place {
        Place { file: "a.cu".into(), line }
    }

    fn pair(outcome: Outcome, reasons: &[(&str, u32)]) -> Pair {
        let buffer = |name: &str, line| Buffer { name: name.into(), site: place(line) };
        let reasons = reasons
            .iter()
            .map(|(code, line)| Reason { code: (*code).into(), at: place(*line), message: String::new() })
            .collect();
        Pair { host: buffer("h", 3), device: buffer("d", 4), outcome, waits: Vec::new(), reasons }
    }

    fn expected(verdict: Outcome, code: Option<&str>, at: Option<u32>) -> Expectation {
        Expectation { host: 3, device: 4, verdict, code: code.map(Into::into), at }
    }

    fn problems(pairs: &[Pair], expectations: &[Expectation]) -> Vec<String> {
        unexpected("a", pairs, expectations)
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn the_expected_verdict_is_no_problem() {
        let merged = pair(Outcome::Merged, &[]);
        assert_eq!(problems(&[merged], &[expected(Outcome::Merged, None, None)]), [""; 0]);
        let declined = pair(Outcome::Declined, &[("S2-y", 9), ("S1-x", 7)]);
        assert_eq!(problems(&[declined], &[expected(Outcome::Declined, Some("S1-x"), Some(7))]), [""; 0]);
    }

    #[test]
    fn another_verdict_code_or_line_is_a_problem() {
        let merged = pair(Outcome::Merged, &[]);
        let declined = pair(Outcome::Declined, &[("S1-x", 7)]);
        let must_merge = expected(Outcome::Merged, None, None);
        for (pair, expectation) in [
            (&merged, &expected(Outcome::Declined, Some("S1-x"), Some(7))),
            (&declined, &must_merge),
            (&declined, &expected(Outcome::Declined, Some("S1-y"), Some(7))),
            (&declined, &expected(Outcome::Declined, Some("S1-x"), Some(8))),
        ] {
            assert_eq!(
                problems(std::slice::from_ref(pair), std::slice::from_ref(expectation)).len(),
                1,
                "{expectation:?}"
            );
        }
        // The same pair with two verdicts, in a function and where it was inlined: both count.
        assert_eq!(problems(&[merged, declined], &[must_merge]).len(), 1);
    }

    #[test]
    fn a_pair_without_verdict_and_a_merge_that_nobody_expects_are_problems() {
        assert_eq!(problems(&[], &[expected(Outcome::Merged, None, None)]).len(), 1);
        assert_eq!(problems(&[pair(Outcome::Merged, &[])], &[]).len(), 1);
        assert_eq!(problems(&[pair(Outcome::Declined, &[("CAND-below-threshold", 4)])], &[]), [""; 0]);
    }
}
