//! The figures of a run: as JSON that slices can be added up from, and as tables.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde::{Deserialize, Serialize};

use crate::count::{CAP, Counts};

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Counts by family.
    pub families: BTreeMap<String, Counts>,
    /// Programs that the prover got wrong, as text.
    pub counterexamples: Vec<String>,
    /// How long it took; of several slices, together.
    pub seconds: f64,
}

impl Report {
    /// Adds a slice.
    pub fn add(&mut self, other: &Self) {
        for (name, counts) in &other.families {
            self.families.entry(name.clone()).or_default().add(counts);
        }
        self.counterexamples.extend(other.counterexamples.iter().cloned());
        self.seconds += other.seconds;
    }

    /// All families together.
    #[must_use]
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.families.values().for_each(|counts| total.add(counts));
        total
    }
}

/// 1234567 as 1,234,567.
fn number(value: u128) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(header.iter().copied());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut programs = table(&[
            "programs",
            "all",
            "after symmetry",
            "no pair",
            "outside premises",
            "merged",
            "declined",
            "of these safe",
            "interleavings P",
            "interleavings P'",
            "unsound",
        ]);
        let total = self.total();
        let rows = self.families.iter().map(|(name, counts)| (name.as_str(), counts));
        for (name, counts) in rows.chain([("all", &total)]) {
            let numbers = [
                counts.programs,
                counts.classes,
                counts.without_pair,
                counts.outside,
                counts.accepted,
                counts.declined,
                counts.declined_safe,
                counts.interleavings,
                counts.merged_interleavings,
                counts.unsound,
            ];
            programs.add_row([name.to_owned()].into_iter().chain(numbers.map(number)));
        }
        writeln!(f, "{programs}")?;
        writeln!(
            f,
            "{} cases (program, interleaving) compared in {} runs of merged programs; {} if no program counts for more \
             than {}. {} states, {:.0} s.",
            number(total.cases()),
            number(total.runs),
            number(total.capped),
            number(CAP),
            number(total.states),
            self.seconds
        )?;
        for (title, reasons) in [
            ("declined although safe, by reason", &total.reasons),
            ("merged for concurrent access only although the host never interferes", &total.exclusive),
        ] {
            if reasons.is_empty() {
                continue;
            }
            let mut codes = table(&[title, "programs", "for this reason alone"]);
            for (code, (among, alone)) in reasons {
                codes.add_row([code.clone(), number(*among), number(*alone)]);
            }
            writeln!(f, "\n{codes}")?;
        }
        for (index, counterexample) in self.counterexamples.iter().enumerate() {
            writeln!(f, "\ncounterexample {}:\n{counterexample}", index + 1)?;
        }
        Ok(())
    }
}
