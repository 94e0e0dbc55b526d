//! The baseline: what is known and accepted, so that only new findings count. It knows findings by what they are, not by line numbers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::finding::Finding;

/// What a declined condition of a pair is known by. Code above or below it may change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    /// The file of the host buffer's allocation (of the unit, without debug information).
    file: String,
    /// The function, as linkers know it.
    function: String,
    /// Name of the host buffer.
    host: String,
    /// Name of the device buffer.
    device: String,
    /// The broken condition (`S1-device-value-overwritten`), or `mergeable`.
    code: String,
}

impl Fingerprint {
    /// Of one condition of a finding.
    pub(crate) fn new(finding: &Finding, code: &str) -> Self {
        let pair = &finding.pair;
        let file = if finding.has_place() { &pair.host.site.file } else { &finding.unit };
        Self {
            file: file.clone(),
            function: finding.functions.first().cloned().unwrap_or_default(),
            host: pair.host.name.clone(),
            device: pair.device.name.clone(),
            code: code.to_owned(),
        }
    }

    /// One line, for SARIF.
    pub(crate) fn line(&self) -> String {
        let Self { file, function, host, device, code } = self;
        format!("{file}|{function}|{host}|{device}|{code}")
    }
}

/// The format of the file.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    declined: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
struct Row {
    #[serde(flatten)]
    fingerprint: Fingerprint,
    /// Pairs that look alike: two buffers of one name in one function.
    count: usize,
}

/// Marks each condition of each declined pair as known or new.
pub(crate) fn compare(path: &Path, findings: &mut [Finding]) -> Result<(), Failure> {
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::File {
            path: path.to_owned(),
            reason: "there is no such baseline; write one with --write-baseline".to_owned(),
        },
        _ => Failure::io(path, "read", &error),
    })?;
    let refuse = |reason: String| Failure::File { path: path.to_owned(), reason };
    let file: File = serde_json::from_str(&text).map_err(|error| refuse(format!("is no baseline: {error}")))?;
    if file.version != VERSION {
        return Err(refuse(format!(
            "has format {}, not {VERSION}; write it again with --write-baseline",
            file.version
        )));
    }
    let mut known: BTreeMap<_, _> = file.declined.into_iter().map(|row| (row.fingerprint, row.count)).collect();
    for finding in findings {
        let codes = finding.pair.reasons.iter().map(|reason| Fingerprint::new(finding, &reason.code));
        let new = codes.map(|fingerprint| match known.get_mut(&fingerprint) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        });
        let new = new.collect();
        finding.new = Some(new);
    }
    Ok(())
}

/// Writes what is declined now.
pub(crate) fn write(path: &Path, findings: &[Finding]) -> Result<(), Failure> {
    let mut counts: BTreeMap<Fingerprint, usize> = BTreeMap::new();
    for finding in findings {
        for reason in &finding.pair.reasons {
            *counts.entry(Fingerprint::new(finding, &reason.code)).or_default() += 1;
        }
    }
    let declined = counts.into_iter().map(|(fingerprint, count)| Row { fingerprint, count }).collect();
    let text = serde_json::to_string_pretty(&File { version: VERSION, declined });
    let text = text.map_err(|error| Failure::File { path: path.to_owned(), reason: error.to_string() })?;
    fs::write(path, text + "\n").map_err(|error| Failure::io(path, "write", &error))
}

#[cfg(test)]
mod tests {
    use echo_report::{Buffer, Outcome, PairReport, Place, ReasonReport};

    use super::*;

    fn finding(line: u32, codes: &[&str]) -> Finding {
        let site = Place { file: "a.cu".to_owned(), line, column: 1 };
        let reason = |code: &&str| ReasonReport {
            number: "ESR200".to_owned(),
            code: (*code).to_owned(),
            message: String::new(),
            help: String::new(),
            at: site.clone(),
            witness: vec![],
            suggestion: None,
        };
        let pair = PairReport {
            function: "f".to_owned(),
            host: Buffer { name: "h".to_owned(), site: site.clone() },
            device: Buffer { name: "d".to_owned(), site: site.clone() },
            bytes: None,
            outcome: Outcome::Declined,
            copies: vec![],
            saved_per_iteration: None,
            waits: vec![],
            notes: vec![],
            reasons: codes.iter().map(reason).collect(),
        };
        Finding { functions: vec!["f".to_owned()], pair, unit: "a.cu".to_owned(), new: None }
    }

    fn compared(before: &[Finding], mut now: Vec<Finding>) -> Vec<Vec<bool>> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("baseline.json");
        write(&path, before).expect("written");
        compare(&path, &mut now).expect("read");
        now.into_iter().map(|finding| finding.new.expect("compared")).collect()
    }

    #[test]
    fn moved_lines_are_not_new_and_another_condition_is() {
        assert_eq!(compared(&[finding(3, &["S1"])], vec![finding(30, &["S1"])]), [[false]]);
        assert_eq!(compared(&[finding(3, &["S1"])], vec![finding(3, &["S1", "S2"])]), [[false, true]]);
        assert_eq!(compared(&[finding(3, &["S1"])], vec![finding(3, &[])]), [[false; 0]]);
    }

    #[test]
    fn a_second_pair_of_the_same_names_is_new() {
        assert_eq!(compared(&[finding(3, &["S1"])], vec![finding(3, &["S1"]), finding(9, &["S1"])]), [[false], [true]]);
    }

    #[test]
    fn what_is_no_baseline_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("b.json");
        let refusal = |text: Option<&str>| {
            if let Some(text) = text {
                fs::write(&path, text).expect("written");
            }
            compare(&path, &mut []).unwrap_err().to_string()
        };
        assert!(refusal(None).contains("--write-baseline"));
        assert!(refusal(Some("[]")).contains("no baseline"));
        assert!(refusal(Some(r#"{"version": 9, "declined": []}"#)).contains("format 9"));
    }
}
