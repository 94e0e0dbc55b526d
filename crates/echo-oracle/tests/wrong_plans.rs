//! The judge is worth what it catches: wrong plans, made by hand, each with the fault that it must find. The same program with the right
//! plan must pass, so that nothing but the one change is what it finds.

use echo_oracle::alphabet::{copy, host_reads, host_writes, launch};
use echo_oracle::case::{ALL, Case, D, D2, E, G, H, H2, HostKind, Kind, Region, Step, Touch};
use echo_oracle::judge::{Fault, judge};
use echo_oracle::plan::{Free, Plan, Wait};

const READ: Touch = Touch::new(D, false, ALL);
const WRITE: Touch = Touch::new(D, true, ALL);
const AWAY: Touch = Touch::new(E, false, ALL);

/// h and d, then the steps, then their frees, d first.
fn case(host: HostKind, steps: &[Step]) -> Case {
    let all = [&[Step::Alloc(H), Step::Alloc(D)], steps, &[Step::Free(D), Step::Free(H)]].concat();
    Case::straight(host, all)
}

/// What one would write without thinking, except for what `change` makes of it.
fn plan(case: &Case, change: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = Plan::obvious(case, H, D).expect("the case allocates the pair");
    change(&mut plan);
    plan
}

fn fault(case: &Case, plan: Plan) -> Option<Fault> {
    let judgement = judge(case, &[plan]);
    assert!(judgement.inside > 0, "P keeps the premises");
    judgement.difference.map(|difference| difference.fault)
}

/// The right plan passes, the changed one has the fault.
fn check(case: &Case, right: Plan, wrong: impl FnOnce(&mut Plan), expected: Fault) {
    assert_eq!(fault(case, right.clone()), None, "the right plan\n{case}{right}");
    let mut changed = right;
    wrong(&mut changed);
    assert_eq!(fault(case, changed.clone()), Some(expected), "the wrong plan\n{case}{changed}");
}

fn drop_wait(plan: &mut Plan, place: usize) {
    let action = plan.copies.iter_mut().find(|(at, _)| *at == place).expect("a linking copy is there");
    action.1 = None;
}

fn set_free(plan: &mut Plan, place: usize, free: Free) {
    let action = plan.frees.iter_mut().find(|(at, _)| *at == place).expect("a free is there");
    action.1 = free;
}

fn same(_: &mut Plan) {}

/// Upload, kernel that writes d, download, read: steps 2 to 6, frees at 7 (d) and 8 (h).
fn round_trip(host: HostKind) -> Case {
    case(
        host,
        &[
            host_writes(H, ALL),
            copy(D, H, ALL, 0, true),
            launch(0, READ, Some(WRITE)),
            copy(H, D, ALL, 0, true),
            host_reads(H, ALL),
        ],
    )
}

#[test]
fn the_wait_of_a_download_is_dropped() {
    let case = round_trip(HostKind::Malloc);
    check(&case, plan(&case, same), |plan| drop_wait(plan, 5), Fault::Race(4, 6));
}

#[test]
fn the_wait_of_a_download_is_for_another_stream() {
    let case = round_trip(HostKind::Pinned);
    let other = |plan: &mut Plan| plan.copies[1].1 = Some(Wait::Stream(3));
    check(&case, plan(&case, same), other, Fault::Race(4, 6));
}

#[test]
fn the_wait_of_a_download_is_for_an_event_that_was_recorded_too_early() {
    let case = case(
        HostKind::Malloc,
        &[
            host_writes(H, ALL),
            copy(D, H, ALL, 0, true),
            launch(0, READ, None),
            Step::Record(0, 0),
            launch(0, WRITE, None),
            copy(H, D, ALL, 0, true),
            host_reads(H, ALL),
        ],
    );
    let early = |plan: &mut Plan| plan.copies[1].1 = Some(Wait::Event(0));
    check(&case, plan(&case, same), early, Fault::Race(6, 8));
}

#[test]
fn the_wait_of_an_upload_is_dropped_that_ordered_other_work() {
    // The copy waits for the kernel on e, and the next kernel is on a stream that nothing orders behind it.
    let case = case(
        HostKind::Malloc,
        &[
            host_writes(H, ALL),
            launch(1, Touch::new(E, true, ALL), None),
            copy(D, H, ALL, 1, true),
            launch(3, AWAY, None),
        ],
    );
    check(&case, plan(&case, same), |plan| drop_wait(plan, 4), Fault::Race(3, 5));
}

#[test]
fn p_is_released_at_the_first_free() {
    let case = Case::straight(
        HostKind::Malloc,
        vec![
            Step::Alloc(H),
            Step::Alloc(D),
            host_writes(H, ALL),
            copy(D, H, ALL, 0, true),
            Step::Free(H),
            launch(0, READ, None),
            Step::Free(D),
        ],
    );
    let early = |plan: &mut Plan| {
        set_free(plan, 4, Free::Release(Some(Wait::Device)));
        set_free(plan, 6, Free::Drop(Some(Wait::Device)));
    };
    check(&case, plan(&case, same), early, Fault::Dead(5));
}

#[test]
fn p_is_released_while_a_kernel_uses_it() {
    // cudaFree(d), which waited, is not where p ends.
    let case = Case::straight(
        HostKind::Malloc,
        vec![
            Step::Alloc(H),
            Step::Alloc(D),
            host_writes(H, ALL),
            copy(D, H, ALL, 0, true),
            launch(0, READ, None),
            Step::Free(D),
            Step::Free(H),
        ],
    );
    let forgets = |plan: &mut Plan| {
        set_free(plan, 5, Free::Drop(None));
        set_free(plan, 6, Free::Release(None));
    };
    check(&case, plan(&case, same), forgets, Fault::Race(4, 6));
}

#[test]
fn the_wait_of_a_free_that_goes_is_dropped() {
    // cudaFree(d) waited for the kernel that writes e, and the next kernel is on a stream that nothing else orders behind it.
    let case = Case::straight(
        HostKind::Malloc,
        vec![
            Step::Alloc(H),
            Step::Alloc(D),
            copy(D, H, ALL, 0, true),
            launch(1, Touch::new(E, true, ALL), None),
            Step::Free(D),
            launch(3, AWAY, None),
            Step::Free(H),
        ],
    );
    let forgets = |plan: &mut Plan| {
        set_free(plan, 4, Free::Drop(None));
        set_free(plan, 6, Free::Release(Some(Wait::Device)));
    };
    check(&case, plan(&case, same), forgets, Fault::Race(3, 5));
}

#[test]
fn p_is_freed_twice() {
    let case = round_trip(HostKind::Malloc);
    let twice = |plan: &mut Plan| {
        set_free(plan, 7, Free::Release(Some(Wait::Device)));
        set_free(plan, 8, Free::Release(Some(Wait::Device)));
    };
    check(&case, plan(&case, same), twice, Fault::Dead(8));
}

#[test]
fn p_is_never_freed() {
    let case = round_trip(HostKind::Malloc);
    let never = |plan: &mut Plan| {
        set_free(plan, 7, Free::Drop(Some(Wait::Device)));
        set_free(plan, 8, Free::Drop(None));
    };
    check(&case, plan(&case, same), never, Fault::Leak);
}

#[test]
fn p_is_lost_each_round() {
    let mut case = round_trip(HostKind::Malloc);
    case.regions = vec![Region { first: 0, last: 8, kind: Kind::Loop }];
    let never = |plan: &mut Plan| set_free(plan, 8, Free::Drop(None));
    let right = plan(&case, |plan| {
        set_free(plan, 7, Free::Drop(Some(Wait::Device)));
        set_free(plan, 8, Free::Release(None));
    });
    check(&case, right, never, Fault::Leak);
}

#[test]
fn a_free_under_a_condition_is_taken_for_the_last() {
    // d is freed on one way only; on the other h's free is still not the last.
    let mut case = round_trip(HostKind::Malloc);
    case.regions = vec![Region { first: 7, last: 7, kind: Kind::If }];
    let right = plan(&case, |plan| {
        set_free(plan, 7, Free::Drop(Some(Wait::Device)));
        set_free(plan, 8, Free::Release(None));
    });
    let only_there = |plan: &mut Plan| {
        set_free(plan, 7, Free::Release(Some(Wait::Device)));
        set_free(plan, 8, Free::Release(None));
    };
    check(&case, right, only_there, Fault::Dead(8));
}

#[test]
fn a_free_does_not_count() {
    // Where d is freed on one way only, p is counted; a free that goes without taking its name away keeps p for ever.
    let mut case = round_trip(HostKind::Malloc);
    case.regions = vec![Region { first: 7, last: 7, kind: Kind::If }];
    let forgets = |plan: &mut Plan| set_free(plan, 7, Free::Drop(Some(Wait::Device)));
    check(&case, plan(&case, same), forgets, Fault::Leak);
}

#[test]
fn a_free_of_null_counts() {
    // d may be null at its first free; the plan takes it for the last name.
    let mut case = Case::straight(
        HostKind::Malloc,
        vec![
            Step::Alloc(H),
            Step::FreeUnlessNull(D),
            host_writes(H, ALL),
            Step::Alloc(D),
            copy(D, H, ALL, 0, true),
            launch(0, READ, None),
            Step::FreeUnlessNull(D),
            host_reads(H, ALL),
            Step::Free(H),
        ],
    );
    case.regions = vec![Region { first: 3, last: 6, kind: Kind::If }];
    let takes_it = |plan: &mut Plan| set_free(plan, 6, Free::Release(Some(Wait::Device)));
    check(&case, plan(&case, same), takes_it, Fault::Dead(7));
}

#[test]
fn a_linking_copy_is_kept() {
    // It would copy p onto itself: as an operation of its own, it runs beside the host.
    let case = round_trip(HostKind::Malloc);
    check(
        &case,
        plan(&case, same),
        |plan| {
            plan.copies.pop();
        },
        Fault::Race(4, 6),
    );
}

#[test]
fn the_allocation_that_comes_second_makes_p() {
    let case = Case::straight(
        HostKind::Malloc,
        vec![
            Step::Alloc(H),
            host_writes(H, ALL),
            Step::Alloc(D),
            copy(D, H, ALL, 0, true),
            launch(0, READ, None),
            Step::Free(D),
            Step::Free(H),
        ],
    );
    check(&case, plan(&case, same), |plan| plan.creates = 2, Fault::Dead(1));
}

#[test]
fn a_copy_that_stays_is_not_waited_for() {
    // Of managed memory nothing is promised but the order of the stream.
    let case = case(
        HostKind::Malloc,
        &[host_writes(H, ALL), copy(D, H, ALL, 0, true), copy(G, D, ALL, 0, true), host_reads(G, ALL)],
    );
    check(&case, plan(&case, same), |plan| plan.waits.clear(), Fault::Race(4, 5));
}

#[test]
fn an_upload_that_stays_is_taken_for_staged() {
    let case = case(
        HostKind::Malloc,
        &[
            host_writes(H, ALL),
            copy(D, H, ALL, 0, true),
            copy(E, H, ALL, 0, true),
            launch(0, READ, None),
            Step::WaitDevice,
            host_writes(H, ALL),
        ],
    );
    assert_eq!(fault(&case, plan(&case, same)), None);
    let mut without = case;
    // Without the wait for the device the host writes while the copy may still read.
    without.steps.remove(6);
    without.steps.remove(5);
    check(&without, plan(&without, same), |plan| plan.waits.clear(), Fault::Race(4, 5));
}

#[test]
fn a_repair_is_on_the_wrong_side() {
    // The host refills the buffer while the kernel may still read it: P' needs a wait between the two.
    let case = case(
        HostKind::Malloc,
        &[host_writes(H, ALL), copy(D, H, ALL, 0, true), launch(0, READ, None), host_writes(H, ALL)],
    );
    let right = plan(&case, |plan| plan.repairs.push((5, true)));
    check(&case, right, |plan| plan.repairs = vec![(5, false)], Fault::Race(4, 5));
    let behind = plan(&case, |plan| plan.repairs.push((4, false)));
    check(&case, behind, |plan| plan.repairs = vec![(4, true)], Fault::Race(4, 5));
}

#[test]
fn a_value_that_is_still_needed_is_overwritten() {
    // No plan is right: the paper's figure 2 (S1).
    let case = case(
        HostKind::Malloc,
        &[host_writes(H, ALL), copy(D, H, ALL, 0, true), host_writes(H, 0b01), launch(0, READ, None)],
    );
    assert_eq!(fault(&case, plan(&case, same)), Some(Fault::Output));
}

#[test]
fn a_stale_value_of_the_host_is_read() {
    let case = case(
        HostKind::Malloc,
        &[host_writes(H, ALL), copy(D, H, ALL, 0, true), launch(0, WRITE, None), Step::WaitDevice, host_reads(H, ALL)],
    );
    assert_eq!(fault(&case, plan(&case, same)), Some(Fault::Output));
}

#[test]
fn one_byte_of_a_partial_download_is_stale() {
    let case = case(
        HostKind::Malloc,
        &[
            host_writes(H, ALL),
            copy(D, H, ALL, 0, true),
            launch(0, WRITE, None),
            copy(H, D, 0b01, 0, true),
            host_reads(H, ALL),
        ],
    );
    assert_eq!(fault(&case, plan(&case, same)), Some(Fault::Output));
    let mut harmless = case;
    harmless.steps[6] = host_reads(H, 0b01);
    assert_eq!(fault(&harmless, plan(&harmless, same)), None);
}

#[test]
fn zeroes_of_a_late_calloc_wipe_what_a_kernel_wrote() {
    let steps = |host| {
        let steps = [
            Step::Alloc(D),
            launch(0, WRITE, None),
            Step::WaitDevice,
            Step::Alloc(H),
            launch(0, READ, None),
            copy(H, D, ALL, 0, true),
        ];
        Case::straight(host, steps.to_vec())
    };
    let (malloc, calloc) = (steps(HostKind::Malloc), steps(HostKind::Calloc));
    assert_eq!(fault(&malloc, plan(&malloc, same)), None);
    assert_eq!(fault(&calloc, plan(&calloc, same)), Some(Fault::Output));
}

#[test]
fn one_kernel_in_flight_is_a_host_access_too_many() {
    let case = case(
        HostKind::Malloc,
        &[host_writes(H, ALL), copy(D, H, ALL, 0, true), launch(0, AWAY, None), host_reads(H, ALL)],
    );
    check(&case, plan(&case, same), |plan| plan.exclusive = true, Fault::Exclusive(5));
}

#[test]
fn p_is_made_while_a_kernel_is_in_flight() {
    let case = Case::straight(
        HostKind::Malloc,
        vec![launch(3, AWAY, None), Step::Alloc(H), Step::Alloc(D), copy(D, H, ALL, 3, true)],
    );
    check(&case, plan(&case, same), |plan| plan.exclusive = true, Fault::Exclusive(1));
}

#[test]
fn work_of_others_is_in_flight() {
    let mut case = case(HostKind::Malloc, &[host_writes(H, ALL), copy(D, H, ALL, 0, true)]);
    case.outside = true;
    check(&case, plan(&case, same), |plan| plan.exclusive = true, Fault::Exclusive(0));
}

#[test]
fn an_asynchronous_copy_alone_ordered_two_streams() {
    // The legacy default stream's copy holds back for stream 1 and holds stream 2 back; nothing else does.
    let case = case(
        HostKind::Pinned,
        &[
            host_writes(H, ALL),
            launch(1, Touch::new(E, true, ALL), None),
            copy(D, H, ALL, 0, false),
            launch(2, AWAY, None),
        ],
    );
    assert_eq!(fault(&case, plan(&case, same)), Some(Fault::Race(3, 5)));
}

#[test]
fn a_kept_pointer_is_used_behind_the_last_kernel() {
    let keeps = Step::Launch { stream: 0, touches: [Some(READ), None], keeps: true, uses_kept: false };
    let uses = Step::Launch { stream: 0, touches: [None; 2], keeps: false, uses_kept: true };
    let case =
        case(HostKind::Malloc, &[host_writes(H, ALL), copy(D, H, ALL, 0, true), keeps, uses, host_reads(H, ALL)]);
    assert_eq!(fault(&case, plan(&case, same)), Some(Fault::Race(5, 6)));
}

#[test]
fn the_device_is_reset_under_p() {
    let case = Case::straight(
        HostKind::Malloc,
        vec![
            Step::Alloc(H),
            Step::Alloc(D),
            host_writes(H, ALL),
            copy(D, H, ALL, 0, true),
            Step::Reset,
            host_reads(H, ALL),
            Step::Free(H),
        ],
    );
    assert_eq!(fault(&case, plan(&case, same)), Some(Fault::Dead(5)));
}

#[test]
fn two_pairs_of_which_one_copies_to_the_other() {
    let case = Case::straight(
        HostKind::Malloc,
        vec![
            Step::Alloc(H),
            Step::Alloc(D),
            Step::Alloc(H2),
            Step::Alloc(D2),
            host_writes(H, ALL),
            copy(D, H, ALL, 0, true),
            copy(D2, H, ALL, 0, true),
            copy(H2, D2, ALL, 0, true),
            host_reads(H2, ALL),
        ],
    );
    let plans = || [(H, D), (H2, D2)].map(|(host, device)| Plan::obvious(&case, host, device).expect("both are there"));
    assert_eq!(judge(&case, &plans()).difference, None);
    // The copy from h to d2 stays, between the two merged buffers; its wait and that of the copy back are all that orders the read.
    let mut wrong = plans();
    wrong[0].waits.clear();
    wrong[1].waits.clear();
    drop_wait(&mut wrong[1], 7);
    let difference = judge(&case, &wrong).difference.expect("nothing orders the read");
    assert_eq!(difference.fault, Fault::Race(6, 8));
}
