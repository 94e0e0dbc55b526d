//! What calls become.

use super::{describe, lower, lower_with, text};
use crate::effects::EffectTable;

#[track_caller]
fn body(statements: &str) -> String {
    text(&function(statements))
}

/// `%h` pageable, `%p` page-locked, `%d` device, 64 bytes each; `%s` a blocking stream, `%v` an event.
fn function(statements: &str) -> String {
    format!(
        "define i32 @main(i64 %n, ptr %foreign, i32 %any) {{
         entry:
           %d.slot = alloca ptr
           %p.slot = alloca ptr
           %s.slot = alloca ptr
           %v.slot = alloca ptr
           %h = call ptr @malloc(i64 64)
           %e1 = call i32 @cudaMallocHost(ptr %p.slot, i64 64)
           %e2 = call i32 @cudaMalloc(ptr %d.slot, i64 64)
           %e3 = call i32 @cudaStreamCreate(ptr %s.slot)
           %e4 = call i32 @cudaEventCreate(ptr %v.slot)
           %p = load ptr, ptr %p.slot
           %d = load ptr, ptr %d.slot
           %s = load ptr, ptr %s.slot
           %v = load ptr, ptr %v.slot
           {statements}
           ret i32 0
         }}"
    )
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.lines().any(|candidate| candidate.contains(line)), "no {line:?} in\n{text}");
}

#[track_caller]
fn lacks(text: &str, line: &str) {
    assert!(!text.contains(line), "{line:?} in\n{text}");
}

#[test]
fn synchronous_copies_wait_as_the_reference_says() {
    let text = body(
        "%c1 = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 64, i32 1)
         %c2 = call i32 @cudaMemcpy(ptr %d, ptr %p, i64 64, i32 1)
         %c3 = call i32 @cudaMemcpy(ptr %d, ptr %foreign, i64 64, i32 1)
         %c4 = call i32 @cudaMemcpy(ptr %h, ptr %d, i64 32, i32 2)
         %c5 = call i32 @cudaMemcpy(ptr %d, ptr %d, i64 32, i32 3)",
    );
    has(&text, "copy 2 whole <- 0 whole on LegacyDefault#0 before=1 after=0 consumed=1");
    has(&text, "copy 2 whole <- 1 whole on LegacyDefault#0 before=1 after=1 consumed=1");
    has(&text, "copy 2 whole <- elsewhere on LegacyDefault#0 before=1 after=0 consumed=1");
    has(&text, "copy 0 [0+32] <- 2 [0+32] on LegacyDefault#0 before=1 after=1");
    has(&text, "copy 2 [0+32] <- 2 [0+32] on LegacyDefault#0 before=0 after=0");
    lacks(&text, "blemish");
}

#[test]
fn asynchronous_copies_promise_no_wait() {
    let text = body(
        "%c1 = call i32 @cudaMemcpyAsync(ptr %d, ptr %h, i64 64, i32 1, ptr %s)
         %c2 = call i32 @cudaMemcpyAsync(ptr %p, ptr %d, i64 64, i32 2, ptr null)",
    );
    has(&text, "copy 2 whole <- 0 whole on Blocking#0 before=0 after=0 consumed=0");
    has(&text, "copy 1 whole <- 2 whole on LegacyDefault#1 before=0 after=0 consumed=0");
}

#[test]
fn the_direction_of_a_copy_must_be_certain() {
    has(&body("%c = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 64, i32 4)"), "before=1 after=0 consumed=1");
    lacks(&body("%c = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 64, i32 4)"), "blemish");
    has(&body("%c = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 64, i32 %any)"), "CopyDirection [2, 0]");
    has(&body("%c = call i32 @cudaMemcpy(ptr %d, ptr %foreign, i64 64, i32 4)"), "CopyDirection [2]");
    // A direction that contradicts what is known of the pointers.
    has(&body("%c = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 64, i32 2)"), "CopyDirection [2, 0]");
}

#[test]
fn per_thread_variants_run_on_the_per_thread_stream() {
    has(&body("%c = call i32 @cudaMemcpy_ptds(ptr %d, ptr %h, i64 64, i32 1)"), "on PerThreadDefault#0");
}

#[test]
fn waits_events_and_streams() {
    let text = body(
        "%c1 = call i32 @cudaEventRecord(ptr %v, ptr %s)
         %c2 = call i32 @cudaStreamWaitEvent(ptr null, ptr %v, i32 0)
         %c3 = call i32 @cudaEventSynchronize(ptr %v)
         %c4 = call i32 @cudaStreamSynchronize(ptr %s)
         %c5 = call i32 @cudaDeviceSynchronize()
         %c6 = call i32 @cudaStreamSynchronize(ptr %foreign)",
    );
    has(&text, "record event#0 unique=true on Blocking#0");
    has(&text, "LegacyDefault#1 waits for event#0 unique=true");
    has(&text, "wait event#0 unique=true");
    has(&text, "wait Blocking#0");
    has(&text, "wait device");
    has(&text, "wait Unknown#2");
}

#[test]
fn an_event_that_others_may_record_is_not_unique() {
    let text = body("call void @use(ptr %v)\n%c3 = call i32 @cudaEventSynchronize(ptr %v)");
    has(&text, "wait event#0 unique=false");
}

#[test]
fn a_stream_that_is_created_in_a_loop_is_unknown() {
    let text = text(
        "define i32 @main(i1 %c) {
         entry:
           %s.slot = alloca ptr
           br label %loop
         loop:
           %e = call i32 @cudaStreamCreate(ptr %s.slot)
           %s = load ptr, ptr %s.slot
           %w = call i32 @cudaStreamSynchronize(ptr %s)
           br i1 %c, label %loop, label %out
         out:
           ret i32 0
         }",
    );
    has(&text, "wait Unknown#0");
}

#[test]
fn memory_is_set_in_stream_order() {
    let text = body(
        "%c1 = call i32 @cudaMemset(ptr %d, i32 0, i64 64)
         %c2 = call i32 @cudaMemsetAsync(ptr %d, i32 0, i64 8, ptr %s)",
    );
    has(&text, "enqueue LegacyDefault#0 Memset cudaMemset write 2 whole");
    has(&text, "enqueue Blocking#1 Memset cudaMemsetAsync write 2 [0+8]");
}

#[test]
fn frees_wait_as_the_reference_says() {
    let text = body(
        "%c1 = call i32 @cudaFree(ptr %d)
         %c2 = call i32 @cudaFreeHost(ptr %p)
         call void @free(ptr %h)
         %c3 = call i32 @cudaFree(ptr null)",
    );
    has(&text, "free 2 waits device");
    has(&text, "free 1");
    lacks(&text, "free 1 waits");
    has(&text, "free 0");
    lacks(&text, "use of");
}

#[test]
fn stream_ordered_allocations_end_in_stream_order() {
    let text = text(
        "define i32 @main() {
           %d.slot = alloca ptr
           %e1 = call i32 @cudaMallocAsync(ptr %d.slot, i64 64, ptr null)
           %d = load ptr, ptr %d.slot
           %e2 = call i32 @cudaFreeAsync(ptr %d, ptr null)
           ret i32 0
         }",
    );
    has(&text, "object Device CudaMallocAsync 64");
    has(&text, "free 0 on LegacyDefault#0");
}

#[test]
fn all_host_allocators_make_objects() {
    let text = text(
        "define i32 @main(i64 %n) {
           %slot = alloca ptr
           %slot2 = alloca ptr
           %a = call ptr @calloc(i64 16, i64 4)
           %b = call ptr @_Znwm(i64 64)
           %c = call ptr @aligned_alloc(i64 4096, i64 64)
           %e = call i32 @posix_memalign(ptr %slot, i64 64, i64 128)
           %f = call i32 @cudaHostAlloc(ptr %slot2, i64 32, i32 0)
           ret i32 0
         }",
    );
    for object in [
        "object Host Calloc 64",
        "object Host OperatorNew 64",
        "object Host AlignedAlloc 64",
        "object Host AlignedAlloc 128",
        "object Host PinnedHost 32",
    ] {
        has(&text, object);
    }
    lacks(&text, "use of");
}

#[test]
fn what_breaks_the_proof_is_a_blemish_of_every_buffer() {
    has(&body("%c = call i32 @cudaFrobnicate(ptr %foreign)"), "UnmodelledCudaCall(\"cudaFrobnicate\") []");
    has(&body("%c = call i32 @cudaFrobnicate(ptr %d)"), "PassedTo(\"cudaFrobnicate\")");
    has(&body("%c = call i32 @cudaDeviceReset()"), "DeviceReset []");
    has(&body("%c = call i32 @cudaStreamBeginCapture(ptr %s, i32 0)"), "StreamCapture []");
    has(&body("%c = call i32 @_setjmp(ptr %foreign)"), "NonLocalJump []");
    has(&body("%c = call i32 @fork()"), "Fork []");
}

#[test]
fn a_capture_anywhere_in_the_module_concerns_every_function() {
    let ir = format!(
        "define void @capture(ptr %s) {{\n%c = call i32 @cudaStreamBeginCapture(ptr %s, i32 0)\nret void\n}}\n{}",
        function("")
    );
    has(&text(&ir), "StreamCapture []");
}

#[test]
fn library_calls_access_what_their_models_say() {
    let text = body(
        "%c1 = call i64 @fwrite(ptr %h, i64 4, i64 8, ptr %foreign)
         %c2 = call i64 @fread(ptr %h, i64 4, i64 16, ptr %foreign)
         %c3 = call ptr @memcpy(ptr %h, ptr %p, i64 64)",
    );
    has(&text, "host read? 0 [0+32]");
    has(&text, "host write? 0 whole");
    has(&text, "host read 1 whole write 0 whole");
    lacks(&text, "use of");
}

#[test]
fn unknown_functions_may_start_work_and_known_ones_may_not() {
    has(&body("call void @other()"), "opaque other launches=true");
    lacks(&body("%c = call i64 @fwrite(ptr %foreign, i64 1, i64 1, ptr %foreign)"), "opaque");
}

#[test]
fn functions_of_the_module_do_what_their_attributes_and_bodies_say() {
    const CALLEES: &str = "
        define internal i32 @sum(ptr readonly captures(none) %0) noinline nofree memory(argmem: read) {
          %v = load i32, ptr %0
          ret i32 %v
        }
        define internal void @release(ptr captures(none) %0) noinline {
          call void @free(ptr %0)
          ret void
        }
        define internal void @keep(ptr %0) noinline nofree {
          store ptr %0, ptr @kept
          ret void
        }
        define internal void @work() noinline {
          call void @deeper()
          ret void
        }
        define internal void @deeper() noinline {
          %e = call i32 @cudaMemset(ptr null, i32 0, i64 0)
          ret void
        }
        define internal i32 @launch_and_sum(ptr readonly captures(none) %0) noinline nofree {
          %e = call i32 @cudaMemset(ptr null, i32 0, i64 0)
          %v = load i32, ptr %0
          ret i32 %v
        }
        define internal void @unknown() noinline {
          call void @work()
          call void @other()
          ret void
        }
        define internal void @reset() noinline {
          %e = call i32 @cudaDeviceReset()
          ret void
        }
        @kept = global ptr null";
    let with = |call: &str| text(&format!("{CALLEES}\n{}", function(call)));
    let sum = with("%x = call i32 @sum(ptr %h)");
    has(&sum, "host read? 0 [?]");
    lacks(&sum, "use of");
    lacks(&sum, "opaque");
    // captures(none) does not say that the callee does not free.
    has(&with("call void @release(ptr %h)"), "PassedTo(\"release\")");
    has(&with("call void @keep(ptr %h)"), "PassedTo(\"keep\")");
    let work = with("call void @work()");
    has(&work, "enqueue Unknown#0 Library work touches-captured");
    lacks(&work, "opaque");
    has(&with("call void @unknown()"), "opaque unknown launches=true");
    // Its work may be running when it reads, and behind it.
    let both = with("%x = call i32 @launch_and_sum(ptr %h)");
    assert_eq!(both.matches("Library launch_and_sum").count(), 2, "{both}");
    let (before, behind) = (both.find("Library launch_and_sum"), both.rfind("Library launch_and_sum"));
    let read = both.find("host read? 0 [?]");
    assert!(before < read && read < behind, "{both}");
    has(&with("call void @reset()"), "DeviceReset []");
}

#[test]
fn a_device_is_the_only_one_if_nothing_that_concerns_it_comes_before_its_choice() {
    let chosen = |before: &str, after: &str| {
        let ir = format!(
            "define internal void @choose(i32 %any) noinline {{\n %s = call i32 @cudaSetDevice(i32 %any)\n ret void\n }}
             define i32 @main(i32 %any, ptr %foreign, i1 %c) {{
             entry:
               %d.slot = alloca ptr
               %s.slot = alloca ptr
               %other = call ptr @malloc(i64 64)
               {before}
               br label %next
             next:
               %e = call i32 @cudaSetDevice(i32 %any)
               %h = call ptr @malloc(i64 64)
               %e1 = call i32 @cudaMalloc(ptr %d.slot, i64 64)
               %d = load ptr, ptr %d.slot
               %e2 = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 64, i32 1)
               {after}
               ret i32 0
             }}"
        );
        lower(&ir, |lowered| lowered.program.module.selects_devices)
    };
    assert!(!chosen("", ""), "whatever the choice");
    assert!(!chosen("%f = call i32 @cudaGetLastError()\ncall void @free(ptr %other)", ""), "no buffer of a copy");
    assert!(!chosen("%f = call i32 @cudaSetDevice(i32 1)", ""), "chosen twice, and nothing between");
    for before in [
        "%x.slot = alloca ptr\n%f = call i32 @cudaMalloc(ptr %x.slot, i64 64)",
        "%f = call i32 @cudaStreamCreate(ptr %s.slot)",
        "%f = call i32 @cudaEventCreate(ptr %s.slot)",
        "%f = call i32 @cudaDeviceSynchronize()",
        "call void @other()",
        "%f = call i32 @cudaMemcpy(ptr %foreign, ptr %other, i64 64, i32 1)",
    ] {
        assert!(chosen(before, ""), "{before}");
    }
    assert!(chosen("", "%f = call i32 @cudaSetDevice(i32 %any)"), "another choice behind");
    assert!(chosen("", "call void @choose(i32 %any)"), "another choice in a callee");
    assert!(chosen("", "br i1 %c, label %next, label %out\nout:"), "another choice in the next round");
}

#[test]
fn work_from_outside_may_be_on_another_device_where_one_is_chosen() {
    let of =
        |function: &str, ir: &str| lower_with(ir, EffectTable::default(), function, |lowered| lowered.program.module);
    let ir = "define i32 @main(i32 %any) {\n %e = call i32 @cudaSetDevice(i32 %any)\n ret i32 0\n }
              define void @part() {\n ret void\n }";
    assert!(!of("main", ir).other_devices, "nothing runs when main is entered");
    let part = of("part", ir);
    assert!(part.other_devices && !part.selects_devices);
    assert!(!of("part", &ir.replace("%any)\n ret", "0)\n ret")).other_devices);
}

#[test]
fn facts_of_the_module() {
    let facts = |ir: &str| lower(ir, |lowered| lowered.program.module);
    let quiet = facts(&function(""));
    assert!(!quiet.starts_threads && !quiet.selects_devices && quiet.entry_quiet);
    assert!(facts(&function("call void @other()")).starts_threads);
    assert!(facts(&function("call void %foreign()")).starts_threads);
    let thread = "%t = call i32 @pthread_create(ptr %foreign, ptr null, ptr %foreign, ptr null)";
    assert!(facts(&function(thread)).starts_threads);
    assert!(
        !facts(&function("%a = call i32 @cudaSetDevice(i32 0)\n%b = call i32 @cudaSetDevice(i32 0)")).selects_devices
    );
    assert!(
        facts(&function("%a = call i32 @cudaSetDevice(i32 0)\n%b = call i32 @cudaSetDevice(i32 1)")).selects_devices
    );
    // What comes before the call is on device 0.
    assert!(facts(&function("%a = call i32 @cudaSetDevice(i32 1)")).selects_devices);
    assert!(facts(&function("%a = call i32 @cudaSetDevice(i32 %any)")).selects_devices);
}

#[test]
fn another_function_than_main_may_be_entered_with_work_in_flight_and_from_threads() {
    let ir = "define i32 @helper() {\n%h = call ptr @malloc(i64 64)\nret i32 0\n}";
    let module = lower_with(ir, EffectTable::default(), "helper", |lowered| lowered.program.module);
    assert!(!module.entry_quiet && module.starts_threads);
}

#[test]
fn work_of_constructors_is_in_flight_in_main() {
    let ir = format!(
        "@llvm.global_ctors = appending global [1 x {{i32, ptr, ptr}}] [{{i32, ptr, ptr}} {{i32 65535, ptr @constructor, ptr null}}]
         define internal void @constructor() {{
           %e = call i32 @cudaMemset(ptr null, i32 0, i64 0)
           ret void
         }}
         {}",
        function("")
    );
    assert!(!lower(&ir, |lowered| lowered.program.module.entry_quiet));
}

#[test]
fn unoptimised_functions_are_declined() {
    let ir = function("").replace("i32 %any) {", "i32 %any) noinline optnone {");
    has(&text(&ir), "NotOptimised []");
}

#[test]
fn a_call_that_may_throw_has_both_ways_and_a_cuda_call_one() {
    let text = lower_with(
        "declare i32 @__gxx_personality_v0(...)
         define i32 @main() personality ptr @__gxx_personality_v0 {
         entry:
           %d = alloca ptr
           %e = invoke i32 @cudaMalloc(ptr %d, i64 64) to label %next unwind label %pad
         next:
           invoke void @other() to label %out unwind label %pad
         out:
           ret i32 0
         pad:
           %x = landingpad {ptr, i32} cleanup
           resume {ptr, i32} %x
         }",
        EffectTable::default(),
        "main",
        |lowered| describe(&lowered.program),
    );
    has(&text, "1: alloc 0");
    lacks(&text, "1: alloc 0 ->");
    has(&text, "opaque other launches=true -> [4, 6]");
    has(&text, "exit returns=false");
}
