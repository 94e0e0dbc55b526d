//! The analysis: one trace that is a pair, and for each reason one that differs from it in one thing.

use echo_dr_engine::{Options, analyze, judge, possible_backends};
use echo_dr_format::context::Attributes;
use echo_dr_format::event::{Call, CopyKind, DeviceKind, HostKind, Setup, Shape, Stream, WaitFor};
use echo_dr_format::finding::{Access, Finding, PairSeen, Trouble};
use echo_dr_format::plan::{BackendName, Direction, First, Note, Plan, State, Wait, Way};
use echo_dr_format::reason::{Decline, Reason};
use echo_dr_format::site::Site;
use echo_dr_format::trace::{End, Trace};

use crate::common::{DEVICE, DEVICE_FACTS, DOWNLOAD, HOST, N, STREAM, Tracer, UPLOAD};

const H: u64 = 0x10_0000;
const D: u64 = 0x90_0000;
const BYTES: u64 = N as u64;
const OPTIONS: Options = Options { threshold: 1, recurrences: 2 };

fn blocks() -> Tracer {
    let mut tracer = Tracer::new();
    tracer.malloc(H).cuda_malloc(D);
    tracer
}

fn round(tracer: &mut Tracer) -> &mut Tracer {
    tracer.upload(D, H).launch(Stream::LEGACY).download(H, D)
}

/// Two rounds on two blocks.
fn rounds() -> Tracer {
    let mut tracer = blocks();
    round(&mut tracer);
    round(&mut tracer);
    tracer
}

fn plan(tracer: &Tracer) -> Plan {
    let plan = analyze(&tracer.trace(), OPTIONS);
    assert_eq!(plan.check(), Ok(()), "the analysis made a plan that nobody would read");
    plan
}

#[track_caller]
fn declined(tracer: &Tracer, expected: &str) {
    let plan = plan(tracer);
    assert!(plan.pairs.is_empty(), "it was accepted");
    let names: Vec<&str> = plan.ineligible.iter().flat_map(|group| &group.reasons).map(Decline::name).collect();
    assert!(names.contains(&expected), "{names:?}");
}

#[track_caller]
fn accepted(tracer: &Tracer) -> Plan {
    let plan = plan(tracer);
    assert_eq!(plan.pairs.len(), 1, "{:?}", plan.ineligible);
    plan
}

#[test]
fn a_loop_of_rounds_is_a_pair() {
    let mut tracer = rounds();
    tracer.free(H).cuda_free(D);
    let plan = accepted(&tracer);
    let pair = &plan.pairs[0];
    assert_eq!((pair.host, pair.device, pair.bytes, pair.direction), (HOST, DEVICE, BYTES, Direction::Both));
    assert_eq!((pair.first, pair.same_thread, pair.waiting, pair.alive, pair.buffers), (First::Host, true, 1, 1, 1));
    assert_eq!(pair.state, State::Candidate);
    let copies: Vec<_> =
        pair.copies.iter().map(|copy| (copy.site, copy.way, copy.count, copy.took, copy.wait)).collect();
    assert_eq!(copies, [(UPLOAD, Way::Upload, 2, 10, Wait::Covered), (DOWNLOAD, Way::Download, 2, 10, Wait::Device)]);
    assert_eq!(plan.loop_site, Some(UPLOAD));
    assert!(plan.notes.is_empty() && plan.ineligible.is_empty());
}

#[test]
fn blocks_that_are_allocated_in_the_loop_are_a_pair() {
    let mut tracer = Tracer::new();
    for _ in 0..3 {
        tracer.cuda_malloc(D).malloc(H);
        round(&mut tracer).cuda_free(D).free(H);
    }
    let plan = accepted(&tracer);
    assert_eq!((plan.pairs[0].first, plan.pairs[0].buffers, plan.pairs[0].alive), (First::Device, 3, 1));
}

#[test]
fn inputs_and_outputs_are_pairs() {
    let mut tracer = blocks();
    tracer.upload(D, H).launch(Stream::LEGACY).wait().upload(D, H).launch(Stream::LEGACY).wait();
    assert_eq!(accepted(&tracer).pairs[0].direction, Direction::Input);
    let mut tracer = blocks();
    tracer.launch(Stream::LEGACY).download(H, D).launch(Stream::LEGACY).download(H, D);
    assert_eq!(accepted(&tracer).pairs[0].direction, Direction::Output);
}

#[test]
fn a_copy_of_the_kind_default_is_told_by_its_addresses() {
    let mut tracer = blocks();
    for _ in 0..2 {
        tracer.copy(UPLOAD, D, H, BYTES, CopyKind::Default).launch(Stream::LEGACY);
        tracer.copy(DOWNLOAD, H, D, BYTES, CopyKind::Default);
    }
    assert_eq!(accepted(&tracer).pairs[0].direction, Direction::Both);
}

#[test]
fn waits_that_are_covered_are_told_from_those_that_are_not() {
    let wait_before_download = |on: Option<WaitFor>, stream: Stream| {
        let mut tracer = blocks();
        for _ in 0..2 {
            tracer.launch(stream);
            if let Some(on) = on {
                tracer.call(Site(9), Call::Wait { on });
            }
            tracer.copy_in(DOWNLOAD, (H, D, BYTES), CopyKind::DeviceToHost, stream, false, Shape::Linear);
        }
        accepted(&tracer).pairs[0].copies[0].wait
    };
    assert_eq!(wait_before_download(None, Stream::LEGACY), Wait::Device);
    assert_eq!(wait_before_download(None, STREAM), Wait::Stream);
    assert_eq!(wait_before_download(Some(WaitFor::Device), STREAM), Wait::Covered);
    assert_eq!(wait_before_download(Some(WaitFor::Stream(STREAM)), STREAM), Wait::Covered);
    assert_eq!(wait_before_download(Some(WaitFor::Stream(Stream(0x7000))), STREAM), Wait::Stream);
    assert_eq!(wait_before_download(Some(WaitFor::Event(5)), STREAM), Wait::Stream, "nobody recorded it");
}

#[test]
fn one_uncovered_wait_counts_for_the_site() {
    let mut tracer = blocks();
    tracer.launch(Stream::LEGACY).wait().download(H, D).launch(Stream::LEGACY).download(H, D);
    assert_eq!(accepted(&tracer).pairs[0].copies[0].wait, Wait::Device);
}

#[test]
fn edr301_recurs_too_rarely() {
    let mut tracer = blocks();
    round(&mut tracer);
    declined(&tracer, "recurs-too-rarely");
}

#[test]
fn edr302_below_threshold() {
    let plan = analyze(&rounds().trace(), Options { threshold: BYTES + 1, ..OPTIONS });
    assert_eq!(plan.ineligible[0].reasons, [Decline::BelowThreshold { bytes: BYTES, threshold: BYTES + 1 }]);
    assert_eq!(analyze(&rounds().trace(), Options { threshold: BYTES, ..OPTIONS }).pairs.len(), 1);
}

#[test]
fn edr303_sizes_differ() {
    let mut tracer = Tracer::new();
    tracer.host(HOST, H, BYTES + 8, HostKind::Heap).cuda_malloc(D);
    round(&mut tracer);
    round(&mut tracer);
    declined(&tracer, "sizes-differ");
}

#[test]
fn edr304_partial_copy() {
    let mut tracer = rounds();
    tracer.copy(UPLOAD, D + 8, H + 8, BYTES - 8, CopyKind::HostToDevice);
    declined(&tracer, "partial-copy");
}

#[test]
fn edr305_shaped_copy() {
    let mut tracer = rounds();
    tracer.copy_in(UPLOAD, (D, H, BYTES), CopyKind::HostToDevice, Stream::LEGACY, false, Shape::Pitched);
    declined(&tracer, "shaped-copy");
}

#[test]
fn edr306_several_streams() {
    let mut tracer = rounds();
    tracer.copy_in(UPLOAD, (D, H, BYTES), CopyKind::HostToDevice, STREAM, true, Shape::Linear);
    declined(&tracer, "several-streams");

    let mut tracer = blocks();
    for thread in 0..2 {
        tracer.thread = thread;
        tracer.copy_in(UPLOAD, (D, H, BYTES), CopyKind::HostToDevice, Stream::PER_THREAD, true, Shape::Linear);
    }
    declined(&tracer, "several-streams");
}

#[test]
fn edr307_host_has_several_partners() {
    let mut tracer = rounds();
    tracer.device(Site(0x23), D + 0x10_0000, BYTES, DeviceKind::Plain).upload(D + 0x10_0000, H);
    declined(&tracer, "host-has-several-partners");
}

#[test]
fn edr308_device_has_several_partners() {
    let mut tracer = rounds();
    tracer.host(Site(0x12), H + 0x10_0000, BYTES, HostKind::Heap).upload(D, H + 0x10_0000);
    declined(&tracer, "device-has-several-partners");
}

#[test]
fn a_device_block_that_is_read_back_into_another_block_is_a_pair_with_one_of_them() {
    let mut tracer = Tracer::new();
    tracer.malloc(H).host(Site(0x12), H + 0x10_0000, BYTES, HostKind::Heap).cuda_malloc(D);
    for _ in 0..3 {
        tracer.upload(D, H).launch(Stream::LEGACY).download(H + 0x10_0000, D);
    }
    tracer.upload(D, H);
    let plan = accepted(&tracer);
    assert_eq!((plan.pairs[0].host, plan.pairs[0].direction), (HOST, Direction::Input));
    assert_eq!(plan.ineligible[0].reasons, [Decline::SharedSite]);
}

#[test]
fn edr309_freed_between() {
    let mut tracer = Tracer::new();
    tracer.cuda_malloc(D);
    for _ in 0..2 {
        tracer.malloc(H);
        round(&mut tracer).free(H);
    }
    declined(&tracer, "freed-between");

    let mut tracer = Tracer::new();
    tracer.malloc(H);
    for _ in 0..2 {
        tracer.cuda_malloc(D);
        round(&mut tracer).cuda_free(D);
    }
    declined(&tracer, "freed-between");
}

/// Blocks of which the host's is page-locked.
fn locked() -> Tracer {
    let mut tracer = Tracer::new();
    tracer.host(HOST, H, BYTES, HostKind::PageLocked).cuda_malloc(D);
    tracer
}

#[test]
fn page_locked_host_blocks_are_a_pair() {
    let mut tracer = locked();
    round(&mut tracer);
    round(&mut tracer).cuda_free(D).free(H);
    let pair = &accepted(&tracer).pairs[0];
    assert!(pair.page_locked);
    assert_eq!(pair.copies.iter().map(|copy| copy.wait).collect::<Vec<_>>(), [Wait::Covered, Wait::Device]);
    assert!(!accepted(&rounds()).pairs[0].page_locked);
}

#[test]
fn asynchronous_copies_of_page_locked_memory_leave_no_wait() {
    for kind in [HostKind::PageLocked, HostKind::Heap] {
        let mut tracer = Tracer::new();
        tracer.host(HOST, H, BYTES, kind).cuda_malloc(D);
        for _ in 0..2 {
            tracer.copy_in(UPLOAD, (D, H, BYTES), CopyKind::HostToDevice, STREAM, true, Shape::Linear).launch(STREAM);
            tracer.copy_in(DOWNLOAD, (H, D, BYTES), CopyKind::DeviceToHost, STREAM, true, Shape::Linear);
            tracer.call(Site(0x98), Call::Wait { on: WaitFor::Stream(STREAM) });
        }
        let download = if kind == HostKind::PageLocked { Wait::Covered } else { Wait::Stream };
        let waits: Vec<_> = accepted(&tracer).pairs[0].copies.iter().map(|copy| copy.wait).collect();
        assert_eq!(waits, [Wait::Covered, download], "{kind:?}");
    }
}

/// The legacy default stream and the others wait for each other. A copy that goes takes that order with it.
#[test]
fn a_copy_that_orders_streams_leaves_a_wait() {
    for (of_copy, of_work) in [(Stream::LEGACY, STREAM), (STREAM, Stream::LEGACY)] {
        for non_blocking in [false, true] {
            let mut tracer = locked();
            tracer.call(Site(0), Call::StreamCreate { stream: STREAM, non_blocking });
            for _ in 0..2 {
                tracer.launch(of_work);
                tracer.copy_in(DOWNLOAD, (H, D, BYTES), CopyKind::DeviceToHost, of_copy, true, Shape::Linear).wait();
            }
            let expected = if non_blocking { Wait::Covered } else { Wait::Device };
            assert_eq!(accepted(&tracer).pairs[0].copies[0].wait, expected, "{of_copy:?} {of_work:?}");
        }
    }
}

#[test]
fn edr310_used_as_device_memory() {
    let call = |dst, src, kind| Call::Copy {
        dst,
        src,
        bytes: BYTES,
        kind,
        stream: Stream::LEGACY,
        asynchronous: false,
        shape: Shape::Linear,
    };
    const ELSEWHERE: u64 = 0x500_0000;
    for what in [
        Call::Set { dst: H, bytes: BYTES, stream: Stream::LEGACY },
        call(D, H, CopyKind::DeviceToDevice),
        call(H, D, CopyKind::DeviceToDevice),
        call(ELSEWHERE, H, CopyKind::DeviceToHost),
        call(H, ELSEWHERE, CopyKind::HostToDevice),
        call(ELSEWHERE, H, CopyKind::HostToHost),
        call(H, ELSEWHERE, CopyKind::Default),
    ] {
        let mut tracer = locked();
        round(&mut tracer);
        round(&mut tracer).call(Site(7), what);
        declined(&tracer, "used-as-device-memory");
    }
}

#[test]
fn edr311_managed_already() {
    let mut tracer = Tracer::new();
    tracer.malloc(H).device(DEVICE, D, BYTES, DeviceKind::Managed);
    round(&mut tracer);
    round(&mut tracer);
    declined(&tracer, "managed-already");
    assert_eq!(plan(&tracer).notes, [Note::UsesManagedMemory]);
}

#[test]
fn a_program_that_only_uses_managed_memory_has_no_pairs() {
    let mut tracer = Tracer::new();
    tracer.device(DEVICE, D, BYTES, DeviceKind::Managed);
    for _ in 0..5 {
        tracer.launch(Stream::LEGACY).wait();
    }
    let plan = plan(&tracer);
    assert!(plan.pairs.is_empty() && plan.ineligible.is_empty() && plan.loop_site.is_none());
    assert_eq!(plan.notes, [Note::UsesManagedMemory]);
}

#[test]
fn edr312_special_device_memory() {
    for kind in [DeviceKind::Pooled, DeviceKind::Pitched] {
        let mut tracer = Tracer::new();
        tracer.malloc(H).device(DEVICE, D, BYTES, kind);
        round(&mut tracer);
        round(&mut tracer);
        declined(&tracer, "special-device-memory");
    }
}

#[test]
fn edr313_reallocated() {
    let mut tracer = blocks();
    tracer.call(HOST, Call::HostRealloc { old: H, ptr: H, bytes: BYTES });
    round(&mut tracer);
    round(&mut tracer);
    declined(&tracer, "reallocated");
    let mut tracer = rounds();
    tracer.call(Site(3), Call::HostRealloc { old: H, ptr: H + 0x10_0000, bytes: 2 * BYTES });
    declined(&tracer, "reallocated");
}

#[test]
fn edr314_alignment() {
    for (align, accepts) in [(256, true), (4096, true), (8192, false)] {
        let mut tracer = Tracer::new();
        tracer.call(HOST, Call::HostAlloc { ptr: H, bytes: BYTES, align, kind: HostKind::Heap }).cuda_malloc(D);
        round(&mut tracer);
        round(&mut tracer);
        assert_eq!(plan(&tracer).pairs.len(), usize::from(accepts));
        if !accepts {
            declined(&tracer, "alignment");
        }
    }
}

#[test]
fn edr315_shifted_copy() {
    let mut tracer = rounds();
    tracer.copy(UPLOAD, D + 8, H, 8, CopyKind::HostToDevice);
    declined(&tracer, "shifted-copy");
}

#[test]
fn edr316_copies_overlap() {
    let mut tracer = rounds();
    tracer.upload(D, H).events.last_mut().expect("a copy").took = 1000;
    tracer.thread = 1;
    tracer.upload(D, H);
    declined(&tracer, "copies-overlap");
}

#[test]
fn edr317_other_data_into_host() {
    let mut tracer = rounds();
    tracer.copy(DOWNLOAD, H, 0xdead_0000, 8, CopyKind::DeviceToHost);
    declined(&tracer, "other-data-into-host");
    let mut tracer = rounds();
    tracer.copy(Site(5), H, 0xdead_0000, 8, CopyKind::HostToHost);
    declined(&tracer, "other-data-into-host");
}

#[test]
fn edr318_other_data_into_device() {
    let set = Call::Set { dst: D, bytes: BYTES, stream: Stream::LEGACY };
    let mut tracer = blocks();
    tracer.call(Site(5), set);
    round(&mut tracer);
    round(&mut tracer);
    declined(&tracer, "other-data-into-device");
    let mut tracer = rounds();
    tracer.call(Site(5), set);
    declined(&tracer, "other-data-into-device");
    let mut tracer = rounds();
    tracer.copy(Site(5), D, 0xdead_0000, 8, CopyKind::HostToDevice);
    declined(&tracer, "other-data-into-device");
    let mut tracer = rounds();
    tracer.copy(Site(5), D + 8, 0xdead_0000, 8, CopyKind::DeviceToDevice);
    declined(&tracer, "other-data-into-device");

    // Before the host block is there, between upload and download, and of an output it does no harm.
    let mut tracer = Tracer::new();
    tracer.cuda_malloc(D).call(Site(5), set).malloc(H);
    round(&mut tracer);
    tracer.upload(D, H).call(Site(5), set).download(H, D);
    accepted(&tracer);
    let mut tracer = blocks();
    for _ in 0..2 {
        tracer.call(Site(5), set).launch(Stream::LEGACY).download(H, D);
    }
    accepted(&tracer);
}

#[test]
fn edr319_unstable_pairing() {
    let mut tracer = Tracer::new();
    let (h2, d2) = (H + 0x10_0000, D + 0x10_0000);
    tracer.malloc(H).malloc(h2).cuda_malloc(D).cuda_malloc(d2);
    let crossed = |tracer: &mut Tracer, crossed: bool| {
        let (first, second) = if crossed { (d2, D) } else { (D, d2) };
        for _ in 0..2 {
            tracer.upload(first, H).upload(second, h2).launch(Stream::LEGACY).wait();
        }
    };
    let mut straight = Tracer { events: tracer.events.clone(), thread: 0 };
    crossed(&mut straight, false);
    assert_eq!((accepted(&straight).pairs[0].waiting, accepted(&straight).pairs[0].alive), (2, 2));
    crossed(&mut tracer, true);
    declined(&tracer, "unstable-pairing");
}

#[test]
fn blocks_of_several_threads_meet_within_their_thread() {
    let mut tracer = Tracer::new();
    let place = |base: u64, thread: u32| base + 0x10_0000 * u64::from(thread);
    let order = [0, 1, 1, 0];
    for thread in [0, 1] {
        tracer.thread = thread;
        tracer.malloc(place(H, thread));
    }
    for thread in [1, 0] {
        tracer.thread = thread;
        tracer.cuda_malloc(place(D, thread));
    }
    for thread in order {
        tracer.thread = thread;
        tracer.upload(place(D, thread), place(H, thread)).launch(Stream::LEGACY).wait();
    }
    let plan = accepted(&tracer);
    assert!(plan.pairs[0].same_thread && plan.pairs[0].waiting == 1);
}

#[test]
fn a_partner_from_another_thread_is_found_if_only_one_waits() {
    let mut tracer = Tracer::new();
    tracer.malloc(H);
    tracer.thread = 1;
    tracer.cuda_malloc(D);
    round(&mut tracer);
    round(&mut tracer);
    assert!(!accepted(&tracer).pairs[0].same_thread);

    let mut tracer = Tracer::new();
    tracer.malloc(H).malloc(H + 0x10_0000);
    tracer.thread = 1;
    tracer.cuda_malloc(D).cuda_malloc(D + 0x10_0000);
    for _ in 0..2 {
        tracer.upload(D, H).upload(D + 0x10_0000, H + 0x10_0000).launch(Stream::LEGACY).wait();
    }
    declined(&tracer, "unstable-pairing");
}

#[test]
fn edr320_blocks_without_partner() {
    let mut tracer = rounds();
    tracer.malloc(H + 0x10_0000);
    declined(&tracer, "blocks-without-partner");

    // A run that was killed may have got no further.
    let mut trace = tracer.trace();
    trace.end = None;
    let plan = analyze(&trace, OPTIONS);
    assert_eq!(plan.pairs.len(), 1);
    assert_eq!(plan.notes, [Note::TraceTruncated]);
}

#[test]
fn heap_and_page_locked_memory_of_one_site_are_no_pair() {
    let mut tracer = Tracer::new();
    for kind in [HostKind::PageLocked, HostKind::Heap] {
        tracer.host(HOST, H, BYTES, kind).cuda_malloc(D);
        round(&mut tracer);
        round(&mut tracer).cuda_free(D).free(H);
    }
    declined(&tracer, "shared-site");
}

#[test]
fn edr321_shared_site() {
    let mut tracer = rounds();
    let (h2, d2) = (H + 0x10_0000, D + 0x10_0000);
    tracer.malloc(h2).device(Site(0x23), d2, BYTES, DeviceKind::Plain);
    tracer.upload(d2, h2).launch(Stream::LEGACY).wait().upload(d2, h2).launch(Stream::LEGACY).wait();
    declined(&tracer, "shared-site");
}

#[test]
fn edr322_several_devices() {
    let mut tracer = rounds();
    tracer.call(Site(5), Call::SetDevice { device: 1 });
    accepted(&tracer);
    tracer.launch(Stream::LEGACY);
    declined(&tracer, "several-devices");
}

#[test]
fn edr323_alive_at_fork() {
    let fork = Call::Setup { what: Setup::Fork };
    let mut tracer = rounds();
    tracer.call(Site(0), fork);
    declined(&tracer, "alive-at-fork");

    let mut tracer = rounds();
    tracer.free(H).cuda_free(D).call(Site(0), fork);
    accepted(&tracer);

    let mut tracer = Tracer::new();
    tracer.malloc(H).free(H).call(Site(0), fork).malloc(H).cuda_malloc(D);
    round(&mut tracer);
    round(&mut tracer);
    declined(&tracer, "blocks-without-partner");
}

#[test]
fn edr324_alive_at_reset() {
    let reset = Call::Setup { what: Setup::Reset };
    let mut tracer = rounds();
    tracer.cuda_free(D).call(Site(0), reset).free(H);
    declined(&tracer, "alive-at-reset");
    let mut tracer = rounds();
    tracer.cuda_free(D).free(H).call(Site(0), reset);
    accepted(&tracer);
}

#[test]
fn edr325_captured() {
    let mut tracer = rounds();
    tracer.call(Site(0), Call::Capture { stream: STREAM, begin: true }).upload(D, H);
    declined(&tracer, "captured");
    let mut tracer = rounds();
    tracer.call(Site(0), Call::Capture { stream: STREAM, begin: true });
    tracer.call(Site(0), Call::Capture { stream: STREAM, begin: false }).upload(D, H);
    accepted(&tracer);
}

#[test]
fn edr326_pointer_queried() {
    for call in [Call::Query { ptr: H + 8 }, Call::Query { ptr: D }, Call::HostRegister { ptr: H, bytes: BYTES }] {
        let mut tracer = rounds();
        tracer.call(Site(5), call);
        declined(&tracer, "pointer-queried");
    }
}

#[test]
fn edr327_too_early() {
    let before = Call::Setup { what: Setup::BeforeInitialisation };
    let mut tracer = Tracer::new();
    tracer.malloc(H).call(Site(0), before).cuda_malloc(D);
    round(&mut tracer);
    round(&mut tracer);
    declined(&tracer, "too-early");
    let mut tracer = Tracer::new();
    tracer.call(Site(0), before).malloc(H).cuda_malloc(D);
    round(&mut tracer);
    round(&mut tracer);
    accepted(&tracer);
}

#[test]
fn edr328_zeroed_after_use() {
    for used in [false, true] {
        let mut tracer = Tracer::new();
        tracer.cuda_malloc(D);
        if used {
            tracer.launch(Stream::LEGACY);
        }
        tracer.host(HOST, H, BYTES, HostKind::Zeroed);
        round(&mut tracer);
        round(&mut tracer);
        if used {
            declined(&tracer, "zeroed-after-use");
        } else {
            accepted(&tracer);
        }
    }
}

#[test]
fn edr329_events_lost() {
    let mut trace = rounds().trace();
    trace.end = Some(End { time: 0, lost: 3 });
    let plan = analyze(&trace, OPTIONS);
    assert_eq!(plan.ineligible[0].reasons, [Decline::EventsLost { count: 3 }]);
}

#[test]
fn edr330_unrecorded_memory() {
    let mut tracer = Tracer::new();
    tracer.cuda_malloc(D);
    tracer.upload(D, 0x7fff_0000).upload(D, 0x7fff_0000);
    declined(&tracer, "unrecorded-memory");
    let plan = plan(&tracer);
    assert_eq!((plan.ineligible[0].host, plan.ineligible[0].device, plan.ineligible[0].count), (None, Some(DEVICE), 2));
}

#[test]
fn edr331_unknown_function() {
    let call = |unseen| Call::Unknown { unseen };
    let mut tracer = rounds();
    tracer.call(Site(5), call(false));
    declined(&tracer, "unknown-function");
    // Blocks that aren't alive at the call can't be what it copies; where no call can be seen it may be any time.
    let mut tracer = Tracer::new();
    tracer.call(Site(5), call(false)).malloc(H).cuda_malloc(D);
    round(&mut tracer);
    round(&mut tracer);
    tracer.cuda_free(D).free(H).call(Site(5), call(false));
    accepted(&tracer);
    tracer.call(Site(5), call(true));
    declined(&tracer, "unknown-function");
}

#[test]
fn a_block_that_was_freed_unseen_ends_where_another_one_begins() {
    let mut tracer = Tracer::new();
    tracer.host(Site(0x55), H - 8, 64, HostKind::Heap).host(Site(0x56), H + BYTES - 1, 64, HostKind::Heap);
    tracer.malloc(H).cuda_malloc(D);
    round(&mut tracer);
    round(&mut tracer);
    accepted(&tracer);
}

#[test]
fn nonsense_is_survived() {
    let mut tracer = Tracer::new();
    for ptr in [0, 1, u64::MAX - 1, u64::MAX] {
        tracer.host(HOST, ptr, u64::MAX, HostKind::Heap).device(DEVICE, ptr, u64::MAX, DeviceKind::Plain);
        tracer.copy(UPLOAD, ptr, ptr, u64::MAX, CopyKind::Default).copy(UPLOAD, 5, ptr, 0, CopyKind::HostToDevice);
        tracer.call(HOST, Call::HostRealloc { old: 7, ptr: 0, bytes: 0 }).free(3).cuda_free(ptr);
        tracer.call(Site(0), Call::HostRegister { ptr, bytes: u64::MAX });
    }
    assert!(plan(&tracer).pairs.is_empty());
    assert_eq!(analyze(&Tracer::new().trace(), OPTIONS).notes, [Note::NoCuda]);
}

fn validation(troubles: &[Trouble], seen: PairSeen) -> Trace {
    let mut trace = rounds().trace();
    let finding = |&trouble| Finding { time: 1, pair: 0, trouble, site: Some(Site(0x77)), offset: Some(0) };
    trace.findings = troubles.iter().map(finding).collect();
    trace.seen = vec![seen];
    trace
}

fn judged(troubles: &[Trouble], seen: PairSeen) -> Plan {
    let mut plan = accepted(&rounds());
    judge(&mut plan, &validation(troubles, seen)).expect("one context");
    plan
}

const SEEN: PairSeen =
    PairSeen { pair: 0, buffers: 1, unwatched: 0, windows: 2, closed: 2, findings: 0, exclusive_watched: true };

#[test]
fn a_pair_of_which_nothing_is_wrong_is_validated() {
    let plan = judged(&[], SEEN);
    assert_eq!(plan.pairs[0].state, State::Validated);
    assert!(plan.pairs[0].exclusive);
    assert!(!judged(&[], PairSeen { exclusive_watched: false, ..SEEN }).pairs[0].exclusive);
}

#[test]
fn each_trouble_rejects_with_its_reason_and_place() {
    let cases = [
        (Trouble::HostTouched(Access::Write), "EDR340"),
        (Trouble::LaunchAfterHostWrite, "EDR341"),
        (Trouble::HostWriteLost, "EDR342"),
        (Trouble::DeviceWriteLost, "EDR343"),
        (Trouble::WrongPartner, "EDR319"),
        (Trouble::ReachedByGpu, "EDR345"),
        (Trouble::OutOfSight, "EDR347"),
    ];
    for (trouble, number) in cases {
        let plan = judged(&[Trouble::NotExclusive(Access::Read), trouble], SEEN);
        let State::Rejected(rejection) = &plan.pairs[0].state else { panic!("{trouble:?} was passed over") };
        assert_eq!((rejection.reason.number(), rejection.site), (number, Some(Site(0x77))));
    }
}

#[test]
fn an_access_while_other_work_runs_forbids_managed_memory_where_access_is_exclusive() {
    let mut plan = accepted(&rounds());
    let mut trace = validation(&[Trouble::NotExclusive(Access::Read)], PairSeen { findings: 1, ..SEEN });
    for context in [&mut plan.context, &mut trace.header.context] {
        let device = context.device.as_mut().expect("a device");
        device.attributes.concurrent_managed_access = false;
    }
    judge(&mut plan, &trace).expect("one context");
    assert_eq!((plan.pairs[0].exclusive, plan.pairs[0].backend), (false, BackendName::Mapped));
}

/// The GPU has the host's page tables there: what it does with h shows only while h is closed.
#[test]
fn where_the_gpu_reaches_all_memory_an_access_in_flight_leaves_it_unwatched() {
    let cases = [
        (&[][..], SEEN, None),
        (&[Trouble::NotExclusive(Access::Read)], SEEN, Some(Some(Site(0x77)))),
        (&[], PairSeen { exclusive_watched: false, ..SEEN }, Some(None)),
    ];
    for (troubles, seen, expected) in cases {
        let mut plan = accepted(&rounds());
        let mut trace = validation(troubles, seen);
        for context in [&mut plan.context, &mut trace.header.context] {
            context.device.as_mut().expect("a device").attributes.pageable_memory_access = true;
        }
        judge(&mut plan, &trace).expect("one context");
        match (&plan.pairs[0].state, expected) {
            (State::Validated, None) => {}
            (State::Rejected(rejection), Some(site)) => {
                assert_eq!((&rejection.reason, rejection.site), (&Decline::ReachUnknown, site));
            }
            (state, _) => panic!("{troubles:?} {seen:?}: {state:?}"),
        }
    }
}

#[test]
fn what_validation_did_not_see_is_rejected() {
    for seen in [PairSeen { windows: 0, ..SEEN }, PairSeen { unwatched: 1, ..SEEN }, PairSeen { pair: 9, ..SEEN }] {
        let plan = judged(&[], seen);
        assert!(
            matches!(&plan.pairs[0].state, State::Rejected(rejection) if rejection.reason == Decline::NotValidated)
        );
    }
}

#[test]
fn a_validation_of_another_run_is_refused() {
    let mut plan = accepted(&rounds());
    let mut trace = validation(&[], SEEN);
    trace.header.context.process.arguments.push("-x".into());
    assert!(judge(&mut plan, &trace).is_err());
    assert_eq!(plan.pairs[0].state, State::Candidate);
}

#[test]
fn backends_are_those_that_the_device_and_s5_allow() {
    let orin = Attributes { concurrent_managed_access: false, ..DEVICE_FACTS };
    assert_eq!(possible_backends(orin, true), [BackendName::Managed, BackendName::Mapped]);
    assert_eq!(possible_backends(orin, false), [BackendName::Mapped]);
    let thor = Attributes { pageable_memory_access: true, host_page_tables: true, ..DEVICE_FACTS };
    assert_eq!(possible_backends(thor, false)[0], BackendName::System);
    assert_eq!(possible_backends(Attributes::default(), true), []);
}
