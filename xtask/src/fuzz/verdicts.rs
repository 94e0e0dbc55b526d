//! What the plugin decided in a file of programs: pairs merged and declined, with the program that each belongs to.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::failure::Failure;

/// A pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// Number of the program; `None` for `main`.
    pub(super) program: Option<u64>,
    pub(super) merged: bool,
    /// `h0 and d1`, as far as names are known.
    pub(super) names: String,
    /// Codes of all reasons.
    pub(super) codes: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Line {
    function: String,
    host: Buffer,
    device: Buffer,
    outcome: String,
    reasons: Vec<Reason>,
}

#[derive(Deserialize)]
struct Buffer {
    name: String,
}

#[derive(Deserialize)]
struct Reason {
    code: String,
}

/// Reads a report. No file: no pair was seen.
pub(super) fn read(path: &Path) -> Result<Vec<Pair>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::io("read the plugin's report", path, &error)),
    };
    text.lines().map(pair).collect()
}

fn pair(line: &str) -> Result<Pair, Failure> {
    let wrong = |error| Failure::Build(format!("a line of the plugin's report is no pair: {error}\n{line}"));
    let line: Line = serde_json::from_str(line).map_err(wrong)?;
    Ok(Pair {
        program: program(&line.function),
        merged: line.outcome == "merged",
        names: format!("{} and {}", line.host.name, line.device.name),
        codes: line.reasons.into_iter().map(|reason| reason.code).collect(),
    })
}

/// The program that a function belongs to, by its mangled name: `_ZL9program_7iiii`, `_ZL7p7_step3…`.
fn program(function: &str) -> Option<u64> {
    let digits = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().parse().ok();
    if let Some((_, rest)) = function.split_once("program_") {
        return digits(rest);
    }
    let (before, _) = function.split_once("_step")?;
    let (_, number) = before.rsplit_once('p')?;
    digits(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_belong_to_programs() {
        assert_eq!(program("_ZL10program_37iiii"), Some(37));
        assert_eq!(program("_ZL9p37_step12yPjiiii"), Some(37));
        assert_eq!(program("main"), None);
    }

    #[test]
    fn a_line_is_a_pair_with_all_its_codes() {
        let line = r#"{"function":"_ZL9program_7iiii","host":{"name":"h0"},"device":{"name":"d1"},"outcome":"declined",
            "reasons":[{"code":"S1-x"},{"code":"S2-y"},{"code":"S1-x"}]}"#;
        let pair = pair(line).unwrap();
        assert_eq!((pair.program, pair.merged, pair.names.as_str()), (Some(7), false, "h0 and d1"));
        assert_eq!(pair.codes.into_iter().collect::<Vec<_>>(), ["S1-x", "S2-y"]);
    }
}
