//! What `echo-dr tune` tells, as data: the table is printed from it and `--json` writes it.

use serde::{Deserialize, Serialize};

use crate::measure::Measurement;
use crate::plan::{BackendName, Direction, Note, State, Together};
use crate::reason::{Decline, Reason};
use crate::site::Site;

/// A place in the program, as a person finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The site.
    pub site: Site,
    /// The innermost frame outside of libraries, as `symbol (file:line)`, or module and offset.
    pub text: String,
    /// All frames.
    pub frames: Vec<String>,
}

/// A reason as programs read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasonText {
    /// As `EDR301`.
    pub number: String,
    /// As `recurs-too-rarely`.
    pub name: String,
    /// A sentence.
    pub text: String,
}

impl From<&Decline> for ReasonText {
    fn from(reason: &Decline) -> Self {
        Self { number: reason.number().into(), name: reason.name().into(), text: reason.to_string() }
    }
}

/// A pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairLine {
    /// Its number in the plan.
    pub id: u32,
    /// Where h is allocated.
    pub host: Place,
    /// Where d is allocated.
    pub device: Place,
    /// Size of each block.
    pub bytes: u64,
    /// Which way.
    pub direction: Direction,
    /// Copies skipped an iteration, in thousandths.
    pub copies_per_iteration_milli: u64,
    /// What p is made of.
    pub backend: BackendName,
    /// All that was measured.
    pub measured: Vec<Measurement>,
    /// How far it came.
    pub state: State,
    /// Why it is not enabled.
    pub why_not: Option<ReasonText>,
    /// The access that shows it.
    pub access: Option<Place>,
}

/// Copies that can't be skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IneligibleLine {
    /// Where the host block is allocated.
    pub host: Option<Place>,
    /// Where the device block is allocated.
    pub device: Option<Place>,
    /// Where a copy is.
    pub copy: Option<Place>,
    /// Bytes of a copy.
    pub bytes: u64,
    /// How many copies.
    pub count: u64,
    /// Why.
    pub reasons: Vec<ReasonText>,
}

/// The report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneReport {
    /// Version of the format.
    pub schema: u32,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The plan's file.
    pub plan: String,
    /// The pairs.
    pub pairs: Vec<PairLine>,
    /// What can't be a pair.
    pub ineligible: Vec<IneligibleLine>,
    /// Facts.
    pub notes: Vec<Note>,
    /// What all enabled pairs gain in one run, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
}
