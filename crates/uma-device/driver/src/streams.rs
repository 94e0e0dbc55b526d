//! In which order queued commands may run: CUDA's stream rules, as a pure data structure.
//!
//! - Commands of one stream run in order.
//! - A command of the legacy default stream waits for all that was queued before it in blocking streams; a command of a blocking stream waits
//!   for what was queued before it in the legacy stream. A non-blocking stream and the legacy stream ignore each other.
//! - A command may wait for one more command (an event's).
//!
//! What runs next among the commands that may run is the choice of the [`Schedule`].

use crate::layout::LEGACY_STREAM;
use crate::settings::Schedule;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A command of a stream: slot and sequence number.
pub type Point = (u32, u64);

#[derive(Debug)]
struct Node<T> {
    sequence: u64,
    needs: Vec<Point>,
    /// `None` once it is started.
    item: Option<T>,
    forced: bool,
}

/// Which commands are chosen to run.
#[derive(Debug)]
enum Policy {
    /// The oldest that may run.
    Eager,
    /// The oldest that may run and that a wait needs.
    Lazy,
    /// Any that may run; how many is drawn at each push.
    Random { state: u64, budget: u32 },
}

/// Queued commands of all streams.
#[derive(Debug)]
pub struct Scheduler<T> {
    queues: BTreeMap<u32, VecDeque<Node<T>>>,
    nonblocking: BTreeSet<u32>,
    completed: BTreeMap<u32, u64>,
    forced: usize,
    policy: Policy,
}

impl<T> Scheduler<T> {
    /// No commands.
    pub fn new(schedule: Schedule) -> Scheduler<T> {
        let policy = match schedule {
            Schedule::Eager => Policy::Eager,
            Schedule::Lazy => Policy::Lazy,
            Schedule::Random(seed) => Policy::Random { state: seed, budget: 0 },
        };
        Scheduler {
            queues: BTreeMap::new(),
            nonblocking: BTreeSet::new(),
            completed: BTreeMap::new(),
            forced: 0,
            policy,
        }
    }

    /// Queues a command. Sequence numbers grow over all streams. `after`: a command that it waits for, besides the rules of streams.
    pub fn push(&mut self, slot: u32, nonblocking: bool, sequence: u64, after: Option<Point>, item: T) {
        if nonblocking {
            self.nonblocking.insert(slot);
        } else {
            self.nonblocking.remove(&slot);
        }
        let mut needs: Vec<Point> = after.into_iter().filter(|point| !self.is_complete(*point)).collect();
        if slot == LEGACY_STREAM {
            let blocking = self.queues.iter().filter(|(other, _)| !self.nonblocking.contains(other));
            needs.extend(blocking.filter_map(|(other, queue)| Some((*other, queue.back()?.sequence))));
        } else if !nonblocking && let Some(last) = self.queues.get(&LEGACY_STREAM).and_then(VecDeque::back) {
            needs.push((LEGACY_STREAM, last.sequence));
        }
        needs.retain(|(other, _)| *other != slot);
        self.queues.entry(slot).or_default().push_back(Node { sequence, needs, item: Some(item), forced: false });
        if let Policy::Random { state, budget } = &mut self.policy {
            // Less than one command a push on average, so that queues grow and there is something to interleave; now and then everything.
            *budget = [0, 0, 0, 0, 1, 1, 2, u32::MAX][draw(state, 8) as usize];
        }
    }

    /// A wait needs this command: what it depends on is forced too.
    pub fn force(&mut self, slot: u32, sequence: u64) {
        let mut todo = vec![(slot, sequence)];
        while let Some((slot, sequence)) = todo.pop() {
            let Some(queue) = self.queues.get_mut(&slot) else { continue };
            for node in queue.iter_mut().take_while(|node| node.sequence <= sequence) {
                if !std::mem::replace(&mut node.forced, true) {
                    self.forced += 1;
                    todo.extend(&node.needs);
                }
            }
        }
    }

    /// A wait needs every command.
    pub fn force_all(&mut self) {
        for node in self.queues.values_mut().flatten() {
            if !std::mem::replace(&mut node.forced, true) {
                self.forced += 1;
            }
        }
    }

    /// The next command to run, by policy; it counts as running until [`complete`](Scheduler::complete).
    pub fn take_next(&mut self) -> Option<(u32, u64, T)> {
        let slot = self.choose()?;
        let node = self.queues.get_mut(&slot)?.front_mut()?;
        let item = node.item.take()?;
        Some((slot, node.sequence, item))
    }

    /// The command at the head of `slot` has run; `false` when `sequence` is not the running head.
    pub fn complete(&mut self, slot: u32, sequence: u64) -> bool {
        let Some(queue) = self.queues.get_mut(&slot) else { return false };
        if !queue.front().is_some_and(|head| head.sequence == sequence && head.item.is_none()) {
            return false;
        }
        if queue.pop_front().is_some_and(|head| head.forced) {
            self.forced -= 1;
        }
        if queue.is_empty() {
            self.queues.remove(&slot);
        }
        self.completed.insert(slot, sequence);
        true
    }

    /// Whether nothing is queued or running.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    fn is_complete(&self, (slot, sequence): Point) -> bool {
        self.completed.get(&slot).is_some_and(|done| *done >= sequence)
    }

    fn choose(&mut self) -> Option<u32> {
        let needs_met = |node: &Node<T>| node.needs.iter().all(|point| self.is_complete(*point));
        let heads = self.queues.iter().filter_map(|(slot, queue)| Some((*slot, queue.front()?)));
        let mut ready = heads.filter(|(_, head)| head.item.is_some() && needs_met(head));
        match &self.policy {
            Policy::Eager => ready.min_by_key(|(_, head)| head.sequence).map(|(slot, _)| slot),
            Policy::Lazy if self.forced == 0 => None,
            Policy::Lazy => {
                ready.filter(|(_, head)| head.forced).min_by_key(|(_, head)| head.sequence).map(|(slot, _)| slot)
            }
            Policy::Random { budget: 0, .. } if self.forced == 0 => None,
            Policy::Random { .. } => {
                let slots: Vec<u32> = ready.by_ref().map(|(slot, _)| slot).collect();
                let Policy::Random { state, budget } = &mut self.policy else { return None };
                if slots.is_empty() {
                    return None;
                }
                *budget = budget.saturating_sub(1);
                Some(slots[draw(state, slots.len() as u32) as usize])
            }
        }
    }
}

/// A number below `bound`, by the SplitMix64 generator.
fn draw(state: &mut u64, bound: u32) -> u32 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ z >> 31) % u64::from(bound)) as u32
}

#[cfg(test)]
mod tests;
