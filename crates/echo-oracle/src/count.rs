//! What was run and found, in numbers that add up over slices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A program contributes at most this many interleavings to [`Counts::capped`].
pub const CAP: u128 = 1_000;

/// Counts of one family of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Programs, before symmetry.
    pub programs: u128,
    /// Programs, after symmetry; each of the rest stands for those that differ from it in names alone.
    pub classes: u128,
    /// Of the classes: no linking copy, so no candidate.
    pub without_pair: u128,
    /// Of the classes: P breaks the theorem's premises in every world.
    pub outside: u128,
    /// Of the classes: keeps the premises in some world, and at least one pair was merged.
    pub accepted: u128,
    /// Of the classes: keeps the premises in some world, and no pair was merged.
    pub declined: u128,
    /// Of the declined: safe, that is P keeps the premises in every world, P' by the obvious plan behaves as P in every world and
    /// interleaving, and the prover was told all that is true of the program.
    pub declined_safe: u128,
    /// Of the accepted: runs (world and machine) in which P keeps the premises, each compared in all interleavings.
    pub runs: u128,
    /// Interleavings of P in those runs.
    pub interleavings: u128,
    /// Interleavings of P' in those runs.
    pub merged_interleavings: u128,
    /// Interleavings of both, no program counted with more than [`CAP`].
    pub capped: u128,
    /// States passed, of all programs.
    pub states: u128,
    /// Programs whose P' does what P does not. Must be 0.
    pub unsound: u128,
    /// Safe programs that were declined, by decline code: with this code among others, and with this code alone.
    pub reasons: BTreeMap<String, (u128, u128)>,
    /// Accepted for concurrent access only although the host never touches p while work may be running, by decline code.
    pub exclusive: BTreeMap<String, (u128, u128)>,
}

impl Counts {
    /// Adds another slice.
    pub fn add(&mut self, other: &Self) {
        let Self {
            programs,
            classes,
            without_pair,
            outside,
            accepted,
            declined,
            declined_safe,
            runs,
            interleavings,
            merged_interleavings,
            capped,
            states,
            unsound,
            reasons,
            exclusive,
        } = other;
        for (mine, theirs) in [
            (&mut self.programs, programs),
            (&mut self.classes, classes),
            (&mut self.without_pair, without_pair),
            (&mut self.outside, outside),
            (&mut self.accepted, accepted),
            (&mut self.declined, declined),
            (&mut self.declined_safe, declined_safe),
            (&mut self.runs, runs),
            (&mut self.interleavings, interleavings),
            (&mut self.merged_interleavings, merged_interleavings),
            (&mut self.capped, capped),
            (&mut self.states, states),
            (&mut self.unsound, unsound),
        ] {
            *mine = mine.saturating_add(*theirs);
        }
        for (mine, theirs) in [(&mut self.reasons, reasons), (&mut self.exclusive, exclusive)] {
            for (code, (among, alone)) in theirs {
                let entry = mine.entry(code.clone()).or_default();
                entry.0 += among;
                entry.1 += alone;
            }
        }
    }

    /// Cases (program, interleaving) that were compared: interleavings of P and P' of accepted programs.
    #[must_use]
    pub fn cases(&self) -> u128 {
        self.interleavings.saturating_add(self.merged_interleavings)
    }
}

/// Adds a list of codes to a table: each code among others, and alone where it is the only one.
pub fn tally(table: &mut BTreeMap<String, (u128, u128)>, codes: &[&str]) {
    for code in codes {
        let entry = table.entry((*code).to_owned()).or_default();
        entry.0 += 1;
        entry.1 += u128::from(codes.len() == 1);
    }
}
