//! Rules that no other test needs: each program is decided by one of them.

use super::super::Options;
use super::super::program::{Access, Allocator, Copy, Event, Space, Stream, WaitScope, Work, WorkKind};
use super::super::testing::{Build, LEGACY, SIZE, codes, concurrent, overwrites, plain, reads, writes};
use super::super::verdict::{Decision, SyncAction};

const NONE: [&str; 0] = [];

/// A device buffer that is no candidate.
fn other(b: &mut Build) -> super::super::program::ObjectId {
    b.buffer("other", Space::Device, Allocator::Foreign, Some(SIZE.into()))
}

#[test]
fn a_kernel_that_may_overwrite_all_of_a_buffer_may_also_leave_it() {
    for (must, expected) in [(true, NONE.as_slice()), (false, &["S1-device-value-overwritten"])] {
        let mut b = Build::main();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        b.upload(d, h);
        b.host(&[writes(h)]);
        b.launch("kernel", &[Access { must, ..overwrites(d) }]);
        b.download(h, d);
        b.host(&[reads(h)]);
        assert_eq!(b.codes(), expected);
    }
}

#[test]
fn memsets_and_library_calls_write_as_kernels_do() {
    for kind in [WorkKind::Launch, WorkKind::Memset, WorkKind::Library] {
        let mut b = Build::main();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        b.upload(d, h);
        let (accesses, captures) = (vec![writes(d)], vec![]);
        let work = Work { name: "work".to_owned(), kind, accesses, touches_captured: false, captures };
        b.event(Event::Enqueue { stream: LEGACY, work });
        b.wait(WaitScope::Device);
        b.host(&[reads(h)]);
        assert_eq!(b.codes(), ["S1-host-value-overwritten"], "{kind:?}");
    }
}

#[test]
fn an_unknown_call_may_use_a_pointer_that_a_kernel_kept() {
    for keeps in [false, true] {
        let mut b = Build::main();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        b.upload(d, h);
        b.enqueue(LEGACY, "kernel", &[reads(d)], &[d][..usize::from(keeps)], false);
        b.opaque("unknown");
        b.wait(WaitScope::Device);
        b.host(&[reads(h)]);
        let found = b.codes_with(&concurrent());
        assert!(found.contains(&"S4-may-be-reset"), "{found:?}");
        assert_eq!(found.contains(&"S1-host-value-overwritten"), keeps, "{found:?}");
    }
}

#[test]
fn the_value_of_the_last_rounds_buffer_is_dead_in_the_next_round() {
    let mut b = Build::main();
    b.repeat(|b| {
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        // Single stores, and a read of what they wrote: of this round's buffer.
        b.host(&[writes(h)]);
        b.host(&[reads(h)]);
        b.upload(d, h);
        b.launch("kernel", &[reads(d), writes(d)]);
        b.cuda_free(d);
        b.free(h);
    });
    assert_eq!(b.codes(), NONE);
}

#[test]
fn a_wait_for_a_stream_does_not_cover_another_stream() {
    for (same, expected) in [(true, NONE.as_slice()), (false, &["S2-kernel-pending"])] {
        let mut b = Build::main();
        let (one, two) = (b.stream(Stream::NonBlocking), b.stream(Stream::NonBlocking));
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        b.upload(d, h);
        b.wait(WaitScope::Device);
        b.launch_on(one, "kernel", &[reads(d)]);
        b.wait(WaitScope::Stream(if same { one } else { two }));
        b.host(&[writes(h)]);
        assert_eq!(b.codes_with(&concurrent()), expected);
    }
}

#[test]
fn a_wait_for_a_stream_that_is_not_known_covers_nothing() {
    for (kind, expected) in [(Stream::NonBlocking, NONE.as_slice()), (Stream::Unknown, &["S2-kernel-pending"])] {
        let mut b = Build::main();
        let stream = b.stream(kind);
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        b.upload(d, h);
        b.wait(WaitScope::Device);
        b.launch_on(stream, "kernel", &[reads(d)]);
        b.wait(WaitScope::Stream(stream));
        b.host(&[writes(h)]);
        assert_eq!(b.codes_with(&concurrent()), expected, "{kind:?}");
    }
}

#[test]
fn the_default_stream_holds_blocking_streams_back_and_no_others() {
    for (kind, expected) in [
        (Stream::Blocking, NONE.as_slice()),
        (Stream::PerThreadDefault, &[]),
        (Stream::NonBlocking, &["S2-unordered-streams"]),
    ] {
        let mut b = Build::main();
        let stream = b.stream(kind);
        let elsewhere = other(&mut b);
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        // A copy of h that stays, and a kernel that overwrites what p holds.
        b.upload_async(elsewhere, h, LEGACY);
        b.launch_on(stream, "kernel", &[overwrites(d)]);
        b.wait(WaitScope::Device);
        b.download(h, d);
        let mut program = b.done();
        // Without the wait that would order them in any case.
        for node in program.graph.node_weights_mut() {
            if let Event::Copy(copy) = &mut node.event {
                copy.host_source_consumed = false;
            }
        }
        assert_eq!(codes(&super::super::analyse(&program, &Options::default())[0]), expected, "{kind:?}");
    }
}

#[test]
fn a_copy_of_merged_memory_that_stays_is_waited_for() {
    let mut b = Build::main();
    let elsewhere = other(&mut b);
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.host(&[writes(h)]);
    // In P the pageable source is consumed when the call returns.
    let stays = b.upload(elsewhere, h);
    b.host(&[writes(h)]);
    b.upload(d, h);
    b.launch("kernel", &[reads(d)]);
    assert_eq!(b.plan().waits(), [(stays, WaitScope::Stream(LEGACY))]);
}

#[test]
fn the_driver_may_read_the_host_side_of_a_copy_with_the_cpu() {
    for (busy, expected) in [(false, NONE.as_slice()), (true, &["S5-host-access-in-flight"])] {
        let mut b = Build::main();
        let stream = b.stream(Stream::NonBlocking);
        let elsewhere = other(&mut b);
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        b.upload(d, h);
        if busy {
            b.launch_on(stream, "unrelated", &[]);
        }
        b.upload(elsewhere, h);
        b.wait(WaitScope::Device);
        assert_eq!(b.codes(), expected);
    }
}

#[test]
fn a_wait_that_covered_more_than_its_copy_is_not_counted_on_when_it_goes() {
    let mut b = Build::main();
    let (blocking, apart) = (b.stream(Stream::Blocking), b.stream(Stream::NonBlocking));
    let elsewhere = other(&mut b);
    let buffers = |b: &mut Build, name: &str| (b.malloc(name), b.cuda_malloc(name));
    let (h1, d1) = buffers(&mut b, "1");
    let (h2, d2) = buffers(&mut b, "2");
    let (h3, d3) = buffers(&mut b, "3");
    let download =
        |b: &mut Build, h, d, stream| b.copy(Copy { waits_before: true, waits_after: true, ..plain(h, d, stream) });
    b.launch_on(blocking, "first", &[writes(elsewhere)]);
    b.launch_on(apart, "second", &[writes(d3)]);
    download(&mut b, h1, d1, blocking);
    // Alone it would have to wait for the device, because of the first kernel; behind the wait above, for nothing.
    download(&mut b, h2, d2, LEGACY);
    let last = download(&mut b, h3, d3, apart);
    b.host(&[reads(h3)]);
    let verdicts = b.verdicts(&Options::default());
    let Decision::Accept(plan) = &verdicts[2].decision else { panic!("declined: {:?}", verdicts[2]) };
    assert_eq!(plan.copies(), [(last, SyncAction::Wait(WaitScope::Stream(apart)))]);
}

#[test]
fn a_cudafree_that_stays_is_not_counted_on_to_wait() {
    // The reference says that it may, and of stream-ordered memory that it does not.
    let mut b = Build::main();
    let (h, d, other) = (b.malloc("h"), b.cuda_malloc("d"), b.cuda_malloc("other"));
    b.host(&[writes(h)]);
    b.upload(d, h);
    b.launch("kernel", &[reads(d)]);
    b.cuda_free(other);
    b.host(&[writes(h)]);
    b.wait(WaitScope::Device);
    b.cuda_free(d);
    b.free(h);
    assert_eq!(b.codes_with(&concurrent()), ["S2-kernel-pending"]);
}
