//! The tables of the benchmark, and which bounds are broken.

use std::fmt;

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use super::stats::Estimate;

/// Profiling adds at most this part to a round.
const PROFILED_BOUND: f64 = 0.01;
/// A round with a plan takes at most this part longer than one merged by hand.
const PLANNED_BOUND: f64 = 0.02;
/// Copies dominate where a round takes this much less when it is merged by hand.
const DOMINATED: f64 = 0.2;

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) has_heaptrack: bool,
    pub(super) samples: Vec<SampleReport>,
}

/// A sample.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SampleReport {
    pub(super) name: String,
    /// Small buffers, on one processor.
    pub(super) small: Measured,
    /// The demo's buffers, on all.
    pub(super) usual: Measured,
}

/// A sample with buffers of one size. Ratios and differences (in µs) are of a round.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measured {
    pub(super) arguments: String,
    pub(super) turns: usize,
    /// Pairs that the plan merges.
    pub(super) pairs: usize,
    /// Events in the trace, a round.
    pub(super) events: f64,
    pub(super) plain_us: Option<f64>,
    pub(super) by_hand_us: Option<f64>,
    /// The same program twice: what can't be told apart here.
    pub(super) again: Option<Estimate>,
    pub(super) again_us: Option<Estimate>,
    pub(super) profiled: Option<Estimate>,
    pub(super) profiled_us: Option<Estimate>,
    pub(super) tracked: Option<Estimate>,
    pub(super) tracked_us: Option<Estimate>,
    /// Against by hand.
    pub(super) planned: Option<Estimate>,
    pub(super) planned_us: Option<Estimate>,
}

impl SampleReport {
    /// What profiling adds to a usual round.
    fn profiled(&self) -> Option<Estimate> {
        part(self.small.profiled_us, self.usual.plain_us)
    }

    /// What a plan adds to a usual round that was merged by hand.
    fn planned(&self) -> Option<Estimate> {
        part(self.small.planned_us, self.usual.by_hand_us)
    }

    fn is_dominated_by_copies(&self) -> bool {
        self.usual.plain_us.zip(self.usual.by_hand_us).is_some_and(|(plain, hand)| hand <= plain * (1.0 - DOMINATED))
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |what: &str, bound: f64, part: Option<Estimate>, ratio: Option<Estimate>| {
            if let Some(part) = part.filter(|part| part.high > bound) {
                let (before, after) = match part.low > bound {
                    true => ("", ""),
                    false => ("which may be ", ": measure it longer (--seconds)"),
                };
                let (part, bound) = (percent(part), bound * 100.0);
                let name = &self.name;
                problems.push(format!("{name}: {what} adds {part} to a round, {before}more than {bound} %{after}"));
            }
            // A machine on which two runs of the same are so far apart shows nothing.
            let noise = self.usual.again.map_or(1.0, |again| again.high.max(1.0 / again.low.max(f64::MIN_POSITIVE)));
            if let Some(ratio) = ratio.filter(|ratio| ratio.low > (1.0 + bound) * noise) {
                let bound = 1.0 + bound;
                problems.push(format!(
                    "{}: rounds {what} to rounds without: {}, more than {bound}",
                    self.name,
                    times(ratio)
                ));
            }
        };
        check("profiled", PROFILED_BOUND, self.profiled(), self.usual.profiled);
        if self.is_dominated_by_copies() {
            check("with a plan", PLANNED_BOUND, self.planned(), self.usual.planned);
        }
        problems
    }
}

impl Report {
    /// The bounds that are broken: surely, where a ratio of rounds is above; possibly, where a cost is not surely below.
    pub(super) fn problems(&self) -> Vec<String> {
        self.samples.iter().flat_map(SampleReport::problems).collect()
    }
}

fn part(cost_us: Option<Estimate>, round_us: Option<f64>) -> Option<Estimate> {
    cost_us.zip(round_us).map(|(cost, round)| cost.map(|cost| cost / round.max(f64::MIN_POSITIVE)))
}

fn show(estimate: Estimate, digits: usize) -> String {
    let Estimate { low, median, high } = estimate;
    format!("{median:.digits$} [{low:.digits$}, {high:.digits$}]")
}

fn times(ratio: Estimate) -> String {
    show(ratio, 3)
}

fn percent(part: Estimate) -> String {
    format!("{} %", show(part.map(|part| part * 100.0), 3))
}

const SMALL: [&str; 7] = [
    "sample",
    "round\nµs",
    "events\na round",
    "twice the\nsame µs",
    "profiled\nµs more",
    "heaptrack\nµs more",
    "plan, to by\nhand µs more",
];
const USUAL: [&str; 8] = [
    "sample",
    "round\nms",
    "twice\nthe same",
    "profiled",
    "heaptrack",
    "by hand\nms",
    "plan, to\nby hand",
    "profiled\nadds",
];

fn table(titles: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(titles.iter().map(|title| Cell::new(title).add_attribute(Attribute::Bold)));
    table.add_rows(rows);
    for column in 1..titles.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let us = |estimate: Option<Estimate>| or_none(estimate.map(|estimate| show(estimate, 2)));
        let ratio = |estimate: Option<Estimate>| or_none(estimate.map(times));
        let ms = |us: Option<f64>| or_none(us.map(|us| format!("{:.2}", us / 1e3)));
        writeln!(
            f,
            "Small buffers, all on one processor; medians of the turns, with the interval of 99 % confidence:"
        )?;
        let small = self.samples.iter().map(|SampleReport { name, small, .. }| {
            vec![
                name.clone(),
                or_none(small.plain_us.map(|us| format!("{us:.1}"))),
                format!("{:.1}", small.events),
                us(small.again_us),
                us(small.profiled_us),
                us(small.tracked_us),
                us(small.planned_us),
            ]
        });
        writeln!(f, "{}\n", table(&SMALL, small))?;
        writeln!(
            f,
            "Usual buffers, on all processors; the last columns are the costs above in parts of these rounds:"
        )?;
        let titles = [&USUAL[..], &["plan adds\nto by hand", "copies\ndominate"]].concat();
        let usual = self.samples.iter().map(|sample| {
            let SampleReport { name, usual, .. } = sample;
            vec![
                name.clone(),
                ms(usual.plain_us),
                ratio(usual.again),
                ratio(usual.profiled),
                ratio(usual.tracked),
                ms(usual.by_hand_us),
                ratio(usual.planned),
                or_none(sample.profiled().map(percent)),
                or_none(sample.planned().map(percent)),
                if sample.is_dominated_by_copies() { "yes" } else { "no" }.to_owned(),
            ]
        });
        write!(f, "{}", table(&titles, usual))?;
        if !self.has_heaptrack {
            write!(f, "\nheaptrack is not installed, so it was not measured.")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exactly(value: f64) -> Option<Estimate> {
        Some(Estimate { low: value, median: value, high: value })
    }

    fn measured(plain_us: f64, by_hand_us: f64) -> Measured {
        Measured {
            arguments: String::new(),
            turns: 3,
            pairs: 1,
            events: 3.0,
            plain_us: Some(plain_us),
            by_hand_us: Some(by_hand_us),
            again: exactly(1.0),
            again_us: exactly(0.0),
            profiled: exactly(1.0),
            profiled_us: exactly(1.0),
            tracked: None,
            tracked_us: None,
            planned: exactly(1.0),
            planned_us: exactly(1.0),
        }
    }

    fn problems(change: impl Fn(&mut SampleReport)) -> Vec<String> {
        let mut sample =
            SampleReport { name: "s".to_owned(), small: measured(50.0, 20.0), usual: measured(1000.0, 500.0) };
        change(&mut sample);
        Report { has_heaptrack: false, samples: vec![sample] }.problems()
    }

    #[test]
    fn each_bound_is_held() {
        assert_eq!(problems(|_| {}), [""; 0]);
        let slow = problems(|sample| sample.small.profiled_us = exactly(11.0));
        assert!(slow.len() == 1 && slow[0].contains("profiled adds 1.100"), "{slow:?}");
        let slow = problems(|sample| sample.usual.profiled = exactly(1.02));
        assert!(slow.len() == 1 && slow[0].contains("1.020"), "{slow:?}");
        let slow = problems(|sample| sample.small.planned_us = exactly(11.0));
        assert!(slow.len() == 1 && slow[0].contains("with a plan adds 2.200"), "{slow:?}");
        let slow = problems(|sample| sample.usual.planned = exactly(1.03));
        assert!(slow.len() == 1 && slow[0].contains("1.030"), "{slow:?}");
    }

    #[test]
    fn a_cost_that_is_not_surely_below_is_told_from_one_that_is_surely_above() {
        let wide = Some(Estimate { low: -2.0, median: 0.0, high: 11.0 });
        let unsure = problems(|sample| sample.small.profiled_us = wide);
        assert!(unsure.len() == 1 && unsure[0].contains("may be more than 1 %: measure it longer"), "{unsure:?}");
        let sure = problems(|sample| sample.small.profiled_us = exactly(11.0));
        assert!(sure.len() == 1 && sure[0].contains("to a round, more than 1 %"), "{sure:?}");
    }

    #[test]
    fn a_ratio_that_may_be_noise_breaks_nothing() {
        let wide = Some(Estimate { low: 0.9, median: 1.1, high: 1.3 });
        assert_eq!(problems(|sample| (sample.usual.profiled, sample.usual.planned) = (wide, wide)), [""; 0]);
    }

    #[test]
    fn a_ratio_within_what_two_runs_of_the_same_differ_by_breaks_nothing() {
        let again = Some(Estimate { low: 0.9, median: 0.95, high: 1.0 });
        assert_eq!(problems(|sample| (sample.usual.again, sample.usual.profiled) = (again, exactly(1.1))), [""; 0]);
        assert_eq!(problems(|sample| (sample.usual.again, sample.usual.profiled) = (again, exactly(1.2))).len(), 1);
    }

    #[test]
    fn where_computing_dominates_a_plan_has_no_bound() {
        let change = |sample: &mut SampleReport| {
            sample.usual.by_hand_us = Some(900.0);
            sample.usual.planned = exactly(1.5);
        };
        assert_eq!(problems(change), [""; 0]);
    }
}
