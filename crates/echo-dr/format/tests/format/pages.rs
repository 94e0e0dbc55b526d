//! The pages of docs/remarks on run-time reasons: one for each number, with its name, and none left over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

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
