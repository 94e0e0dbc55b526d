//! What orders GPU work, by the meaning of each call: streams, the barrier of the legacy default stream, events, waits.
//!
//! Where CUDA's documentation leaves something open, a [`Machine`] is one reading; P and P' must agree on each.

use echo_sr::analysis::program::Stream;

use crate::case::{EVENTS, STREAMS};

/// A set of items of work.
pub type Items = u64;

/// One reading of what CUDA leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Waiting for the legacy default stream and recording an event on it take part in its barrier, not queued work alone.
    pub wide_barrier: bool,
    /// Calls that "may be synchronous" are, as far as programs rely on it in practice: asynchronous copies to pageable memory, copies and
    /// memsets of device memory. An asynchronous upload of pageable memory is staged before it returns.
    pub synchronous: bool,
}

/// All readings, the one that promises least first.
pub const MACHINES: [Machine; 4] = [
    Machine { wide_barrier: false, synchronous: false },
    Machine { wide_barrier: true, synchronous: false },
    Machine { wide_barrier: false, synchronous: true },
    Machine { wide_barrier: true, synchronous: true },
];

/// The streams at one point of a path.
#[derive(Clone, Debug)]
pub struct Queues {
    machine: Machine,
    /// For each item, what is done when it is done, itself included.
    closures: Vec<Items>,
    /// What the next thing on each stream comes after.
    tails: [Items; STREAMS.len()],
    recorded: [Items; EVENTS],
    /// What the host has waited for.
    covered: Items,
}

impl Queues {
    /// Nothing is queued.
    #[must_use]
    pub fn new(machine: Machine) -> Self {
        Self { machine, closures: Vec::new(), tails: [0; STREAMS.len()], recorded: [0; EVENTS], covered: 0 }
    }

    /// Work is queued; its number and what it comes after.
    pub fn queue(&mut self, stream: u8) -> (usize, Items) {
        let before = self.closed(self.behind(stream));
        let item = self.closures.len();
        assert!(item < Items::BITS as usize, "a path of a case queues few items");
        self.closures.push(before | 1 << item);
        self.tails[usize::from(stream)] = 1 << item;
        (item, before)
    }

    /// What work queued on the stream now comes after.
    #[must_use]
    pub fn behind(&self, stream: u8) -> Items {
        let stream = usize::from(stream);
        (0..STREAMS.len())
            .filter(|other| *other == stream || hold_back(STREAMS[stream], STREAMS[*other]))
            .fold(0, |items, other| items | self.tails[other])
    }

    /// All work so far.
    #[must_use]
    pub fn device(&self) -> Items {
        match self.closures.len() {
            0 => 0,
            count => Items::MAX >> (Items::BITS as usize - count),
        }
    }

    /// What a wait for the stream waits for.
    #[must_use]
    pub fn stream(&self, stream: u8) -> Items {
        if self.machine.wide_barrier { self.behind(stream) } else { self.tails[usize::from(stream)] }
    }

    /// What a wait for the event waits for.
    #[must_use]
    pub fn event(&self, event: u8) -> Items {
        self.recorded[usize::from(event)]
    }

    /// The event is recorded.
    pub fn record(&mut self, event: u8, stream: u8) {
        self.recorded[usize::from(event)] = self.stream(stream);
    }

    /// The stream waits for the event.
    pub fn stream_wait(&mut self, stream: u8, event: u8) {
        self.tails[usize::from(stream)] = self.stream(stream) | self.event(event);
    }

    /// The host has waited for these.
    pub fn cover(&mut self, items: Items) {
        self.covered |= self.closed(items);
    }

    /// Work that no wait of the host covers.
    #[must_use]
    pub fn uncovered(&self) -> Items {
        self.device() & !self.covered
    }

    fn closed(&self, items: Items) -> Items {
        (0..self.closures.len()).filter(|item| items & (1 << item) != 0).fold(0, |all, item| all | self.closures[item])
    }
}

/// Work on the one stream holds back later work on the other.
fn hold_back(one: Stream, other: Stream) -> bool {
    let blocking = |stream| matches!(stream, Stream::Blocking | Stream::PerThreadDefault);
    one == Stream::LegacyDefault && blocking(other) || blocking(one) && other == Stream::LegacyDefault
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEAK: Machine = MACHINES[0];
    const WIDE: Machine = MACHINES[1];

    #[test]
    fn a_stream_is_in_order_and_others_are_not() {
        let mut queues = Queues::new(WEAK);
        assert_eq!(queues.queue(1), (0, 0));
        assert_eq!(queues.queue(1), (1, 0b1));
        assert_eq!(queues.queue(2), (2, 0), "another blocking stream");
        assert_eq!(queues.queue(3), (3, 0), "a non-blocking stream");
    }

    #[test]
    fn the_legacy_default_stream_and_blocking_streams_hold_each_other_back() {
        for blocking in [1, 4] {
            let mut queues = Queues::new(WEAK);
            queues.queue(blocking);
            assert_eq!(queues.queue(0), (1, 0b1));
            assert_eq!(queues.queue(blocking), (2, 0b11));
        }
        let mut queues = Queues::new(WEAK);
        queues.queue(0);
        assert_eq!(queues.queue(3), (1, 0), "a non-blocking stream takes no part");
    }

    #[test]
    fn whether_a_wait_for_the_legacy_stream_covers_blocking_streams_is_left_open() {
        for (machine, covered) in [(WEAK, 0), (WIDE, 0b1)] {
            let mut queues = Queues::new(machine);
            queues.queue(1);
            queues.cover(queues.stream(0));
            assert_eq!(queues.uncovered(), 0b1 & !covered);
        }
    }

    #[test]
    fn an_event_covers_what_its_stream_covered_at_the_last_record() {
        let mut queues = Queues::new(WEAK);
        queues.queue(1);
        queues.record(0, 1);
        queues.queue(1);
        queues.stream_wait(3, 0);
        assert_eq!(queues.queue(3), (2, 0b1));
        queues.cover(queues.event(0));
        assert_eq!(queues.uncovered(), 0b110);
        queues.record(0, 2);
        assert_eq!(queues.event(0), 0, "recorded again, on an empty stream");
    }
}
