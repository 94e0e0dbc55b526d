//! Analysing units: one clang a unit, several at a time.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{fs, thread};

use echo_report::PairReport;

use crate::clang;
use crate::failure::Failure;
use crate::plugin::Plugin;
use crate::unit::Unit;

/// What came of one unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Its pairs, places as the compiler knows them.
    pub(crate) pairs: Vec<PairReport>,
    /// What the plugin warned of.
    pub(crate) warnings: Vec<String>,
    /// Why it could not be analysed.
    pub(crate) failure: Option<String>,
}

/// Lines of a compiler's message that are shown; the first errors are what matters.
const SHOWN_LINES: usize = 20;

/// Analyses all units, `jobs` at a time; the outcomes are in the order of the units.
pub(crate) fn run(units: &[Unit], plugin: &Plugin, options: &str, jobs: usize) -> Result<Vec<Outcome>, Failure> {
    let folder = tempfile::tempdir().map_err(|error| Failure::io(&std::env::temp_dir(), "write to", &error))?;
    let bar = echo_cli::progress("analysing", units.len());
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![Outcome::default(); units.len()]);
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, units.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(unit) = units.get(index) else { break };
                    bar.set_message(unit.source.file_name().unwrap_or_default().to_string_lossy().into_owned());
                    let outcome = analyse(unit, plugin, options, &folder.path().join(index.to_string()));
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner)[index] = outcome;
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    Ok(outcomes.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// One unit. `stem`: where its files go while it runs.
fn analyse(unit: &Unit, plugin: &Plugin, options: &str, stem: &Path) -> Outcome {
    let failed = |text: String| Outcome { failure: Some(text), ..Outcome::default() };
    if let Some(reason) = &unit.refused {
        return failed(reason.clone());
    }
    let (report, object) = (stem.with_extension("jsonl"), stem.with_extension("o"));
    let mut command = Command::new(&unit.compiler);
    command.current_dir(&unit.directory).args(&unit.arguments).arg(clang::load(&plugin.path));
    command.arg("-c").arg("-o").arg(&object).stdin(Stdio::null());
    command.env("ECHO_SR_OPTIONS", format!("{options};analyse-only;report={}", report.display()));
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return failed(format!("{} in {}: {error}", unit.compiler, unit.directory.display())),
    };
    // It may be absent: no object was made, or no pair was found.
    let _ = fs::remove_file(&object);
    let message = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return failed(shorten(&message, &output.status.to_string()));
    }
    let text = fs::read_to_string(&report).unwrap_or_default();
    let _ = fs::remove_file(&report);
    let warnings = message.lines().filter_map(|line| line.strip_prefix("warning: ")).map(strip_flag).collect();
    match echo_report::parse(&text) {
        Ok(pairs) => Outcome { pairs, warnings, failure: None },
        Err(error) => failed(format!("the plugin's report can't be read ({error}): is it another version of Echo?")),
    }
}

fn strip_flag(line: &str) -> String {
    line.trim_end().strip_suffix("[-Wbackend-plugin]").unwrap_or(line).trim_end().to_owned()
}

fn shorten(message: &str, status: &str) -> String {
    let lines: Vec<_> = message.lines().collect();
    if lines.is_empty() {
        return format!("the compiler ended with {status}");
    }
    let mut text = lines[..lines.len().min(SHOWN_LINES)].join("\n");
    if lines.len() > SHOWN_LINES {
        text += &format!("\n({} more lines)", lines.len() - SHOWN_LINES);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_and_says_so() {
        let long = "error\n".repeat(SHOWN_LINES + 2);
        assert!(shorten(&long, "").ends_with("(2 more lines)"));
        assert_eq!(shorten("a\nb\n", ""), "a\nb");
        assert_eq!(shorten("", "signal: 9"), "the compiler ended with signal: 9");
    }

    #[test]
    fn a_warning_is_shown_without_its_flag() {
        assert_eq!(strip_flag("echo-sr: x [-Wbackend-plugin]"), "echo-sr: x");
    }
}
