//! Every mutant (`src/mutants.rs`) is killed by the test that the table names: with it the test fails, without it the test passes.
//!
//! ```text
//! cargo test -p echo-sr --features mutants --test mutants                          # all
//! cargo test -p echo-sr --no-default-features --features mutants --test mutants    # those of the analysis, without LLVM
//! ```

#![cfg(feature = "mutants")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use echo_sr::mutants::{ALL, Row, VARIABLE};

/// The features of this test run, but for the default ones.
const FEATURES: &str = if cfg!(feature = "llvm19") {
    "mutants,llvm19"
} else if cfg!(feature = "llvm22") {
    "mutants,llvm22"
} else {
    "mutants"
};

/// Whether this test run has the rooms that read LLVM IR.
const LLVM: bool = cfg!(any(feature = "llvm19", feature = "llvm22"));

/// The test that goes through the list of cases.
const CASES: &str = "analysis::tests::declines::each_broken_thing_declines_for_just_its_reason";

/// What a killer names: a test program, a test in it, and, where that test goes through a list of cases, the case.
struct Killer {
    program: &'static str,
    test: &'static str,
    case: Option<&'static str>,
}

fn killer(row: &Row) -> Killer {
    match row.killer.split_once(' ').expect("a killer names a test program and a test") {
        ("case", case) => Killer { program: "lib", test: CASES, case: Some(case) },
        (program, test) => Killer { program, test, case: None },
    }
}

/// Can the test run without LLVM?
fn is_pure(killer: &Killer) -> bool {
    killer.program == "lib" && killer.test.starts_with("analysis::")
}

/// The test programs, built with the mutants and with the features of this one.
fn programs() -> BTreeMap<String, PathBuf> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["test", "--no-run", "--quiet", "--message-format=json"]);
    command.args(["--lib", "--features", FEATURES]);
    if !cfg!(feature = "default") {
        command.arg("--no-default-features");
    }
    if LLVM {
        command.args(["--test", "effects"]);
    }
    command.arg("--target-dir").arg(common::target_dir());
    let (messages, _) = common::succeed(command.env_remove("LLVM_CONFIG"));
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    artifacts
        .filter_map(|artifact| {
            let path = artifact["executable"].as_str()?;
            let name = artifact["target"]["name"].as_str()?;
            Some((if name == "echo_sr" { "lib" } else { name }.to_owned(), PathBuf::from(path)))
        })
        .collect()
}

/// What tests did.
#[derive(PartialEq, Eq, Debug)]
enum Outcome {
    /// All passed.
    Passed,
    /// Some failed; with what they printed.
    Failed(String),
    /// There are no such tests, or their program did not end as a test program does.
    NoResult(String),
}

/// Runs just these tests, each of which must exist.
fn run(program: &Path, tests: &[&str], mutant: Option<&str>) -> Outcome {
    let mut command = Command::new(program);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).arg("--exact").args(tests).env_remove(VARIABLE);
    command.envs(mutant.map(|mutant| (VARIABLE, mutant)));
    let output = common::run(&mut command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = tests.len();
    match output.status.code() {
        Some(0) if text.contains(&format!("test result: ok. {count} passed")) => Outcome::Passed,
        // What libtest ends with when a test failed.
        Some(101) if text.contains(&format!("running {count} test")) && text.contains("test result: FAILED") => {
            Outcome::Failed(text)
        }
        _ => Outcome::NoResult(format!("{}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

/// What is wrong with the killer, if anything.
fn check(row: &Row, programs: &BTreeMap<String, PathBuf>) -> Option<String> {
    let killer = killer(row);
    match (run(&programs[killer.program], &[killer.test], Some(row.name)), killer.case) {
        (Outcome::Passed, _) => Some("the mutant lives".to_owned()),
        (Outcome::NoResult(text), _) => Some(text),
        (Outcome::Failed(text), Some(case)) if !text.contains(&format!("case {case}:")) => {
            Some(format!("another case fails:\n{text}"))
        }
        (Outcome::Failed(_), _) => None,
    }
}

#[test]
fn every_mutant_is_killed_by_its_test() {
    let programs = programs();
    let rows: Vec<&Row> = ALL.iter().filter(|row| LLVM || is_pure(&killer(row))).collect();
    assert!(rows.len() >= 90, "{} mutants", rows.len());
    for (name, program) in &programs {
        let killers: Vec<_> = rows.iter().filter(|row| killer(row).program == name).collect();
        let list = common::succeed(Command::new(program).arg("--list")).0;
        let known: BTreeSet<&str> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
        let gone: Vec<_> = killers.iter().filter(|row| !known.contains(killer(row).test)).map(|row| row.name).collect();
        assert!(gone.is_empty(), "the tests that killed these mutants are gone or have other names: {gone:?}");
        let tests: BTreeSet<&str> = killers.iter().map(|row| killer(row).test).collect();
        let without = run(program, &tests.into_iter().collect::<Vec<_>>(), None);
        assert_eq!(without, Outcome::Passed, "without a mutant");
    }
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(fault) = check(row, &programs) {
                        let text = format!("{}: {}: {fault}", row.name, row.killer);
                        wrong.lock().expect("no thread has panicked").push(text);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no thread has panicked");
    assert!(wrong.is_empty(), "{} of {} mutants:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    println!("{} mutants, each killed by its test", rows.len());
}

#[test]
fn an_unknown_mutant_and_an_unknown_test_are_no_result() {
    let programs = programs();
    let lib = &programs["lib"];
    assert!(matches!(run(lib, &["analysis::tests::no_such_test"], None), Outcome::NoResult(_)));
    let test = "analysis::tests::declines::the_unbroken_case_passes";
    assert_eq!(run(lib, &[test], None), Outcome::Passed);
    assert!(matches!(run(lib, &[test], Some("S9Nothing")), Outcome::NoResult(text) if text.contains("is no mutant")));
}

#[test]
fn names_are_unique() {
    let names: BTreeSet<&str> = ALL.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), ALL.len());
}

/// The table in the documentation is this one. `ECHO_BLESS=1` writes it anew.
#[test]
fn the_documentation_lists_every_mutant() {
    const START: &str = "<!-- mutants: written by tests/mutants.rs -->\n";
    const END: &str = "<!-- end of mutants -->\n";
    let mut table = format!(
        "\n{} mutants.\n\n| of | what is switched off | mutant | killed by |\n| --- | --- | --- | --- |\n",
        ALL.len()
    );
    for row in ALL {
        let Killer { program, test, case } = killer(row);
        let killer = match case {
            Some(case) => format!("`declines`: {case}"),
            None if program == "lib" => format!("`{}`", test.replace("tests::", "")),
            None => format!("`{program}::{test}`"),
        };
        let _ = writeln!(table, "| {} | {} | `{}` | {killer} |", row.tag, row.rule, row.name);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/verification.md");
    let text = std::fs::read_to_string(&path).expect("docs/verification.md");
    let (before, rest) = text.split_once(START).expect("the table's start");
    let (_, after) = rest.split_once(END).expect("the table's end");
    let expected = format!("{before}{START}{table}\n{END}{after}");
    if std::env::var_os("ECHO_BLESS").is_some() {
        std::fs::write(&path, &expected).expect("the file can be written");
    }
    assert!(
        text == expected || std::env::var_os("ECHO_BLESS").is_some(),
        "docs/verification.md does not list the mutants of src/mutants.rs; write the list with\n  \
         ECHO_BLESS=1 cargo test -p echo-sr --features mutants --test mutants the_documentation"
    );
}
