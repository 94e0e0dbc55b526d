//! The description of one pair: names, places and sentences, no ids.

use std::fmt;

use serde::{Deserialize, Serialize};

/// All that is said of one pair.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PairReport {
    /// The function that both buffers are in.
    pub function: String,
    /// The host buffer.
    pub host: Buffer,
    /// The device buffer.
    pub device: Buffer,
    /// Size of each in bytes, where it is a constant.
    pub bytes: Option<u64>,
    /// What became of the pair.
    pub outcome: Outcome,
    /// The copies between the two.
    pub copies: Vec<Place>,
    /// Bytes that those copies which stand in a loop move each time around it, where that is a constant: what merging saves (or would
    /// save) an iteration.
    #[serde(default)]
    pub saved_per_iteration: Option<u64>,
    /// Waits that stay where copies or frees were (merged pairs).
    pub waits: Vec<Wait>,
    /// What a reader should know of an accepted pair.
    pub notes: Vec<String>,
    /// The broken conditions (declined pairs).
    pub reasons: Vec<ReasonReport>,
}

/// What became of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is one buffer now.
    Merged,
    /// It can be one buffer; nothing was changed, because only an analysis was asked for.
    Mergeable,
    /// It was accepted, but `merge-limit` was reached before it.
    OverLimit,
    /// Some condition is broken.
    Declined,
}

/// One of the two buffers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Buffer {
    /// What a user calls it.
    pub name: String,
    /// Where it is allocated.
    pub site: Place,
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Path as the compiler knows it; empty without debug information.
    pub file: String,
    /// 1-based; 0 without debug information.
    pub line: u32,
    /// 1-based; 0 without debug information.
    pub column: u32,
}

/// A wait that stays.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Wait {
    /// Where.
    pub site: Place,
    /// What it waits for: `device`, `stream` or `event`.
    pub scope: String,
}

/// One broken condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReasonReport {
    /// Number of its page in the documentation (`ESR210`).
    pub number: String,
    /// Stable code (`S1-device-value-overwritten`).
    pub code: String,
    /// The sentence.
    pub message: String,
    /// What would help.
    pub help: String,
    /// The event that breaks it.
    pub at: Place,
    /// A path that shows it.
    pub witness: Vec<Step>,
    /// A wait that would make the pair acceptable.
    pub suggestion: Option<String>,
}

/// One step of a witness.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    /// Where.
    pub site: Place,
    /// A few words.
    pub text: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 { f.write_str("<no debug location>") } else { write!(f, "{}:{}", self.file, self.line) }
    }
}
