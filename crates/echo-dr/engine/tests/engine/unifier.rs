//! Merged runs call by call, with what a program may do that the profiled one did not.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use echo_dr_engine::Unifier;
use echo_dr_engine::calls::{
    AllocDecision, Copy, CopyDecision, DeviceAlloc, FreeDecision, HostAlloc, ReallocDecision, ResetDecision, Waiting,
};
use echo_dr_format::event::{CopyKind, Shape, Stream, WaitFor};
use echo_dr_format::plan::{BackendName, Direction, First, Pair, Wait};
use echo_dr_format::reason::Deviation;
use echo_dr_format::site::Site;
use echo_rt::{Cuda, CudaError, DeviceFacts, Side};

use crate::common::{DEVICE, DEVICE_FACTS, DOWNLOAD, HOST, N, STREAM, UPLOAD, pair, plan};

/// A device that counts.
#[derive(Default)]
struct Device {
    next: Cell<usize>,
    live: RefCell<BTreeMap<usize, &'static str>>,
    log: RefCell<Vec<String>>,
    refuses: Cell<bool>,
    error: Cell<bool>,
}

impl Device {
    fn take(&self, kind: &'static str) -> Option<usize> {
        if self.refuses.get() {
            return None;
        }
        self.next.set(self.next.get().max(0x70_0000) + 0x1_0000);
        self.live.borrow_mut().insert(self.next.get(), kind);
        Some(self.next.get())
    }

    fn give(&self, address: usize, kind: &str) {
        assert_eq!(self.live.borrow_mut().remove(&address), Some(kind), "freed by the wrong function");
    }

    fn log(&self) -> Vec<String> {
        self.log.take()
    }
}

impl Cuda for Device {
    fn malloc(&self, _: usize) -> Result<usize, CudaError> {
        self.take("device").ok_or(CudaError::MEMORY_ALLOCATION)
    }
    fn free(&self, address: usize) -> Result<(), CudaError> {
        if address < N {
            return Err(CudaError::INVALID_VALUE);
        }
        self.give(address, "managed");
        Ok(())
    }
    fn malloc_managed(&self, bytes: usize) -> Result<usize, CudaError> {
        assert_eq!(bytes, N);
        self.take("managed").ok_or(CudaError::MEMORY_ALLOCATION)
    }
    fn host_alloc(&self, _: usize) -> Result<(usize, usize), CudaError> {
        let address = self.take("mapped").ok_or(CudaError::MEMORY_ALLOCATION)?;
        Ok((address, address))
    }
    fn host_free(&self, address: usize) -> Result<(), CudaError> {
        if address < N {
            return Err(CudaError::INVALID_VALUE);
        }
        self.give(address, "mapped");
        Ok(())
    }
    fn heap_alloc(&self, _: usize) -> Option<usize> {
        self.take("heap")
    }
    fn heap_free(&self, address: usize) {
        self.give(address, "heap");
    }
    fn copy(&self, _: usize, _: usize, _: usize, _: echo_rt::Direction) -> Result<(), CudaError> {
        unreachable!("the engine makes no copies")
    }
    fn synchronize(&self) -> Result<(), CudaError> {
        self.log.borrow_mut().push("wait".into());
        Ok(())
    }
    fn has_error(&self) -> bool {
        self.error.get()
    }
    fn forget_error(&self) {
        self.log.borrow_mut().push("forget".into());
    }
    fn prefetch(&self, _: usize, bytes: usize, side: Side, stream: u64) -> Result<(), CudaError> {
        self.log.borrow_mut().push(format!("prefetch {bytes} {side:?} {stream:x}"));
        Ok(())
    }
}

struct Run {
    unifier: Unifier,
    device: Device,
}

fn facts() -> Option<DeviceFacts> {
    Some(DEVICE_FACTS.into())
}

impl Run {
    fn of(pair: Pair) -> Self {
        Self { unifier: Unifier::new(&plan(vec![pair])), device: Device::default() }
    }

    fn locked() -> Self {
        Self::of(Pair { page_locked: true, ..pair(Direction::Both) })
    }

    fn both() -> Self {
        Self::of(pair(Direction::Both))
    }

    fn malloc(&self) -> Option<usize> {
        self.malloc_as(1, false, 1)
    }

    fn malloc_as(&self, align: usize, zeroed: bool, thread: u64) -> Option<usize> {
        let call = HostAlloc { site: HOST, bytes: N, align, zeroed, page_locked: false, thread };
        used(self.unifier.host_alloc(&self.device, facts, call), zeroed)
    }

    fn malloc_host(&self) -> Option<usize> {
        let call = HostAlloc { site: HOST, bytes: N, align: 1, zeroed: false, page_locked: true, thread: 1 };
        used(self.unifier.host_alloc(&self.device, facts, call), false)
    }

    fn cuda_malloc(&self) -> Option<usize> {
        self.cuda_malloc_as(1)
    }

    fn cuda_malloc_as(&self, thread: u64) -> Option<usize> {
        used(self.unifier.device_alloc(&self.device, facts, DeviceAlloc { site: DEVICE, bytes: N, thread }), false)
    }

    /// p, for both.
    fn merge(&self) -> usize {
        let p = self.malloc().expect("p");
        assert_eq!(self.cuda_malloc(), Some(p));
        p
    }

    fn free(&self, address: usize) -> FreeDecision {
        self.unifier.host_free(&self.device, address)
    }

    fn cuda_free(&self, address: usize) -> FreeDecision {
        self.unifier.device_free(&self.device, address)
    }

    fn copy(&self, dst: usize, src: usize, kind: CopyKind) -> CopyDecision {
        self.copy_with(dst, src, kind, |_| {})
    }

    fn copy_with(&self, dst: usize, src: usize, kind: CopyKind, change: impl FnOnce(&mut Copy)) -> CopyDecision {
        let site = if kind == CopyKind::DeviceToHost { DOWNLOAD } else { UPLOAD };
        let stream = Stream::LEGACY;
        let mut call = Copy { site, dst, src, bytes: N, kind, stream, asynchronous: false, shape: Shape::Linear };
        change(&mut call);
        self.unifier.copy(&self.device, &call)
    }

    #[track_caller]
    fn deviated(&self, expected: &[Deviation]) {
        let found: Vec<Deviation> = self.unifier.deviations().into_iter().map(|(deviation, _)| deviation).collect();
        assert_eq!(found, expected);
    }
}

fn used(decision: AllocDecision, zeroed: bool) -> Option<usize> {
    match decision {
        AllocDecision::Forward => None,
        AllocDecision::Use { address, fill_zero } => {
            assert_eq!(fill_zero, zeroed);
            Some(address)
        }
    }
}

const DONE: FreeDecision = FreeDecision::Done(Ok(()));
const NO: FreeDecision = FreeDecision::Done(Err(CudaError::INVALID_VALUE));

#[test]
fn both_blocks_are_p_and_their_copies_go() {
    let run = Run::both();
    let p = run.merge();
    assert_eq!(run.copy(p, p, CopyKind::HostToDevice), CopyDecision::Skip);
    run.unifier.launched(Stream::LEGACY);
    assert_eq!(run.copy(p, p, CopyKind::DeviceToHost), CopyDecision::SkipThenWait(Waiting::Device));
    assert_eq!(run.free(p), DONE);
    assert_eq!(run.device.live.borrow().len(), 1, "d still lives");
    assert_eq!(run.cuda_free(p), DONE);
    assert!(run.device.live.borrow().is_empty());
    run.deviated(&[]);
    let counters = run.unifier.counters()[0];
    assert_eq!((counters.merged, counters.met, counters.released), (1, 1, 1));
    assert_eq!((counters.copies_skipped, counters.bytes_skipped, counters.waits), (2, 2 * N as u64, 1));
}

#[test]
fn frees_come_in_either_order_and_cuda_free_waits() {
    let run = Run::both();
    let p = run.merge();
    assert_eq!(run.cuda_free(p), DONE);
    assert_eq!(run.device.log(), ["wait"]);
    assert_eq!(run.unifier.size_of(p), Some(N));
    assert_eq!(run.free(p), DONE);
    assert!(run.device.live.borrow().is_empty());
    assert_eq!((run.free(p), run.cuda_free(p)), (FreeDecision::Forward, FreeDecision::Forward), "the address is free");

    let next = run.merge();
    assert_eq!(run.free(next), DONE);
    assert_eq!(run.unifier.size_of(next), None);
    assert_eq!(run.free(next), FreeDecision::Forward, "a program that frees twice is left to the real free");
}

#[test]
fn a_stopped_engine_merges_nothing_new_and_keeps_what_there_is() {
    let run = Run::both();
    let p = run.merge();
    run.unifier.stop();
    assert_eq!((run.malloc(), run.cuda_malloc()), (None, None));
    assert_eq!(run.copy(p, p, CopyKind::HostToDevice), CopyDecision::Skip);
    assert_eq!((run.free(p), run.cuda_free(p)), (DONE, DONE));
    assert!(run.device.live.borrow().is_empty());
    run.deviated(&[]);
}

#[test]
fn a_device_block_that_is_freed_twice_is_no_reason_to_free_p() {
    let run = Run::both();
    let p = run.merge();
    assert_eq!((run.cuda_free(p), run.cuda_free(p)), (DONE, NO));
    assert_eq!(run.device.live.borrow().len(), 1, "h still lives");
    assert_eq!(run.free(p), DONE);

    let h = run.malloc().expect("p");
    assert_eq!(run.cuda_free(h), NO, "its device block never came");
    assert_eq!(run.unifier.page_locked_free(&run.device, h), NO, "it is of the heap");
    assert_eq!(run.device.live.borrow().len(), 1);
}

#[test]
fn the_device_block_may_come_first_if_it_did_when_profiled() {
    for first in [First::Device, First::Either] {
        let run = Run::of(Pair { first, ..pair(Direction::Both) });
        let p = run.cuda_malloc().expect("p");
        assert_eq!(run.malloc(), Some(p));
        run.deviated(&[]);
    }
    let run = Run::both();
    assert_eq!((run.cuda_malloc(), run.malloc()), (None, None));
    run.deviated(&[Deviation::OtherOrder, Deviation::Retired]);
}

#[test]
fn everything_else_is_forwarded() {
    let run = Run::both();
    let p = run.merge();
    assert!(!run.unifier.wants_size(N + 1) && run.unifier.wants_size(N));
    for address in [0, 1, p - 1, p + 1, p + N, usize::MAX] {
        assert_eq!(run.free(address), FreeDecision::Forward);
        assert_eq!(run.cuda_free(address), FreeDecision::Forward);
        assert_eq!(run.unifier.realloc(address), ReallocDecision::Forward);
        assert_eq!(run.unifier.size_of(address), None);
    }
    assert!(run.unifier.is_near(p) && run.unifier.is_near(p + N - 1));
    assert_eq!(run.copy(0x1000, 0x2000, CopyKind::HostToDevice), CopyDecision::Forward);
    let other = HostAlloc { site: Site(0x9999), bytes: N, align: 1, zeroed: false, page_locked: false, thread: 1 };
    assert_eq!(run.unifier.host_alloc(&run.device, facts, other), AllocDecision::Forward);
    run.deviated(&[]);
}

#[test]
fn a_covered_wait_goes_only_if_this_run_has_waited_too() {
    let mut covered = pair(Direction::Both);
    covered.copies.iter_mut().for_each(|copy| copy.wait = Wait::Covered);
    let run = Run::of(covered);
    let p = run.merge();
    run.unifier.launched(STREAM);
    let token = run.unifier.waiting();
    run.unifier.waited(token, WaitFor::Stream(STREAM));
    assert_eq!(run.copy(p, p, CopyKind::DeviceToHost), CopyDecision::Skip);
    run.deviated(&[]);
    run.unifier.launched(STREAM);
    assert_eq!(run.copy(p, p, CopyKind::DeviceToHost), CopyDecision::SkipThenWait(Waiting::Device));
    run.deviated(&[Deviation::WaitNotCovered]);
}

#[test]
fn with_a_second_device_no_wait_is_taken_to_cover_anything() {
    // What the program waits for may be the other device's.
    let covered = || {
        let mut covered = pair(Direction::Both);
        covered.copies.iter_mut().for_each(|copy| copy.wait = Wait::Covered);
        Run::of(covered)
    };
    let run = covered();
    run.unifier.device_set(1);
    run.unifier.device_set(2);
    let p = run.merge();
    run.unifier.device_set(2);
    assert_eq!(run.copy(p, p, CopyKind::DeviceToHost), CopyDecision::Skip, "all of it is on the second device");
    run.unifier.device_set(1);
    assert_eq!(run.copy(p, p, CopyKind::DeviceToHost), CopyDecision::SkipThenWait(Waiting::Device));
    run.deviated(&[Deviation::WaitNotCovered]);
    let run = covered();
    let p = run.merge();
    run.unifier.device_set(1);
    assert_eq!(run.copy(p, p, CopyKind::DeviceToHost), CopyDecision::SkipThenWait(Waiting::Device));
}

#[test]
fn a_stream_is_waited_for_only_if_nothing_else_is_pending() {
    let mut in_stream = pair(Direction::Output);
    in_stream.copies.iter_mut().for_each(|copy| copy.wait = Wait::Stream);
    let run = Run::of(in_stream);
    let p = run.merge();
    let copy = |stream| run.copy_with(p, p, CopyKind::DeviceToHost, |call| call.stream = stream);
    run.unifier.launched(STREAM);
    assert_eq!(copy(STREAM), CopyDecision::SkipThenWait(Waiting::Stream(STREAM)));
    assert_eq!(copy(Stream::LEGACY), CopyDecision::SkipThenWait(Waiting::Device));
    run.unifier.launched(Stream(0x6000));
    assert_eq!(copy(STREAM), CopyDecision::SkipThenWait(Waiting::Device));
}

#[test]
fn an_asynchronous_upload_waits_for_nothing_and_a_download_does() {
    let run = Run::both();
    let p = run.merge();
    run.unifier.launched(STREAM);
    let copy = |kind| run.copy_with(p, p, kind, |call| (call.asynchronous, call.stream) = (true, STREAM));
    assert_eq!(copy(CopyKind::HostToDevice), CopyDecision::Skip);
    assert_eq!(copy(CopyKind::DeviceToHost), CopyDecision::SkipThenWait(Waiting::Device));
}

#[test]
fn page_locked_blocks_are_p_and_cuda_free_host_waits() {
    let run = Run::locked();
    let p = run.malloc_host().expect("p");
    assert_eq!(run.cuda_malloc(), Some(p));
    assert_eq!(run.copy(p, p, CopyKind::HostToDevice), CopyDecision::Skip);
    run.unifier.launched(Stream::LEGACY);
    assert_eq!(run.copy(p, p, CopyKind::DeviceToHost), CopyDecision::SkipThenWait(Waiting::Device));
    assert_eq!(run.unifier.page_locked_free(&run.device, p), DONE);
    assert_eq!(run.device.log(), ["wait"]);
    assert_eq!(run.unifier.page_locked_free(&run.device, p), NO, "freed twice");
    assert_eq!(run.cuda_free(p), DONE);
    assert!(run.device.live.borrow().is_empty());
    run.deviated(&[]);
}

#[test]
fn no_asynchronous_copy_of_page_locked_memory_waits() {
    for (locked, download) in [(true, CopyDecision::Skip), (false, CopyDecision::SkipThenWait(Waiting::Device))] {
        let run = if locked { Run::locked() } else { Run::both() };
        let p = if locked { run.malloc_host() } else { run.malloc() }.expect("p");
        assert_eq!(run.cuda_malloc(), Some(p));
        run.unifier.launched(STREAM);
        for (kind, expected) in [(CopyKind::HostToDevice, CopyDecision::Skip), (CopyKind::DeviceToHost, download)] {
            let asynchronous = |call: &mut Copy| (call.asynchronous, call.stream) = (true, STREAM);
            assert_eq!(run.copy_with(p, p, kind, asynchronous), expected, "{kind:?}, page-locked: {locked}");
        }
        run.deviated(&[]);
    }
}

#[test]
fn an_asynchronous_copy_that_orders_streams_leaves_a_wait() {
    for (of_copy, of_work) in [(Stream::LEGACY, STREAM), (STREAM, Stream::LEGACY)] {
        for non_blocking in [false, true] {
            let run = Run::both();
            let p = run.merge();
            run.unifier.stream_created(STREAM, non_blocking);
            run.unifier.launched(of_work);
            let upload = |call: &mut Copy| (call.asynchronous, call.stream) = (true, of_copy);
            let decision = run.copy_with(p, p, CopyKind::HostToDevice, upload);
            if non_blocking {
                assert_eq!(decision, CopyDecision::Skip);
                run.deviated(&[]);
            } else {
                assert_eq!(decision, CopyDecision::SkipThenWait(Waiting::Device));
                run.deviated(&[Deviation::WaitNotCovered]);
            }
        }
    }
}

#[test]
fn another_kind_of_host_memory_at_a_site_is_counted() {
    let run = Run::both();
    assert_eq!((run.malloc_host(), run.malloc()), (None, None));
    run.deviated(&[Deviation::Retired, Deviation::OtherKind]);
    let run = Run::locked();
    assert_eq!((run.malloc(), run.malloc_host()), (None, None));
    run.deviated(&[Deviation::Retired, Deviation::OtherKind]);
}

#[test]
fn questions_about_p_are_counted() {
    let run = Run::both();
    let p = run.merge();
    run.unifier.queried(p - 1);
    run.unifier.queried(p + N);
    run.deviated(&[]);
    run.unifier.queried(p + 8);
    run.deviated(&[Deviation::Queried]);
}

#[test]
fn a_copy_at_an_unknown_site_waits() {
    let run = Run::both();
    let p = run.merge();
    let decision = run.copy_with(p, p, CopyKind::HostToDevice, |call| call.site = Site(0x1234));
    assert_eq!(decision, CopyDecision::SkipThenWait(Waiting::Device));
    run.deviated(&[Deviation::UnknownCopySite]);
}

#[test]
fn copies_with_other_memory_are_made_and_waited_for_where_p_would_return_early() {
    let run = Run::both();
    let p = run.merge();
    assert_eq!(run.copy(0x1000, p, CopyKind::DeviceToHost), CopyDecision::Forward);
    let asynchronous = |dst, src, kind| run.copy_with(dst, src, kind, |call| call.asynchronous = true);
    let waits = CopyDecision::ForwardThenWait(Waiting::Stream(Stream::LEGACY));
    assert_eq!(asynchronous(0x1000, p, CopyKind::DeviceToHost), waits);
    assert_eq!(asynchronous(0x1000, p, CopyKind::DeviceToDevice), CopyDecision::Forward);
    run.deviated(&[]);
    assert_eq!(run.copy(p, 0x1000, CopyKind::HostToDevice), CopyDecision::Forward);
    run.deviated(&[Deviation::ForeignCopy]);
    for kind in [CopyKind::HostToDevice, CopyKind::Default] {
        assert_eq!(run.copy(0x1000, p, kind), waits, "it may be one within the device");
    }
    assert_eq!(run.unifier.counters()[0].copies_made, 6);
}

#[test]
fn only_copies_of_p_onto_itself_are_skipped() {
    let run = Run::both();
    let p = run.merge();
    let copy = |dst, src, change: fn(&mut Copy)| run.copy_with(dst, src, CopyKind::HostToDevice, change);
    let made = CopyDecision::ForwardThenWait(Waiting::Stream(Stream::LEGACY));
    assert_eq!(copy(p, p, |call| call.bytes = N + 1), made, "it leaves the block");
    assert_eq!(copy(p, p, |call| call.shape = Shape::Pitched), made);
    assert_eq!(copy(p, p, |call| call.kind = CopyKind::DeviceToDevice), CopyDecision::Forward);
    assert_eq!(copy(p + 8, p + 8, |call| call.bytes = N - 8), CopyDecision::Skip);
    run.deviated(&[]);
    assert_eq!(copy(p + 8, p, |call| call.bytes = 8), made);
    run.deviated(&[Deviation::ShiftedCopy]);
}

#[test]
fn a_partner_that_never_comes_ends_the_merging() {
    let run = Run::both();
    let p = run.malloc().expect("p");
    assert_eq!(run.free(p), DONE);
    assert!(run.device.live.borrow().is_empty());
    run.deviated(&[Deviation::PartnerNeverCame]);
    assert_eq!((run.malloc(), run.cuda_malloc()), (None, None), "the next d must not meet another h");
}

#[test]
fn a_second_block_while_the_first_waits_or_lives_is_forwarded() {
    let run = Run::both();
    let p = run.malloc().expect("p");
    assert_eq!(run.malloc(), None);
    run.deviated(&[Deviation::TooManyWaiting]);
    assert_eq!(run.cuda_malloc(), None, "whose partner it is can't be told");
    assert_eq!(run.free(p), DONE);

    let run = Run::both();
    run.merge();
    assert_eq!(run.malloc(), None);
    run.deviated(&[Deviation::TooManyAlive]);
}

#[test]
fn threads_meet_their_own_blocks() {
    let run = Run::both();
    let (a, b) = (run.malloc_as(1, false, 1).expect("p"), run.malloc_as(1, false, 2).expect("p"));
    assert_eq!((run.cuda_malloc_as(2), run.cuda_malloc_as(1)), (Some(b), Some(a)));
}

#[test]
fn another_size_at_a_site_is_counted() {
    let mut other = pair(Direction::Both);
    (other.id, other.host, other.device, other.bytes) = (1, Site(7), Site(8), 2 * N as u64);
    let unifier = Unifier::new(&plan(vec![pair(Direction::Both), other]));
    let device = Device::default();
    let call = HostAlloc { site: HOST, bytes: 2 * N, align: 1, zeroed: false, page_locked: false, thread: 1 };
    assert_eq!(unifier.host_alloc(&device, facts, call), AllocDecision::Forward);
    assert_eq!(unifier.deviations(), [(Deviation::OtherSize, 1)]);
}

#[test]
fn memory_that_can_t_be_had_leaves_no_error() {
    let run = Run::both();
    run.device.refuses.set(true);
    assert_eq!(run.malloc(), None);
    assert_eq!(run.device.log(), ["forget"]);
    run.deviated(&[Deviation::AllocationFailed]);
}

#[test]
fn an_error_of_the_program_is_left_for_it() {
    let run = Run::both();
    run.device.error.set(true);
    assert_eq!(run.malloc(), None);
    assert!(run.device.log().is_empty() && run.device.live.borrow().is_empty());
    run.deviated(&[Deviation::ErrorPending]);
}

#[test]
fn a_backend_that_the_device_does_not_allow_is_not_used() {
    let run = Run::of(Pair { backend: BackendName::System, ..pair(Direction::Both) });
    assert_eq!(run.malloc(), None);
    run.deviated(&[Deviation::BackendUnusable]);
    let run = Run::both();
    let exclusive = DeviceFacts { concurrent_managed_access: false, ..DEVICE_FACTS.into() };
    let call = HostAlloc { site: HOST, bytes: N, align: 1, zeroed: false, page_locked: false, thread: 1 };
    assert_eq!(run.unifier.host_alloc(&run.device, || Some(exclusive), call), AllocDecision::Forward);
    let run = Run::both();
    assert_eq!(run.unifier.host_alloc(&run.device, || None, call), AllocDecision::Forward, "another device");
}

#[test]
fn each_backend_ends_by_its_own_function() {
    for (backend, kind) in [(BackendName::Managed, "managed"), (BackendName::Mapped, "mapped")] {
        let run = Run::of(Pair { backend, ..pair(Direction::Both) });
        let p = run.merge();
        assert_eq!(run.device.live.borrow()[&p], kind);
        run.free(p);
        run.cuda_free(p);
        assert!(run.device.live.borrow().is_empty());
    }
}

#[test]
fn prefetches_go_where_the_data_is_needed() {
    let run = Run::of(Pair { backend: BackendName::Prefetched, ..pair(Direction::Both) });
    let p = run.merge();
    run.copy_with(p, p, CopyKind::HostToDevice, |call| call.stream = STREAM);
    run.copy_with(p, p, CopyKind::DeviceToHost, |call| call.stream = STREAM);
    assert_eq!(run.device.log(), ["prefetch 4096 Device 5000", "prefetch 4096 Host 5000"]);
}

#[test]
fn zeroed_blocks_are_filled_unless_the_gpu_was_there_first() {
    let from_device = Pair { first: First::Device, ..pair(Direction::Both) };
    let run = Run::of(from_device.clone());
    let p = run.cuda_malloc().expect("p");
    assert_eq!(run.malloc_as(1, true, 1), Some(p));
    let run = Run::of(from_device);
    run.cuda_malloc().expect("p");
    run.unifier.launched(Stream::LEGACY);
    assert_eq!(run.malloc_as(1, true, 1), None);
    run.deviated(&[Deviation::ZeroedAfterUse]);
}

#[test]
fn filling_with_zeroes_waits_where_the_host_must_not_touch_managed_memory() {
    let orin = || Some(DeviceFacts { concurrent_managed_access: false, ..DEVICE_FACTS.into() });
    let call = HostAlloc { site: HOST, bytes: N, align: 1, zeroed: true, page_locked: false, thread: 1 };
    for (device, waits) in [(orin as fn() -> _, &["wait"][..]), (facts, &[])] {
        let run = Run::of(Pair { exclusive: true, ..pair(Direction::Both) });
        run.unifier.launched(STREAM);
        assert!(used(run.unifier.host_alloc(&run.device, device, call), true).is_some());
        assert_eq!(run.device.log(), waits);
    }
    // As the second block it can't wait, so it stays apart.
    for (device, joins) in [(orin as fn() -> _, false), (facts, true)] {
        let run = Run::of(Pair { exclusive: true, first: First::Device, ..pair(Direction::Both) });
        run.unifier.launched(STREAM);
        let wanted = DeviceAlloc { site: DEVICE, bytes: N, thread: 1 };
        let p = used(run.unifier.device_alloc(&run.device, device, wanted), false);
        assert_eq!(used(run.unifier.host_alloc(&run.device, device, call), true), p.filter(|_| joins));
    }
}

#[test]
fn an_alignment_that_p_does_not_have_is_left_to_the_real_call() {
    // The device's blocks are multiples of 64 KiB.
    for align in [256, 4096, 0x1_0000] {
        let run = Run::both();
        let p = run.malloc_as(align, false, 1);
        assert!(p.is_some_and(|p| p % align == 0), "{align}");
        run.deviated(&[]);
    }
    let run = Run::both();
    assert_eq!(run.malloc_as(0x100_0000, false, 1), None);
    run.deviated(&[Deviation::Alignment]);
    assert!(run.device.live.borrow().is_empty(), "p was made, and given back");
    // Where the device block came first it keeps its address, and the host block gets one of its own.
    let run = Run::of(Pair { first: First::Device, ..pair(Direction::Both) });
    let p = run.cuda_malloc().expect("p");
    assert_eq!(run.malloc_as(0x100_0000, false, 1), None);
    run.deviated(&[Deviation::Alignment]);
    assert_eq!(run.unifier.device_free(&run.device, p), FreeDecision::Done(Ok(())));
    assert!(run.device.live.borrow().is_empty());
}

#[test]
fn realloc_makes_an_ordinary_block() {
    let run = Run::both();
    let p = run.merge();
    assert_eq!(run.unifier.realloc(p), ReallocDecision::Replace { bytes: N });
    assert_eq!(run.free(p), DONE);
    assert_eq!(run.unifier.realloc(p), ReallocDecision::Forward, "its host block is freed");
    run.deviated(&[Deviation::Reallocated]);
}

#[test]
fn a_reset_waits_while_host_memory_would_go() {
    let run = Run::both();
    let p = run.merge();
    assert_eq!(run.unifier.reset(&run.device), ResetDecision::WaitInstead);
    run.deviated(&[Deviation::ResetPostponed]);
    run.free(p);
    assert_eq!(run.unifier.reset(&run.device), ResetDecision::Forward);
    assert!(run.device.live.borrow().is_empty());
    assert_eq!(run.cuda_free(p), FreeDecision::Forward);
}

/// Page-locked memory would go with the reset in the program as it is.
#[test]
fn a_reset_takes_page_locked_memory_along() {
    let run = Run::locked();
    let p = run.malloc_host().expect("p");
    assert_eq!(run.cuda_malloc(), Some(p));
    assert_eq!(run.unifier.reset(&run.device), ResetDecision::Forward);
    assert!(run.device.live.borrow().is_empty());
    run.deviated(&[]);
}

#[test]
fn a_set_of_an_input_is_counted_and_of_an_output_is_not() {
    for (direction, expected) in [(Direction::Both, &[Deviation::Set][..]), (Direction::Output, &[])] {
        let run = Run::of(pair(direction));
        let p = run.merge();
        run.unifier.set(p + 8);
        run.deviated(expected);
    }
}

#[test]
fn no_copy_is_skipped_while_a_stream_is_captured() {
    let run = Run::both();
    let p = run.merge();
    run.unifier.capture(true);
    assert_eq!(run.copy(p, p, CopyKind::HostToDevice), CopyDecision::Forward);
    run.unifier.capture(false);
    assert_eq!(run.copy(p, p, CopyKind::HostToDevice), CopyDecision::Skip);
    run.unifier.capture(false);
    assert_eq!(run.copy(p, p, CopyKind::HostToDevice), CopyDecision::Skip);
}

#[test]
fn a_forked_child_releases_nothing() {
    let run = Run::both();
    let p = run.merge();
    run.unifier.forked();
    assert_eq!(run.copy(p, p, CopyKind::HostToDevice), CopyDecision::Forward);
    assert_eq!((run.free(p), run.cuda_free(p)), (DONE, DONE));
    assert_eq!(run.device.live.borrow().len(), 1);
    assert_eq!(run.malloc(), None);
    run.deviated(&[Deviation::ForkedChild]);
}

#[test]
fn where_the_table_is_full_the_real_call_is_made() {
    const ROOM: usize = 4096;
    let run = Run::of(Pair { alive: 10_000, ..pair(Direction::Both) });
    let blocks: Vec<_> = (0..ROOM).map(|_| run.merge()).collect();
    run.deviated(&[]);
    assert_eq!(run.malloc(), None);
    run.deviated(&[Deviation::TableFull]);
    for &block in &blocks {
        assert_eq!((run.cuda_free(block), run.free(block)), (DONE, DONE));
    }
    assert_eq!(run.device.live.borrow().len(), 0);
    run.deviated(&[Deviation::TableFull]);
}

#[test]
fn only_enabled_pairs_are_merged() {
    use echo_dr_format::plan::State;
    for state in [State::Candidate, State::Validated] {
        let run = Run::of(Pair { state, ..pair(Direction::Both) });
        assert!(!run.unifier.wants_size(N));
        assert_eq!(run.malloc(), None);
    }
}

#[test]
fn many_threads_at_once_lose_nothing() {
    use std::sync::Mutex;
    // The fake device is not made for threads, so each call of it is under a lock of the test's own.
    struct Shared(Mutex<Device>);
    impl Cuda for Shared {
        fn malloc(&self, bytes: usize) -> Result<usize, CudaError> {
            self.0.lock().expect("not poisoned").malloc(bytes)
        }
        fn free(&self, address: usize) -> Result<(), CudaError> {
            self.0.lock().expect("not poisoned").free(address)
        }
        fn malloc_managed(&self, bytes: usize) -> Result<usize, CudaError> {
            self.0.lock().expect("not poisoned").malloc_managed(bytes)
        }
        fn host_alloc(&self, bytes: usize) -> Result<(usize, usize), CudaError> {
            self.0.lock().expect("not poisoned").host_alloc(bytes)
        }
        fn host_free(&self, address: usize) -> Result<(), CudaError> {
            self.0.lock().expect("not poisoned").host_free(address)
        }
        fn heap_alloc(&self, bytes: usize) -> Option<usize> {
            self.0.lock().expect("not poisoned").heap_alloc(bytes)
        }
        fn heap_free(&self, address: usize) {
            self.0.lock().expect("not poisoned").heap_free(address);
        }
        fn copy(&self, _: usize, _: usize, _: usize, _: echo_rt::Direction) -> Result<(), CudaError> {
            unreachable!("the engine makes no copies")
        }
        fn synchronize(&self) -> Result<(), CudaError> {
            Ok(())
        }
        fn has_error(&self) -> bool {
            false
        }
        fn forget_error(&self) {}
    }
    let unifier = Unifier::new(&plan(vec![pair(Direction::Both)]));
    let device = Shared(Mutex::default());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (unifier, device) = (&unifier, &device);
            scope.spawn(move || {
                for _ in 0..500 {
                    let call = HostAlloc { site: HOST, bytes: N, align: 1, zeroed: false, page_locked: false, thread };
                    let p = used(unifier.host_alloc(device, facts, call), false).expect("p");
                    let call = DeviceAlloc { site: DEVICE, bytes: N, thread };
                    assert_eq!(used(unifier.device_alloc(device, facts, call), false), Some(p));
                    assert_eq!(unifier.host_free(device, p), DONE);
                    assert_eq!(unifier.device_free(device, p), DONE);
                }
            });
        }
    });
    let counters = unifier.counters()[0];
    assert_eq!((counters.merged, counters.met, counters.released), (4000, 4000, 4000));
    assert!(device.0.lock().expect("not poisoned").live.borrow().is_empty());
    assert_eq!(unifier.deviations(), []);
}
