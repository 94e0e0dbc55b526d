//! The explorer goes through every interleaving, and counts each once.

use echo_oracle::alphabet::{copy, host_reads, host_writes, launch};
use echo_oracle::case::{ALL, Case, D, E, G, H, HostKind, Step, Touch};
use echo_oracle::explore::{Outcome, Trouble, explore};
use echo_oracle::machine::{MACHINES, Machine};
use echo_oracle::original::original;

fn on(case: &Case, machine: Machine) -> Outcome {
    explore(&original(case, &case.paths()[0], machine), true)
}

fn outcome(steps: Vec<Step>) -> Outcome {
    on(&Case::straight(HostKind::Malloc, steps), MACHINES[0])
}

const READ_E: Touch = Touch::new(E, false, ALL);

#[test]
fn interleavings_are_those_that_one_counts_by_hand() {
    // n kernels on one stream: the host queues, they run in order. Catalan numbers.
    for (count, expected) in [(1, 1), (2, 2), (3, 5), (4, 14), (5, 42)] {
        let steps = vec![launch(3, READ_E, None); count];
        assert_eq!(outcome(steps).interleavings, expected, "{count} on one stream");
    }
    // On streams of their own: (2n - 1)!!, that is every order in which each runs behind its own call.
    for (streams, expected) in [(&[1][..], 1), (&[1, 2], 3), (&[1, 2, 3], 15)] {
        let steps = streams.iter().map(|stream| launch(*stream, READ_E, None)).collect();
        assert_eq!(outcome(steps).interleavings, expected, "on {streams:?}");
    }
    // A wait between any two leaves one order.
    let waited = [launch(1, READ_E, None), Step::WaitDevice, launch(2, READ_E, None), Step::WaitDevice];
    assert_eq!(outcome(waited.to_vec()).interleavings, 1);
}

#[test]
fn memoised_states_are_far_fewer_than_interleavings() {
    let steps = (0..12).map(|index| launch(1 + index % 3, READ_E, None)).collect();
    let outcome = outcome(steps);
    assert!(outcome.interleavings > 1_000_000, "{outcome:?}");
    assert!(outcome.states < 2_000, "{outcome:?}");
    assert_eq!(outcome.outputs.len(), 1, "all of them do the same");
}

#[test]
fn a_race_is_found_in_whichever_order_the_steps_stand() {
    let write = Touch::new(E, true, ALL);
    for (first, second) in [(write, READ_E), (READ_E, write), (write, write)] {
        let found = outcome(vec![launch(1, first, None), launch(2, second, None)]);
        assert_eq!(found.trouble, Some(Trouble::Race(0, 1)));
        let ordered = outcome(vec![launch(1, first, None), launch(1, second, None)]);
        assert_eq!(ordered.trouble, None);
        let by_event =
            vec![launch(1, first, None), Step::Record(0, 1), Step::StreamWait(2, 0), launch(2, second, None)];
        assert_eq!(outcome(by_event).trouble, None);
    }
    assert_eq!(outcome(vec![launch(1, READ_E, None), launch(2, READ_E, None)]).trouble, None);
}

#[test]
fn different_bytes_do_not_race() {
    let bytes = |mask| Touch::new(E, true, mask);
    assert_eq!(outcome(vec![launch(1, bytes(0b01), None), launch(2, bytes(0b10), None)]).trouble, None);
    assert_eq!(
        outcome(vec![launch(1, bytes(0b01), None), launch(2, bytes(0b01), None)]).trouble,
        Some(Trouble::Race(0, 1))
    );
}

#[test]
fn what_was_never_written_may_be_linked_and_not_read() {
    let begin = [Step::Alloc(H), Step::Alloc(D)];
    let with = |steps: &[Step]| outcome([&begin, steps].concat()).trouble;
    assert_eq!(with(&[copy(D, H, ALL, 0, true)]), None);
    assert_eq!(with(&[copy(D, H, ALL, 0, true), host_reads(H, 0b01)]), Some(Trouble::Undefined(3)));
    assert_eq!(with(&[host_writes(H, 0b01), host_reads(H, 0b01)]), None);
    assert_eq!(with(&[copy(E, H, ALL, 0, true)]), Some(Trouble::Undefined(2)));
}

#[test]
fn what_is_not_alive_is_not_touched() {
    let begin = [Step::Alloc(H), Step::Alloc(D), host_writes(H, ALL)];
    let with = |steps: &[Step]| outcome([&begin, steps].concat()).trouble;
    assert_eq!(with(&[Step::Free(H), host_reads(H, ALL)]), Some(Trouble::Dead(4)));
    assert_eq!(with(&[Step::Free(H), Step::Free(H)]), Some(Trouble::Dead(4)));
    assert_eq!(with(&[Step::Reset, launch(0, READ_E, None)]), Some(Trouble::Dead(4)));
}

#[test]
fn a_pageable_upload_is_staged_and_a_page_locked_one_waits() {
    // The kernel before it on the stream is waited for by both; what stands behind the call differs.
    let steps =
        vec![Step::Alloc(H), Step::Alloc(D), host_writes(H, ALL), copy(D, H, ALL, 3, true), host_writes(H, ALL)];
    let staged = on(&Case::straight(HostKind::Malloc, steps.clone()), MACHINES[0]);
    assert_eq!((staged.interleavings, staged.trouble), (2, None));
    let pinned = on(&Case::straight(HostKind::Pinned, steps), MACHINES[0]);
    assert_eq!((pinned.interleavings, pinned.trouble), (1, None));
}

#[test]
fn an_asynchronous_copy_promises_nothing_and_may_wait_in_practice() {
    let down = vec![copy(G, E, ALL, 3, false), host_reads(G, ALL)];
    let case = Case::straight(HostKind::Malloc, down);
    let lenient = Machine { wide_barrier: false, synchronous: true };
    assert_eq!(on(&case, MACHINES[0]).trouble, Some(Trouble::Race(0, 1)));
    assert_eq!(on(&case, lenient).trouble, None);
    let up = vec![copy(E, G, ALL, 3, false), host_writes(G, ALL)];
    let case = Case::straight(HostKind::Malloc, up);
    assert_eq!(on(&case, MACHINES[0]).trouble, Some(Trouble::Race(0, 1)));
    assert_eq!(on(&case, lenient).trouble, None);
}
