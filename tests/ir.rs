//! Programs in LLVM IR through the pass, one a file (`tests/ir`): `merge-….ll` must be merged; `keep-….ll` differs from one of those in
//! one thing, which its name says, and must be left as it is.
//!
//! Lines of a program's head:
//! ```text
//! ; EXPECT: merged                    the verdict on each pair, in order: merged,
//! ; EXPECT: S3-compared S2-…          or just these codes;
//! ; EXPECT: no pair                   there is none
//! ; OPTIONS: access=concurrent        options of the pass (theta-min=0 unless they say otherwise)
//! ; CHECK: call i32 @cudaFree(        these texts stand in the rewritten program, in this order,
//! ; CHECK-NOT: @cudaMemcpy(           and this one does not
//! ```

#![cfg(feature = "llvm22")]

mod common;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{MAJOR, opt, plugin, scratch, with_module};
use echo_sr::analysis::ALL_DECLINES;
use echo_sr::effects::{derive, record};
use echo_sr::report::pair::{Outcome, PairReport};

/// Reasons that no file shows, and why.
const NOT_IN_A_FILE: [(&str, &str); 2] = [
    (
        "S4-allocation-sites",
        "the lowering makes an object of each allocating call; only a hand-made event program has an object with two",
    ),
    ("C-limit", "it takes 20,000 blocks: `a_function_that_is_too_large_is_left_alone` makes them"),
];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ir").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The programs' names, sorted.
fn programs() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ir");
    let entries = std::fs::read_dir(folder).expect("the folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("merge-") || name.starts_with("keep-")).collect();
    names.sort();
    names
}

/// What surrounds each program: the prelude, the embedded device half, and the registration of the kernels that are in it.
fn surroundings() -> String {
    let effects = with_module(&read("device.ll"), derive::effects_of_device_module);
    let mut image = b"\x7fELF".to_vec();
    image.extend(record::encode(&effects));
    let bytes: String = image.iter().map(|byte| format!("\\{byte:02X}")).collect();
    let (mut names, mut calls) = (String::new(), String::new());
    for name in effects.kernels.keys() {
        let length = name.len() + 1;
        names += &format!("@name.{name} = private constant [{length} x i8] c\"{name}\\00\"\n");
        calls += &format!(
            "  %{name} = call i32 @__cudaRegisterFunction(ptr null, ptr @{name}, ptr @name.{name}, ptr @name.{name}, i32 -1, \
             ptr null, ptr null, ptr null, ptr null, ptr null)\n"
        );
    }
    format!(
        "{}
declare i32 @__cudaRegisterFunction(ptr, ptr, ptr, ptr, i32, ptr, ptr, ptr, ptr, ptr)
{names}
@device = internal constant [{} x i8] c\"{bytes}\"
@__cuda_fatbin_wrapper = internal constant {{ i32, i32, ptr, ptr }} {{ i32 1180844977, i32 1, ptr @device, ptr null }},
  section \".nvFatBinSegment\"
define internal void @__cuda_register_globals() {{
{calls}  ret void
}}
",
        read("prelude.ll"),
        image.len(),
    )
}

/// What the pass says of each pair, and the module before and after it.
struct Run {
    pairs: Vec<String>,
    before: String,
    after: String,
}

/// Runs the pass over a module.
fn run(module: &str, options: &str, directory: &Path, name: &str) -> Run {
    let report = directory.join(format!("{name}.jsonl"));
    let mut command = opt(MAJOR, plugin());
    command.args(["-passes=print,echo-sr,verify,print", "-disable-output", "-"]);
    command.env("ECHO_SR_OPTIONS", format!("report={};{options}", report.display()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("opt starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(module.as_bytes()).expect("opt reads its input");
    drop(input);
    let output = child.wait_with_output().expect("opt ends");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name}: opt ended with {}:\n{printed}", output.status);
    let [_, before, after] = printed.split("; ModuleID").collect::<Vec<_>>()[..] else {
        panic!("{name}: the module is printed twice, not:\n{printed}")
    };
    let lines = std::fs::read_to_string(&report).unwrap_or_default();
    let mut pairs: Vec<_> = lines.lines().map(|line| verdict(&serde_json::from_str(line).expect("a report"))).collect();
    if pairs.is_empty() {
        pairs.push("no pair".to_owned());
    }
    Run { pairs, before: before.to_owned(), after: after.to_owned() }
}

/// `merged`, or the codes, each once and in order.
fn verdict(report: &PairReport) -> String {
    if report.outcome == Outcome::Merged {
        return "merged".to_owned();
    }
    let codes: BTreeSet<&str> = report.reasons.iter().map(|reason| reason.code.as_str()).collect();
    codes.into_iter().collect::<Vec<_>>().join(" ")
}

/// The values of a key in a program's head.
fn head<'a>(program: &'a str, key: &str) -> Vec<&'a str> {
    program.lines().filter_map(|line| line.strip_prefix("; ")?.strip_prefix(key)?.strip_prefix(": ")).collect()
}

/// Runs one program; what is wrong, if anything.
fn check(name: &str, surroundings: &str, directory: &Path) -> Option<String> {
    let program = read(name);
    let expected: Vec<String> = head(&program, "EXPECT")
        .into_iter()
        .map(|line| line.split_whitespace().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" "))
        .collect();
    let options = [vec!["theta-min=0"], head(&program, "OPTIONS")].concat().join(";");
    let Run { pairs, before, after } = run(&format!("{surroundings}\n{program}"), &options, directory, name);
    if pairs != expected {
        return Some(format!("expected {expected:?}, got {pairs:?}"));
    }
    let merged = pairs.iter().any(|pair| pair == "merged");
    if expected.is_empty() || merged != (name.starts_with("merge-") || pairs.len() > 1 && merged) {
        return Some("its name and its EXPECT lines disagree".to_owned());
    }
    if !merged && before != after {
        return Some(format!("nothing is merged, but the module has changed:\n{after}"));
    }
    let mut rest = after.as_str();
    for text in head(&program, "CHECK") {
        let Some((_, behind)) = rest.split_once(text) else { return Some(format!("no {text:?} in\n{rest}")) };
        rest = behind;
    }
    let main = after.split_once("@main(").map_or("", |(_, main)| main);
    head(&program, "CHECK-NOT").into_iter().find(|text| main.contains(text)).map(|text| format!("{text:?} in\n{main}"))
}

#[test]
fn each_program_gets_just_its_verdict_and_stays_as_it_is_where_nothing_is_merged() {
    let (programs, surroundings, directory) = (programs(), surroundings(), scratch());
    let kept = programs.iter().filter(|name| name.starts_with("keep-")).count();
    assert!(kept >= 60, "{kept} programs that must be left alone");
    plugin();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(name) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(fault) = check(name, &surroundings, directory.path()) {
                        wrong.lock().expect("no thread has panicked").push(format!("tests/ir/{name}: {fault}"));
                    }
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().expect("no thread has panicked");
    wrong.sort();
    assert!(wrong.is_empty(), "{} of {} programs:\n{}", wrong.len(), programs.len(), wrong.join("\n"));
}

#[test]
fn every_reason_has_a_program() {
    let texts: Vec<String> = programs().iter().map(|name| read(name)).collect();
    let shown: BTreeSet<&str> =
        texts.iter().flat_map(|text| head(text, "EXPECT")).flat_map(str::split_whitespace).collect();
    for (number, code) in ALL_DECLINES {
        let elsewhere = NOT_IN_A_FILE.iter().any(|(reason, _)| reason == code);
        assert!(
            shown.contains(code) != elsewhere,
            "{number} {code}: a program in tests/ir, or a reason why there is none"
        );
    }
}

/// A negative program proves something because a program that differs in little passes.
#[test]
fn every_program_that_is_kept_is_near_one_that_is_merged() {
    const MOST: usize = 15;
    let lines = |name: &String| -> Vec<String> {
        let text = read(name);
        text.lines().filter(|line| !line.starts_with(';')).map(str::to_owned).collect()
    };
    let (merged, kept): (Vec<_>, Vec<_>) = programs().into_iter().partition(|name| name.starts_with("merge-"));
    for name in &kept {
        let mine = lines(name);
        let changes = |other: &String| {
            let other = lines(other);
            let only = |one: &[String], two: &[String]| one.iter().filter(|line| !two.contains(line)).count();
            only(&mine, &other) + only(&other, &mine)
        };
        let fewest = merged.iter().map(changes).min();
        assert!(
            fewest.is_some_and(|fewest| fewest <= MOST),
            "tests/ir/{name}: {fewest:?} lines differ from any merge-….ll"
        );
    }
}

/// C-limit.
#[test]
fn a_function_that_is_too_large_is_left_alone() {
    let (name, directory) = ("merge-figure-1.ll", scratch());
    let chain: String = (0..20_000).map(|n| format!("  br label %n{n}\nn{n}:\n")).collect();
    let program = read(name).replacen("  %h = ", &format!("{chain}  %h = "), 1);
    let result = run(&format!("{}\n{program}", surroundings()), "theta-min=0", directory.path(), "large");
    assert_eq!(result.pairs, ["C-limit"]);
    assert!(result.before == result.after, "the module has changed");
}
