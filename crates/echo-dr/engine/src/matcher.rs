//! Which block is whose partner. A pair is known by its two allocation sites; of the blocks that come from them, the oldest of one side that waits
//! gets the next of the other side that comes.
//!
//! The analysis replays a trace through this and accepts a pair only if the partners are those that the copies show; validation and merged runs
//! then use it with the limits that were seen. What goes beyond them is a deviation: guessing a partner wrongly would merge blocks that
//! have nothing to do with each other.

use std::collections::VecDeque;

use echo_dr_format::plan::{First, Pair, WAITING_LIMIT};
use echo_dr_format::reason::Deviation;

/// One of a pair's two blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Host,
    Device,
}

/// What was seen when profiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) first: First,
    /// Partners come from the thread that their first block came from.
    pub(crate) same_thread: bool,
    /// How many may wait at once (in one thread, if `same_thread`).
    pub(crate) waiting: u32,
}

impl Rule {
    pub(crate) fn of(pair: &Pair) -> Self {
        Self { first: pair.first, same_thread: pair.same_thread, waiting: pair.waiting }
    }
}

/// A block without its partner.
#[derive(Clone, Copy, Debug)]
struct Waiter<K> {
    side: Side,
    thread: u64,
    key: K,
}

/// The blocks of one pair that wait.
#[derive(Debug)]
pub(crate) struct Matcher<K> {
    rule: Rule,
    queue: VecDeque<Waiter<K>>,
}

/// What becomes of a block that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival<K> {
    /// Its partner, which waits no longer.
    Partner(K),
    /// It comes first: [`Matcher::wait`] puts it into the queue.
    First,
    /// It can have no partner.
    Deviation(Deviation),
}

impl<K: Copy + PartialEq> Matcher<K> {
    /// Nobody waits. The queue never grows afterwards.
    pub(crate) fn new(rule: Rule) -> Self {
        Self { rule, queue: VecDeque::with_capacity(WAITING_LIMIT as usize) }
    }

    /// A block comes.
    pub(crate) fn arrive(&mut self, side: Side, thread: u64) -> Arrival<K> {
        let mine = |waiter: &Waiter<K>| !self.rule.same_thread || waiter.thread == thread;
        if let Some(place) = self.queue.iter().position(|waiter| waiter.side != side && mine(waiter)) {
            return match self.queue.remove(place) {
                Some(waiter) => Arrival::Partner(waiter.key),
                None => Arrival::First,
            };
        }
        let in_order = match self.rule.first {
            First::Either => true,
            First::Host => side == Side::Host,
            First::Device => side == Side::Device,
        };
        if !in_order {
            return Arrival::Deviation(Deviation::OtherOrder);
        }
        if self.queue.iter().filter(|waiter| mine(waiter)).count() >= self.rule.waiting as usize
            || self.queue.len() >= WAITING_LIMIT as usize
        {
            return Arrival::Deviation(Deviation::TooManyWaiting);
        }
        Arrival::First
    }

    /// A block that came first waits. False if another thread has taken the last place since.
    pub(crate) fn wait(&mut self, side: Side, thread: u64, key: K) -> bool {
        let room = self.queue.len() < WAITING_LIMIT as usize;
        if room {
            self.queue.push_back(Waiter { side, thread, key });
        }
        room
    }

    /// A block is freed. True if it was waiting.
    pub(crate) fn leave(&mut self, key: K) -> bool {
        let place = self.queue.iter().position(|waiter| waiter.key == key);
        place.and_then(|place| self.queue.remove(place)).is_some()
    }

    /// How many wait that `thread` could be given (all, if threads do not matter).
    pub(crate) fn waiting(&self, thread: u64) -> usize {
        self.queue.iter().filter(|waiter| !self.rule.same_thread || waiter.thread == thread).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOSE: Rule = Rule { first: First::Either, same_thread: false, waiting: WAITING_LIMIT };

    fn come(matcher: &mut Matcher<u32>, side: Side, thread: u64, key: u32) -> Arrival<u32> {
        let arrival = matcher.arrive(side, thread);
        if arrival == Arrival::First {
            assert!(matcher.wait(side, thread, key));
        }
        arrival
    }

    #[test]
    fn the_oldest_that_waits_is_the_partner() {
        let mut matcher = Matcher::new(LOOSE);
        assert_eq!(come(&mut matcher, Side::Host, 1, 10), Arrival::First);
        assert_eq!(come(&mut matcher, Side::Host, 1, 11), Arrival::First);
        assert_eq!(come(&mut matcher, Side::Device, 1, 20), Arrival::Partner(10));
        assert!(matcher.leave(11) && !matcher.leave(11));
        assert_eq!(come(&mut matcher, Side::Device, 1, 21), Arrival::First);
        assert_eq!(come(&mut matcher, Side::Host, 1, 12), Arrival::Partner(21));
    }

    #[test]
    fn threads_do_not_take_each_others_partners() {
        let mut matcher = Matcher::new(Rule { same_thread: true, waiting: 1, ..LOOSE });
        assert_eq!(come(&mut matcher, Side::Host, 1, 10), Arrival::First);
        assert_eq!(come(&mut matcher, Side::Host, 2, 11), Arrival::First);
        assert_eq!(come(&mut matcher, Side::Device, 2, 20), Arrival::Partner(11));
        assert_eq!(come(&mut matcher, Side::Device, 1, 21), Arrival::Partner(10));
    }

    #[test]
    fn another_order_or_too_many_is_a_deviation() {
        let mut matcher = Matcher::new(Rule { first: First::Host, waiting: 1, ..LOOSE });
        assert_eq!(come(&mut matcher, Side::Device, 1, 20), Arrival::Deviation(Deviation::OtherOrder));
        assert_eq!(come(&mut matcher, Side::Host, 1, 10), Arrival::First);
        assert_eq!(come(&mut matcher, Side::Host, 1, 11), Arrival::Deviation(Deviation::TooManyWaiting));
        let mut matcher = Matcher::new(Rule { first: First::Device, ..LOOSE });
        assert_eq!(come(&mut matcher, Side::Host, 1, 10), Arrival::Deviation(Deviation::OtherOrder));
    }
}
