//! Tests of the rewrite: IR in, the plans that `analysis` makes, IR out.

use inkwell::context::Context as LlvmContext;
use inkwell::values::AnyValue;

use super::{Target, apply};
use crate::analysis;
use crate::analysis::verdict::{Decision, MergePlan};
use crate::analysis::{AccessMode, Options, analyse};
use crate::effects::{EffectTable, KernelEffects, ParamEffect};
use crate::lower::tests::shapes::FIGURE_1;
use crate::lower::tests::{parse, registration};
use crate::lower::{Context, lower_function};

/// Merges what the analysis accepts in `@main`; gives the function's text. Panics if nothing is accepted.
#[track_caller]
fn rewritten(ir: &str) -> String {
    rewritten_for(Target::Managed, ir)
}

#[track_caller]
fn rewritten_for(target: Target, ir: &str) -> String {
    let for_analysis = if target == Target::Managed { analysis::Target::Managed } else { analysis::Target::Adaptive };
    let options = Options { theta_min: 0, access: AccessMode::Concurrent, target: for_analysis, ..Options::default() };
    rewritten_with(target, &options, ir)
}

#[track_caller]
fn rewritten_with(target: Target, options: &Options, ir: &str) -> String {
    let touches = ParamEffect { reads: true, writes: true, captures: false, writes_all: None };
    let kernel = KernelEffects { params: vec![Some(touches)], touches_other_memory: false };
    let effects = EffectTable { kernels: [("k".to_owned(), kernel)].into() };
    let context = LlvmContext::create();
    let module = parse(&context, ir);
    // SAFETY: the module lives until the end of this function, and nobody else has it.
    let view = unsafe { crate::ir::Module::new(module.as_mut_ptr()) };
    let context = Context::new(view, effects);
    let main = context.module.functions().find(|function| function.name() == "main").expect("main");
    let lowered = lower_function(&context, main).expect("a body");
    let verdicts = analyse(&lowered.program, options);
    let plans: Vec<&MergePlan> = verdicts
        .iter()
        .filter_map(|verdict| match &verdict.decision {
            Decision::Accept(plan) => Some(plan),
            Decision::Decline(_) => None,
        })
        .collect();
    assert!(!plans.is_empty(), "nothing accepted: {verdicts:#?}");
    apply(context.module, lowered, &plans, target);
    module.verify().unwrap_or_else(|error| panic!("{}\n{}", error.to_string_lossy(), module.print_to_string()));
    module.get_function("main").expect("main").print_to_string().to_string()
}

/// The lines are in the text, in this order.
#[track_caller]
fn in_order(text: &str, lines: &[&str]) {
    let mut rest = text;
    for line in lines {
        let at = rest.find(line).unwrap_or_else(|| panic!("no {line:?} (in this order) in\n{text}"));
        rest = &rest[at + line.len()..];
    }
}

#[track_caller]
fn lacks(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(!text.contains(part), "{part:?} in\n{text}");
    }
}

#[test]
fn figure_1_of_the_paper() {
    let text = rewritten(FIGURE_1);
    in_order(
        &text,
        &[
            "store ptr null, ptr %echo.merged",
            "call i32 @cudaMallocManaged(ptr %echo.merged,",
            "%echo.merged.pointer = load ptr, ptr %echo.merged",
            "store ptr %4, ptr %d",
            "store float 1.000000e+00, ptr %a",
            "@cudaLaunchKernel",
            "call i32 @cudaStreamSynchronize(ptr null)",
            "%x = load float, ptr %4",
            "call i32 @cudaFree(ptr %d4)",
        ],
    );
    lacks(&text, &["@malloc", "@cudaMalloc(", "@cudaMemcpy", "@free"]);
    // Of zero bytes cudaMallocManaged would fail where malloc and cudaMalloc do not.
    in_order(&text, &["%0 = icmp eq i64 %bytes, 0", "%1 = select i1 %0, i64 1, i64 %bytes", "i64 %1, i32 1)"]);
}

/// Host and device allocation, upload, kernel, download, a read, and the releases, each as given.
fn program(allocations: &str, uploads: &str, downloads: &str, releases: &str) -> String {
    format!(
        "declare i32 @__gxx_personality_v0(...)
         define void @k(ptr %0) {{
           ret void
         }}
         define i32 @main(i64 %n) personality ptr @__gxx_personality_v0 {{
         entry:
           %h.slot = alloca ptr
           %d.slot = alloca ptr
           %s.slot = alloca ptr
           %args = alloca [1 x ptr]
           %e0 = call i32 @cudaStreamCreateWithFlags(ptr %s.slot, i32 1)
           %s = load ptr, ptr %s.slot
           {allocations}
           call void @llvm.memset.p0.i64(ptr %h, i8 1, i64 64, i1 false)
           {uploads}
           store ptr %d.slot, ptr %args
           %l = call i32 @cudaLaunchKernel(ptr @k, i64 1, i32 1, i64 1, i32 1, ptr %args, i64 0, ptr null)
           {downloads}
           %x = load i32, ptr %h
           {releases}
           ret i32 %x
         }}
         {}",
        registration("k", "k")
    )
}

const ADAPTIVE: Target = Target::Adaptive { threshold: 4096 };
const MALLOC: &str =
    "%h = call ptr @malloc(i64 64)\n%e1 = call i32 @cudaMalloc(ptr %d.slot, i64 64)\n%d = load ptr, ptr %d.slot";
const UP: &str = "%e2 = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 64, i32 1)";
const DOWN: &str = "%e3 = call i32 @cudaMemcpy(ptr %h, ptr %d, i64 64, i32 2)";
const FREE: &str = "call void @free(ptr %h)\n%e4 = call i32 @cudaFree(ptr %d)";

#[test]
fn the_device_allocation_may_come_first() {
    let first =
        "%e1 = call i32 @cudaMalloc(ptr %d.slot, i64 64)\n%d = load ptr, ptr %d.slot\n%h = call ptr @malloc(i64 64)";
    let text = rewritten(&program(first, UP, DOWN, FREE));
    in_order(
        &text,
        &[
            "%0 = call i32 @cudaMallocManaged(ptr %d.slot, i64 64, i32 1)",
            "icmp eq i32 %0, 0",
            "%echo.merged.pointer = load ptr, ptr %d.slot",
            "select i1 %1, ptr %echo.merged.pointer, ptr null",
            "%d = load ptr, ptr %d.slot",
            "@llvm.memset.p0.i64(ptr %2, i8 1",
        ],
    );
    lacks(&text, &["@malloc(", "@cudaMalloc("]);
}

#[test]
fn calloc_keeps_its_zeroes_first_or_second() {
    for (allocations, second) in [
        (
            "%h = call ptr @calloc(i64 16, i64 4)\n%e1 = call i32 @cudaMalloc(ptr %d.slot, i64 64)\n%d = load ptr, ptr %d.slot",
            false,
        ),
        (
            "%e1 = call i32 @cudaMalloc(ptr %d.slot, i64 64)\n%d = load ptr, ptr %d.slot\n%h = call ptr @calloc(i64 16, i64 4)",
            true,
        ),
    ] {
        let text = rewritten(&program(allocations, UP, DOWN, FREE));
        in_order(&text, &["@cudaMallocManaged", "@llvm.memset.p0.i64(ptr align 1", "i8 0, i64", "i8 1, i64 64"]);
        lacks(&text, &["@calloc"]);
        assert_eq!(text.contains("store ptr null, ptr %echo.merged"), !second, "{text}");
        // A product that wraps must not become a small allocation.
        assert!(text.contains("@llvm.umul.with.overflow.i64(i64 16, i64 4)"), "{text}");
    }
}

#[test]
fn other_allocators_report_in_their_own_way() {
    let aligned = "%e9 = call i32 @posix_memalign(ptr %h.slot, i64 64, i64 64)\n%h = load ptr, ptr %h.slot
        %failed = icmp ne i32 %e9, 0
        %e1 = call i32 @cudaMalloc(ptr %d.slot, i64 64)\n%d = load ptr, ptr %d.slot";
    let text = rewritten(&program(aligned, UP, DOWN, FREE));
    in_order(&text, &["@cudaMallocManaged(ptr %h.slot", "select i1 %1, i32 0, i32 12"]);
    let pinned = "%e9 = call i32 @cudaMallocHost(ptr %h.slot, i64 64)\n%h = load ptr, ptr %h.slot
        %e1 = call i32 @cudaMalloc(ptr %d.slot, i64 64)\n%d = load ptr, ptr %d.slot";
    let released = "%e8 = call i32 @cudaFreeHost(ptr %h)\n%bad = icmp ne i32 %e8, 0\n%e4 = call i32 @cudaFree(ptr %d)";
    let text = rewritten(&program(pinned, UP, DOWN, released));
    in_order(
        &text,
        &["@cudaMallocManaged(ptr %h.slot", "store ptr %2, ptr %d.slot", "%bad = icmp ne i32 0, 0", "@cudaFree("],
    );
    lacks(&text, &["@cudaMallocHost", "@cudaFreeHost"]);
}

#[test]
fn invokes_become_calls() {
    let allocations = "%h = invoke ptr @_Znwm(i64 64) to label %made unwind label %pad
       pad:
         %caught = landingpad {ptr, i32} cleanup
         resume {ptr, i32} %caught
       made:
         %e1 = invoke i32 @cudaMalloc(ptr %d.slot, i64 64) to label %both unwind label %pad2
       pad2:
         %caught2 = landingpad {ptr, i32} cleanup
         call void @_ZdlPv(ptr %h)
         resume {ptr, i32} %caught2
       both:
         %d = load ptr, ptr %d.slot";
    let upload = "%e2 = invoke i32 @cudaMemcpy(ptr %d, ptr %h, i64 64, i32 1) to label %up unwind label %pad2\nup:";
    let released = "call void @_ZdlPv(ptr %h)\n%e4 = call i32 @cudaFree(ptr %d)";
    let text = rewritten(&program(allocations, upload, DOWN, released));
    in_order(
        &text,
        &["call i32 @cudaMallocManaged", "br label %made", "br label %both", "br label %up", "@cudaStreamSynchronize"],
    );
    lacks(&text, &["invoke", "@cudaMemcpy", "@_Znwm"]);
}

#[test]
fn the_result_of_a_removed_copy_is_what_stays() {
    let checked = "%e3 = call i32 @cudaMemcpy(ptr %h, ptr %d, i64 64, i32 2)\n%bad = icmp ne i32 %e3, 0";
    let uploaded = "%e2 = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 64, i32 1)\n%worse = icmp ne i32 %e2, 0";
    let text = rewritten(&program(MALLOC, uploaded, checked, FREE));
    in_order(
        &text,
        &["%worse = icmp ne i32 0, 0", "= call i32 @cudaStreamSynchronize(ptr null)", "%bad = icmp ne i32 %"],
    );
}

#[test]
fn a_wait_names_the_stream_as_the_copy_did() {
    let down = "%e3 = call i32 @cudaMemcpy_ptds(ptr %h, ptr %d, i64 64, i32 2)";
    let legacy = program(MALLOC, UP, down, FREE);
    let per_thread = legacy.replace("i64 0, ptr null)", "i64 0, ptr inttoptr (i64 2 to ptr))");
    in_order(
        &rewritten(&per_thread),
        &["@cudaLaunchKernel", "call i32 @cudaStreamSynchronize_ptsz(ptr null)", "%x = load"],
    );
    // The kernel ran on another stream, which held the copy back: only a wait for the device is as strong.
    in_order(&rewritten(&legacy), &["@cudaLaunchKernel", "call i32 @cudaDeviceSynchronize()", "%x = load"]);
}

#[test]
fn a_copy_that_no_one_waits_for_leaves_nothing() {
    let up = "%e2 = call i32 @cudaMemcpyAsync(ptr %d, ptr %h, i64 64, i32 1, ptr null)";
    let text = rewritten(&program(MALLOC, up, DOWN, FREE));
    lacks(&text, &["@cudaMemcpyAsync"]);
    assert_eq!(text.matches("Synchronize").count(), 1, "{text}");
}

#[test]
fn the_later_free_releases_and_is_always_cudafree() {
    let text = rewritten(&program(MALLOC, UP, DOWN, "%e4 = call i32 @cudaFree(ptr %d)\ncall void @free(ptr %h)"));
    assert_eq!(text.matches("@cudaFree(").count(), 1, "{text}");
    lacks(&text, &["@free("]);
    in_order(&text, &["%x = load i32", "call i32 @cudaFree(ptr %"]);
}

#[test]
fn a_buffer_that_is_released_while_work_may_run_is_waited_for() {
    // free(h) is where p ends, and nothing waited for the second kernel but the cudaFree that goes.
    let again = "%l2 = call i32 @cudaLaunchKernel(ptr @k, i64 1, i32 1, i64 1, i32 1, ptr %args, i64 0, ptr null)";
    let text = rewritten(&program(
        MALLOC,
        UP,
        DOWN,
        &format!("{again}\n%e4 = call i32 @cudaFree(ptr %d)\ncall void @free(ptr %h)"),
    ));
    in_order(&text, &["%l2 = call", "@cudaDeviceSynchronize()", "@cudaFree("]);
}

#[test]
fn a_copy_that_stays_is_followed_by_a_wait() {
    let result = "%g = alloca [64 x i8]\n%e9 = call i32 @cudaMemcpy(ptr %g, ptr %d, i64 64, i32 2)";
    let text = rewritten(&program(MALLOC, UP, &format!("{result}\n{DOWN}"), FREE));
    in_order(
        &text,
        &["@cudaLaunchKernel", "@cudaMemcpy(ptr %g", "call i32 @cudaStreamSynchronize(ptr null)", "%x = load i32"],
    );
}

#[test]
fn two_pairs_are_merged_in_one_go() {
    let second = "%g = call ptr @malloc(i64 128)
        %f.slot = alloca ptr
        %e11 = call i32 @cudaMalloc(ptr %f.slot, i64 128)
        %f = load ptr, ptr %f.slot
        call void @llvm.memset.p0.i64(ptr %g, i8 2, i64 128, i1 false)
        %e12 = call i32 @cudaMemcpy(ptr %f, ptr %g, i64 128, i32 1)";
    let text = rewritten(&program(
        &format!("{MALLOC}\n{second}"),
        UP,
        DOWN,
        &format!("{FREE}\ncall void @free(ptr %g)\n%e13 = call i32 @cudaFree(ptr %f)"),
    ));
    assert_eq!(text.matches("@cudaMallocManaged").count(), 2, "{text}");
    assert_eq!(text.matches("@cudaFree(").count(), 2, "{text}");
    lacks(&text, &["@malloc", "@free(", "@cudaMemcpy("]);
}

#[test]
fn calls_forget_that_a_restrict_pointer_was_apart_from_them() {
    let up = format!(
        "store float 1.0, ptr %h, !alias.scope !2, !noalias !2\n%s0 = call i32 @cudaGetLastError(), !noalias !2\n{UP}"
    );
    let ir = program(MALLOC, &up, DOWN, FREE);
    let text = rewritten(&format!("{ir}\n!0 = distinct !{{!0}}\n!1 = distinct !{{!1, !0}}\n!2 = !{{!1}}"));
    let call = text.lines().find(|line| line.contains("@cudaGetLastError")).expect("the call");
    lacks(call, &["noalias"]);
    let store = text.lines().find(|line| line.contains("store float")).expect("the store");
    assert!(store.contains("!alias.scope") && store.contains("!noalias"), "host code keeps what it knows: {store}");
}

#[test]
fn the_runtime_decides_and_each_call_keeps_its_own_way() {
    let text = rewritten_for(ADAPTIVE, &program(MALLOC, UP, DOWN, FREE));
    in_order(
        &text,
        &[
            "%echo.pair = alloca ptr",
            "store ptr null, ptr %echo.pair",
            "call ptr @echo_rt_create(i64 64, i64 4096, i32 1, ptr @echo.site)",
            "echo.merged",
            "@malloc(i64 64)",
            "phi ptr",
            "store ptr %echo.merged.pointer, ptr %d.slot",
            "call i32 @cudaMalloc(ptr %d.slot, i64 64)",
            "phi i32 [ %e1,",
            "call i32 @cudaMemcpy(ptr %d, ptr %2, i64 64, i32 1)",
            "phi i32 [ %e2, ",
            "@cudaLaunchKernel",
            "call i32 @cudaStreamSynchronize(ptr null)",
            "call i32 @cudaMemcpy(ptr %2, ptr %d, i64 64, i32 2)",
            "call void @free(",
            "call i32 @echo_rt_release(ptr %d)",
            "call i32 @cudaFree(ptr %d)",
        ],
    );
    lacks(&text, &["cudaMallocManaged"]);
}

#[test]
fn the_runtime_may_decide_at_an_invoke() {
    let allocations = "%h = invoke ptr @_Znwm(i64 64) to label %made unwind label %pad
       pad:
         %caught = landingpad {ptr, i32} cleanup
         resume {ptr, i32} %caught
       made:
         %e1 = invoke i32 @cudaMalloc(ptr %d.slot, i64 64) to label %both unwind label %pad2
       pad2:
         %caught2 = landingpad {ptr, i32} cleanup
         call void @_ZdlPv(ptr %h)
         resume {ptr, i32} %caught2
       both:
         %d = load ptr, ptr %d.slot";
    let upload = "%e2 = invoke i32 @cudaMemcpy(ptr %d, ptr %h, i64 64, i32 1) to label %up unwind label %pad2\nup:";
    let released = "call void @_ZdlPv(ptr %h)\n%e4 = call i32 @cudaFree(ptr %d)";
    let text = rewritten_for(ADAPTIVE, &program(allocations, upload, DOWN, released));
    in_order(
        &text,
        &["invoke ptr @_Znwm(i64 64)", "to label %echo.join", "invoke i32 @cudaMalloc", "invoke i32 @cudaMemcpy"],
    );
}

#[test]
fn calloc_clears_p_only_where_there_is_one() {
    let calloc = MALLOC.replace("@malloc(i64 64)", "@calloc(i64 16, i64 4)");
    let text = rewritten_for(ADAPTIVE, &program(&calloc, UP, DOWN, FREE));
    in_order(&text, &["@echo_rt_create", "echo.merged", "@llvm.memset.p0.i64(ptr align 1", "@calloc(i64 16, i64 4)"]);
}

#[test]
fn a_copy_to_a_third_buffer_goes_by_the_addresses() {
    let other = "%f.slot = alloca ptr
        %e11 = call i32 @cudaMalloc(ptr %f.slot, i64 64)
        %f = load ptr, ptr %f.slot";
    let down = format!("{DOWN}\n%e12 = call i32 @cudaMemcpy(ptr %f, ptr %d, i64 64, i32 3)");
    let ir = program(&format!("{MALLOC}\n{other}"), UP, &down, FREE);
    in_order(&rewritten_for(ADAPTIVE, &ir), &["@cudaMemcpy(ptr %f, ptr %d, i64 64, i32 4)"]);
    in_order(&rewritten(&ir), &["@cudaMemcpy(ptr %f, ptr %d, i64 64, i32 3)"]);
}

#[test]
fn the_runtime_is_told_whether_the_host_may_touch_p_beside_work() {
    let create =
        |exclusive: u32| format!("call ptr @echo_rt_create(i64 64, i64 4096, i32 {exclusive}, ptr @echo.site)");
    in_order(&rewritten_for(ADAPTIVE, &program(MALLOC, UP, DOWN, FREE)), &[&create(1)]);
    // Work on another buffer runs while the host fills h.
    let other = "%f.slot = alloca ptr
        %e11 = call i32 @cudaMalloc(ptr %f.slot, i64 64)
        %f = load ptr, ptr %f.slot
        %e12 = call i32 @cudaMemsetAsync(ptr %f, i32 0, i64 64, ptr %s)";
    in_order(&rewritten_for(ADAPTIVE, &program(&format!("{MALLOC}\n{other}"), UP, DOWN, FREE)), &[&create(0)]);
}

#[test]
fn a_wait_that_repairs_stands_on_every_way_behind_a_call() {
    // Each round, a loop fills h while the kernel of the round before may still run, on another buffer.
    let (up, down) = (
        "br label %round
         round:
           br label %fill
         fill:
           store i32 7, ptr %h
           br i1 %more, label %fill, label %filled
         filled:
           %e2 = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 64, i32 1)",
        "br label %on
         pad:
           %caught = landingpad {ptr, i32} cleanup
           br label %on
         on:
           br i1 %more, label %round, label %out
         out:",
    );
    let other = "%f.slot = alloca ptr\n%e11 = call i32 @cudaMalloc(ptr %f.slot, i64 64)\n%more = icmp eq i64 %n, 3";
    let ir = program(&format!("{MALLOC}\n{other}"), up, down, FREE).replace(
        "ptr %args, i64 0, ptr null)",
        "ptr %args, i64 0, ptr null) to label %launched unwind label %pad\nlaunched:",
    );
    let ir = ir.replace("%l = call i32 @cudaLaunchKernel", "%l = invoke i32 @cudaLaunchKernel");
    let ir = ir.replace("store ptr %d.slot, ptr %args", "store ptr %f.slot, ptr %args");
    let options = Options { theta_min: 0, repair: true, ..Options::default() };
    let text = rewritten_with(Target::Managed, &options, &ir);
    in_order(
        &text,
        &["launched:", "call i32 @cudaDeviceSynchronize()", "landingpad", "call i32 @cudaDeviceSynchronize()"],
    );
}

/// Malloc, then what `makes` %d, work with both, and `frees`.
fn on_some_paths(allocator: &str, makes: &str, work: &str, frees: &str) -> String {
    format!(
        "define void @k(ptr %0) {{
           ret void
         }}
         define i32 @main(i64 %n, i1 %c) {{
         entry:
           %slot = alloca ptr
           %args = alloca [1 x ptr]
           %h = call {allocator}
           store i32 7, ptr %h
           {makes}
           %e = call i32 @cudaMalloc(ptr %slot, i64 %n)
           %bad = icmp ne i32 %e, 0
           %d = load ptr, ptr %slot
           %e2 = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 %n, i32 1)
           store ptr %slot, ptr %args
           %l = call i32 @cudaLaunchKernel(ptr @k, i64 1, i32 1, i64 1, i32 1, ptr %args, i64 0, ptr null)
           %e3 = call i32 @cudaMemcpy(ptr %h, ptr %d, i64 %n, i32 2)
           {work}
           {frees}
           ret i32 0
         }}
         {}",
        registration("k", "k")
    )
}

#[test]
fn p_counts_its_names_where_the_path_decides() {
    let text = rewritten(&on_some_paths(
        "ptr @malloc(i64 %n)",
        "",
        "br i1 %c, label %early, label %late\nearly:\n%f = call i32 @cudaFree(ptr %d)\nbr label %late\nlate:",
        "call void @free(ptr %h)",
    ));
    in_order(
        &text,
        &[
            "%echo.names = alloca i64",
            "store i64 0, ptr %echo.names",
            // One name at the malloc, one more at the cudaMalloc.
            "store i64 1, ptr %echo.names",
            "@cudaMallocManaged",
            "load i64, ptr %echo.names",
            "add i64 %",
            "store i64 %",
            "early:",
            "load i64, ptr %echo.names",
            "= add i64 %",
            // Null is no name.
            "= select i1 %",
            "store i64 %",
            "= select i1 %",
            "call i32 @cudaFree(ptr %",
            "late:",
            "load i64, ptr %echo.names",
            "call i32 @cudaFree(ptr %",
        ],
    );
    lacks(&text, &["@malloc(", "@free(", "%echo.host"]);
}

#[test]
fn a_host_buffer_that_may_be_alone_keeps_its_own_allocation() {
    let frees = "%f = call i32 @cudaFree(ptr %d)\nbr label %end\nend:";
    let program = |allocator: &str, free: &str| {
        on_some_paths(allocator, "br i1 %c, label %gpu, label %end\ngpu:", "", &format!("{frees}\n{free}"))
    };
    let text =
        rewritten(&program("dereferenceable_or_null(64) ptr @malloc(i64 %n)", "call void @free(ptr nonnull %h)"));
    in_order(
        &text,
        &[
            "%2 = call i32 @cudaMallocManaged(ptr %echo.merged,",
            "%3 = icmp eq i32 %2, 0",
            // One byte where p was made; what was known of the size no longer holds.
            "select i1 %3, i64 1, i64 %n",
            "= call ptr @malloc(i64 %",
            "store ptr %6, ptr %echo.host",
            "%7 = select i1 %3, ptr %4, ptr %6",
            "store i32 7, ptr %7",
            // Where p was not made, the device's allocation fails.
            "%bad = icmp ne i32 %2, 0",
            "end:",
            "%echo.host.pointer = load ptr, ptr %echo.host",
            "icmp eq ptr %7, %echo.host.pointer",
            "call void @free(ptr %",
            "call i32 @cudaFree(ptr %",
        ],
    );
    lacks(&text, &["dereferenceable", "nonnull"]);
    assert_eq!(text.matches("@cudaFree(").count(), 1, "{text}");

    let text = rewritten(&program("ptr @calloc(i64 %n, i64 1)", "call void @free(ptr %h)"));
    in_order(&text, &["@cudaMallocManaged", "@llvm.memset.p0.i64(ptr", "select i1", "i64 1, i64 %n", "@calloc(i64 %"]);

    let text = rewritten(&program("ptr @_Znwm(i64 %n)", "call void @_ZdlPvm(ptr %h, i64 %n)"));
    in_order(&text, &["@_Znwm(i64 %", "select i1 %", "i64 %n, i64 1", "call void @_ZdlPvm(ptr %", "@cudaFree("]);
}
