//! The pages of docs/remarks: one for each number, and each with a program that gets it.

#![cfg(feature = "llvm22")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, thread};

use common::{clang, scratch, succeed, write};
use echo_sr::analysis::ALL_DECLINES;
use echo_sr::report::pair::PairReport;

/// What becomes of pairs that are not declined.
const ACCEPTED: [(&str, &str); 3] = [("ESR101", "merged"), ("ESR102", "merge-limit"), ("ESR103", "mergeable")];

/// Numbers whose page says why it has no program.
const WITHOUT_PROGRAM: [&str; 2] = ["ESR250", "ESR277"];

/// The program of a page, in ```` ```cuda OPTIONS ````.
struct Program {
    number: String,
    /// For the plugin.
    options: String,
    /// It says something of its whole module (threads, devices …), so it must be compiled alone.
    alone: bool,
    text: String,
    /// The page's message, with `…` for what differs.
    message: String,
}

fn pages() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/remarks");
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("docs/remarks").map(|entry| entry.expect("readable")) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(number) = name.strip_suffix(".md").filter(|name| name.starts_with("ESR")) {
            pages.insert(number.to_owned(), fs::read_to_string(entry.path()).expect("a page is text"));
        }
    }
    pages
}

fn program(number: &str, page: &str) -> Option<Program> {
    let (_, rest) = page.split_once("\n```cuda")?;
    let (info, rest) = rest.split_once('\n')?;
    let (text, _) = rest.split_once("\n```")?;
    let mut options = info.trim();
    let alone = options == "alone";
    if alone {
        options = "";
    }
    let message = page.lines().find_map(|line| line.strip_prefix("> ")).expect("a page quotes its message").to_owned();
    Some(Program { number: number.to_owned(), options: options.to_owned(), alone, text: text.to_owned(), message })
}

#[test]
fn every_number_has_a_page_with_its_code_and_no_page_is_left_over() {
    let expected: BTreeMap<_, _> = ALL_DECLINES.iter().chain(&ACCEPTED).copied().collect();
    let pages = pages();
    let titles: BTreeMap<_, _> = pages
        .values()
        .map(|page| {
            let title = page.lines().next().and_then(|line| line.strip_prefix("# "));
            title.and_then(|title| title.split_once(' ')).expect("a page starts with # NUMBER CODE")
        })
        .collect();
    assert_eq!(titles, expected);
    let names: BTreeSet<_> = pages.keys().map(String::as_str).collect();
    assert_eq!(names, expected.keys().copied().collect());
}

#[test]
fn the_program_of_each_page_gets_its_code() {
    let (mut units, mut without) = (BTreeMap::<String, Vec<Program>>::new(), vec![]);
    for (number, page) in &pages() {
        match program(number, page) {
            None => without.push(number.clone()),
            Some(program) if program.alone => drop(units.insert(number.clone(), vec![program])),
            Some(program) => units.entry(format!("options {}", program.options)).or_default().push(program),
        }
    }
    assert_eq!(without, WITHOUT_PROGRAM);
    let directory = scratch();
    common::plugin();
    let units: Vec<_> = units.into_values().collect();
    let half = units.len().div_ceil(2);
    let missing: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = units
            .chunks(half)
            .map(|units| {
                scope.spawn(|| units.iter().flat_map(|unit| missing(directory.path(), unit)).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no unit panics")).collect()
    });
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Compiles programs as one unit, each in a namespace of its own; says which do not get their code.
fn missing(directory: &Path, programs: &[Program]) -> Vec<String> {
    let name = programs[0].number.as_str();
    let (mut includes, mut body) = (BTreeSet::new(), String::new());
    for program in programs {
        includes.extend(program.text.lines().filter(|line| line.starts_with("#include")));
        let rest = program.text.lines().filter(|line| !line.starts_with("#include")).collect::<Vec<_>>().join("\n");
        if program.alone {
            body = rest;
        } else {
            write!(body, "namespace {} {{\n{rest}\n}}\n", program.number.to_lowercase()).expect("to a string");
        }
    }
    if !programs[0].alone {
        // Without it the unit would count as part of a program with threads.
        body += "int main() {}\n";
    }
    let text = includes.into_iter().collect::<Vec<_>>().join("\n") + "\n" + &body;
    let source = write(directory, &format!("{name}.cu"), &text);
    let report = directory.join(format!("{name}.jsonl"));
    let options = format!("report={};{}", report.display(), programs[0].options);
    let mut command = clang(directory);
    command.args(["-std=c++17", "-w", "-Xarch_host", "-g", "-c", "-o", &format!("{name}.o")]).arg(source);
    succeed(command.env("ECHO_SR_OPTIONS", options));
    let text = fs::read_to_string(report).unwrap_or_default();
    let pairs: Vec<PairReport> = text.lines().map(|line| serde_json::from_str(line).expect("a report")).collect();
    let complaint = |program: &Program| {
        // A namespace is a length and a name in a mangled name.
        let own = |pair: &&PairReport| {
            program.alone || pair.function.contains(&format!("6{}", program.number.to_lowercase()))
        };
        let mine = || pairs.iter().filter(own);
        let reason = mine().flat_map(|pair| &pair.reasons).find(|reason| reason.number == program.number);
        if let Some(reason) = reason
            && !fits(&reason.message, &program.message)
        {
            return Some(format!("{}: {:?} is not {:?}", program.number, reason.message, program.message));
        }
        let numbers: BTreeSet<_> = mine()
            .flat_map(|pair| {
                pair.reasons.iter().map(|reason| reason.number.clone()).chain(pair.number().map(str::to_owned))
            })
            .collect();
        (!numbers.contains(&program.number)).then(|| format!("{}: got {numbers:?}", program.number))
    };
    programs.iter().filter_map(complaint).collect()
}

/// The message is the page's, whatever stands for `…`.
fn fits(message: &str, page: &str) -> bool {
    let mut rest = message;
    page.split('…').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}
