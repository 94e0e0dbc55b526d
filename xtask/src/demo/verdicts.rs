//! The plugin's report on a sample: one JSON object a pair and line.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::failure::Failure;
use crate::samples::{Outcome, Sample};

/// A candidate pair and its verdict.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub(crate) struct Pair {
    /// Where the host buffer is allocated.
    pub(crate) host: Place,
    /// Where the device buffer is allocated.
    pub(crate) device: Place,
    /// What was decided.
    pub(crate) verdict: Outcome,
    /// The conditions that break, if it is declined.
    #[serde(default)]
    pub(crate) reasons: Vec<Reason>,
}

/// A place in a source file.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Place {
    /// File, as the compiler was given it.
    pub(crate) file: String,
    /// Line, from 1; 0 where debug information has none.
    pub(crate) line: u32,
}

/// A condition that breaks.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Reason {
    /// Its stable code.
    pub(crate) code: String,
    /// What breaks it.
    pub(crate) at: Place,
    /// A sentence.
    pub(crate) message: String,
}

/// Reads the report of one sample. A pair that was seen twice with the same verdict (a function and its inlined copy) is listed once.
pub(super) fn read(_context: &Context, sample: &Sample, path: &Path) -> Result<Vec<Pair>, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::io("read the plugin's report", path, &error))?;
    let mut pairs: Vec<Pair> = Vec::new();
    for line in text.lines() {
        let pair = serde_json::from_str(line).map_err(|error| {
            Failure::Build(format!(
                "{}: the report on {} is not understood: {error}\n{line}",
                path.display(),
                sample.name
            ))
        })?;
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    Ok(pairs)
}

impl Place {
    fn short(&self) -> String {
        let name =
            Path::new(&self.file).file_name().map_or_else(|| self.file.as_str().into(), |name| name.to_string_lossy());
        format!("{name}:{}", self.line)
    }
}

impl Pair {
    /// `figure1.cu:37, figure1.cu:39`
    pub(crate) fn place(&self) -> String {
        format!("{}, {}", self.host.short(), self.device.short())
    }

    /// `accepted`, or `declined` with the first code and line.
    pub(crate) fn short_verdict(&self) -> String {
        match (self.verdict, self.reasons.first()) {
            (Outcome::Accepted, _) => "accepted".into(),
            (Outcome::Declined, Some(reason)) => format!("declined {} at line {}", reason.code, reason.at.line),
            (Outcome::Declined, None) => "declined".into(),
        }
    }

    /// The verdict with every reason in words.
    pub(crate) fn describe(&self) -> String {
        let reasons: Vec<String> = self
            .reasons
            .iter()
            .map(|reason| format!("{} at {}: {}", reason.code, reason.at.short(), reason.message))
            .collect();
        match self.verdict {
            Outcome::Accepted => format!("{} accepted", self.place()),
            Outcome::Declined => format!("{} declined: {}", self.place(), reasons.join("; ")),
        }
    }
}
