//! What a project's analysis found: the pairs of all units, each once, with places relative to the project.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use echo_report::{Outcome, PairReport, Place};
use serde::Serialize;

use crate::unit::Unit;

/// A pair, however many functions and units it is seen in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// As the plugin reported it, with places relative to the project's root.
    #[serde(flatten)]
    pub(crate) pair: PairReport,
    /// The source whose compilation reported it first.
    pub(crate) unit: String,
    /// Every function that it is in: a helper that was inlined into several shows its pair in each.
    pub(crate) functions: Vec<String>,
    /// With a baseline: for each reason, whether the baseline lacks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) new: Option<Vec<bool>>,
}

impl Finding {
    /// Some reason is not in the baseline.
    pub(crate) fn is_new(&self) -> bool {
        self.new.as_ref().is_some_and(|new| new.contains(&true))
    }

    /// The pair is declined.
    pub(crate) fn is_declined(&self) -> bool {
        self.pair.outcome == Outcome::Declined
    }

    /// Debug information tells where the pair is.
    pub(crate) fn has_place(&self) -> bool {
        self.pair.host.site.line != 0
    }
}

/// Collects findings.
pub(crate) struct Findings {
    root: PathBuf,
    found: Vec<Finding>,
    index: HashMap<PairReport, usize>,
}

impl Findings {
    /// `root`: what paths are relative to.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: normal(root), found: vec![], index: HashMap::new() }
    }

    /// Adds the pairs of a unit.
    pub(crate) fn add(&mut self, unit: &Unit, pairs: Vec<PairReport>) {
        let source = self.relative(&unit.source);
        for mut pair in pairs {
            for place in places(&mut pair).filter(|place| !place.file.is_empty()) {
                place.file = self.relative(&unit.directory.join(&place.file));
            }
            for text in texts(&mut pair) {
                *text = readable(text);
            }
            self.insert(pair, &source);
        }
    }

    fn insert(&mut self, pair: PairReport, unit: &str) {
        // The same in another function is the same code inlined there. Without places that can't be known.
        let mut key = pair.clone();
        if pair.host.site.line != 0 {
            key.function = String::new();
        }
        if let Some(known) = self.index.get(&key) {
            let functions = &mut self.found[*known].functions;
            if !functions.contains(&pair.function) {
                functions.push(pair.function);
            }
            return;
        }
        self.index.insert(key, self.found.len());
        self.found.push(Finding { functions: vec![pair.function.clone()], pair, unit: unit.to_owned(), new: None });
    }

    /// All findings, by place.
    pub(crate) fn sorted(mut self) -> Vec<Finding> {
        let place = |place: &Place| (place.file.clone(), place.line, place.column);
        self.found.sort_by_cached_key(|finding| {
            let pair = &finding.pair;
            let file = if finding.has_place() { pair.host.site.file.clone() } else { finding.unit.clone() };
            (file, place(&pair.host.site), place(&pair.device.site), pair.function.clone())
        });
        self.found
    }

    /// `path` as it is shown: relative to the root if it is inside.
    pub(crate) fn relative(&self, path: &Path) -> String {
        let path = normal(path);
        path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy().into_owned()
    }
}

fn places(pair: &mut PairReport) -> impl Iterator<Item = &mut Place> {
    let PairReport { host, device, copies, waits, reasons, .. } = pair;
    let of_reasons = reasons
        .iter_mut()
        .flat_map(|reason| std::iter::once(&mut reason.at).chain(reason.witness.iter_mut().map(|step| &mut step.site)));
    [&mut host.site, &mut device.site]
        .into_iter()
        .chain(copies)
        .chain(waits.iter_mut().map(|wait| &mut wait.site))
        .chain(of_reasons)
}

fn texts(pair: &mut PairReport) -> impl Iterator<Item = &mut String> {
    pair.reasons.iter_mut().flat_map(|reason| {
        std::iter::once(&mut reason.message).chain(reason.witness.iter_mut().map(|step| &mut step.text))
    })
}

/// The text with every quoted symbol demangled.
fn readable(text: &str) -> String {
    let parts: Vec<_> = text.split('`').map(demangled).collect();
    parts.join("`")
}

/// Without `.` and `..`. (A `..` behind a symbolic link would be another folder; compilers and editors read paths in this way too.)
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if result.file_name().is_some() => {
                result.pop();
            }
            other => result.push(other),
        }
    }
    result
}

/// A function's name as a programmer writes it.
pub(crate) fn demangled(function: &str) -> String {
    let symbol = cpp_demangle::Symbol::new(function).ok().filter(|_| function.starts_with("_Z"));
    symbol.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| function.to_owned())
}

#[cfg(test)]
mod tests {
    use echo_report::{Buffer, Step};

    use super::*;

    fn unit(source: &str) -> Unit {
        Unit {
            directory: "/p/build".into(),
            source: source.into(),
            compiler: String::new(),
            arguments: vec![],
            unoptimised: false,
            refused: None,
        }
    }

    fn pair(function: &str, file: &str, line: u32) -> PairReport {
        let site = Place { file: file.to_owned(), line, column: 1 };
        PairReport {
            function: function.to_owned(),
            host: Buffer { name: "h".to_owned(), site: site.clone() },
            device: Buffer { name: "d".to_owned(), site },
            bytes: None,
            outcome: Outcome::Mergeable,
            copies: vec![],
            saved_per_iteration: None,
            waits: vec![],
            notes: vec![],
            reasons: vec![],
        }
    }

    #[test]
    fn a_helper_inlined_into_several_functions_and_units_is_one_finding() {
        let mut findings = Findings::new(Path::new("/p"));
        findings.add(&unit("/p/a.cu"), vec![pair("f", "../h.cuh", 7), pair("g", "../h.cuh", 7)]);
        findings.add(&unit("/p/b.cu"), vec![pair("f", "/p/h.cuh", 7), pair("k", "/p/src/../h.cuh", 7)]);
        findings.add(&unit("/p/b.cu"), vec![pair("f", "/p/h.cuh", 9)]);
        let found = findings.sorted();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].functions, ["f", "g", "k"]);
        assert_eq!((found[0].pair.host.site.file.as_str(), found[0].unit.as_str()), ("h.cuh", "a.cu"));
    }

    #[test]
    fn without_places_each_function_has_its_own() {
        let mut findings = Findings::new(Path::new("/p"));
        findings.add(&unit("/p/a.cu"), vec![pair("f", "", 0), pair("g", "", 0), pair("f", "", 0)]);
        assert_eq!(findings.sorted().len(), 2);
    }

    #[test]
    fn all_places_of_a_report_become_relative() {
        let mut report = pair("f", "../a.cu", 1);
        report.copies.push(Place { file: "/usr/include/x.h".to_owned(), line: 1, column: 1 });
        report.reasons.push(echo_report::ReasonReport {
            number: String::new(),
            code: String::new(),
            message: String::new(),
            help: String::new(),
            at: Place { file: "./sub/b.cu".to_owned(), line: 2, column: 1 },
            witness: vec![Step { site: Place { file: "/p/c.cu".to_owned(), line: 3, column: 1 }, text: String::new() }],
            suggestion: None,
        });
        let mut findings = Findings::new(Path::new("/p"));
        findings.add(&unit("/p/a.cu"), vec![report]);
        let found = &findings.sorted()[0].pair;
        assert_eq!(found.host.site.file, "a.cu");
        assert_eq!(found.copies[0].file, "/usr/include/x.h");
        assert_eq!(found.reasons[0].at.file, "build/sub/b.cu");
        assert_eq!(found.reasons[0].witness[0].site.file, "c.cu");
    }

    #[test]
    fn names_are_demangled() {
        assert_eq!(demangled("_Z5inferPfi"), "infer(float*, int)");
        assert_eq!(demangled("main"), "main");
        assert_eq!(demangled("_Z?"), "_Z?");
        assert_eq!(readable("kernel `_Z1kPf` reads `d`"), "kernel `k(float*)` reads `d`");
    }
}
