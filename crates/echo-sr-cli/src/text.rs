//! Findings for people: the source with what is said of it at its lines.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use codespan_reporting::diagnostic::{Diagnostic, Label, LabelStyle, Severity};
use codespan_reporting::files::SimpleFiles;
use codespan_reporting::term::termcolor::WriteColor;
use codespan_reporting::term::{self, Config};
use echo_cli::size;
use echo_report::{Outcome, PairReport, Place, ReasonReport};

use crate::failure::Failure;
use crate::finding::{Finding, demangled};

/// Shows findings. It keeps the sources that it has read.
pub(crate) struct Renderer {
    root: PathBuf,
    files: SimpleFiles<String, String>,
    /// `None`: the file can't be read.
    known: HashMap<String, Option<usize>>,
}

/// What is said at one place. Several things at the same place become one label.
struct Remark<'a> {
    place: &'a Place,
    style: LabelStyle,
    text: String,
}

impl Renderer {
    /// `root`: what the findings' paths are relative to.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), files: SimpleFiles::new(), known: HashMap::new() }
    }

    /// Shows one finding.
    pub(crate) fn show(&mut self, finding: &Finding, out: &mut dyn WriteColor) -> Result<(), Failure> {
        let diagnostic = self.diagnostic(finding);
        term::emit_to_write_style(out, &Config::default(), &self.files, &diagnostic)
            .map_err(|error| Failure::Nothing(format!("the findings can't be shown: {error}")))
    }

    fn diagnostic(&mut self, finding: &Finding) -> Diagnostic<usize> {
        let pair = &finding.pair;
        let (severity, code) = match pair.outcome {
            Outcome::Declined => (Severity::Warning, pair.reasons.first().map(|reason| reason.number.clone())),
            _ => (Severity::Note, pair.number().map(str::to_owned)),
        };
        let mut notes = vec![circumstances(finding)];
        if !finding.has_place() {
            notes.push("there is no debug information (-g), so neither lines nor names are known".to_owned());
        }
        let mut remarks = Vec::new();
        for (index, reason) in pair.reasons.iter().enumerate() {
            self.reason(reason, (pair.reasons.len() > 1).then_some(index), finding, &mut remarks, &mut notes);
        }
        remarks.extend(buffers(pair));
        let labels = self.labels(&remarks);
        notes.extend(pair.notes.iter().cloned());
        let message = headline(pair);
        Diagnostic { severity, code, message, labels, notes }
    }

    /// What is said of one broken condition: labels where there are lines to show, else a note.
    fn reason<'a>(
        &mut self,
        reason: &'a ReasonReport,
        index: Option<usize>,
        finding: &Finding,
        remarks: &mut Vec<Remark<'a>>,
        notes: &mut Vec<String>,
    ) {
        let tag = index.map_or_else(String::new, |index| format!("({}) ", letter(index)));
        let new = finding.new.as_ref().and_then(|new| new.get(index.unwrap_or(0)));
        let known = if new == Some(&false) { ", known" } else { "" };
        let mut note = format!("{tag}{} {}{known}", reason.number, reason.code);
        if self.file(&reason.at).is_some() {
            remarks.push(Remark {
                place: &reason.at,
                style: LabelStyle::Primary,
                text: format!("{tag}{}", reason.message),
            });
        } else {
            note += &format!(": {}", reason.message);
            if reason.at.line != 0 {
                note += &format!(" ({})", reason.at);
            }
        }
        for (number, step) in reason.witness.iter().enumerate() {
            let number = number + 1;
            let said = step.site == reason.at && reason.message.contains(&step.text);
            let text = if said { format!("step {number}") } else { format!("{tag}step {number}: {}", step.text) };
            if self.file(&step.site).is_some() {
                remarks.push(Remark { place: &step.site, style: LabelStyle::Secondary, text });
            } else {
                note += &format!("\n  {text}");
            }
        }
        if let Some(suggestion) = &reason.suggestion {
            note += &format!("\n  repair: {suggestion}");
        }
        note += &format!("\n  help: {}", reason.help);
        notes.push(note);
    }

    fn labels(&mut self, remarks: &[Remark<'_>]) -> Vec<Label<usize>> {
        let mut labels: Vec<Label<usize>> = Vec::new();
        for remark in remarks {
            let Some((file, range)) = self.file(remark.place) else { continue };
            let known = labels.iter_mut().find(|label| label.file_id == file && label.range.start == range.start);
            match known {
                Some(label) => label.message += &format!("; {}", remark.text),
                None => labels.push(Label::new(remark.style, file, range).with_message(&remark.text)),
            }
        }
        labels
    }

    /// The file of a place and the word that stands there.
    fn file(&mut self, place: &Place) -> Option<(usize, Range<usize>)> {
        if place.line == 0 {
            return None;
        }
        let path = self.root.join(&place.file);
        let files = &mut self.files;
        let file = *self.known.entry(place.file.clone()).or_insert_with(|| {
            let text = fs::read(path).ok()?;
            Some(files.add(place.file.clone(), String::from_utf8_lossy(&text).into_owned()))
        });
        let file = file?;
        let range = word(self.files.get(file).ok()?.source(), place.line, place.column)?;
        Some((file, range))
    }
}

/// The bytes of the word at a line and column (both from 1; columns count bytes, as clang's do).
fn word(text: &str, line: u32, column: u32) -> Option<Range<usize>> {
    let mut start = 0;
    for _ in 1..line {
        start += text.get(start..)?.find('\n')? + 1;
    }
    let line = text.get(start..)?.lines().next().unwrap_or_default();
    let indent = line.len() - line.trim_start().len();
    let mut first = (column as usize).saturating_sub(1).max(if column == 0 { indent } else { 0 }).min(line.len());
    while !line.is_char_boundary(first) {
        first -= 1;
    }
    let rest = &line[first..];
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let name = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    let length = if name > 0 { name } else { rest.chars().next().map_or(0, char::len_utf8) };
    Some(start + first..start + first + length)
}

fn headline(pair: &PairReport) -> String {
    let names = format!("host buffer {} and device buffer {}", name(&pair.host.name), name(&pair.device.name));
    match pair.outcome {
        Outcome::Merged => format!("{names} are one buffer now"),
        Outcome::Mergeable => format!("{names} can be one buffer"),
        Outcome::OverLimit => format!("{names} could be one buffer, but merge-limit is reached"),
        Outcome::Declined => match &pair.reasons[..] {
            [] => format!("{names} stay two"),
            [reason] => format!("{names} stay two: {}", reason.code),
            [reason, rest @ ..] => format!("{names} stay two: {} and {} more", reason.code, rest.len()),
        },
    }
}

fn name(name: &str) -> String {
    if name.is_empty() { "(no name)".to_owned() } else { format!("`{name}`") }
}

/// (a), (b) …: which condition a label belongs to.
fn letter(index: usize) -> char {
    u8::try_from(index).ok().filter(|index| *index < 26).map_or('z', |index| char::from(b'a' + index))
}

fn buffers(pair: &PairReport) -> Vec<Remark<'_>> {
    let mut remarks = Vec::new();
    let merges = pair.outcome != Outcome::Declined;
    let mut say = |place, style, text: String| remarks.push(Remark { place, style, text });
    let first = if merges { LabelStyle::Primary } else { LabelStyle::Secondary };
    say(&pair.host.site, first, format!("host buffer {}", name(&pair.host.name)));
    say(&pair.device.site, first, format!("device buffer {}", name(&pair.device.name)));
    for copy in &pair.copies {
        let text = if merges { "this copy goes" } else { "copied here" };
        say(copy, LabelStyle::Secondary, text.to_owned());
    }
    for wait in &pair.waits {
        let text = format!("a wait for the {} stays", wait.scope);
        say(&wait.site, LabelStyle::Secondary, text);
    }
    remarks
}

fn circumstances(finding: &Finding) -> String {
    let pair = &finding.pair;
    let functions: Vec<_> = finding.functions.iter().map(|function| format!("`{}`", demangled(function))).collect();
    let mut text = match &functions[..] {
        [function] => format!("in {function} ({})", finding.unit),
        [function, rest @ ..] if rest.len() < 4 => format!("in {function} and also in {}", rest.join(", ")),
        _ => format!("in {} functions: {} …", functions.len(), functions[..functions.len().min(4)].join(", ")),
    };
    match pair.bytes {
        Some(bytes) => text += &format!("; {}", size(bytes)),
        None => text += "; size known at run time",
    }
    if let Some(saved) = pair.saved_per_iteration {
        let verb = if pair.outcome == Outcome::Declined { "would save" } else { "saves" };
        text += &format!("; merging {verb} copying {} each time around the loop", size(saved));
    }
    text
}

#[cfg(test)]
mod tests {
    use codespan_reporting::term::termcolor::NoColor;

    use super::*;

    fn rendered(finding: &Finding, source: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a.cu"), source).expect("written");
        let mut out = NoColor::new(Vec::new());
        Renderer::new(folder.path()).show(finding, &mut out).expect("shown");
        String::from_utf8(out.into_inner()).expect("text")
    }

    fn finding(pair: PairReport) -> Finding {
        Finding { functions: vec![pair.function.clone()], pair, unit: "a.cu".to_owned(), new: None }
    }

    const SOURCE: &str = "line1\nline2\nhh = malloc\ncudaMalloc(dd)\nl5\nl6\ncopy h\nh[0] = 999;\nkernel<<<>>>\nlast\n";

    #[test]
    fn a_declined_pair_shows_each_condition_at_its_line_with_its_path() {
        let text = rendered(&finding(echo_report::samples::declined()), SOURCE);
        for part in [
            "warning[ESR210]: host buffer `h` and device buffer `d` stay two: S1-device-value-overwritten and 1 more",
            "8 │ h[0] = 999;",
            "(a) `h` is written while `d` is needed; (a) step 1: writes `h`",
            "(a) step 2: kernel reads `d`",
            "(b) a kernel may be running",
            "= (b) ESR220 S2-kernel-pending",
            "repair: wait for the stream before a.cu:10",
            "help: wait for the work",
            "in `main` (a.cu); size known at run time",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }

    #[test]
    fn without_debug_information_the_function_is_what_is_known() {
        let mut pair = echo_report::samples::declined();
        let nowhere = Place::default();
        (pair.host.site, pair.device.site) = (nowhere.clone(), nowhere.clone());
        (pair.host.name, pair.device.name) = (String::new(), String::new());
        pair.copies = vec![nowhere.clone()];
        for reason in &mut pair.reasons {
            reason.at = nowhere.clone();
            reason.witness.iter_mut().for_each(|step| step.site = nowhere.clone());
        }
        let text = rendered(&finding(pair), SOURCE);
        for part in ["(no name)", "in `main` (a.cu)", "no debug information (-g)", "step 2: kernel reads `d`"] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(!text.contains('│'), "{text}");
    }

    #[test]
    fn a_source_that_is_gone_leaves_the_places_in_the_notes() {
        let mut pair = echo_report::samples::declined();
        pair.reasons.truncate(1);
        pair.reasons[0].at.file = "gone.cu".to_owned();
        let text = rendered(&finding(pair), SOURCE);
        assert!(text.contains("(gone.cu:8)"), "{text}");
    }

    #[test]
    fn a_pair_that_can_be_merged_shows_what_goes_and_what_stays() {
        let mut pair = echo_report::samples::merged();
        pair.outcome = Outcome::Mergeable;
        pair.saved_per_iteration = Some(3 << 20);
        let text = rendered(&finding(pair), SOURCE);
        for part in ["note[ESR103]", "this copy goes", "a wait for the device stays", "4 KiB", "saves copying 3 MiB"] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }

    #[test]
    fn the_word_at_a_place_is_marked() {
        let at = |line, column| word("ab cd\nüx(y)\n", line, column);
        assert_eq!(at(1, 4), Some(3..5));
        assert_eq!(at(2, 1), Some(6..9));
        assert_eq!(at(2, 4), Some(9..10));
        assert_eq!(at(1, 99), Some(5..5));
        assert_eq!(at(9, 1), None);
    }
}
