//! The plan: which pairs to merge, and how. One JSON object with the schema version, a checksum and the content.
//!
//! A plan changes what a program's memory is made of, so it is never applied unless it is, bit for bit, what Echo-DR wrote: the checksum is over
//! the content's canonical text, unknown fields are refused, and [`Plan::check`] refuses what no analysis would produce.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::SCHEMA;
use crate::context::Context;
use crate::measure::{Measurement, Spread};
use crate::reason::{Decline, Refusal};
use crate::site::{Fnv1a, Hash64, Site};

/// The longest plan that is read.
pub const PLAN_LIMIT: usize = 16 << 20;
/// How many pairs a plan may have.
pub const PAIR_LIMIT: usize = 4096;
/// How many blocks of a pair may wait for their partners at once.
pub const WAITING_LIMIT: u32 = 64;
/// How many blocks of a pair may be alive at once.
pub const ALIVE_LIMIT: u32 = 4096;

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Where it holds.
    pub context: Context,
    /// θ_min in bytes: the library does not look at smaller allocations.
    pub threshold: u64,
    /// The copy site whose recurrences are the program's iterations, for calibration; absent if it has no loop.
    pub loop_site: Option<Site>,
    /// The pairs.
    pub pairs: Vec<Pair>,
    /// Groups of copies that can't be merged, and why.
    pub ineligible: Vec<Ineligible>,
    /// Facts about the run that help to understand the plan.
    pub notes: Vec<Note>,
    /// What all enabled pairs gain in one run, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
}

/// A calibration of all enabled pairs in one run, each with its own backend. As [`Measurement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Together {
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

/// A pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Its number, from 0 in the order of the list.
    pub id: u32,
    /// β_h: where h is allocated.
    pub host: Site,
    /// β_d: where d is allocated.
    pub device: Site,
    /// N: the size of both.
    pub bytes: u64,
    /// h is page-locked memory of CUDA (`cudaMallocHost` …), not of the heap: its asynchronous copies make nobody wait, and `cudaFreeHost` ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub page_locked: bool,
    /// Which way its copies go.
    pub direction: Direction,
    /// Which block comes first.
    pub first: First,
    /// Both blocks of a pair come from one thread. Where they do not, only one may wait for its partner at a time.
    pub same_thread: bool,
    /// How many blocks were waiting for their partners at once, at most (in one thread, if `same_thread`).
    pub waiting: u32,
    /// How many were alive at once, at most (of one thread, if `same_thread`).
    pub alive: u32,
    /// How many times it came to be.
    pub buffers: u64,
    /// Its copies, one entry a copy site.
    pub copies: Vec<CopySite>,
    /// The host never touched h while any GPU work was in flight (S5), as far as validation saw.
    pub exclusive: bool,
    /// What p is made of.
    pub backend: BackendName,
    /// Merge it, or why not.
    pub state: State,
    /// What was measured, a line a backend.
    pub measured: Vec<Measurement>,
}

/// Which way a pair's copies go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// To the device only.
    Input,
    /// From the device only.
    Output,
    /// Both ways.
    Both,
}

/// Which of a pair's blocks was allocated first when profiled. The other order is followed only if it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum First {
    /// h.
    Host,
    /// d.
    Device,
    /// Sometimes h, sometimes d.
    Either,
}

/// Which way a linking copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// h to d.
    Upload,
    /// d to h.
    Download,
}

/// What a skipped copy leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Nothing: the copy did not make the host wait, or an earlier wait covers the work.
    Covered,
    /// A wait for the copy's stream: nothing else was pending.
    Stream,
    /// A wait for the device.
    Device,
}

/// The copies at one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopySite {
    /// β_c.
    pub site: Site,
    /// Which way.
    pub way: Way,
    /// The calls there may return before the copy is done.
    pub asynchronous: bool,
    /// How many times it ran.
    pub count: u64,
    /// How long it took when profiled, median in nanoseconds.
    pub took: u64,
    /// What stays of it.
    pub wait: Wait,
}

/// What p is made of. See [`echo_rt::Backend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendName {
    /// Managed memory.
    Managed,
    /// Managed memory, moved ahead of its use.
    Prefetched,
    /// Mapped page-locked memory.
    Mapped,
    /// Heap memory that the GPU reaches.
    System,
}

impl BackendName {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Managed, Self::Prefetched, Self::Mapped, Self::System];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.backend().name()
    }

    /// For `echo-rt`.
    #[must_use]
    pub fn backend(self) -> echo_rt::Backend {
        match self {
            Self::Managed => echo_rt::Backend::Managed,
            Self::Prefetched => echo_rt::Backend::Prefetched,
            Self::Mapped => echo_rt::Backend::Mapped,
            Self::System => echo_rt::Backend::System,
        }
    }
}

/// How far a pair has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum State {
    /// Found by the analysis; not validated, so not merged.
    Candidate,
    /// Validated, not calibrated: merged only in calibration runs.
    Validated,
    /// To be merged.
    Enabled,
    /// Not to be merged.
    Rejected(Rejection),
}

impl State {
    /// Validation let the pair pass, whether it was found to gain anything or not.
    #[must_use]
    pub fn passed_validation(&self) -> bool {
        match self {
            Self::Validated | Self::Enabled => true,
            Self::Rejected(rejection) => matches!(rejection.reason, Decline::NoGain { .. }),
            Self::Candidate => false,
        }
    }
}

/// Why a pair is not merged, and where that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    /// Why.
    pub reason: Decline,
    /// Where in the program, if a place shows it.
    pub site: Option<Site>,
}

/// Copies that can't be skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ineligible {
    /// Where the host block is allocated, if it is a recorded one.
    pub host: Option<Site>,
    /// Where the device block is allocated, if it is a recorded one.
    pub device: Option<Site>,
    /// Where a copy is.
    pub copy: Option<Site>,
    /// Bytes of a copy.
    pub bytes: u64,
    /// How many copies.
    pub count: u64,
    /// Why, all that hold.
    pub reasons: Vec<Decline>,
}

/// A fact about the profiled run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The program uses managed memory, so it has fewer copies to remove, or none.
    UsesManagedMemory,
    /// The trace ends in the middle: the run was killed.
    TraceTruncated,
    /// The program never used CUDA.
    NoCuda,
}

/// What is in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    checksum: Hash64,
    plan: Plan,
}

/// Only the version, whatever else there is.
#[derive(Deserialize)]
struct Version {
    schema: u64,
}

impl Plan {
    /// The file's text. Long lists are one line an entry, for people who look at it.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&self, mut to: impl std::io::Write) -> std::io::Result<()> {
        let file = File { schema: SCHEMA, checksum: self.checksum()?, plan: self.clone() };
        serde_json::to_writer_pretty(&mut to, &file)?;
        to.write_all(b"\n")
    }

    /// Reads what [`Plan::write`] wrote, and nothing else.
    ///
    /// # Errors
    /// Why it can't be used, whoever reads it.
    pub fn read(text: &[u8]) -> Result<Self, Refusal> {
        if text.len() > PLAN_LIMIT {
            return Err(Refusal::Malformed(format!("it is longer than {PLAN_LIMIT} bytes")));
        }
        // The version decides whether the rest can be understood, so it is looked at first.
        let malformed = |error: serde_json::Error| Refusal::Malformed(error.to_string());
        let version: Version = serde_json::from_slice(text).map_err(malformed)?;
        if version.schema != u64::from(SCHEMA) {
            return Err(Refusal::Version { found: version.schema, readable: SCHEMA });
        }
        let file: File = serde_json::from_slice(text).map_err(malformed)?;
        if file.plan.checksum().ok() != Some(file.checksum) {
            return Err(Refusal::Checksum);
        }
        file.plan.check()?;
        Ok(file.plan)
    }

    /// FNV-1a of the canonical text: two plans with one checksum are one plan, up to chance in 2^64.
    fn checksum(&self) -> serde_json::Result<Hash64> {
        serde_json::to_vec(self).map(|text| Hash64(Fnv1a::of(&text)))
    }

    /// What holds of every plan that the analysis makes.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<(), Refusal> {
        let wrong = |what: &str| Err(Refusal::Malformed(what.to_owned()));
        if self.pairs.len() > PAIR_LIMIT {
            return wrong("it has too many pairs");
        }
        let (mut hosts, mut devices) = (BTreeSet::new(), BTreeSet::new());
        for (index, pair) in self.pairs.iter().enumerate() {
            if usize::try_from(pair.id) != Ok(index) {
                return wrong("its pairs are not numbered in order");
            }
            if pair.bytes == 0 || pair.bytes < self.threshold || usize::try_from(pair.bytes).is_err() {
                return wrong("a pair has an impossible size");
            }
            if pair.waiting == 0
                || pair.waiting > WAITING_LIMIT
                || pair.alive < pair.waiting
                || pair.alive > ALIVE_LIMIT
            {
                return wrong("a pair has an impossible number of blocks");
            }
            if !pair.same_thread && pair.waiting > 1 {
                return wrong("a pair's blocks could be taken for each other's partners");
            }
            if pair.copies.is_empty() || !pair.copies.iter().all(|copy| pair.direction.has(copy.way)) {
                return wrong("a pair's copies do not fit its direction");
            }
            let sites: BTreeSet<_> = pair.copies.iter().map(|copy| (copy.site, copy.way)).collect();
            if sites.len() != pair.copies.len() {
                return wrong("a pair has a copy site twice");
            }
            if !hosts.insert((pair.host, pair.bytes)) || !devices.insert((pair.device, pair.bytes)) {
                return wrong("two pairs have one allocation site");
            }
        }
        Ok(())
    }

    /// The pairs that are to be merged.
    pub fn enabled(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.state == State::Enabled)
    }
}

impl Direction {
    /// Copies may go this way.
    #[must_use]
    pub fn has(self, way: Way) -> bool {
        match self {
            Self::Input => way == Way::Upload,
            Self::Output => way == Way::Download,
            Self::Both => true,
        }
    }
}
