//! What can be said from runs on a machine that does other things meanwhile: values of one round are compared with each other only, the middle
//! of the rounds counts, and how sure it is comes from the rounds themselves (a bootstrap).

use serde::Serialize;

use crate::bench::measure::median;

/// Times that the rounds are drawn anew.
const DRAWS: usize = 2000;
/// Of the draws, how many lie outside of the interval on either side: 95 % lie inside.
const OUTSIDE: usize = DRAWS / 40;

/// A median, and the interval in which it lies with 95 % confidence.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub(super) struct Estimate {
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
}

impl Estimate {
    /// Of the rounds' values; `None` of no rounds.
    pub(super) fn of(rounds: &[f64]) -> Option<Self> {
        if rounds.is_empty() {
            return None;
        }
        let mut random = Draws(rounds.len() as u64);
        let mut medians: Vec<f64> = (0..DRAWS)
            .map(|_| median(&rounds.iter().map(|_| rounds[random.below(rounds.len())]).collect::<Vec<_>>()))
            .collect();
        medians.sort_by(f64::total_cmp);
        Some(Self { low: medians[OUTSIDE], median: median(rounds), high: medians[DRAWS - 1 - OUTSIDE] })
    }

    /// Each of its numbers changed.
    pub(super) fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { low: change(self.low), median: change(self.median), high: change(self.high) }
    }
}

/// Draws with replacement; the same ones for as many rounds, so that a report is made of its runs alone.
struct Draws(u64);

impl Draws {
    /// SplitMix64.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((value ^ (value >> 31)) % limit as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_median_and_one_wild_round_does_not_move_it() {
        let mut rounds: Vec<f64> = (0..40).map(|round| 1.0 + f64::from(round % 5) * 0.01).collect();
        let quiet = Estimate::of(&rounds).unwrap();
        assert!(quiet.low <= quiet.median && quiet.median <= quiet.high);
        assert!(quiet.low >= 1.0 && quiet.high <= 1.04, "{quiet:?}");
        rounds[7] = 50.0;
        let wild = Estimate::of(&rounds).unwrap();
        assert!((wild.median - quiet.median).abs() <= 0.01 && wild.high <= 1.04, "{wild:?}");
    }

    #[test]
    fn more_rounds_are_surer() {
        let rounds = |count: usize| -> Vec<f64> { (0..count).map(|round| ((round * 7919) % 101) as f64).collect() };
        let width = |estimate: Estimate| estimate.high - estimate.low;
        assert!(width(Estimate::of(&rounds(400)).unwrap()) < width(Estimate::of(&rounds(20)).unwrap()) / 2.0);
        assert_eq!(Estimate::of(&[]), None);
    }
}
