//! What CUDA's documentation promises about order, as the abstract machine sees it: for each piece of GPU work the set of work that is
//! certain to be done before it starts, and the set that is certain to be done before the host goes on.
//!
//! Where the documentation leaves a choice, less order is assumed: a program that is free of races here is free of races everywhere.

use super::language::{EventId, Scope, StreamId, StreamKind};

/// A piece of GPU work: a launch, a copy, a memset.
pub(super) type OpId = usize;

/// A set of work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Set {
    words: Vec<u64>,
}

impl Set {
    pub(super) fn has(&self, op: OpId) -> bool {
        self.words.get(op / 64).is_some_and(|word| word >> (op % 64) & 1 == 1)
    }

    fn insert(&mut self, op: OpId) {
        if self.words.len() <= op / 64 {
            self.words.resize(op / 64 + 1, 0);
        }
        self.words[op / 64] |= 1 << (op % 64);
    }

    fn add(&mut self, other: &Set) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
    }
}

/// One stream.
#[derive(Clone, Debug)]
struct Stream {
    kind: StreamKind,
    /// Done before whatever is queued next.
    queued: Set,
    /// `queued` as of the last work, without what the stream waits for since: what the mutual barrier of the default stream is about.
    worked: Set,
}

/// All streams, events, and the host.
#[derive(Clone, Debug)]
pub(super) struct Order {
    streams: Vec<Stream>,
    events: Vec<Set>,
    host: Set,
    count: usize,
}

impl Order {
    pub(super) fn new(kinds: &[StreamKind], events: usize) -> Self {
        let stream = |kind: &StreamKind| Stream { kind: *kind, queued: Set::default(), worked: Set::default() };
        Order {
            streams: kinds.iter().map(stream).collect(),
            events: vec![Set::default(); events],
            host: Set::default(),
            count: 0,
        }
    }

    /// Queues work on a stream: its name, and what is done before it.
    pub(super) fn queue(&mut self, stream: StreamId) -> (OpId, Set) {
        let op = self.count;
        self.count += 1;
        let mut before = self.streams[stream].queued.clone();
        before.add(&self.host);
        for other in &self.streams {
            if related(self.streams[stream].kind, other.kind) {
                before.add(&other.worked);
            }
        }
        let mut with = before.clone();
        with.insert(op);
        self.streams[stream].queued = with.clone();
        self.streams[stream].worked = with;
        (op, before)
    }

    /// The host waits.
    pub(super) fn wait(&mut self, scope: Scope) {
        match scope {
            Scope::Device => (0..self.count).for_each(|op| self.host.insert(op)),
            Scope::Stream(stream) => self.host.add(&self.streams[stream].queued),
            Scope::Event(event) => self.host.add(&self.events[event]),
        }
    }

    pub(super) fn record(&mut self, event: EventId, stream: StreamId) {
        self.events[event] = self.streams[stream].queued.clone();
    }

    pub(super) fn stream_wait(&mut self, stream: StreamId, event: EventId) {
        let event = self.events[event].clone();
        self.streams[stream].queued.add(&event);
    }

    /// The work is done where the host is.
    pub(super) fn host_has(&self, op: OpId) -> bool {
        self.host.has(op)
    }
}

/// Work on the one holds back later work on the other.
fn related(left: StreamKind, right: StreamKind) -> bool {
    let barrier = |one, other| {
        one == StreamKind::Legacy && matches!(other, StreamKind::Legacy | StreamKind::Blocking | StreamKind::PerThread)
    };
    barrier(left, right) || barrier(right, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [StreamKind; 4] =
        [StreamKind::Legacy, StreamKind::Blocking, StreamKind::Blocking, StreamKind::NonBlocking];

    #[test]
    fn streams_are_ordered_within_themselves_and_by_the_legacy_stream() {
        let mut order = Order::new(&KINDS, 0);
        let (first, _) = order.queue(1);
        let (_, before) = order.queue(2);
        assert!(!before.has(first), "two blocking streams have no order");
        let (legacy, before) = order.queue(0);
        assert!(before.has(first));
        assert!(order.queue(2).1.has(legacy) && order.queue(2).1.has(first), "the barrier works both ways");
        assert!(!order.queue(3).1.has(legacy), "a non-blocking stream takes no part");
    }

    #[test]
    fn waits_cover_what_they_say() {
        let mut order = Order::new(&KINDS, 1);
        let (one, _) = order.queue(1);
        order.record(0, 1);
        let (later, _) = order.queue(1);
        let (other, _) = order.queue(3);
        order.wait(Scope::Event(0));
        assert!(order.host_has(one) && !order.host_has(later));
        order.wait(Scope::Stream(3));
        assert!(order.host_has(other) && !order.host_has(later));
        order.wait(Scope::Device);
        assert!(order.host_has(later));
        assert!(order.queue(3).1.has(later), "what the host has seen is before all that it queues");
    }

    #[test]
    fn an_event_orders_two_streams() {
        let mut order = Order::new(&KINDS, 1);
        let (one, _) = order.queue(1);
        order.record(0, 1);
        order.stream_wait(3, 0);
        assert!(order.queue(3).1.has(one));
        order.wait(Scope::Stream(3));
        assert!(order.host_has(one));
    }
}
