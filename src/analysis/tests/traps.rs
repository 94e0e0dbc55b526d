//! Programs that look like others and are not: one test a trap.

use super::super::program::{Allocator, Copy, Event, Space, Stream, WaitScope};
use super::super::testing::{Build, LEGACY, SIZE, codes, concurrent, overwrites, plain, reads, writes};
use super::super::verdict::{Decision, FreeAction, MergePlan, SyncAction, Verdict};
use super::super::{Options, Target, program};

const NONE: [&str; 0] = [];

fn plan(verdict: &Verdict) -> &MergePlan {
    match &verdict.decision {
        Decision::Accept(plan) => plan,
        Decision::Decline(reasons) => panic!("declined: {reasons:?}"),
    }
}

/// A device buffer that is no candidate.
fn other(b: &mut Build) -> program::ObjectId {
    b.buffer("other", Space::Device, Allocator::Foreign, Some(SIZE.into()))
}

// Values.

#[test]
fn a_time_loop_in_place_is_accepted_and_waits_once_a_round() {
    let mut b = Build::main();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    let mut down = None;
    b.repeat(|b| {
        b.host(&[writes(h)]);
        b.upload(d, h);
        b.launch("kernel", &[reads(d), writes(d)]);
        down = Some(b.download(h, d));
        b.host(&[reads(h)]);
    });
    b.free(h);
    b.cuda_free(d);
    let plan = b.plan();
    let kept: Vec<_> = plan.copies().iter().filter(|(_, action)| *action != SyncAction::Nothing).collect();
    assert_eq!(kept, [&(down.expect("in the loop"), SyncAction::Wait(WaitScope::Stream(LEGACY)))]);
}

#[test]
fn an_input_uploaded_each_round_and_changed_by_the_kernel_declines() {
    for (whole_fill, expected) in [(false, ["S1-host-value-overwritten"].as_slice()), (true, &[])] {
        let mut b = Build::main();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        b.repeat(|b| {
            // Single stores may leave bytes of the last round; those the kernel must not have changed.
            b.host(&[if whole_fill { overwrites(h) } else { writes(h) }]);
            b.upload(d, h);
            b.launch("kernel", &[reads(d), writes(d)]);
            b.wait(WaitScope::Device);
        });
        assert_eq!(b.codes(), expected);
    }
}

#[test]
fn buffers_made_and_freed_each_round_are_new_ones_each_round() {
    let mut b = Build::main();
    b.repeat(|b| {
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[overwrites(h)]);
        b.launch("kernel", &[writes(d)]);
        b.download(h, d);
        b.host(&[reads(h)]);
        b.cuda_free(d);
        b.free(h);
    });
    assert_eq!(b.codes(), NONE);
}

#[test]
fn zeroes_of_a_late_calloc_would_wipe_the_device_buffer() {
    let mut b = Build::main();
    let d = b.cuda_malloc("d");
    b.launch("kernel", &[writes(d)]);
    b.wait(WaitScope::Device);
    let h = b.calloc("h");
    b.download(h, d);
    b.host(&[reads(h)]);
    assert_eq!(b.codes(), ["S1-device-value-overwritten"]);

    let mut b = Build::main();
    let d = b.cuda_malloc("d");
    let h = b.calloc("h");
    b.launch("kernel", &[writes(d)]);
    b.download(h, d);
    b.host(&[reads(h)]);
    assert_eq!(b.codes(), NONE);
}

#[test]
fn zeroes_of_a_calloc_must_survive_a_partial_download() {
    let mut b = Build::main();
    let h = b.calloc("h");
    let d = b.cuda_malloc("d");
    b.launch("kernel", &[writes(d)]);
    let mut first_half = plain(h, d, LEGACY);
    for side in [&mut first_half.dst, &mut first_half.src] {
        side.range = super::super::testing::part(0, SIZE / 2);
    }
    b.copy(Copy { waits_after: true, ..first_half });
    b.host(&[reads(h)]);
    b.download(h, d);
    assert_eq!(b.codes(), ["S1-host-value-overwritten"]);
}

#[test]
fn a_kernel_that_kept_the_pointer_may_use_it_in_any_later_launch() {
    for (touches_captured, expected) in
        [(false, [].as_slice()), (true, &["S1-host-value-overwritten", "S2-kernel-pending"])]
    {
        let mut b = Build::main();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        b.upload(d, h);
        b.enqueue(LEGACY, "keeps", &[reads(d)], &[d], false);
        b.enqueue(LEGACY, "later", &[], &[], touches_captured);
        b.host(&[reads(h)]);
        assert_eq!(b.codes_with(&concurrent()), expected);
    }
}

#[test]
fn a_kept_pointer_may_be_used_after_the_function_has_returned() {
    for (freed, expected) in [(true, [].as_slice()), (false, &["S1-device-value-overwritten"])] {
        let mut b = Build::main();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        b.upload(d, h);
        b.enqueue(LEGACY, "keeps", &[], &[d], false);
        b.wait(WaitScope::Device);
        b.host(&[writes(h)]);
        b.free(h);
        if freed {
            b.cuda_free(d);
        }
        assert_eq!(b.codes(), expected);
    }
}

// Order.

#[test]
fn a_wait_on_one_branch_only_orders_nothing_behind_the_join() {
    let build = |always: bool| {
        let mut b = Build::main();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.upload(d, h);
        b.launch("kernel", &[reads(d)]);
        if always {
            b.wait(WaitScope::Device);
        } else {
            b.perhaps(|b| {
                b.wait(WaitScope::Device);
            });
        }
        b.host(&[writes(h)]);
        b.codes_with(&concurrent())
    };
    assert_eq!(build(true), NONE);
    assert_eq!(build(false), ["S2-kernel-pending"]);
}

#[test]
fn an_event_covers_what_its_stream_covered_at_the_last_record() {
    let build = |rerecord: bool, unique: bool| {
        let mut b = Build::main();
        let (one, two) = (b.stream(Stream::NonBlocking), b.stream(Stream::NonBlocking));
        let event = b.cuda_event();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.upload(d, h);
        b.wait(WaitScope::Device);
        b.launch_on(one, "kernel", &[reads(d)]);
        b.record(event, one);
        if rerecord {
            b.record(event, two);
        }
        b.wait(WaitScope::Event(event));
        b.host(&[writes(h)]);
        let mut program = b.done();
        program.cuda_events[0].unique = unique;
        codes(&super::super::analyse(&program, &concurrent())[0])
    };
    assert_eq!(build(false, true), NONE);
    assert_eq!(build(true, true), ["S2-kernel-pending"]);
    assert_eq!(build(false, false), ["S2-kernel-pending"]);
}

#[test]
fn an_event_recorded_before_the_loop_does_not_cover_work_of_the_loop() {
    let mut b = Build::main();
    let stream = b.stream(Stream::NonBlocking);
    let event = b.cuda_event();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.upload(d, h);
    b.launch_on(stream, "first", &[reads(d)]);
    b.record(event, stream);
    b.repeat(|b| {
        b.wait(WaitScope::Event(event));
        b.host(&[writes(h)]);
        b.upload(d, h);
        b.launch_on(stream, "again", &[reads(d)]);
    });
    assert_eq!(b.codes_with(&concurrent()), ["S2-kernel-pending"]);
}

#[test]
fn an_event_recorded_on_one_branch_only_covers_nothing_behind_the_join() {
    for (always, expected) in [(true, NONE.as_slice()), (false, &["S2-kernel-pending"])] {
        let mut b = Build::main();
        let stream = b.stream(Stream::NonBlocking);
        let event = b.cuda_event();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.upload(d, h);
        b.launch_on(stream, "kernel", &[reads(d)]);
        if always {
            b.record(event, stream);
        } else {
            b.perhaps(|b| {
                b.record(event, stream);
            });
        }
        b.wait(WaitScope::Event(event));
        b.host(&[writes(h)]);
        assert_eq!(b.codes_with(&concurrent()), expected);
    }
}

#[test]
fn last_rounds_record_does_not_cover_this_rounds_work() {
    let mut b = Build::main();
    let stream = b.stream(Stream::NonBlocking);
    let event = b.cuda_event();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.upload(d, h);
    b.repeat(|b| {
        b.launch_on(stream, "kernel", &[reads(d)]);
        b.wait(WaitScope::Event(event));
        b.host(&[reads(h)]);
        b.record(event, stream);
    });
    b.host(&[reads(h)]);
    b.wait(WaitScope::Event(event));
    b.host(&[overwrites(h)]);
    assert_eq!(b.codes_with(&concurrent()), NONE, "the last record covers the last launch");

    let mut b = Build::main();
    let stream = b.stream(Stream::NonBlocking);
    let event = b.cuda_event();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.upload(d, h);
    b.repeat(|b| {
        b.launch_on(stream, "kernel", &[overwrites(d)]);
        b.wait(WaitScope::Event(event));
        b.host(&[overwrites(h)]);
        b.record(event, stream);
    });
    b.wait(WaitScope::Device);
    b.download(h, d);
    assert!(b.codes_with(&concurrent()).contains(&"S2-kernel-pending"));
}

#[test]
fn a_copy_waited_for_what_its_stream_waited_for() {
    let mut b = Build::main();
    let (one, two) = (b.stream(Stream::NonBlocking), b.stream(Stream::NonBlocking));
    let event = b.cuda_event();
    let elsewhere = other(&mut b);
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.launch_on(one, "kernel", &[writes(elsewhere)]);
    b.record(event, one);
    b.stream_wait(two, event);
    let down = b.copy(Copy { waits_before: true, waits_after: true, ..plain(h, d, two) });
    assert_eq!(b.plan().copies(), [(down, SyncAction::Wait(WaitScope::Stream(two)))]);
}

#[test]
fn a_copy_on_a_stream_that_is_not_known_leaves_a_wait_for_all() {
    let mut b = Build::main();
    let (known, unknown) = (b.stream(Stream::NonBlocking), b.stream(Stream::Unknown));
    let elsewhere = other(&mut b);
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.launch_on(known, "kernel", &[writes(elsewhere)]);
    let down = b.copy(Copy { waits_before: true, waits_after: true, ..plain(h, d, unknown) });
    assert_eq!(b.plan().copies(), [(down, SyncAction::Wait(WaitScope::Device))]);
}

#[test]
fn stream_waits_order_kernels_of_other_streams_with_copies_that_stay() {
    for (ordered, expected) in [(true, [].as_slice()), (false, &["S2-unordered-streams"])] {
        let mut b = Build::main();
        let (one, two) = (b.stream(Stream::NonBlocking), b.stream(Stream::NonBlocking));
        let event = b.cuda_event();
        let elsewhere = other(&mut b);
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        b.upload_async(elsewhere, h, one);
        b.record(event, one);
        if ordered {
            b.stream_wait(two, event);
        }
        b.launch_on(two, "kernel", &[overwrites(d)]);
        b.wait(WaitScope::Device);
        b.download(h, d);
        assert_eq!(b.codes(), expected);
    }
}

#[test]
fn a_synchronous_copy_on_the_default_stream_waited_for_blocking_streams_too() {
    for (kind, expected) in [
        (Stream::Blocking, SyncAction::Wait(WaitScope::Device)),
        (Stream::PerThreadDefault, SyncAction::Wait(WaitScope::Device)),
        (Stream::Unknown, SyncAction::Wait(WaitScope::Device)),
        (Stream::NonBlocking, SyncAction::Nothing),
    ] {
        let mut b = Build::main();
        let stream = b.stream(kind);
        let elsewhere = other(&mut b);
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.launch_on(stream, "kernel", &[writes(elsewhere)]);
        let down = b.download(h, d);
        assert_eq!(b.plan().copies(), [(down, expected)], "{kind:?}");
    }
}

#[test]
fn an_asynchronous_linking_copy_never_makes_the_host_wait() {
    let mut b = Build::main();
    let stream = b.stream(Stream::NonBlocking);
    let h = b.pinned("h");
    let d = b.cuda_malloc("d");
    b.host(&[writes(h)]);
    let up = b.copy(plain(d, h, stream));
    b.launch_on(stream, "kernel", &[reads(d), writes(d)]);
    let down = b.copy(plain(h, d, stream));
    b.wait(WaitScope::Stream(stream));
    b.host(&[reads(h)]);
    let plan = b.plan();
    assert_eq!(plan.copies(), [(up, SyncAction::Nothing), (down, SyncAction::Nothing)]);
}

#[test]
fn an_asynchronous_download_to_pageable_memory_leaves_the_wait_that_it_is_in_practice() {
    let mut b = Build::main();
    let stream = b.stream(Stream::NonBlocking);
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.launch_on(stream, "kernel", &[writes(d)]);
    let down = b.copy(plain(h, d, stream));
    b.host(&[reads(h)]);
    assert_eq!(b.plan().copies(), [(down, SyncAction::Wait(WaitScope::Stream(stream)))]);
}

#[test]
fn an_asynchronous_download_that_stays_is_followed_by_the_wait_that_it_is_in_practice() {
    // h is pageable in P, so the call waits; p is not, so in P' it may return at once, and `other` is written on another stream. (Found by
    // the oracle.) Of page-locked memory the call never waited.
    for pinned in [false, true] {
        let mut b = Build::main();
        let (one, two) = (b.stream(Stream::NonBlocking), b.stream(Stream::NonBlocking));
        let h = if pinned { b.pinned("h") } else { b.malloc("h") };
        let d = b.cuda_malloc("d");
        let other = other(&mut b);
        let down = b.copy(plain(h, other, two));
        b.launch_on(one, "kernel", &[writes(other)]);
        b.copy(Copy { waits_before: true, ..plain(d, h, two) });
        let expected = if pinned { vec![] } else { vec![(down, WaitScope::Stream(two))] };
        assert_eq!(b.plan().waits(), expected);
    }
}

#[test]
fn without_the_final_wait_the_asynchronous_download_does_not_order_the_host() {
    let mut b = Build::main();
    let stream = b.stream(Stream::NonBlocking);
    let h = b.pinned("h");
    let d = b.cuda_malloc("d");
    b.launch_on(stream, "kernel", &[writes(d)]);
    b.copy(plain(h, d, stream));
    b.host(&[reads(h)]);
    assert_eq!(b.codes_with(&concurrent()), ["S2-kernel-pending"]);
}

#[test]
fn work_of_the_caller_may_be_running_at_entry() {
    let build = |mut b: Build| {
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        let up = b.upload(d, h);
        b.launch("kernel", &[reads(d)]);
        b.cuda_free(d);
        b.free(h);
        (b, up)
    };
    assert_eq!(build(Build::function()).0.codes(), ["S5-allocated-in-flight", "S5-host-access-in-flight"]);
    let (b, up) = build(Build::function());
    let plan = b.plan_with(&concurrent());
    assert_eq!(plan.copies(), [(up, SyncAction::Wait(WaitScope::Device))]);
    let (b, up) = build(Build::main());
    assert_eq!(b.plan().copies(), [(up, SyncAction::Nothing)]);
}

#[test]
fn a_copy_that_stays_gets_the_wait_that_managed_memory_does_not_promise() {
    let mut b = Build::main();
    let g = b.buffer("g", Space::Host, Allocator::Foreign, Some(SIZE.into()));
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.host(&[writes(h)]);
    b.upload(d, h);
    b.launch("kernel", &[reads(d)]);
    let stays = b.download(g, d);
    b.host(&[reads(g), writes(h)]);
    assert_eq!(b.plan().waits(), [(stays, WaitScope::Stream(LEGACY))]);
}

#[test]
fn another_buffer_is_still_consumed_when_its_upload_returns() {
    let mut b = Build::main();
    let stream = b.stream(Stream::NonBlocking);
    let g = b.buffer("g", Space::Host, Allocator::Foreign, Some(SIZE.into()));
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    let stays = b.upload_async(d, g, stream);
    b.host(&[writes(g)]);
    b.launch_on(stream, "kernel", &[reads(d), writes(d)]);
    b.wait(WaitScope::Device);
    b.download(h, d);
    assert_eq!(b.plan().waits(), [(stays, WaitScope::Stream(stream))]);
}

// Lifetime.

#[test]
fn an_early_device_free_leaves_its_wait_if_work_is_pending() {
    for (busy, expected) in [(true, Some(WaitScope::Device)), (false, None)] {
        let mut b = Build::main();
        let elsewhere = other(&mut b);
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.download(h, d);
        if busy {
            b.launch("kernel", &[writes(elsewhere)]);
        }
        let early = b.cuda_free(d);
        b.host(&[reads(h)]);
        let late = b.free(h);
        let frees = [(early, FreeAction::Drop { wait: expected }), (late, FreeAction::Release { wait: None })];
        assert_eq!(b.plan().frees(), frees);
    }
}

#[test]
fn p_is_released_after_work_that_uses_it() {
    let mut b = Build::main();
    let elsewhere = other(&mut b);
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.host(&[writes(h)]);
    b.upload(d, h);
    b.cuda_free(d);
    // The pageable source is consumed in P, so that P may free it at once.
    b.upload_async(elsewhere, h, LEGACY);
    let late = b.free(h);
    let plan = b.plan();
    assert_eq!(plan.frees()[1], (late, FreeAction::Release { wait: Some(WaitScope::Device) }));
}

#[test]
fn a_free_on_the_way_out_of_the_process_needs_no_order() {
    for returns in [false, true] {
        let mut b = Build::main();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.upload(d, h);
        let before = b.skip();
        b.cuda_free(d);
        let after = b.skip();
        b.free(h);
        b.exit();
        // One landing pad for both calls: h is freed there, d or not.
        let mut program = b.done();
        let site = program::Site::default;
        let free = Event::Free { object: h, waits: None, stream: None, may_be_null: false };
        let pad = program.graph.add_node(program::Node { event: free, site: site(), origin: 0 });
        let end = program.graph.add_node(program::Node { event: Event::Exit { returns }, site: site(), origin: 0 });
        for (from, to) in [(before, pad), (after, pad), (pad, end)] {
            program.graph.add_edge(from, to, ());
        }
        assert_eq!(plan(&super::super::analyse(&program, &Options::default())[0]).counted(), returns);
    }
}

#[test]
fn both_orders_of_allocation_are_accepted() {
    let mut b = Build::main();
    let d = b.cuda_malloc("d");
    let h = b.malloc("h");
    b.host(&[writes(h)]);
    b.upload(d, h);
    b.launch("kernel", &[reads(d)]);
    b.cuda_free(d);
    b.free(h);
    let plan = b.plan();
    assert!(plan.creates() < plan.yields());
}

// Several pairs.

#[test]
fn pairs_are_judged_with_each_others_copies_gone() {
    let mut b = Build::main();
    let (h1, d1) = (b.malloc("h1"), b.cuda_malloc("d1"));
    let (h2, d2) = (b.malloc("h2"), b.cuda_malloc("d2"));
    b.host(&[writes(h1)]);
    b.upload(d1, h1);
    // An upload may still be running here, but this one is gone.
    b.host(&[writes(h2)]);
    b.upload(d2, h2);
    b.launch("kernel", &[reads(d1), reads(d2)]);
    let verdicts = b.verdicts(&Options::default());
    assert!(verdicts.iter().all(|verdict| plan(verdict).exclusive_ok()));
}

/// free(h) of a pair that the run keeps apart waits for nothing, where releasing the merged buffer would have waited.
#[test]
fn a_release_does_not_count_on_the_wait_of_a_pair_that_may_stay_apart() {
    let release = |target| {
        let mut b = Build::main();
        let stream = b.stream(Stream::NonBlocking);
        let (h1, d1) = (b.pinned("h1"), b.cuda_malloc("d1"));
        let (h2, d2) = (b.malloc("h2"), b.cuda_malloc("d2"));
        b.host(&[writes(h1)]);
        b.upload(d1, h1);
        b.host(&[writes(h2)]);
        b.upload(d2, h2);
        b.cuda_free(d1);
        b.launch_on(stream, "kernel", &[reads(h1), writes(d2)]);
        b.free(h2);
        b.free(h1);
        let last = b.cuda_free(d2);
        let verdicts = b.verdicts(&Options { target, ..concurrent() });
        plan(&verdicts[1]).frees().iter().find(|(node, _)| *node == last).map(|(_, action)| *action)
    };
    let waits = Some(FreeAction::Release { wait: Some(WaitScope::Device) });
    assert_eq!(release(Target::Managed), Some(FreeAction::Release { wait: None }), "the release before it waited");
    assert_eq!(release(Target::Adaptive), waits);
}

#[test]
fn a_pair_that_stays_apart_keeps_its_upload_in_flight() {
    let mut b = Build::main();
    let (h1, d1) = (b.malloc("h1"), b.cuda_malloc("d1"));
    let (h2, d2) = (b.malloc("h2"), b.cuda_malloc("d2"));
    b.host(&[writes(h1)]);
    b.upload(d1, h1);
    b.pointer_use(h1, program::UseKind::Stored);
    b.host(&[writes(h2)]);
    b.upload(d2, h2);
    let verdicts = b.verdicts(&Options::default());
    assert_eq!(
        verdicts.iter().map(codes).collect::<Vec<_>>(),
        [["S3-escapes-to-memory"], ["S5-host-access-in-flight"]]
    );
}

#[test]
fn in_from_one_block_and_out_to_another_merges_the_output() {
    let mut b = Build::main();
    let h_in = b.malloc("h_in");
    let h_out = b.malloc("h_out");
    let d = b.cuda_malloc("d");
    b.host(&[writes(h_in)]);
    b.upload(d, h_in);
    b.launch("kernel", &[reads(d), writes(d)]);
    b.download(h_out, d);
    b.host(&[reads(h_in), reads(h_out)]);
    let verdicts = b.verdicts(&Options::default());
    let codes: Vec<_> = verdicts.iter().map(codes).collect();
    assert_eq!(codes, [vec!["CAND-better-partner", "S1-host-value-overwritten"], vec![]]);
}

#[test]
fn the_same_program_gets_the_same_verdicts() {
    let build = || {
        let mut b = Build::main();
        for name in ["a", "b", "c"] {
            let h = b.malloc(name);
            let d = b.cuda_malloc(name);
            b.upload(d, h);
            b.launch("kernel", &[reads(d), writes(d)]);
            b.download(h, d);
        }
        format!("{:?}", b.verdicts(&Options::default()))
    };
    assert_eq!(build(), build());
}
