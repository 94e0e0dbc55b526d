//! Which queued work the program has waited for: vector clocks over streams.
//!
//! It answers one question: may the host touch managed memory again? That depends on the waits that the program made, not on how fast the
//! device was, so the answer is the same in every run.

use crate::layout::LEGACY_STREAM;
use std::collections::{BTreeMap, BTreeSet};

/// For each stream slot the last command that is known to be done, or that would be.
pub type Clock = BTreeMap<u32, u64>;

/// Waits and outstanding work.
#[derive(Debug, Default)]
pub struct Coverage {
    /// What has happened once the last command of a stream is done.
    streams: BTreeMap<u32, Clock>,
    nonblocking: BTreeSet<u32>,
    /// Last work of each stream that the program has not waited for.
    outstanding: Clock,
}

impl Coverage {
    /// A command was queued. `after`: what it waits for besides the rules of streams. `works`: the device touches memory for it.
    pub fn enqueue(&mut self, slot: u32, nonblocking: bool, sequence: u64, after: Option<&Clock>, works: bool) {
        if nonblocking {
            self.nonblocking.insert(slot);
        } else {
            self.nonblocking.remove(&slot);
        }
        let mut clock = self.before(slot, nonblocking);
        if let Some(after) = after {
            self.join(&mut clock, after);
        }
        clock.insert(slot, sequence);
        self.streams.insert(slot, clock);
        if works {
            self.outstanding.insert(slot, sequence);
        }
    }

    /// What is done when a command that is queued in `slot` now gets its turn: the slot's own work, and other work by the rules of streams.
    pub fn before(&self, slot: u32, nonblocking: bool) -> Clock {
        let mut clock = self.snapshot(slot);
        clock.retain(|other, done| self.matters(*other, *done));
        if slot == LEGACY_STREAM {
            let blocking = |other: &u32| *other != slot && !self.nonblocking.contains(other);
            for (_, other) in self.streams.iter().filter(|(other, _)| blocking(other)) {
                self.join(&mut clock, other);
            }
        } else if !nonblocking && let Some(legacy) = self.streams.get(&LEGACY_STREAM) {
            self.join(&mut clock, legacy);
        }
        clock
    }

    /// What is done once all that is queued in `slot` now is done.
    pub fn snapshot(&self, slot: u32) -> Clock {
        self.streams.get(&slot).cloned().unwrap_or_default()
    }

    /// What is done once everything that is queued now is done.
    pub fn snapshot_all(&self) -> Clock {
        let mut all = Clock::new();
        for clock in self.streams.values() {
            self.join(&mut all, clock);
        }
        all
    }

    /// The program waited for all of `clock`.
    pub fn waited(&mut self, clock: &Clock) {
        self.outstanding.retain(|slot, last| clock.get(slot).is_none_or(|done| done < last));
    }

    /// Whether it can ever matter that `slot` is done up to `sequence`. If the program has waited for the slot's work, or more was queued, it
    /// can't; leaving such entries out keeps clocks short.
    fn matters(&self, slot: u32, sequence: u64) -> bool {
        self.outstanding.get(&slot).is_some_and(|last| sequence >= *last)
    }

    fn join(&self, clock: &mut Clock, other: &Clock) {
        for (slot, sequence) in other.iter().filter(|(slot, sequence)| self.matters(**slot, **sequence)) {
            let own = clock.entry(*slot).or_default();
            *own = (*own).max(*sequence);
        }
    }

    /// Whether the program has waited for all work.
    pub fn is_idle(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// Whether the program has waited for all work of `slot`.
    pub fn is_stream_idle(&self, slot: u32) -> bool {
        !self.outstanding.contains_key(&slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_wait_covers_its_own_stream_only() {
        let mut c = Coverage::default();
        c.enqueue(1, true, 1, None, true);
        c.enqueue(2, true, 2, None, true);
        c.waited(&c.snapshot(1));
        assert!(!c.is_idle());
        assert!(c.is_stream_idle(1));
        assert!(!c.is_stream_idle(2));
        c.waited(&c.snapshot(2));
        assert!(c.is_idle());
    }

    #[test]
    fn a_wait_for_an_event_covers_what_came_before_it() {
        let mut c = Coverage::default();
        c.enqueue(1, true, 1, None, true);
        let event = c.snapshot(1);
        c.waited(&event);
        assert!(c.is_idle());
        c.enqueue(1, true, 2, None, true);
        c.waited(&event);
        assert!(!c.is_idle());
    }

    #[test]
    fn the_legacy_stream_covers_blocking_streams() {
        let mut c = Coverage::default();
        c.enqueue(1, false, 1, None, true);
        c.enqueue(LEGACY_STREAM, false, 2, None, true);
        c.waited(&c.snapshot(LEGACY_STREAM));
        assert!(c.is_idle());
        c.enqueue(2, true, 3, None, true);
        c.enqueue(LEGACY_STREAM, false, 4, None, true);
        c.waited(&c.snapshot(LEGACY_STREAM));
        assert!(!c.is_idle());
    }

    #[test]
    fn waits_go_through_events_between_streams() {
        let mut c = Coverage::default();
        c.enqueue(1, true, 1, None, true);
        let event = c.snapshot(1);
        c.enqueue(2, true, 2, Some(&event), false);
        c.enqueue(2, true, 3, None, true);
        c.waited(&c.snapshot(2));
        assert!(c.is_idle());
    }

    #[test]
    fn what_does_no_work_leaves_the_host_free() {
        let mut c = Coverage::default();
        c.enqueue(1, true, 1, None, false);
        assert!(c.is_idle());
        c.enqueue(1, true, 2, None, true);
        c.waited(&c.snapshot_all());
        assert!(c.is_idle());
    }

    /// Random programs against a judge that keeps every command and all that comes before it.
    #[test]
    fn agrees_with_a_judge_that_forgets_nothing() {
        let mut state = 1u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..300 {
            let mut coverage = Coverage::default();
            // Of each command: its stream, whether it works, all commands that come before it (itself included).
            let mut commands: Vec<(u32, bool, BTreeSet<usize>)> = Vec::new();
            let mut waited = BTreeSet::new();
            let mut events: Vec<(Clock, BTreeSet<usize>)> = Vec::new();
            let nonblocking = |slot: u32| slot == 3 || slot == 4;
            for _ in 0..40 {
                let slot = random(5) as u32;
                let last = |commands: &[(u32, bool, BTreeSet<usize>)], slot| {
                    commands.iter().rev().find(|c| c.0 == slot).map(|c| c.2.clone()).unwrap_or_default()
                };
                match random(7) {
                    0..=2 => {
                        let event = (random(3) == 0 && !events.is_empty())
                            .then(|| events[random(events.len() as u64) as usize].clone());
                        let works = random(4) > 0;
                        let mut before = last(&commands, slot);
                        for (other, _, others) in &commands {
                            let legacy = slot == LEGACY_STREAM && !nonblocking(*other);
                            if legacy || (*other == LEGACY_STREAM && !nonblocking(slot)) {
                                before.extend(others);
                            }
                        }
                        before.extend(event.iter().flat_map(|event| &event.1));
                        before.insert(commands.len());
                        let sequence = commands.len() as u64 + 1;
                        coverage.enqueue(
                            slot,
                            nonblocking(slot),
                            sequence,
                            event.as_ref().map(|event| &event.0),
                            works,
                        );
                        commands.push((slot, works, before));
                    }
                    // A copy that the host makes when the stream has reached it.
                    5 => {
                        coverage.waited(&coverage.before(slot, nonblocking(slot)));
                        waited.extend(last(&commands, slot));
                        for (other, _, others) in &commands {
                            let legacy = slot == LEGACY_STREAM && !nonblocking(*other);
                            if legacy || (*other == LEGACY_STREAM && !nonblocking(slot)) {
                                waited.extend(others);
                            }
                        }
                    }
                    3 => events.push((coverage.snapshot(slot), last(&commands, slot))),
                    4 if !events.is_empty() => {
                        let (clock, before) = events[random(events.len() as u64) as usize].clone();
                        coverage.waited(&clock);
                        waited.extend(before);
                    }
                    _ => {
                        let clock = coverage.snapshot(slot);
                        coverage.waited(&clock);
                        waited.extend(last(&commands, slot));
                    }
                }
                let open = |index: &usize| commands[*index].1 && !waited.contains(index);
                assert_eq!(coverage.is_idle(), !(0..commands.len()).any(|index| open(&index)));
                for slot in 0..5 {
                    let idle = !(0..commands.len()).any(|index| commands[index].0 == slot && open(&index));
                    assert_eq!(coverage.is_stream_idle(slot), idle);
                }
            }
        }
    }
}
