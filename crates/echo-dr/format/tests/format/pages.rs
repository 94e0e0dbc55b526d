//! The pages of docs/remarks on run-time reasons: one for each number, with its name, and none left over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use echo_dr_format::reason::{Decline, Deviation, Reason, Refusal};

fn numbers() -> BTreeMap<&'static str, &'static str> {
    let all = [Decline::NUMBERS, Refusal::NUMBERS, Deviation::NUMBERS].concat();
    let numbers: BTreeMap<_, _> = all.iter().copied().collect();
    assert_eq!(numbers.len(), all.len(), "a number is used twice");
    let names: BTreeSet<_> = numbers.values().collect();
    assert_eq!(names.len(), numbers.len(), "a name is used twice");
    numbers
}

#[test]
fn every_number_has_a_page_and_no_page_is_left_over() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/remarks");
    let mut pages = BTreeSet::new();
    for entry in fs::read_dir(&folder).expect("docs/remarks").map(|entry| entry.expect("readable")) {
        let file = entry.file_name().to_string_lossy().into_owned();
        if let Some(number) = file.strip_suffix(".md").filter(|name| name.starts_with("EDR")) {
            pages.insert(number.to_owned());
        }
    }
    let numbers = numbers();
    let expected: BTreeSet<String> = numbers.keys().map(|&number| number.to_owned()).collect();
    assert_eq!(pages, expected);
    for (number, name) in numbers {
        let page = fs::read_to_string(folder.join(format!("{number}.md"))).expect("a page is text");
        assert_eq!(page.lines().next(), Some(format!("# {number} {name}").as_str()));
        for part in ["\n> ", "\n## What it means\n", "\n## What to do\n"] {
            assert!(page.contains(part), "{number}.md lacks {part:?}");
        }
    }
}

#[test]
fn deviations_are_listed_by_number() {
    let listed: Vec<_> = Deviation::ALL.iter().map(|deviation| (deviation.number(), deviation.name())).collect();
    assert_eq!(listed, Deviation::NUMBERS);
}

/// Rust files under a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// The tests of Echo-DR but for this crate's, whose tests only read and write reasons.
fn tests() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let of_crate = |name: &str| sources(&crates.join(name));
    let files = ["engine", "preload", "cli"].into_iter().flat_map(of_crate);
    let text = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a source is text");
        let is_test = path.iter().any(|part| part == "tests") || path.ends_with("tests.rs");
        let from = if is_test { Some(0) } else { text.find("#[cfg(test)]\nmod tests {") };
        from.map(|from| text[from..].to_owned())
    };
    // A plan's refusals are this crate's own.
    let own = crates.join("format/tests/format/malformed.rs");
    files.filter_map(text).chain([fs::read_to_string(own).expect("text")]).collect()
}

#[test]
fn every_number_is_named_by_a_test() {
    let tests = tests();
    let named = |marks: &[String]| tests.iter().any(|text| marks.iter().any(|mark| text.contains(mark.as_str())));
    let kinds = [("Decline", Decline::PATTERNS), ("Refusal", Refusal::PATTERNS), ("Deviation", Deviation::PATTERNS)];
    let numbers = numbers();
    let is_missing = |kind: &str, number: &str, pattern: &str| {
        let variant =
            pattern.trim_start_matches("Self::").split(|c: char| !c.is_alphanumeric()).next().expect("a part");
        let marks = [
            format!("\"{number}\""),
            format!("fn {}_", number.to_lowercase()),
            format!("{kind}::{variant}"),
            format!("\"{}\"", numbers[number]),
        ];
        !named(&marks)
    };
    let missing: Vec<_> = kinds
        .iter()
        .flat_map(|(kind, patterns)| patterns.iter().map(move |(number, pattern)| (*kind, *number, *pattern)))
        .filter(|(kind, number, pattern)| is_missing(kind, number, pattern))
        .collect();
    assert!(missing.is_empty(), "no test gives {missing:?}");
}
