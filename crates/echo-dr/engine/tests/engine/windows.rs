//! Validation against a device and pages that are made up: every access that a merged buffer would answer otherwise is found, and the
//! patterns of ordinary programs are not.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::common::{DEVICE, DOWNLOAD, HOST, N, STREAM, UPLOAD, pair, plan};
use echo_dr_engine::calls::Copy;
use echo_dr_engine::{Fault, Memory, Protection, Windows};
use echo_dr_format::event::{CopyKind, Shape, Stream, WaitFor};
use echo_dr_format::finding::{Access, Finding, PairSeen, Trouble};
use echo_dr_format::plan::{Direction, First, Pair, Plan};
use echo_dr_format::site::{Fnv1a, Site};

pub(crate) const H: usize = 0x10_0000;
pub(crate) const D: usize = 0x90_0000;
pub(crate) const CODE: Site = Site(0x77);
const OTHER_STREAM: Stream = Stream(0x6000);

/// Contents by block, and what the pages allow.
#[derive(Default)]
pub(crate) struct Machine {
    pub(crate) host: RefCell<BTreeMap<usize, Vec<u8>>>,
    device: RefCell<BTreeMap<usize, Vec<u8>>>,
    pub(crate) pages: RefCell<BTreeMap<usize, Protection>>,
    /// The device may still be copying from or to h's own pages.
    copying: Cell<bool>,
    /// mprotect fails.
    refuses: RefCell<bool>,
}

impl Memory for Machine {
    fn protect(&self, start: usize, _: usize, protection: Protection) -> bool {
        assert!(!self.copying.get() || protection == Protection::Open, "the device can't go on copying");
        self.pages.borrow_mut().insert(start, protection);
        !*self.refuses.borrow()
    }
    fn drain(&self) {
        self.copying.set(false);
    }
    fn host_digest(&self, address: usize, _: usize) -> u64 {
        Fnv1a::of(&self.host.borrow()[&address])
    }
    fn device_digest(&self, address: usize, _: usize) -> Option<u64> {
        self.device.borrow().get(&address).map(|content| Fnv1a::of(content))
    }
    fn poison(&self, address: usize, _: usize) {
        self.device.borrow_mut().insert(address, vec![0xa5; 8]);
    }
}

/// A program in a validation run.
pub(crate) struct Program {
    pub(crate) windows: Windows,
    pub(crate) machine: Machine,
    asynchronous: bool,
    stream: Stream,
}

impl Program {
    pub(crate) fn new(direction: Direction) -> Self {
        Self::of(plan(vec![pair(direction)]), false)
    }

    pub(crate) fn of(plan: Plan, exclusive: bool) -> Self {
        let windows = Windows::new(&plan, 4096, exclusive);
        Self { windows, machine: Machine::default(), asynchronous: false, stream: Stream::LEGACY }
    }

    pub(crate) fn both_blocks(direction: Direction) -> Self {
        let mut program = Self::new(direction);
        program.malloc();
        program.cuda_malloc();
        program
    }

    pub(crate) fn malloc(&mut self) {
        self.machine.host.borrow_mut().insert(H, vec![0; 8]);
        self.windows.host_alloc(&self.machine, HOST, H, N, 1);
    }

    pub(crate) fn cuda_malloc(&mut self) {
        self.machine.device.borrow_mut().insert(D, vec![0; 8]);
        self.windows.device_alloc(&self.machine, DEVICE, D, N, 1);
    }

    /// A load or store of the host, through the pages.
    pub(crate) fn access(&self, access: Access) {
        let allowed = |protection: &Protection| match protection {
            Protection::Open => true,
            Protection::ReadOnly => access == Access::Read,
            Protection::Closed => false,
        };
        for _ in 0..3 {
            if self.machine.pages.borrow().get(&H).is_none_or(allowed) {
                return;
            }
            match self.windows.touched(H + 5, access, CODE) {
                Fault::Reopen { start, bytes, protection } => {
                    assert_eq!((start, bytes), (H, N));
                    self.machine.pages.borrow_mut().insert(H, protection);
                }
                Fault::NotOurs => panic!("the program would be killed"),
            }
        }
        panic!("the program would hang in its fault handler");
    }

    pub(crate) fn read(&self) {
        self.access(Access::Read);
    }

    pub(crate) fn write(&self, value: u8) {
        self.access(Access::Write);
        self.machine.host.borrow_mut().insert(H, vec![value; 8]);
    }

    pub(crate) fn copy(&self, dst: usize, src: usize, kind: CopyKind, site: Site) {
        let (asynchronous, stream) = (self.asynchronous, self.stream);
        let call = Copy { site, dst, src, bytes: N, kind, stream, asynchronous, shape: Shape::Linear };
        let token = self.windows.waiting();
        self.windows.copying(&self.machine, &call);
        let page = self.machine.pages.borrow().get(&H).copied().unwrap_or(Protection::Open);
        let content = |blocks: &RefCell<BTreeMap<usize, Vec<u8>>>, address| blocks.borrow().get(&address).cloned();
        match kind {
            CopyKind::HostToDevice => {
                assert!(src != H || page != Protection::Closed, "the driver can't read the pages");
                let value = content(&self.machine.host, src).unwrap_or_else(|| vec![9; 8]);
                self.machine.device.borrow_mut().insert(dst, value);
            }
            _ => {
                assert!(dst != H || page == Protection::Open, "the driver can't write the pages");
                let value = content(&self.machine.device, src).unwrap_or_else(|| vec![9; 8]);
                self.machine.host.borrow_mut().insert(dst, value);
            }
        }
        self.windows.copied(&self.machine, token, &call, true);
    }

    pub(crate) fn upload(&self) {
        self.copy(D, H, CopyKind::HostToDevice, UPLOAD);
    }

    pub(crate) fn download(&self) {
        self.copy(H, D, CopyKind::DeviceToHost, DOWNLOAD);
    }

    /// A kernel that leaves `result` in d, or leaves d alone.
    pub(crate) fn kernel(&self, result: Option<u8>) {
        self.windows.launching(&self.machine, self.stream);
        if let Some(value) = result {
            self.machine.device.borrow_mut().insert(D, vec![value; 8]);
        }
        self.windows.launched(self.stream);
    }

    pub(crate) fn wait(&self) {
        self.wait_for(WaitFor::Device);
    }

    pub(crate) fn wait_for(&self, on: WaitFor) {
        let token = self.windows.waiting();
        self.windows.waited(&self.machine, token, on);
    }

    /// At this point of the run.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.windows.findings(&self.machine, 5)
    }

    pub(crate) fn seen(&self) -> PairSeen {
        self.windows.finish(&self.machine, 5).1[0]
    }

    #[track_caller]
    pub(crate) fn troubles(&self, expected: &[Trouble]) {
        let troubles: Vec<Trouble> = self.findings().into_iter().map(|finding| finding.trouble).collect();
        assert_eq!(troubles, expected);
    }
}

#[test]
fn rounds_of_upload_work_and_download_pass() {
    let program = Program::both_blocks(Direction::Both);
    for round in 0..3 {
        program.write(round);
        program.upload();
        program.kernel(Some(100 + round));
        program.download();
        program.read();
    }
    program.troubles(&[]);
    let seen = program.seen();
    assert_eq!((seen.buffers, seen.windows, seen.closed, seen.unwatched), (1, 3, 3, 0));
}

#[test]
fn a_host_access_between_upload_and_download_is_found_with_its_place() {
    for access in [Access::Read, Access::Write, Access::Unknown] {
        let program = Program::both_blocks(Direction::Both);
        program.write(1);
        program.upload();
        program.kernel(Some(2));
        program.access(access);
        let findings = program.findings();
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].trouble, Trouble::HostTouched(access));
        assert_eq!((findings[0].site, findings[0].offset, findings[0].time), (Some(CODE), Some(5), 5));
        program.download();
        program.troubles(&[]);
    }
}

#[test]
fn a_wait_alone_does_not_let_the_host_refill_an_input_that_is_used_again() {
    // The paper's window ends at the wait; the kernel after the refill would read the next round's data.
    let program = Program::both_blocks(Direction::Input);
    program.write(1);
    program.upload();
    program.kernel(None);
    program.wait();
    program.write(2);
    program.troubles(&[]);
    program.kernel(None);
    program.troubles(&[Trouble::LaunchAfterHostWrite]);
}

#[test]
fn an_input_may_be_refilled_after_a_wait_if_an_upload_comes_before_the_next_work() {
    let program = Program::both_blocks(Direction::Input);
    for round in 0..3 {
        program.write(round);
        program.upload();
        program.kernel(None);
        program.wait();
    }
    program.troubles(&[]);
}

#[test]
fn an_input_refilled_without_a_wait_is_found() {
    let program = Program::both_blocks(Direction::Input);
    program.write(1);
    program.upload();
    program.kernel(None);
    program.write(2);
    program.troubles(&[Trouble::HostTouched(Access::Write)]);
}

#[test]
fn a_wait_before_the_first_work_does_not_close_the_window() {
    let program = Program::both_blocks(Direction::Input);
    program.write(1);
    program.upload();
    program.wait();
    program.write(2);
    program.troubles(&[Trouble::HostTouched(Access::Write)]);
}

#[test]
fn reading_an_input_is_fine_where_the_gpu_only_reads_it() {
    let program = Program::both_blocks(Direction::Input);
    program.write(1);
    program.upload();
    program.kernel(None);
    program.read();
    program.wait();
    program.read();
    program.troubles(&[]);
}

#[test]
fn reading_an_input_that_the_gpu_works_in_is_found() {
    for read_late in [false, true] {
        let program = Program::both_blocks(Direction::Input);
        program.write(1);
        program.upload();
        program.kernel(Some(2));
        if !read_late {
            program.read();
        }
        program.wait();
        if read_late {
            program.read();
        }
        program.troubles(&[Trouble::HostTouched(Access::Read)]);
    }
}

#[test]
fn a_read_on_trial_is_judged_when_the_pair_or_the_run_ends() {
    for (result, expected) in [(None, &[][..]), (Some(2), &[Trouble::HostTouched(Access::Read)])] {
        let ends: [fn(&Program); 3] = [
            |_| {},
            |program| program.windows.host_free(&program.machine, H),
            |program| program.windows.device_free(&program.machine, D),
        ];
        for end in ends {
            let program = Program::both_blocks(Direction::Input);
            program.write(1);
            program.upload();
            program.kernel(result);
            program.read();
            end(&program);
            let (found, _) = program.windows.finish(&program.machine, 5);
            let found: Vec<Trouble> = found.into_iter().map(|finding| finding.trouble).collect();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn an_input_that_the_gpu_works_in_may_be_left_alone_until_d_is_freed_but_not_read_then() {
    let program = Program::both_blocks(Direction::Input);
    program.write(1);
    program.upload();
    program.kernel(Some(2));
    program.windows.device_free(&program.machine, D);
    program.troubles(&[]);
    program.read();
    program.troubles(&[Trouble::HostTouched(Access::Read)]);
}

#[test]
fn an_upload_that_restores_what_the_gpu_changed_is_found() {
    let program = Program::both_blocks(Direction::Input);
    program.write(1);
    for _ in 0..2 {
        program.upload();
        program.kernel(Some(2));
        program.wait();
    }
    program.troubles(&[Trouble::DeviceWriteLost]);
}

#[test]
fn work_that_writes_d_before_its_first_upload_is_found() {
    let program = Program::both_blocks(Direction::Input);
    program.write(1);
    program.kernel(Some(2));
    program.upload();
    program.troubles(&[Trouble::DeviceWriteLost]);

    let program = Program::both_blocks(Direction::Input);
    program.write(1);
    program.kernel(None);
    program.upload();
    program.troubles(&[]);
}

#[test]
fn a_set_before_h_exists_is_fine_and_after_it_was_filled_is_not() {
    let mut from_device = pair(Direction::Input);
    from_device.first = First::Device;
    let mut program = Program::of(plan(vec![from_device]), false);
    program.cuda_malloc();
    program.windows.set(&program.machine, D, N, Stream::LEGACY);
    program.machine.device.borrow_mut().insert(D, vec![0; 8]);
    program.malloc();
    program.write(1);
    program.upload();
    program.troubles(&[]);

    let program = Program::both_blocks(Direction::Input);
    program.write(1);
    program.windows.set(&program.machine, D, N, Stream::LEGACY);
    program.machine.device.borrow_mut().insert(D, vec![0; 8]);
    program.upload();
    program.troubles(&[Trouble::DeviceWriteLost]);
}

#[test]
fn rounds_of_an_output_pass() {
    let program = Program::both_blocks(Direction::Output);
    for round in 0..3 {
        program.kernel(Some(round));
        program.download();
        program.read();
    }
    program.troubles(&[]);
    assert_eq!(program.seen().windows, 3);
}

#[test]
fn touching_an_output_while_the_next_round_runs_is_found() {
    for access in [Access::Read, Access::Write] {
        let program = Program::both_blocks(Direction::Output);
        program.kernel(Some(1));
        program.download();
        program.kernel(Some(2));
        program.access(access);
        program.troubles(&[Trouble::HostTouched(access)]);
    }
}

#[test]
fn an_output_may_be_read_after_other_work_is_waited_for() {
    let program = Program::both_blocks(Direction::Output);
    program.kernel(Some(1));
    program.download();
    program.kernel(None); // works for another buffer
    program.wait();
    program.read();
    program.troubles(&[]);
}

#[test]
fn an_output_that_the_host_changes_between_rounds_is_found() {
    // A kernel that adds to d would add to the host's value.
    let program = Program::both_blocks(Direction::Output);
    program.kernel(Some(1));
    program.download();
    program.write(7);
    program.kernel(Some(2));
    program.troubles(&[Trouble::LaunchAfterHostWrite]);
}

#[test]
fn a_download_that_undoes_what_the_host_wrote_is_found() {
    let program = Program::both_blocks(Direction::Output);
    program.kernel(Some(1));
    program.download();
    program.write(7);
    program.download();
    program.troubles(&[Trouble::HostWriteLost]);
}

#[test]
fn filling_h_after_the_gpu_has_begun_with_d_is_found() {
    let mut from_device = pair(Direction::Output);
    from_device.first = First::Device;
    let mut program = Program::of(plan(vec![from_device]), false);
    program.cuda_malloc();
    program.kernel(Some(1));
    program.malloc();
    program.write(0);
    program.troubles(&[Trouble::HostTouched(Access::Write)]);
}

#[test]
fn an_asynchronous_download_closes_the_window_when_a_wait_covers_it() {
    let mut program = Program::both_blocks(Direction::Output);
    (program.asynchronous, program.stream) = (true, STREAM);
    program.kernel(Some(1));
    program.download();
    program.wait();
    program.read();
    program.troubles(&[]);
    program.kernel(Some(2));
    program.download();
    program.read();
    program.troubles(&[Trouble::HostTouched(Access::Read)]);
}

/// Of page-locked memory the host has not waited for the download when more work comes.
#[test]
fn work_behind_an_asynchronous_download_gives_d_another_value_than_h() {
    for (result, expected) in [(None, &[][..]), (Some(3), &[Trouble::HostTouched(Access::Read)])] {
        let mut program = Program::both_blocks(Direction::Both);
        program.asynchronous = true;
        program.upload();
        program.kernel(Some(2));
        program.download();
        program.kernel(result);
        program.wait();
        program.read();
        program.troubles(expected);
    }
}

fn locked(reaches_all: bool) -> Program {
    let mut plan = plan(vec![Pair { page_locked: !reaches_all, ..pair(Direction::Both) }]);
    plan.context.device.as_mut().expect("a device").attributes.pageable_memory_access = reaches_all;
    let mut program = Program::of(plan, reaches_all);
    program.malloc();
    program.cuda_malloc();
    program
}

#[test]
fn a_gpu_that_fails_where_it_does_not_reach_h_ends_the_pair() {
    for reaches_all in [false, true] {
        let program = locked(reaches_all);
        assert!(program.windows.keeps_from_gpu());
        program.upload();
        program.windows.device_failed(&program.machine);
        program.troubles(&[Trouble::ReachedByGpu]);
        assert_eq!(program.machine.pages.borrow()[&H], Protection::Open);
        program.windows.device_failed(&program.machine);
        program.troubles(&[]);

        // What else was found of the pair before doesn't hide that the run went wrong.
        let program = locked(reaches_all);
        program.upload();
        program.write(1);
        program.windows.device_failed(&program.machine);
        program.troubles(&[Trouble::HostTouched(Access::Write), Trouble::ReachedByGpu]);
    }
    let program = Program::both_blocks(Direction::Both);
    assert!(!program.windows.keeps_from_gpu());
    program.windows.device_failed(&program.machine);
    program.troubles(&[]);
}

/// A device that reaches all memory does not stage what it copies.
#[test]
fn pages_stay_open_until_an_asynchronous_copy_is_done() {
    let program = locked(true);
    for (dst, src, kind) in [(D, H, CopyKind::HostToDevice), (H, D, CopyKind::DeviceToHost)] {
        let (site, stream, shape) = (UPLOAD, STREAM, Shape::Linear);
        let call = Copy { site, dst, src, bytes: N, kind, stream, asynchronous: true, shape };
        let token = program.windows.waiting();
        program.windows.copying(&program.machine, &call);
        program.machine.copying.set(true);
        program.windows.copied(&program.machine, token, &call, true);
        assert_eq!(program.machine.pages.borrow()[&H], Protection::Closed);
    }
}

/// It is pageable in this run, and a copy of such memory may still be on its way when it returns.
#[test]
fn a_synchronous_upload_from_page_locked_memory_has_arrived_when_it_returns() {
    for (page_locked, src) in [(true, H), (true, 0x5000), (false, H)] {
        let program = Program::of(plan(vec![Pair { page_locked, ..pair(Direction::Both) }]), false);
        let (site, stream, shape) = (UPLOAD, Stream::LEGACY, Shape::Linear);
        for kind in [CopyKind::HostToDevice, CopyKind::Default] {
            let call = Copy { site, dst: D, src, bytes: N, kind, stream, asynchronous: false, shape };
            let token = program.windows.waiting();
            program.windows.copying(&program.machine, &call);
            program.machine.copying.set(true);
            program.windows.copied(&program.machine, token, &call, true);
            assert_eq!(program.machine.copying.get(), !page_locked, "{kind:?}");
        }
    }
}

/// The pages are open for the call, to the GPU as well.
#[test]
fn work_that_another_thread_begins_during_a_copy_leaves_h_unwatched() {
    for during in [false, true] {
        let program = locked(true);
        program.upload();
        program.kernel(Some(1));
        let (kind, stream) = (CopyKind::DeviceToHost, Stream::LEGACY);
        let (shape, asynchronous) = (Shape::Linear, false);
        let call = Copy { site: DOWNLOAD, dst: H, src: D, bytes: N, kind, stream, asynchronous, shape };
        let token = program.windows.waiting();
        program.windows.copying(&program.machine, &call);
        if during {
            program.windows.launching(&program.machine, STREAM);
        }
        program.windows.copied(&program.machine, token, &call, true);
        let expected = [Trouble::NotExclusive(Access::CudaCall)];
        program.troubles(if during { &expected } else { &[] });
    }
}

#[test]
fn a_read_while_another_streams_work_runs_is_judged_by_what_that_work_does() {
    for (result, expected) in [(None, &[][..]), (Some(3), &[Trouble::HostTouched(Access::Read)])] {
        let mut program = Program::both_blocks(Direction::Both);
        program.stream = STREAM;
        program.write(1);
        program.upload();
        program.kernel(Some(2));
        program.download();
        program.stream = OTHER_STREAM;
        program.kernel(result);
        program.read();
        program.wait();
        program.read();
        program.troubles(expected);
    }
}

#[test]
fn work_of_another_stream_sees_what_the_host_wrote_unless_an_upload_is_on_its_way() {
    // The host may have told the other stream when the upload was done: by a wait, and by whatever may be one.
    type Order = fn(&mut Program);
    let orders: [(&str, Order, bool); 6] = [
        ("nothing", |_| {}, false),
        ("a wait", |program| program.wait_for(WaitFor::Stream(STREAM)), true),
        ("a wait for other work", |program| program.wait_for(WaitFor::Stream(OTHER_STREAM)), false),
        ("an event or a host function", |program| program.windows.joined(), true),
        ("memory that is freed", |program| program.windows.may_wait(), true),
        (
            "the default stream",
            |program| {
                program.windows.launching(&program.machine, Stream::LEGACY);
                program.windows.launched(Stream::LEGACY);
            },
            true,
        ),
    ];
    for (name, order, seen) in orders {
        let mut program = Program::both_blocks(Direction::Input);
        (program.asynchronous, program.stream) = (true, STREAM);
        program.write(1);
        program.upload();
        order(&mut program);
        program.stream = OTHER_STREAM;
        program.kernel(None);
        program.stream = STREAM;
        program.kernel(None);
        program.wait_for(WaitFor::Stream(STREAM));
        // Work of the other stream is pending still.
        program.write(2);
        let found = !program.findings().is_empty();
        assert_eq!(found, seen, "{name}");
    }
}

#[test]
fn work_after_an_asynchronous_download_leaves_the_window_open() {
    let mut program = Program::both_blocks(Direction::Output);
    program.stream = STREAM;
    program.kernel(Some(1));
    program.asynchronous = true;
    program.download();
    program.kernel(Some(2));
    program.wait();
    program.read();
    program.troubles(&[Trouble::HostTouched(Access::Read)]);
}

#[test]
fn a_copy_of_d_to_elsewhere_opens_the_window() {
    let mut program = Program::both_blocks(Direction::Input);
    program.write(1);
    program.upload();
    program.kernel(None);
    program.wait();
    program.asynchronous = true;
    program.copy(0xdead_0000, D, CopyKind::DeviceToDevice, CODE);
    program.write(2);
    program.troubles(&[Trouble::HostTouched(Access::Write)]);
}

#[test]
fn a_copy_to_another_pairs_block_is_found() {
    let mut two = pair(Direction::Input);
    two.alive = 2;
    two.waiting = 2;
    let program = Program::of(plan(vec![two]), false);
    for (h, d) in [(H, D), (H + 0x10000, D + 0x10000)] {
        program.machine.host.borrow_mut().insert(h, vec![0; 8]);
        program.windows.host_alloc(&program.machine, HOST, h, N, 1);
        program.windows.device_alloc(&program.machine, DEVICE, d, N, 1);
    }
    program.copy(D + 0x10000, H, CopyKind::HostToDevice, UPLOAD);
    program.troubles(&[Trouble::WrongPartner]);
}

#[test]
fn a_copy_that_stays_counts_as_an_access() {
    let program = Program::both_blocks(Direction::Both);
    program.upload();
    program.copy(0xdead_0000, H, CopyKind::HostToDevice, CODE);
    program.troubles(&[Trouble::HostTouched(Access::CudaCall)]);
}

#[test]
fn accesses_while_other_work_is_in_flight_forbid_managed_memory_only() {
    let mut program = Program::of(plan(vec![pair(Direction::Both)]), true);
    program.malloc();
    program.cuda_malloc();
    program.stream = STREAM;
    program.write(1);
    program.upload();
    program.kernel(Some(2));
    program.download();
    program.read();
    program.troubles(&[]);
    program.stream = OTHER_STREAM;
    program.kernel(None);
    program.read();
    program.troubles(&[Trouble::NotExclusive(Access::Read)]);
    let seen = program.seen();
    assert!(!seen.exclusive_watched);
    program.stream = STREAM;
    program.upload();
    program.read();
    program.troubles(&[Trouble::HostTouched(Access::Read)]);
}

#[test]
fn freed_blocks_and_forked_children_are_left_alone() {
    let program = Program::both_blocks(Direction::Both);
    program.upload();
    program.windows.host_free(&program.machine, H);
    assert_eq!(program.machine.pages.borrow()[&H], Protection::Open);
    assert_eq!(program.windows.touched(H, Access::Write, CODE), Fault::NotOurs);

    let mut program = Program::both_blocks(Direction::Both);
    program.upload();
    program.windows.forked(&program.machine);
    assert_eq!(program.machine.pages.borrow()[&H], Protection::Open);
    program.malloc();
    program.read();
    program.troubles(&[]);
}

#[test]
fn blocks_beyond_the_profile_are_counted_as_unwatched() {
    let mut program = Program::new(Direction::Both);
    program.malloc();
    program.windows.host_alloc(&program.machine, HOST, H + 0x10000, N, 1);
    program.cuda_malloc();
    assert_eq!(program.seen().unwatched, 1);
}

#[test]
fn blocks_whose_pages_cannot_be_closed_are_counted_as_unwatched() {
    let program = Program::both_blocks(Direction::Both);
    program.upload();
    assert_eq!(program.seen().unwatched, 0);
    *program.machine.refuses.borrow_mut() = true;
    program.download();
    assert_eq!(program.seen().unwatched, 1);
    program.windows.host_unwatched(HOST, N);
    assert_eq!(program.seen().unwatched, 2);
}

#[test]
fn a_host_block_is_not_touched_when_cuda_has_ended() {
    let program = Program::both_blocks(Direction::Both);
    program.upload();
    program.kernel(Some(3));
    program.download();
    program.read();
    program.windows.leaving(&program.machine);
    program.troubles(&[]);
    program.read();
    program.troubles(&[Trouble::HostTouched(Access::Read)]);
}

#[test]
fn faults_elsewhere_are_not_ours() {
    let program = Program::both_blocks(Direction::Both);
    program.upload();
    for address in [0, H - 1, H + N, usize::MAX] {
        assert_eq!(program.windows.touched(address, Access::Write, CODE), Fault::NotOurs);
    }
}
