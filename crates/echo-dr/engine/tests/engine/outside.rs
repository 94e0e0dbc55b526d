//! Memory in other hands than the program's own code, in a validation run: the kernel's, and those of what can't be watched.

use echo_dr_engine::Protection;
use echo_dr_format::finding::{Access, Trouble};
use echo_dr_format::plan::Direction;

use crate::common::{DEVICE, HOST, N};
use crate::windows::{CODE, D, H, Program};

impl Program {
    /// A system call that is over at once.
    fn system_call(&self, address: usize, bytes: usize, writes: bool) {
        let loans = self.windows.system_call(&self.machine, address, bytes, writes, CODE);
        self.windows.system_call_done(&loans);
    }
}

#[test]
fn a_system_call_into_the_window_is_found_and_one_outside_is_not() {
    let program = Program::both_blocks(Direction::Both);
    program.system_call(H + 16, 8, true);
    program.upload();
    program.system_call(H - 100, 50, true);
    program.troubles(&[]);
    program.system_call(H - 100, 200, false);
    assert_eq!(program.machine.pages.borrow()[&H], Protection::Open, "the call must not fail with EFAULT");
    program.troubles(&[Trouble::HostTouched(Access::SystemCall)]);
}

#[test]
fn a_system_call_around_all_watched_memory_is_found() {
    let program = Program::both_blocks(Direction::Both);
    program.upload();
    program.system_call(0, usize::MAX, false);
    program.troubles(&[Trouble::HostTouched(Access::SystemCall)]);
}

#[test]
fn a_window_that_opens_under_a_system_call_leaves_the_pages_open_and_finds_it() {
    // Closed under the call, the pages would make it fail with EFAULT, or end short, and what it was to read might be lost.
    for writes in [true, false] {
        let program = Program::both_blocks(Direction::Both);
        program.write(1);
        let loans = program.windows.system_call(&program.machine, H, 8, writes, CODE);
        program.troubles(&[]);
        program.upload();
        assert_eq!(program.machine.pages.borrow()[&H], Protection::Open);
        program.windows.system_call_done(&loans);
        let findings = program.findings();
        assert_eq!(findings.len(), 1, "{writes}");
        assert_eq!(findings[0].trouble, Trouble::HostTouched(Access::SystemCall));
        assert_eq!(findings[0].site, Some(CODE));
    }
}

#[test]
fn a_system_call_that_is_over_before_the_window_opens_is_fine() {
    let program = Program::both_blocks(Direction::Both);
    program.system_call(H, 8, true);
    program.upload();
    assert_eq!(program.machine.pages.borrow()[&H], Protection::Closed);
    program.kernel(Some(1));
    program.download();
    program.troubles(&[]);
}

#[test]
fn a_write_under_way_when_a_download_ends_still_counts_as_one_of_the_host() {
    // Else the next download, which replaces what is read into h meanwhile, would not be found.
    let program = Program::both_blocks(Direction::Output);
    program.kernel(Some(1));
    program.download();
    let loans = program.windows.system_call(&program.machine, H, 8, true, CODE);
    program.wait();
    program.windows.system_call_done(&loans);
    program.machine.host.borrow_mut().insert(H, vec![77; 8]);
    program.download();
    program.troubles(&[Trouble::HostWriteLost]);
}

#[test]
fn a_system_call_that_ends_after_its_block_was_freed_says_nothing_of_the_next_block() {
    let program = Program::both_blocks(Direction::Both);
    let loans = program.windows.system_call(&program.machine, H, 8, true, CODE);
    program.windows.host_free(&program.machine, H);
    program.windows.device_free(&program.machine, D);
    program.windows.host_alloc(&program.machine, HOST, H, N, 1);
    program.windows.device_alloc(&program.machine, DEVICE, D, N, 1);
    let next = program.windows.system_call(&program.machine, H, 8, false, CODE);
    program.windows.system_call_done(&loans);
    program.upload();
    program.troubles(&[Trouble::HostTouched(Access::SystemCall)]);
    program.windows.system_call_done(&next);
}

#[test]
fn memory_that_goes_out_of_sight_ends_its_pair_wherever_it_is() {
    let program = Program::both_blocks(Direction::Both);
    assert!(!program.windows.out_of_sight(&program.machine, H - 100, 50, CODE));
    program.troubles(&[]);
    program.upload();
    assert!(program.windows.out_of_sight(&program.machine, H + 3, 1, CODE));
    assert_eq!(program.machine.pages.borrow()[&H], Protection::Open);
    program.troubles(&[Trouble::OutOfSight]);
    assert!(!program.windows.out_of_sight(&program.machine, H + 3, 1, CODE), "it is not watched any more");
}

#[test]
fn where_all_is_out_of_sight_no_later_block_is_watched_either() {
    let program = Program::both_blocks(Direction::Both);
    program.windows.all_out_of_sight(&program.machine, None);
    program.troubles(&[Trouble::OutOfSight]);
    program.windows.host_free(&program.machine, H);
    program.windows.device_free(&program.machine, D);
    program.windows.host_alloc(&program.machine, HOST, H, N, 1);
    program.windows.device_alloc(&program.machine, DEVICE, D, N, 1);
    program.upload();
    assert_eq!(program.machine.pages.borrow()[&H], Protection::Open);
    program.troubles(&[]);
}
