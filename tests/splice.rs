//! Pairs that cross functions: callees are spliced into their callers on trial; what gains nothing leaves no trace.

#![cfg(any(feature = "llvm19", feature = "llvm22"))]

mod common;

use std::path::Path;

use common::{MAJOR, opt, plugin, scratch, succeed, write};
use echo_sr::pass::splice::{FUNCTION_BUDGET, MAX_DEPTH};
use echo_sr::report::pair::{Outcome, PairReport};

/// Runs passes on a module; gives the reports and the module as it is then.
#[track_caller]
fn run(directory: &Path, passes: &str, options: &str, ir: &str) -> (Vec<PairReport>, String) {
    let input = write(directory, "input.ll", ir);
    let report = directory.join("report.jsonl");
    let _ = std::fs::remove_file(&report);
    let mut command = opt(MAJOR, plugin());
    command.args(["-S", "-verify-each", &format!("-passes={passes}")]).arg(&input);
    let options = format!("report={};theta-min=0;{options}", report.display());
    let (output, _) = succeed(command.env("ECHO_SR_OPTIONS", options));
    // The first two lines have the file's name.
    let output = output.split_once("\n\n").map_or_else(String::new, |(_, rest)| rest.to_owned());
    let text = std::fs::read_to_string(&report).unwrap_or_default();
    (text.lines().map(|line| serde_json::from_str(line).expect("each line is a report")).collect(), output)
}

#[track_caller]
fn pass(ir: &str) -> (Vec<PairReport>, String) {
    run(scratch().path(), "echo-sr", "", ir)
}

/// The module as opt prints it.
#[track_caller]
fn as_it_is(ir: &str) -> String {
    let directory = scratch();
    run(directory.path(), "verify", "", ir).1
}

const DECLARATIONS: &str = "
    declare ptr @malloc(i64)
    declare void @free(ptr)
    declare i32 @cudaMalloc(ptr, i64)
    declare i32 @cudaFree(ptr)
    declare i32 @cudaMemcpy(ptr, ptr, i64, i32)
    declare i32 @__gxx_personality_v0(...)
";

/// What `solve` does: allocate, upload, download, free.
const SOLVE: &str = "{
      %d.slot = alloca ptr
      %1 = call i32 @cudaMalloc(ptr %d.slot, i64 %n)
      %d = load ptr, ptr %d.slot
      %2 = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 %n, i32 1)
      %3 = call i32 @cudaMemcpy(ptr %h, ptr %d, i64 %n, i32 2)
      %4 = call i32 @cudaFree(ptr %d)
      ret void
    }";

/// `main` allocates and fills `h` and calls `solve`, whose definition is given.
fn program(solve: &str) -> String {
    format!(
        "{DECLARATIONS}
         define i32 @main(i32 %argc) {{
           %n = zext i32 %argc to i64
           %h = call ptr @malloc(i64 %n)
           call void @llvm.memset.p0.i64(ptr %h, i8 1, i64 %n, i1 false)
           call void @solve(ptr %h, i64 %n)
           %x = load i8, ptr %h
           %result = zext i8 %x to i32
           call void @free(ptr %h)
           ret i32 %result
         }}
         declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
         {solve}"
    )
}

fn outcomes(reports: &[PairReport]) -> Vec<(String, Outcome)> {
    reports.iter().map(|report| (report.function.clone(), report.outcome)).collect()
}

/// The one report says that the functions are apart; why.
#[track_caller]
fn apart(ir: &str) -> String {
    let (reports, output) = pass(ir);
    let [report] = &reports[..] else { panic!("one report, not {reports:#?}") };
    let [reason] = &report.reasons[..] else { panic!("one reason: {report}") };
    assert_eq!(reason.code, "S4-different-functions", "{report}");
    assert_eq!(output, as_it_is(ir), "nothing was gained, so nothing changes");
    reason.message.clone()
}

#[test]
fn a_function_that_is_not_inlined_is_spliced() {
    let (reports, output) = pass(&program(&format!("define internal void @solve(ptr %h, i64 %n) noinline {SOLVE}")));
    assert_eq!(outcomes(&reports), [("main".to_owned(), Outcome::Merged)], "{reports:#?}");
    let main = &output[output.find("@main(").expect("main")..];
    let main = &main[..main.find("\n}").expect("its end")];
    assert!(
        main.contains("@cudaMallocManaged(") && !main.contains("@cudaMemcpy(") && !main.contains("@solve("),
        "{main}"
    );
}

#[test]
fn another_file_may_call_the_function_which_stays_as_it_was() {
    let ir = program(&format!("define void @solve(ptr %h, i64 %n) {SOLVE}"));
    let (reports, output) = pass(&ir);
    assert_eq!(outcomes(&reports)[0], ("main".to_owned(), Outcome::Merged), "{reports:#?}");
    let solve = |text: &str| text[text.find("@solve(ptr %h").expect("solve is there")..].to_owned();
    assert!(solve(&output).contains("@cudaMemcpy("), "{output}");
}

#[test]
fn what_stays_a_call_is_told_with_its_reason() {
    // A naked function does not name its arguments.
    let naked = SOLVE.replacen('{', "{\n %g = load ptr, ptr @g", 1).replace("%h", "%g").replace("%n", "4096");
    let recursive = SOLVE.replace("ret void", "call void @solve(ptr %h, i64 %n)\n ret void");
    for (definition, reason) in [
        (format!("define void @solve(ptr %h, i64 %n) {recursive}"), "`solve` stays a call in `main`: it is recursive"),
        (format!("define void @solve(ptr %h, i64 %n, ...) {SOLVE}"), "it is variadic"),
        (format!("define weak void @solve(ptr %h, i64 %n) {SOLVE}"), "the linker may replace it"),
        (format!("define linkonce void @solve(ptr %h, i64 %n) {SOLVE}"), "the linker may replace it"),
        (format!("@g = external global ptr\ndefine void @solve(ptr %h, i64 %n) naked {naked}"), "it is marked naked"),
        (format!("define void @solve(ptr %h, i64 %n) returns_twice {SOLVE}"), "it is marked returns_twice"),
        (format!("define void @solve(ptr %h, i64 %n) presplitcoroutine {SOLVE}"), "it is marked presplitcoroutine"),
        (format!("define void @solve(ptr %h, i64 %n) \"target-features\"=\"+avx512f\" {SOLVE}"), "another target"),
        (format!("define void @solve(ptr %h, i64 %n) sanitize_address {SOLVE}"), "other sanitizers"),
    ] {
        let calls = if definition.contains("...") { "call void (ptr, i64, ...) @solve(" } else { "call void @solve(" };
        let said = apart(&program(&definition).replace("call void @solve(", calls));
        assert!(said.contains(reason), "{said}\n{definition}");
    }
}

#[test]
fn a_function_without_optimisation_stays_a_call() {
    let (reports, _) = pass(&program(&format!("define void @solve(ptr %h, i64 %n) noinline optnone {SOLVE}")));
    let said = &reports[0].reasons[0].message;
    assert!(said.contains("it is marked optnone"), "{said}");
}

#[test]
fn the_budget_of_a_function_is_a_reason() {
    let many = |count: usize| {
        let more = " store volatile i64 %n, ptr %scratch\n".repeat(count);
        SOLVE.replacen('{', &format!("{{\n %scratch = alloca i64\n{more}"), 1)
    };
    let said = apart(&program(&format!("define void @solve(ptr %h, i64 %n) {}", many(FUNCTION_BUDGET))));
    assert!(said.contains("over the budget") && said.contains(&FUNCTION_BUDGET.to_string()), "{said}");
    let (reports, _) = pass(&program(&format!("define void @solve(ptr %h, i64 %n) {}", many(FUNCTION_BUDGET / 2))));
    assert_eq!(reports[0].outcome, Outcome::Merged);
}

#[test]
fn the_depth_of_calls_is_a_reason() {
    let chain = |depth: usize| {
        let mut functions = format!("define void @f0(ptr %h, i64 %n) {SOLVE}");
        for level in 1..depth {
            let inner = level - 1;
            functions += &format!(
                "\ndefine void @f{level}(ptr %h, i64 %n) {{\n call void @f{inner}(ptr %h, i64 %n)\n ret void\n}}"
            );
        }
        let last = depth - 1;
        program(&format!(
            "{functions}\ndefine void @solve(ptr %h, i64 %n) {{\n call void @f{last}(ptr %h, i64 %n)\n ret void\n}}"
        ))
    };
    let (reports, _) = pass(&chain(MAX_DEPTH - 1));
    assert_eq!(reports[0].outcome, Outcome::Merged, "{reports:#?}");
    let said = apart(&chain(MAX_DEPTH));
    assert!(said.contains("calls deep"), "{said}");
}

#[test]
fn off_and_a_merge_limit_of_none_leave_the_module_as_it_was() {
    let ir = program(&format!("define internal void @solve(ptr %h, i64 %n) {SOLVE}"));
    let directory = scratch();
    let (reports, output) = run(directory.path(), "echo-sr", "off", &ir);
    assert!(reports.is_empty());
    assert_eq!(output, as_it_is(&ir));
    let (reports, output) = run(directory.path(), "echo-sr", "merge-limit=0", &ir);
    assert_eq!(outcomes(&reports), [("main".to_owned(), Outcome::OverLimit)]);
    assert_eq!(output, as_it_is(&ir));
}

#[test]
fn a_trial_that_gains_nothing_leaves_the_module_as_it_was() {
    // The pair is seen, and declined: what was uploaded is still needed when h is written (S1).
    let solve = SOLVE.replace("%3 = call", "store i8 9, ptr %h\n %3 = call");
    let ir = program(&format!("define internal void @solve(ptr %h, i64 %n) {solve}"));
    let (reports, output) = pass(&ir);
    assert_eq!(outcomes(&reports), [("main".to_owned(), Outcome::Declined)], "{reports:#?}");
    assert_eq!(output, as_it_is(&ir));
}

#[test]
fn a_pair_that_a_function_has_by_itself_is_merged_there() {
    let own = "{
      %d.slot = alloca ptr
      %h = call ptr @malloc(i64 %n)
      %1 = call i32 @cudaMalloc(ptr %d.slot, i64 %n)
      %d = load ptr, ptr %d.slot
      %2 = call i32 @cudaMemcpy(ptr %h, ptr %d, i64 %n, i32 2)
      %x = load i8, ptr %h
      %4 = call i32 @cudaFree(ptr %d)
      call void @free(ptr %h)
      ret i8 %x
    }";
    let ir = format!(
        "{DECLARATIONS}
         define i8 @own(i64 %n) {own}
         define i32 @main() {{
           %a = call i8 @own(i64 4096)
           %b = zext i8 %a to i32
           ret i32 %b
         }}"
    );
    let directory = scratch();
    let (reports, output) = run(directory.path(), "echo-sr", "access=concurrent", &ir);
    assert_eq!(outcomes(&reports), [("own".to_owned(), Outcome::Merged)], "{reports:#?}");
    assert!(output.contains("call i8 @own("), "main still calls it: {output}");
}

/// `main` and the functions of the file share `h` and `d` through variables; `more` is added to the file.
fn shared(linkage: &str, more: &str) -> String {
    format!(
        "{DECLARATIONS}
         @h = internal global ptr null
         @buffers = internal global {{ i64, ptr }} zeroinitializer
         define {linkage} void @make(i64 %n) noinline {{
           %m = call ptr @malloc(i64 %n)
           store ptr %m, ptr @h
           %1 = call i32 @cudaMalloc(ptr getelementptr (i8, ptr @buffers, i64 8), i64 %n)
           ret void
         }}
         define {linkage} void @work(i64 %n) noinline {{
           %d = load ptr, ptr getelementptr (i8, ptr @buffers, i64 8)
           %m = load ptr, ptr @h
           %1 = call i32 @cudaMemcpy(ptr %m, ptr %d, i64 %n, i32 2)
           %2 = call i32 @cudaFree(ptr %d)
           ret void
         }}
         define {linkage} i8 @look() noinline {{
           %m = load ptr, ptr @h
           %x = load i8, ptr %m
           call void @free(ptr %m)
           ret i8 %x
         }}
         define i32 @main() {{
           tail call void @make(i64 4096)
           tail call void @work(i64 4096)
           %x = tail call i8 @look()
           %result = zext i8 %x to i32
           ret i32 %result
         }}
         {more}"
    )
}

#[test]
fn variables_that_only_main_still_uses_become_its_own() {
    let (reports, output) = pass(&shared("internal", ""));
    assert_eq!(outcomes(&reports), [("main".to_owned(), Outcome::Merged)], "{reports:#?}");
    let main = &output[output.find("@main(").expect("main")..];
    assert!(!main.contains("@h") && !main.contains("@buffers"), "{main}");
    // A tail call touches no variable of its caller: the marks had to go.
    assert!(!main.contains("tail call i32 @cudaMallocManaged"), "{main}");
}

#[test]
fn variables_that_something_else_may_touch_stay_global() {
    let elsewhere = [
        ("external functions", "", ""),
        ("a function that another file may call", "internal", "define void @other() {\n store ptr null, ptr @h\n ret void\n}"),
        (
            "a function that goes by its address",
            "internal",
            "declare i32 @atexit(ptr)
             define internal void @last() {\n store ptr null, ptr @h\n ret void\n}
             define void @start() {\n %1 = call i32 @atexit(ptr @last)\n ret void\n}",
        ),
        (
            "a constructor",
            "internal",
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @first, ptr null }]
             define internal void @first() {\n store ptr null, ptr @h\n ret void\n}",
        ),
        ("another variable", "internal", "@also = global ptr @h"),
        ("its address", "internal", "define ptr @where() {\n ret ptr @h\n}"),
    ];
    for (what, linkage, more) in elsewhere {
        let ir = shared(linkage, more);
        let (reports, output) = pass(&ir);
        assert!(reports.iter().all(|report| report.outcome == Outcome::Declined), "{what}: {reports:#?}");
        assert_eq!(output, as_it_is(&ir), "{what}");
    }
}

#[test]
fn main_that_is_called_again_or_jumps_keeps_the_variables_global() {
    let again = "define void @restart() {\n %1 = call i32 @main()\n ret void\n}";
    let jumps = shared("internal", "declare i32 @setjmp(ptr) returns_twice")
        .replace("tail call void @make(i64 4096)", "%j = call i32 @setjmp(ptr null)\n tail call void @make(i64 4096)");
    for ir in [shared("internal", again), jumps] {
        let (reports, output) = pass(&ir);
        assert!(reports.iter().all(|report| report.outcome == Outcome::Declined), "{reports:#?}");
        assert_eq!(output, as_it_is(&ir));
    }
}

#[test]
fn members_of_a_structure_that_calls_write_are_seen() {
    // All in one function, and n is read again from the structure behind each call.
    let ir = format!(
        "{DECLARATIONS}
         define i32 @main(i32 %argc) {{
           %c = alloca {{ i64, ptr, ptr }}
           %h = getelementptr i8, ptr %c, i64 8
           %d = getelementptr i8, ptr %c, i64 16
           %size = zext i32 %argc to i64
           store i64 %size, ptr %c
           %made = call ptr @malloc(i64 %size)
           store ptr %made, ptr %h
           %1 = call i32 @cudaMalloc(ptr %d, i64 %size)
           %2 = load ptr, ptr %h
           %3 = load ptr, ptr %d
           %4 = load i64, ptr %c
           %5 = call i32 @cudaMemcpy(ptr %2, ptr %3, i64 %4, i32 2)
           %x = load i8, ptr %2
           %6 = call i32 @cudaFree(ptr %3)
           call void @free(ptr %2)
           %result = zext i8 %x to i32
           ret i32 %result
         }}"
    );
    let (reports, _) = pass(&ir);
    assert_eq!(outcomes(&reports), [("main".to_owned(), Outcome::Merged)], "{reports:#?}");
}

#[test]
fn at_link_time_the_functions_of_several_files_are_joined() {
    let directory = scratch();
    let solve = format!("{DECLARATIONS}\ndefine void @solve(ptr %h, i64 %n) noinline {SOLVE}");
    let solve = write(directory.path(), "solve.ll", &solve);
    let main = write(directory.path(), "main.ll", &program("declare void @solve(ptr, i64)"));
    let linked = directory.path().join("linked.ll");
    let mut link = std::process::Command::new(format!("llvm-link-{MAJOR}"));
    succeed(link.arg("-S").arg(&main).arg(&solve).arg("-o").arg(&linked));
    let ir = std::fs::read_to_string(&linked).expect("llvm-link wrote it");
    let (reports, output) = run(directory.path(), "internalize<preserve-gv=main>,lto<O2>", "", &format!("{ir}\n"));
    assert_eq!(outcomes(&reports), [("main".to_owned(), Outcome::Merged)], "told once: {reports:#?}");
    assert!(!output.contains("@cudaMemcpy("), "{output}");
}
