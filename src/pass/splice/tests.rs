//! What is spliced, what stays a call and why, and which variables become `main`'s own. (`tests/splice.rs` runs the whole pass in `opt`.)

use std::collections::BTreeSet;

use inkwell::context::Context as LlvmContext;

use super::{FUNCTION_BUDGET, MAX_DEPTH, Scratch, Splicer, Why};
use crate::effects::EffectTable;
use crate::ir::{Module, Value};
use crate::lower::Context;
use crate::lower::tests::parse;
use crate::options::Options;
use crate::pass::pipeline;

/// The body of `solve`: a device buffer, and the copies to and from it.
const SOLVE: &str = "{
  %d.slot = alloca ptr
  %1 = call i32 @cudaMalloc(ptr %d.slot, i64 %n)
  %d = load ptr, ptr %d.slot
  %2 = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 %n, i32 1)
  %3 = call i32 @cudaMemcpy(ptr %h, ptr %d, i64 %n, i32 2)
  %4 = call i32 @cudaFree(ptr %d)
  ret void
}";

/// `main` has the host buffer and calls `solve`, whose definition is given.
fn program(solve: &str) -> String {
    let call = if solve.contains("...") { "void (ptr, i64, ...)" } else { "void" };
    format!(
        "define i32 @main(i64 %n) {{
           %h = call ptr @malloc(i64 %n)
           call void @llvm.memset.p0.i64(ptr %h, i8 1, i64 %n, i1 false)
           call {call} @solve(ptr %h, i64 %n)
           %x = load i32, ptr %h
           call void @free(ptr %h)
           ret i32 %x
         }}
         {solve}"
    )
}

fn with_module<R>(ir: &str, use_it: impl FnOnce(Module<'_>) -> R) -> R {
    let context = LlvmContext::create();
    let module = parse(&context, ir);
    // SAFETY: the module lives until the end of this function, and nobody else has it.
    let result = use_it(unsafe { Module::new(module.as_mut_ptr()) });
    module.verify().unwrap_or_else(|error| panic!("{}\n{}", error.to_string_lossy(), module.print_to_string()));
    result
}

/// Does the pass merge the pair? Where it does not, it leaves the module as it was.
fn merges(ir: &str) -> bool {
    let context = LlvmContext::create();
    let module = parse(&context, ir);
    let before = module.print_to_string();
    let mut options = Options::default();
    options.analysis.theta_min = 0;
    // SAFETY: as above.
    let changed = pipeline::run(unsafe { Module::new(module.as_mut_ptr()) }, -1, &options);
    let after = module.print_to_string();
    assert_eq!(changed, before != after, "{}", after.to_string());
    let merged = after.to_string().contains("call i32 @cudaMallocManaged(");
    assert_eq!(merged, changed, "{}", after.to_string());
    merged
}

/// Why calls stay in `main`, and how many functions were spliced.
fn refusals(ir: &str) -> (BTreeSet<Why>, usize) {
    with_module(ir, |module| {
        let context = Context::new(module, EffectTable::default());
        let main = module.functions().find(|function| function.name() == "main").expect("main");
        let scratch = Scratch::of(module, main).expect("a copy");
        let growth = Splicer::new(&context).grow(scratch.function(), main);
        (growth.refusals.into_iter().map(|refusal| refusal.why).collect(), growth.spliced.len())
    })
}

#[track_caller]
fn stays_a_call(solve: &str, why: Why) {
    assert_eq!(refusals(&program(solve)), (BTreeSet::from([why]), 0), "{solve}");
}

#[test]
fn a_callee_takes_the_place_of_its_call_and_its_pair_is_merged() {
    let ir = program(&format!("define void @solve(ptr %h, i64 %n) noinline {SOLVE}"));
    assert_eq!(refusals(&ir), (BTreeSet::new(), 1));
    assert!(merges(&ir));
}

#[test]
fn where_nothing_is_gained_the_module_stays_as_it_was() {
    // What was uploaded is still needed when h is written.
    let solve = SOLVE.replace("%3 = call", "store i8 9, ptr %h\n %3 = call");
    assert!(!merges(&program(&format!("define void @solve(ptr %h, i64 %n) {solve}"))));
}

#[test]
fn a_recursive_callee_stays_a_call() {
    let again = SOLVE.replace("ret void", "call void @solve(ptr null, i64 0)\n ret void");
    stays_a_call(&format!("define void @solve(ptr %h, i64 %n) {again}"), Why::Recursive);
}

#[test]
fn a_variadic_callee_stays_a_call() {
    stays_a_call(&format!("define void @solve(ptr %h, i64 %n, ...) {SOLVE}"), Why::Variadic);
}

#[test]
fn a_callee_that_the_linker_may_replace_stays_a_call() {
    let ir = |linkage: &str| program(&format!("define {linkage} void @solve(ptr %h, i64 %n) {SOLVE}"));
    for linkage in ["weak", "linkonce"] {
        assert_eq!(refusals(&ir(linkage)), (BTreeSet::from([Why::Replaceable]), 0));
        assert!(!merges(&ir(linkage)), "{linkage}");
    }
    assert!(merges(&ir("weak_odr")));
}

#[test]
fn a_callee_with_a_forbidding_attribute_stays_a_call() {
    stays_a_call(&format!("define void @solve(ptr %h, i64 %n) noinline optnone {SOLVE}"), Why::Attribute("optnone"));
    stays_a_call(&format!("define void @solve(ptr %h, i64 %n) returns_twice {SOLVE}"), Why::Attribute("returns_twice"));
}

#[test]
fn a_callee_for_another_target_stays_a_call() {
    stays_a_call(
        &format!("define void @solve(ptr %h, i64 %n) \"target-features\"=\"+avx512f\" {SOLVE}"),
        Why::OtherTarget,
    );
}

#[test]
fn a_callee_over_the_budget_stays_a_call() {
    let more = " store volatile i64 %n, ptr %scratch\n".repeat(FUNCTION_BUDGET);
    let solve = SOLVE.replacen('{', &format!("{{\n %scratch = alloca i64\n{more}"), 1);
    let (why, spliced) = refusals(&program(&format!("define void @solve(ptr %h, i64 %n) {solve}")));
    assert!(matches!(why.first(), Some(Why::OverBudget { limit: FUNCTION_BUDGET, .. })) && spliced == 0, "{why:?}");
}

#[test]
fn calls_are_followed_so_deep_and_no_deeper() {
    let mut functions = format!("define void @f0(ptr %h, i64 %n) {SOLVE}");
    for level in 1..=MAX_DEPTH {
        let (inner, name) = (level - 1, if level == MAX_DEPTH { "solve".to_owned() } else { format!("f{level}") });
        functions +=
            &format!("\ndefine void @{name}(ptr %h, i64 %n) {{\n call void @f{inner}(ptr %h, i64 %n)\n ret void\n}}");
    }
    assert_eq!(refusals(&program(&functions)), (BTreeSet::from([Why::TooDeep]), MAX_DEPTH));
}

/// `main` and two functions of the file share the buffers through `@h` and `@d`; `more` is added to the file.
fn shared(more: &str) -> String {
    format!(
        "@h = internal global ptr null
         @d = internal global ptr null
         define internal void @make(i64 %n) noinline {{
           %m = call ptr @malloc(i64 %n)
           store ptr %m, ptr @h
           %1 = call i32 @cudaMalloc(ptr @d, i64 %n)
           ret void
         }}
         define internal void @work(i64 %n) noinline {{
           %device = load ptr, ptr @d
           %host = load ptr, ptr @h
           %1 = call i32 @cudaMemcpy(ptr %host, ptr %device, i64 %n, i32 2)
           %2 = call i32 @cudaFree(ptr %device)
           ret void
         }}
         define i32 @main() {{
           call void @make(i64 4096)
           call void @work(i64 4096)
           %host = load ptr, ptr @h
           %x = load i32, ptr %host
           call void @free(ptr %host)
           ret i32 %x
         }}
         {more}"
    )
}

#[test]
fn variables_that_only_main_uses_become_its_own() {
    assert!(merges(&shared("")));
}

#[test]
fn a_variable_that_another_function_sees_stays_global() {
    assert!(!merges(&shared("define void @elsewhere() {\n store ptr null, ptr @h\n ret void\n}")));
    let handler = "declare i32 @atexit(ptr)
        define internal void @last() {\n %p = load ptr, ptr @h\n store i8 1, ptr %p\n ret void\n}
        define void @start() {\n %1 = call i32 @atexit(ptr @last)\n ret void\n}";
    assert!(!merges(&shared(handler)));
}

#[test]
fn a_variable_that_is_known_elsewhere_or_lives_otherwise_stays_global() {
    for (from, to) in [
        ("@h = internal global", "@h = global"),
        ("@h = internal global", "@h = internal thread_local global"),
        ("@h = internal global ptr null", "@h = internal global ptr null, section \"table\""),
    ] {
        assert!(!merges(&shared("").replace(from, to)), "{to}");
    }
}

/// Does `main` still use the global variable `@h` when the rest was put into it?
fn stays_global(ir: &str) -> bool {
    with_module(ir, |module| {
        let context = Context::new(module, EffectTable::default());
        let main = module.functions().find(|function| function.name() == "main").expect("main");
        Splicer::new(&context).grow(main, main);
        let mut operands = main.instructions().flat_map(Value::operands);
        operands.any(|operand| operand.is_global_variable() && operand.name() == "h")
    })
}

#[test]
fn a_variable_whose_address_is_given_away_stays_global() {
    let ir = shared("declare void @keep(ptr)").replace("call void @make", "call void @keep(ptr @h)\n call void @make");
    assert!(!merges(&ir));
    assert!(stays_global(&ir) && !stays_global(&shared("")));
}

#[test]
fn a_variable_that_an_asynchronous_copy_writes_stays_global() {
    let copied = |call: &str| {
        stays_global(&shared("").replace("call void @work", &format!("%c = call i32 {call}\n call void @work")))
    };
    assert!(copied("@cudaMemcpyAsync(ptr @h, ptr null, i64 8, i32 2, ptr null)"));
    assert!(!copied("@cudaMemcpy(ptr @h, ptr null, i64 8, i32 2)"));
}

#[test]
fn main_that_may_run_twice_keeps_variables_global() {
    assert!(!merges(&shared("define void @restart() {\n %1 = call i32 @main()\n ret void\n}")));
    assert!(!merges(&shared("").replace("@main()", "@start()")), "another function may be called again");
}

#[test]
fn a_main_that_returns_twice_keeps_variables_global() {
    let ir = shared("declare i32 @pause(ptr) returns_twice")
        .replace("call void @make(i64 4096)", "%j = call i32 @pause(ptr null)\n call void @make(i64 4096)");
    assert!(stays_global(&ir));
}
