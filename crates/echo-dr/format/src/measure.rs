//! Measured times, as integers so that they survive a file unchanged.

use serde::{Deserialize, Serialize};

/// Times of one variant, in nanoseconds, over the trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The smallest.
    pub low: u64,
    /// The median.
    pub median: u64,
    /// The largest.
    pub high: u64,
}

impl Spread {
    /// Of some times; `None` of none. The median of an even number is the lower of the two in the middle.
    #[must_use]
    pub fn of(times: &[u64]) -> Option<Self> {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        Some(Self { low, median: sorted[(sorted.len() - 1) / 2], high })
    }
}

/// One calibration of a pair with one backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// What p was made of.
    pub backend: crate::plan::BackendName,
    /// How many trials, each one run without and one with the plan.
    pub trials: u32,
    /// Time of an iteration without.
    pub without: Spread,
    /// Time of an iteration with.
    pub with: Spread,
    /// Median over the trials of (without − with) / without, in parts per million.
    pub gain_ppm: i64,
    /// Smallest and largest gain of a trial.
    pub gain_range_ppm: (i64, i64),
}

/// (without − with) / without in parts per million; 0 if `without` is 0.
#[must_use]
pub fn gain_ppm(without: u64, with: u64) -> i64 {
    if without == 0 {
        return 0;
    }
    let difference = i128::from(without) - i128::from(with);
    i64::try_from(difference * 1_000_000 / i128::from(without)).unwrap_or(i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_of_sorted_times() {
        assert_eq!(Spread::of(&[30, 10, 20]), Some(Spread { low: 10, median: 20, high: 30 }));
        assert_eq!(Spread::of(&[4, 1]), Some(Spread { low: 1, median: 1, high: 4 }));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn gains_have_a_sign_and_no_overflow() {
        assert_eq!(gain_ppm(200, 100), 500_000);
        assert_eq!(gain_ppm(100, 110), -100_000);
        assert_eq!(gain_ppm(0, 5), 0);
        assert_eq!(gain_ppm(1, u64::MAX), i64::MIN);
    }
}
