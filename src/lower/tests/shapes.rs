//! Whole programs: the shape of the graph.

use super::{describe, lower, lower_with, text};
use crate::analysis::program::{Allocator, ObjectId};
use crate::effects::EffectTable;

/// See the file.
pub(crate) const FIGURE_1: &str = include_str!("figure_1.ll");

#[test]
fn figure_1_of_the_paper() {
    let expected = "\
object Host Malloc dynamic
object Device CudaMalloc dynamic
0: skip
1: alloc 0
2: alloc 1 -> [3, 5]
3: skip
4: exit returns=false
5: skip
6: host write 0 [dyn+4] -> [5, 7]
7: skip
8: copy 1 whole <- 0 whole on LegacyDefault#0 before=1 after=0 consumed=1 -> [9, 17]
9: skip
10: enqueue LegacyDefault#0 Launch _Z5scalePfm read? 1 [?] write? 1 [?] captures [1] touches-captured
11: skip
12: copy 0 whole <- 1 whole on LegacyDefault#0 before=1 after=1 consumed=1
13: host read 0 [0+4]
14: free 0
15: free 1 waits device
16: exit returns=true
17: exit returns=false";
    assert_eq!(text(FIGURE_1), expected);
}

/// A host and a device allocation with the given statements in between.
fn between(statements: &str) -> String {
    text(&format!(
        "define i32 @main(i1 %c, ptr %foreign) {{
         entry:
           %d = alloca ptr
           %h = call ptr @malloc(i64 64)
           {statements}
         next:
           %e = call i32 @cudaMalloc(ptr %d, i64 64)
           br label %out
         out:
           ret i32 0
         }}"
    ))
}

#[test]
fn a_way_that_only_a_failed_allocation_takes_ends_without_return() {
    // Straight to the common end, by way of a message, and with the test the other way round.
    let straight = between("%null = icmp eq ptr %h, null\nbr i1 %null, label %out, label %next");
    assert!(straight.contains("exit returns=false"), "{straight}");
    let message = between(
        "%null = icmp ne ptr %h, null\nbr i1 %null, label %next, label %report
         report:
           call void @free(ptr %h)
           br label %out",
    );
    assert!(message.contains("exit returns=false") && message.contains("free 0"), "{message}");
}

#[test]
fn an_allocation_that_hangs_on_the_success_of_another_comes_before_nothing() {
    // On the graph the way around the malloc ends; in the function it goes on, and %h need not exist at the third allocation.
    let ir = "define i32 @main(i64 %n) {
         entry:
           %x = alloca ptr
           %d = alloca ptr
           %e = call i32 @cudaMalloc(ptr %x, i64 %n)
           %failed = icmp ne i32 %e, 0
           br i1 %failed, label %next, label %works
         works:
           %h = call ptr @malloc(i64 %n)
           br label %next
         next:
           %p = phi ptr [ %h, %works ], [ undef, %entry ]
           %e2 = call i32 @cudaMalloc(ptr %d, i64 %n)
           %q = load ptr, ptr %d
           %e3 = call i32 @cudaMemcpy(ptr %q, ptr %p, i64 %n, i32 1)
           ret i32 0
         }";
    let unordered = lower(ir, |lowered| {
        let kind = |id: ObjectId| lowered.program.object(id).origin;
        lowered.program.unordered.iter().map(|(one, other)| [kind(*one), kind(*other)]).collect::<Vec<_>>()
    });
    let [pair] = unordered[..] else { panic!("{unordered:?}") };
    assert!(pair.contains(&Allocator::Malloc) && pair.contains(&Allocator::CudaMalloc), "{pair:?}");
}

#[test]
fn a_program_that_ends_well_has_done_its_work() {
    let ends = |end: &str| {
        let ir = format!(
            "declare void @quick_exit(i32) noreturn nounwind
             declare void @abort() noreturn nounwind
             declare void @leave() noreturn nounwind
             define internal void @give_up() noreturn {{ call void @exit(i32 1)\n unreachable }}
             define internal void @finish() noreturn {{ call void @exit(i32 0)\n unreachable }}
             define i32 @main(i32 %n, i1 %c) {{
               %d = alloca ptr
               br i1 %c, label %without, label %with
             without:
               {end}
               unreachable
             with:
               %e = call i32 @cudaMalloc(ptr %d, i64 64)
               ret i32 0
             }}"
        );
        text(&ir).contains("exit returns=false")
    };
    for well in ["@exit(i32 0)", "@exit(i32 %n)", "@quick_exit(i32 0)", "@leave()", "@finish()"] {
        assert!(!ends(&format!("call void {well}")), "{well}");
    }
    for badly in ["@exit(i32 1)", "@abort()", "@give_up()"] {
        assert!(ends(&format!("call void {badly}")), "{badly}");
    }
    assert!(ends("%x = add i32 %n, 1"), "control never comes there");
}

#[test]
fn a_throw_leaves_the_function_and_does_not_end_the_program() {
    let ir = |thrower: &str| {
        format!(
            "declare void @__cxa_throw(ptr, ptr, ptr)
             define i32 @step(i64 %n, i1 %c) {{
             entry:
               %d = alloca ptr
               %e = call i32 @cudaMalloc(ptr %d, i64 %n)
               %failed = icmp ne i32 %e, 0
               br i1 %failed, label %failure, label %next
             next:
               br i1 %c, label %throw, label %out
             throw:
               {thrower}
               unreachable
             failure:
               call void @__cxa_throw(ptr null, ptr null, ptr null)
               unreachable
             out:
               ret i32 0
             }}"
        )
    };
    let ends = |thrower: &str, count: usize| {
        lower_with(&ir(thrower), EffectTable::default(), "step", |lowered| {
            let text = describe(&lowered.program);
            assert_eq!(text.matches("exit returns=false").count(), count, "{text}");
        });
    };
    // What throws because an allocation failed never does, by the premise.
    ends("call void @__cxa_throw(ptr null, ptr null, ptr null)", 1);
    ends("call void @exit(i32 1) nounwind", 2);
}

#[test]
fn a_test_of_something_else_is_an_ordinary_branch() {
    for condition in
        ["%null = icmp eq ptr %foreign, null", "%null = icmp eq ptr %h, %foreign", "%null = icmp ugt ptr %h, null"]
    {
        let text = between(&format!("{condition}\nbr i1 %null, label %out, label %next"));
        assert!(!text.contains("returns=false"), "{text}");
    }
}

#[test]
fn an_error_code_of_an_allocation_and_a_check_of_its_variable_are_tests_of_it() {
    let code = text(
        "define i32 @main() {
           %d = alloca ptr
           %e = call i32 @cudaMalloc(ptr %d, i64 64)
           %failed = icmp ne i32 %e, 0
           br i1 %failed, label %out, label %next
         next:
           %p = load ptr, ptr %d
           %null = icmp eq ptr %p, null
           br i1 %null, label %out, label %release
         release:
           %e2 = call i32 @cudaFree(ptr %p)
           br label %out
         out:
           ret i32 0
         }",
    );
    assert_eq!(code.matches("exit returns=false").count(), 2, "{code}");
}

#[test]
fn a_variable_that_may_be_null_for_another_reason_is_an_ordinary_branch() {
    let text = text(
        "define i32 @main(i1 %c) {
           %d = alloca ptr
           store ptr null, ptr %d
           br i1 %c, label %make, label %next
         make:
           %e = call i32 @cudaMalloc(ptr %d, i64 64)
           br label %next
         next:
           %p = load ptr, ptr %d
           %null = icmp eq ptr %p, null
           br i1 %null, label %out, label %release
         release:
           %e2 = call i32 @cudaFree(ptr %p)
           br label %out
         out:
           ret i32 0
         }",
    );
    assert!(!text.contains("returns=false"), "{text}");
}

#[test]
fn the_size_of_a_new_array_is_that_of_the_case_in_which_it_fits() {
    let text = text(
        "declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)
         define i32 @main(i64 %n) {
           %both = call {i64, i1} @llvm.umul.with.overflow.i64(i64 %n, i64 4)
           %wraps = extractvalue {i64, i1} %both, 1
           %product = extractvalue {i64, i1} %both, 0
           %size = select i1 %wraps, i64 -1, i64 %product
           %h = call ptr @_Znwm(i64 %size)
           %length = shl i64 %n, 2
           call void @llvm.memset.p0.i64(ptr %h, i8 0, i64 %length, i1 false)
           ret i32 0
         }",
    );
    assert!(text.contains("host write 0 whole"), "{text}");
}

#[test]
fn a_pointer_at_the_common_cleanup_is_null_only_where_an_allocation_failed() {
    // h = d = NULL; … goto cleanup where an allocation fails; cleanup: free(h); if (d) cudaFree(d);
    let ir = "define i32 @main(i64 %n, i1 %c) {
         entry:
           %slot = alloca ptr
           store ptr null, ptr %slot
           %h = call ptr @malloc(i64 %n)
           %none = icmp eq ptr %h, null
           br i1 %none, label %cleanup, label %device
         device:
           %e = call i32 @cudaMalloc(ptr %slot, i64 %n)
           %failed = icmp ne i32 %e, 0
           br i1 %failed, label %cleanup, label %work
         work:
           br i1 %c, label %cleanup, label %more
         more:
           br label %cleanup
         cleanup:
           %p = phi ptr [ null, %entry ], [ %h, %device ], [ %h, %work ], [ %h, %more ]
           call void @free(ptr %p)
           %d = load ptr, ptr %slot
           %is = icmp ne ptr %d, null
           br i1 %is, label %release, label %end
         release:
           %f = call i32 @cudaFree(ptr %d)
           br label %end
         end:
           ret i32 0
         }";
    let found = text(ir);
    assert!(found.contains("free 0") && found.contains("free 1 waits"), "{found}");
    assert!(!found.contains("blemish") && !found.contains("use of"), "{found}");
    // Where the device allocation itself hangs on a condition, d may be null at the cleanup although nothing failed.
    let found =
        text(&ir.replace("br i1 %none, label %cleanup, label %device", "br i1 %c, label %cleanup, label %device"));
    assert!(found.contains("free? 0") && found.contains("free? 1 waits"), "{found}");
}
