//! S4: where p ends, and allocations that are not made one for one.

use super::super::program::{self, Allocator, Event, Space, WaitScope};
use super::super::testing::{Build, SIZE, reads, writes};
use super::super::verdict::FreeAction;

const NONE: [&str; 0] = [];
const COUNT: FreeAction = FreeAction::Count { wait: None };
const DROP: FreeAction = FreeAction::Drop { wait: None };
const RELEASE: FreeAction = FreeAction::Release { wait: None };

fn device(b: &mut Build) -> program::ObjectId {
    b.buffer("d", Space::Device, Allocator::CudaMalloc, Some(SIZE.into()))
}

fn host(b: &mut Build) -> program::ObjectId {
    b.buffer("h", Space::Host, Allocator::Malloc, Some(SIZE.into()))
}

// Frees on some paths only.

#[test]
fn p_counts_its_names_where_the_last_free_depends_on_the_path() {
    let mut b = Build::main();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.download(h, d);
    let mut perhaps = None;
    b.perhaps(|b| perhaps = Some(b.cuda_free(d)));
    let late = b.free(h);
    let plan = b.plan();
    assert!(plan.counted() && !plan.keeps_host());
    assert_eq!(plan.frees(), [(perhaps.expect("built"), COUNT), (late, COUNT)]);
}

#[test]
fn a_leak_of_one_half_on_the_way_out_needs_no_counting() {
    // if (failed) { cudaFree(d); return 1; } … free(h); cudaFree(d);
    let mut b = Build::main();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.download(h, d);
    let mut early = None;
    b.perhaps_leave(true, |b| early = Some(b.cuda_free(d)));
    let (first, last) = (b.free(h), b.cuda_free(d));
    let plan = b.plan();
    assert!(!plan.counted());
    assert_eq!(plan.frees(), [(early.expect("built"), DROP), (first, DROP), (last, RELEASE)]);
}

#[test]
fn a_free_of_null_is_none_and_needs_no_allocation_before() {
    // if (…) { h = malloc(); cudaMalloc(&d); … } free(h); cudaFree(d);   with null pointers elsewhere
    let mut b = Build::main();
    let (h, d) = (host(&mut b), device(&mut b));
    b.perhaps(|b| {
        b.alloc(h);
        b.alloc(d);
        b.host(&[writes(h)]);
        b.upload(d, h);
    });
    let (first, last) = (b.free_unless_null(h), b.cuda_free_unless_null(d));
    let plan = b.plan();
    assert!(plan.counted(), "the analysis does not know that both are null or neither is");
    assert_eq!(plan.frees(), [(first, COUNT), (last, COUNT)]);

    // The same with frees that do happen: they are uses.
    let mut b = Build::main();
    let (h, d) = (host(&mut b), device(&mut b));
    b.perhaps(|b| {
        b.alloc(h);
        b.alloc(d);
        b.upload(d, h);
    });
    b.free(h);
    b.cuda_free(d);
    assert_eq!(b.codes(), ["S4-used-without-allocation"]);
}

#[test]
fn a_free_of_null_ends_no_round() {
    let round = |certain: bool| {
        let mut b = Build::main();
        b.repeat(|b| {
            let h = b.malloc("h");
            let d = b.cuda_malloc("d");
            b.upload(d, h);
            if certain {
                b.cuda_free(d);
            } else {
                b.cuda_free_unless_null(d);
            }
            b.free(h);
        });
        b.codes()
    };
    assert_eq!(round(true), NONE);
    assert_eq!(round(false), ["S4-allocated-again"]);
}

#[test]
fn a_kept_pointer_is_still_known_behind_a_free_of_null() {
    for (certain, expected) in [(true, NONE.as_slice()), (false, &["S1-device-value-overwritten"])] {
        let mut b = Build::main();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.enqueue(super::super::testing::LEGACY, "keeps", &[writes(d)], &[d], false);
        b.download(h, d);
        if certain {
            b.cuda_free(d);
        } else {
            b.cuda_free_unless_null(d);
        }
        b.host(&[writes(h)]);
        b.enqueue(super::super::testing::LEGACY, "uses", &[], &[], true);
        b.wait(WaitScope::Device);
        assert_eq!(b.codes(), expected);
    }
}

// Allocations that are not made one for one.

/// `h = malloc(); fill; loop { cudaMalloc(&d); copy; kernel; copy; cudaFree(d); } read; free(h);`
fn device_each_round(change: impl Fn(&mut Build, program::ObjectId, program::ObjectId)) -> Build {
    let mut b = Build::main();
    let (h, d) = (host(&mut b), device(&mut b));
    b.alloc(h);
    b.host(&[writes(h)]);
    b.repeat(|b| {
        b.alloc(d);
        b.upload(d, h);
        b.launch("kernel", &[reads(d), writes(d)]);
        b.download(h, d);
        change(b, h, d);
        b.cuda_free(d);
    });
    b.host(&[reads(h)]);
    b.free(h);
    b
}

#[test]
fn a_device_buffer_for_each_round_is_the_one_p() {
    let plan = device_each_round(|_, _, _| {}).plan();
    assert!(!plan.counted() && !plan.keeps_host());
    let actions: Vec<_> = plan.frees().iter().map(|(_, action)| *action).collect();
    assert_eq!(actions, [DROP, RELEASE]);
}

#[test]
fn a_device_buffer_for_each_round_must_be_freed_in_its_round() {
    // Two of them at a time would be one buffer.
    let mut b = Build::main();
    let h = b.malloc("h");
    b.host(&[writes(h)]);
    let d = device(&mut b);
    b.repeat(|b| {
        b.alloc(d);
        b.upload(d, h);
        b.launch("kernel", &[reads(d)]);
        b.wait(WaitScope::Device);
        b.perhaps(|b| {
            b.cuda_free(d);
        });
    });
    b.free(h);
    assert_eq!(b.codes(), ["S4-allocated-again"]);
}

#[test]
fn the_wait_of_a_device_free_stays_where_the_next_round_needs_it() {
    let mut b = Build::main();
    let h = b.malloc("h");
    b.host(&[writes(h)]);
    let d = device(&mut b);
    let stream = b.stream(program::Stream::NonBlocking);
    let mut freed = None;
    b.repeat(|b| {
        b.alloc(d);
        b.upload(d, h);
        b.launch_on(stream, "kernel", &[reads(d)]);
        freed = Some(b.cuda_free(d));
    });
    b.host(&[reads(h)]);
    b.free(h);
    let plan = b.plan();
    assert_eq!(plan.frees()[0], (freed.expect("built"), FreeAction::Drop { wait: Some(WaitScope::Device) }));
}

#[test]
fn what_h_holds_must_outlive_each_rounds_device_buffer() {
    // The kernel changes d, nobody copies it back, and the next round uploads h again.
    let mut b = Build::main();
    let h = b.malloc("h");
    b.host(&[writes(h)]);
    let d = device(&mut b);
    b.repeat(|b| {
        b.alloc(d);
        b.upload(d, h);
        b.launch("kernel", &[reads(d), writes(d)]);
        b.cuda_free(d);
    });
    b.free(h);
    assert_eq!(b.codes(), ["S1-host-value-overwritten"]);
}

#[test]
fn a_host_buffer_for_each_round_is_the_one_p() {
    for (calloc, expected) in [(false, NONE.as_slice()), (true, &["S1-device-value-overwritten"])] {
        let mut b = Build::main();
        let (h, d) = (host(&mut b), device(&mut b));
        if calloc {
            b.object(h).origin = Allocator::Calloc;
        }
        b.alloc(d);
        b.launch("first", &[writes(d)]);
        b.wait(WaitScope::Device);
        b.repeat(|b| {
            b.alloc(h);
            b.download(h, d);
            b.host(&[reads(h)]);
            b.free(h);
            // Reads what the last round left, which zeroes of the next would wipe.
            b.launch("kernel", &[reads(d), writes(d)]);
            b.wait(WaitScope::Device);
        });
        b.cuda_free(d);
        assert_eq!(b.codes(), expected);
    }
}

#[test]
fn a_host_buffer_that_may_be_alone_is_kept_for_machines_without_a_device() {
    let conditional = |host_first: bool, origin| {
        let mut b = Build::main();
        let (h, d) = (host(&mut b), device(&mut b));
        b.object(h).origin = origin;
        let (outer, inner) = if host_first { (h, d) } else { (d, h) };
        b.alloc(outer);
        b.perhaps(|b| {
            b.alloc(inner);
            b.host(&[writes(h)]);
            b.upload(d, h);
            b.launch("kernel", &[reads(d)]);
            b.wait(WaitScope::Device);
            b.event(Event::Free { object: inner, waits: None, stream: None, may_be_null: false });
        });
        b.event(Event::Free { object: outer, waits: None, stream: None, may_be_null: false });
        b.plan()
    };
    let plan = conditional(true, Allocator::Malloc);
    assert!(plan.keeps_host() && !plan.counted());
    let actions: Vec<_> = plan.frees().iter().map(|(_, action)| *action).collect();
    assert_eq!(actions, [DROP, RELEASE], "whether d was there or not, free(h) is the last");
    assert!(!conditional(true, Allocator::PinnedHost).keeps_host(), "P called CUDA already");
    assert!(!conditional(false, Allocator::Malloc).keeps_host(), "P called CUDA already");
}

#[test]
fn the_creator_must_be_there_where_the_other_begins() {
    // loop { cudaMalloc(&d); …; cudaFree(d); if (…) free(h); }
    let mut b = Build::main();
    let h = b.malloc("h");
    b.host(&[writes(h)]);
    let d = device(&mut b);
    b.repeat(|b| {
        b.alloc(d);
        b.launch("kernel", &[writes(d)]);
        b.download(h, d);
        b.cuda_free(d);
        b.perhaps(|b| {
            b.free(h);
        });
    });
    assert_eq!(b.codes(), ["S4-allocations-not-paired"]);
}
