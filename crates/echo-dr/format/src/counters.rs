//! What the library did in a run, written as JSON at exit to the file in `ECHO_DR_COUNTERS`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::reason::Refusal;

/// What happened to one pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PairCounters {
    /// The pair's number in the plan.
    pub pair: u32,
    /// How many p were made.
    pub merged: u64,
    /// Of those, how many met their partner.
    pub met: u64,
    /// Copies that were skipped.
    pub copies_skipped: u64,
    /// Their bytes.
    pub bytes_skipped: u64,
    /// Waits that stand for a skipped copy.
    pub waits: u64,
    /// Copies with one end in p that were made.
    pub copies_made: u64,
    /// How many p were released.
    pub released: u64,
}

/// What happened in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Counters {
    /// Version of the format.
    pub schema: u32,
    /// `profile`, `validate` or `optimise`.
    pub mode: String,
    /// Why the plan was not used, if it was not.
    pub refused: Option<Refusal>,
    /// A sentence on anything else that kept Echo-DR from working (a hook that is missing, say).
    pub trouble: Option<String>,
    /// One entry a pair of the plan.
    pub pairs: Vec<PairCounters>,
    /// How often each deviation happened; by number, those that did.
    pub deviations: BTreeMap<String, u64>,
    /// How often each hook was called, by name; those that were.
    pub calls: BTreeMap<String, u64>,
    /// Events written to the trace.
    pub events: u64,
    /// Events that could not be written.
    pub events_lost: u64,
}

impl Counters {
    /// Writes them as one line of JSON.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&self, mut to: impl std::io::Write) -> std::io::Result<()> {
        serde_json::to_writer(&mut to, self)?;
        to.write_all(b"\n")
    }

    /// Reads them.
    ///
    /// # Errors
    /// A sentence.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let counters: Self = serde_json::from_slice(text).map_err(|error| format!("these are no counters: {error}"))?;
        if counters.schema != crate::SCHEMA {
            return Err(format!(
                "the counters have format version {}, version {} is read",
                counters.schema,
                crate::SCHEMA
            ));
        }
        Ok(counters)
    }
}
