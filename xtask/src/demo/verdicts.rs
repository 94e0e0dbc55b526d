//! The plugin's report on a sample: one JSON object a pair and line. Only what the demo shows is read.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::samples::Outcome;

/// A candidate pair and its verdict.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The host buffer.
    pub(crate) host: Buffer,
    /// The device buffer.
    pub(crate) device: Buffer,
    /// What became of it.
    pub(crate) outcome: Outcome,
    /// Where a wait stays in the place of a copy or a free.
    pub(crate) waits: Vec<Wait>,
    /// The conditions that break, if it is declined.
    pub(crate) reasons: Vec<Reason>,
}

/// One of the two buffers.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// What the program calls it.
    pub(crate) name: String,
    /// Where it is allocated.
    pub(crate) site: Place,
}

/// A place in a source file.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Place {
    /// File, as the compiler was given it.
    pub(crate) file: String,
    /// Line, from 1; 0 where debug information has none.
    pub(crate) line: u32,
}

/// A wait that stays.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Where.
    pub(crate) site: Place,
    /// What it waits for.
    pub(crate) scope: String,
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

/// Reads a report. A pair that was seen twice with the same verdict (in a function and where that was inlined) is listed once. No file: the
/// compiler saw no pair.
pub(super) fn read(path: &Path) -> Result<Vec<Pair>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::io("read the plugin's report", path, &error)),
    };
    let mut pairs: Vec<Pair> = Vec::new();
    for line in text.lines() {
        let pair = serde_json::from_str(line).map_err(|error| {
            Failure::Build(format!("{}: a line is no report of a pair: {error}\n{line}", path.display()))
        })?;
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    Ok(pairs)
}

/// `figure1.cu:37`
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Path::new(&self.file).file_name().unwrap_or_default();
        write!(f, "{}:{}", name.to_string_lossy(), self.line)
    }
}

impl Pair {
    /// `figure1.cu:31 h, :33 d`
    pub(crate) fn place(&self) -> String {
        let (host, device) = (&self.host.site, &self.device.site);
        let device = if host.file == device.file { format!(":{}", device.line) } else { device.to_string() };
        format!("{host} {}, {device} {}", self.host.name, self.device.name).trim_end().to_string()
    }

    /// `merged`, or the code and line of the first thing that stands in the way.
    pub(crate) fn short_verdict(&self) -> String {
        match (self.outcome, self.reasons.first()) {
            (Outcome::Merged, _) => "merged".into(),
            (Outcome::Declined, Some(reason)) => format!("{}\n  at line {}", reason.code, reason.at.line),
            (Outcome::Declined, None) => "declined".into(),
        }
    }

    /// The verdict with the first reason in words and the codes of the others.
    pub(crate) fn describe(&self) -> String {
        let Some((first, others)) = self.reasons.split_first() else { return format!("{} merged", self.place()) };
        let mut text = format!("{} not merged: {} [{}, {}]", self.place(), first.message, first.code, first.at);
        let codes: BTreeSet<&str> =
            others.iter().map(|reason| reason.code.as_str()).filter(|code| *code != first.code).collect();
        if !codes.is_empty() {
            let codes: Vec<&str> = codes.into_iter().collect();
            text = format!("{text}, also {}", codes.join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"function":"infer","host":{"name":"h","site":{"file":"src/a.cu","line":3,"column":5}},
        "device":{"name":"d","site":{"file":"src/a.cu","line":4,"column":5}},"bytes":null,"outcome":"declined","copies":[],"waits":[],
        "notes":[],"reasons":[{"number":"ESR210","code":"S1-x","message":"is written","help":"","at":{"file":"src/a.cu","line":8,
        "column":1},"witness":[],"suggestion":null}]}"#;

    #[test]
    fn a_report_is_read_and_repeated_verdicts_are_listed_once() {
        let line = LINE.replace('\n', "");
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), format!("{line}\n{line}\n{}\n", line.replace("\"line\":8", "\"line\":9"))).unwrap();
        let pairs = read(file.path()).unwrap();
        assert_eq!(pairs.len(), 2);
        assert_eq!(pairs[0].place(), "a.cu:3 h, :4 d");
        assert_eq!(pairs[0].short_verdict(), "S1-x\n  at line 8");
        assert_eq!(pairs[1].describe(), "a.cu:3 h, :4 d not merged: is written [S1-x, a.cu:9]");
    }

    #[test]
    fn a_line_that_is_no_pair_is_an_error_that_shows_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "{\"host\":1}\n").unwrap();
        assert!(read(file.path()).unwrap_err().to_string().contains("{\"host\":1}"));
    }

    #[test]
    fn no_report_means_no_pair() {
        assert_eq!(read(Path::new("/nonexistent/report.jsonl")).unwrap(), []);
    }
}
