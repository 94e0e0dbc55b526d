//! The stream rules, each by a case that only that rule decides.

use super::*;

/// Runs all that may run now.
fn drain(scheduler: &mut Scheduler<&'static str>) -> Vec<&'static str> {
    let mut order = Vec::new();
    while let Some((slot, sequence, item)) = scheduler.take_next() {
        order.push(item);
        assert!(scheduler.complete(slot, sequence));
    }
    order
}

/// Starts the next command and leaves it running.
fn start(scheduler: &mut Scheduler<&'static str>) -> (u32, u64) {
    let (slot, sequence, _) = scheduler.take_next().unwrap();
    (slot, sequence)
}

#[test]
fn eager_runs_in_the_order_of_the_calls() {
    let mut s = Scheduler::new(Schedule::Eager);
    s.push(1, false, 1, None, "a");
    s.push(2, false, 2, None, "b");
    s.push(1, false, 3, None, "c");
    assert_eq!(drain(&mut s), ["a", "b", "c"]);
    assert!(s.is_empty());
}

#[test]
fn a_stream_waits_for_its_own_running_command() {
    let mut s = Scheduler::new(Schedule::Eager);
    s.push(1, true, 1, None, "a");
    s.push(1, true, 2, None, "b");
    s.push(2, true, 3, None, "other");
    let running = start(&mut s);
    assert_eq!(drain(&mut s), ["other"]);
    assert!(s.complete(running.0, running.1));
    assert_eq!(drain(&mut s), ["b"]);
}

#[test]
fn legacy_waits_for_blocking_streams_only() {
    let mut s = Scheduler::new(Schedule::Eager);
    s.push(1, false, 1, None, "blocking");
    let blocking = start(&mut s);
    s.push(2, true, 2, None, "nonblocking");
    let nonblocking = start(&mut s);
    s.push(LEGACY_STREAM, false, 3, None, "legacy");
    assert_eq!(drain(&mut s), [""; 0]);
    assert!(s.complete(blocking.0, blocking.1));
    assert_eq!(drain(&mut s), ["legacy"]);
    assert!(s.complete(nonblocking.0, nonblocking.1));
}

#[test]
fn blocking_streams_wait_for_legacy() {
    let mut s = Scheduler::new(Schedule::Eager);
    s.push(LEGACY_STREAM, false, 1, None, "legacy");
    let legacy = start(&mut s);
    s.push(1, false, 2, None, "blocking");
    s.push(2, true, 3, None, "nonblocking");
    assert_eq!(drain(&mut s), ["nonblocking"]);
    assert!(s.complete(legacy.0, legacy.1));
    assert_eq!(drain(&mut s), ["blocking"]);
}

#[test]
fn an_event_orders_nonblocking_streams() {
    let mut s = Scheduler::new(Schedule::Eager);
    s.push(1, true, 1, None, "producer");
    let producer = start(&mut s);
    s.push(2, true, 2, Some((1, 1)), "wait");
    s.push(2, true, 3, None, "consumer");
    assert_eq!(drain(&mut s), [""; 0]);
    assert!(s.complete(producer.0, producer.1));
    assert_eq!(drain(&mut s), ["wait", "consumer"]);
}

#[test]
fn lazy_runs_what_a_wait_needs_and_no_more() {
    let mut s = Scheduler::new(Schedule::Lazy);
    s.push(1, true, 1, None, "a1");
    s.push(2, true, 2, None, "b1");
    s.push(2, true, 3, Some((1, 1)), "b2");
    s.push(1, true, 4, None, "a2");
    s.push(3, true, 5, None, "c");
    s.push(2, true, 6, None, "b3");
    assert_eq!(drain(&mut s), [""; 0]);
    s.force(2, 3);
    assert_eq!(drain(&mut s), ["a1", "b1", "b2"]);
    s.force_all();
    assert_eq!(drain(&mut s), ["a2", "c", "b3"]);
}

#[test]
fn lazy_forces_through_the_legacy_stream() {
    let mut s = Scheduler::new(Schedule::Lazy);
    s.push(1, false, 1, None, "blocking");
    s.push(2, true, 2, None, "nonblocking");
    s.push(LEGACY_STREAM, false, 3, None, "legacy");
    s.push(3, false, 4, None, "after");
    s.force(3, 4);
    assert_eq!(drain(&mut s), ["blocking", "legacy", "after"]);
}

#[test]
fn random_repeats_by_seed_and_differs_between_seeds() {
    let run = |seed| {
        let mut s = Scheduler::new(Schedule::Random(seed));
        let mut order = Vec::new();
        for sequence in 1..40u64 {
            s.push((sequence % 4 + 1) as u32, true, sequence, None, "");
            while let Some((slot, sequence, _)) = s.take_next() {
                order.push(sequence);
                assert!(s.complete(slot, sequence));
            }
        }
        s.force_all();
        while let Some((slot, sequence, _)) = s.take_next() {
            order.push(sequence);
            assert!(s.complete(slot, sequence));
        }
        assert!(s.is_empty());
        order
    };
    assert_eq!(run(1), run(1));
    let orders: BTreeSet<Vec<u64>> = (0..20).map(run).collect();
    assert!(orders.len() > 10);
    // The rules hold whatever the seed.
    for order in orders {
        assert_eq!(order.len(), 39);
        for stream in 0..4 {
            let own: Vec<u64> = order.iter().copied().filter(|s| s % 4 == stream).collect();
            assert!(own.is_sorted());
        }
    }
}

#[test]
fn only_the_running_head_can_complete() {
    let mut s = Scheduler::new(Schedule::Eager);
    s.push(1, false, 1, None, "a");
    assert!(!s.complete(1, 1));
    let (slot, sequence) = start(&mut s);
    assert!(!s.complete(slot, sequence + 1));
    assert!(!s.complete(2, sequence));
    assert!(s.complete(slot, sequence));
}
