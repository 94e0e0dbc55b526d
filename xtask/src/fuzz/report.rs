//! What a run of the fuzzer found, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

/// Sums over all programs.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Totals {
    pub(super) seed: u64,
    pub(super) programs: u64,
    /// Runs of a program: inputs × schedules × access modes × builds.
    pub(super) runs: u64,
    pub(super) seconds: f64,
    /// What the plugin decided, by the name of the build. All programs have the exclusive build, one half each of the others.
    pub(super) pairs: BTreeMap<&'static str, Pairs>,
    /// For each thing that programs use: the programs, and the pairs in them (exclusive build).
    pub(super) features: BTreeMap<&'static str, Feature>,
    /// What the runs did that merged by a plan of Echo-DR.
    pub(super) merged: Merged,
    pub(super) findings: Vec<Finding>,
}

/// What merging runs counted.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Merged {
    pub(super) blocks: u64,
    pub(super) copies_skipped: u64,
    /// By number.
    pub(super) deviations: BTreeMap<String, u64>,
}

impl Merged {
    pub(super) fn add(&mut self, other: Merged) {
        self.blocks += other.blocks;
        self.copies_skipped += other.copies_skipped;
        for (number, count) in other.deviations {
            *self.deviations.entry(number).or_default() += count;
        }
    }
}

/// Pairs and their verdicts.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Pairs {
    pub(super) merged: u64,
    pub(super) declined: u64,
    /// Declined pairs by code; a pair counts for each of its codes.
    pub(super) codes: BTreeMap<String, u64>,
}

/// Programs that use something.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Feature {
    pub(super) programs: u64,
    pub(super) merged: u64,
    pub(super) declined: u64,
}

/// A program that went wrong.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) program: u64,
    /// `plain`, `exclusive`, `concurrent`, `adaptive`, `preloaded`: the build that went wrong.
    pub(super) build: &'static str,
    /// What is wrong, in a sentence or two.
    pub(super) what: String,
    /// The pair whose merge makes the difference.
    pub(super) pair: Option<String>,
    /// The smallest program that still shows it.
    pub(super) file: Option<String>,
}

impl Totals {
    /// Adds what another part of the run found.
    pub(super) fn add(&mut self, other: Totals) {
        self.programs += other.programs;
        self.runs += other.runs;
        for (build, pairs) in other.pairs {
            self.pairs.entry(build).or_default().add(pairs);
        }
        for (name, feature) in other.features {
            let mine = self.features.entry(name).or_default();
            mine.programs += feature.programs;
            mine.merged += feature.merged;
            mine.declined += feature.declined;
        }
        self.merged.add(other.merged);
        self.findings.extend(other.findings);
    }

    /// The text that a person reads.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{} programs, {} runs, {:.1} minutes, seed {}",
            self.programs,
            self.runs,
            self.seconds / 60.0,
            self.seed
        );
        for (name, pairs) in &self.pairs {
            let _ = writeln!(text, "{name} build: {} pairs merged, {} declined", pairs.merged, pairs.declined);
            let mut codes: Vec<_> = pairs.codes.iter().collect();
            codes.sort_by_key(|(code, count)| (std::cmp::Reverse(**count), *code));
            for (code, count) in codes {
                let _ = writeln!(text, "  {count:6} {code}");
            }
        }
        if self.merged.blocks > 0 {
            let Merged { blocks, copies_skipped, deviations } = &self.merged;
            let _ = writeln!(text, "merged in runs: {blocks} blocks, {copies_skipped} copies skipped, {deviations:?}");
        }
        let _ = writeln!(text, "programs with (pairs merged, declined):");
        for (name, feature) in &self.features {
            let _ = writeln!(text, "  {:6} {name} ({}, {})", feature.programs, feature.merged, feature.declined);
        }
        let _ = writeln!(text, "{} mismatches", self.findings.len());
        text
    }
}

impl Pairs {
    pub(super) fn count<'a>(&mut self, merged: bool, codes: impl IntoIterator<Item = &'a String>) {
        if merged {
            self.merged += 1;
            return;
        }
        self.declined += 1;
        for code in codes {
            *self.codes.entry(code.clone()).or_default() += 1;
        }
    }

    fn add(&mut self, other: Pairs) {
        self.merged += other.merged;
        self.declined += other.declined;
        for (code, count) in other.codes {
            *self.codes.entry(code).or_default() += count;
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "program {}, {} build: {}", self.program, self.build, self.what)?;
        if let Some(pair) = &self.pair {
            write!(f, "\n  the pair is {pair}")?;
        }
        if let Some(file) = &self.file {
            write!(f, "\n  kept as {file}")?;
        }
        Ok(())
    }
}
