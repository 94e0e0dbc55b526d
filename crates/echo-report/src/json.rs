//! JSON Lines: one object a pair, for tools.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use crate::PairReport;

/// Appends one line a pair to the file, which is made if it is not there. All lines of a call are written at once, so that compilers
/// that run side by side do not mix theirs.
///
/// # Errors
/// The file can't be opened or written.
pub fn append(path: &Path, pairs: &[PairReport]) -> io::Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let mut lines = Vec::new();
    for pair in pairs {
        serde_json::to_writer(&mut lines, pair)?;
        lines.push(b'\n');
    }
    OpenOptions::new().create(true).append(true).open(path)?.write_all(&lines)
}

/// Reads what [`append`] wrote.
///
/// # Errors
/// A line that is no report; the error has its number.
pub fn parse(text: &str) -> io::Result<Vec<PairReport>> {
    let line = |(index, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("line {}: {error}", index + 1)))
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn lines_are_appended_and_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.jsonl");
        append(&path, &[samples::merged()]).unwrap();
        append(&path, &[]).unwrap();
        append(&path, &[samples::declined(), samples::merged()]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let pairs = parse(&text).unwrap();
        assert_eq!(pairs, [samples::merged(), samples::declined(), samples::merged()]);
    }

    #[test]
    fn the_names_that_tools_read_are_stable() {
        let line = serde_json::to_value(samples::declined()).unwrap();
        assert_eq!(line["outcome"], "declined");
        assert_eq!(line["host"]["site"]["line"], 3);
        assert_eq!(line["reasons"][0]["code"], "S1-device-value-overwritten");
        assert_eq!(line["reasons"][0]["witness"][1]["text"], "kernel reads `d`");
        assert_eq!(line["bytes"], serde_json::Value::Null);
    }

    #[test]
    fn a_line_that_is_no_report_is_named() {
        let good = serde_json::to_string(&samples::merged()).unwrap();
        let error = parse(&format!("{good}\n{{\"function\": 1}}\n")).unwrap_err();
        assert!(error.to_string().starts_with("line 2: "), "{error}");
    }

    #[test]
    fn a_file_that_can_not_be_written_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(append(&directory.path().join("missing/report.jsonl"), &[samples::merged()]).is_err());
    }
}
