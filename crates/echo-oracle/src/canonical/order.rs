//! Happens-before of one run, computed edge by edge from the meaning of each call.
//!
//! Every step has two vertices: the host's part of it, and the work that it queues. A vertex knows the set of those before it.

use crate::canonical::sample::STREAMS;
use echo_sr::analysis::program::Stream;

/// A set of vertices.
pub type Set = u128;
/// Runs have at most this many steps.
pub const MAX_STEPS: usize = 64;

/// What CUDA's documentation leaves open about the legacy default stream. Both readings are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Only queued work takes part in the mutual barrier.
    Weak,
    /// Waiting for it, recording an event on it and making a stream wait for an event do as well.
    Strong,
}

/// The order of one run, grown step by step.
pub struct Order {
    rules: Rules,
    before: Vec<Set>,
    last: [Set; STREAMS.len()],
    recorded: Set,
    /// What the next host vertex comes after besides the last one.
    held: Set,
    queued: Set,
}

impl Order {
    /// Nothing has happened.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules, before: Vec::new(), last: [0; STREAMS.len()], recorded: 0, held: 0, queued: 0 }
    }

    /// The host arrives at the next step. Waits of the step come after this.
    pub fn step(&mut self) {
        let index = self.before.len();
        let mut before = self.closed(self.held);
        if index >= 2 {
            before |= self.closed(1 << (index - 2));
        }
        self.held = 0;
        self.before.push(before);
        // The vertex of queued work exists for every step; it is in no set where nothing is queued.
        self.before.push(0);
    }

    /// The vertex of the current step's host part.
    #[must_use]
    pub fn host(&self) -> usize {
        self.before.len() - 2
    }

    /// The current step's host part comes after these.
    pub fn after(&mut self, set: Set) {
        let closed = self.closed(set);
        let host = self.host();
        self.before[host] |= closed;
    }

    /// The current step returns only after these.
    pub fn returns_after(&mut self, set: Set) {
        self.held |= set;
    }

    /// Work is queued by the current step; its vertex.
    pub fn queue(&mut self, stream: usize) -> usize {
        let vertex = self.host() + 1;
        let set = self.behind(stream) | 1 << self.host();
        self.before[vertex] = self.closed(set);
        self.last[stream] = 1 << vertex;
        self.queued |= 1 << vertex;
        vertex
    }

    /// What work queued on the stream now would come after.
    #[must_use]
    pub fn behind(&self, stream: usize) -> Set {
        let barrier = |other: usize| {
            let (one, two) = (STREAMS[stream], STREAMS[other]);
            one == Stream::LegacyDefault && two == Stream::Blocking
                || one == Stream::Blocking && two == Stream::LegacyDefault
        };
        (0..STREAMS.len())
            .filter(|other| *other == stream || barrier(*other))
            .fold(0, |set, other| set | self.last[other])
    }

    fn action(&self, stream: usize) -> Set {
        match self.rules {
            Rules::Weak => self.last[stream],
            Rules::Strong => self.behind(stream),
        }
    }

    /// All work so far.
    #[must_use]
    pub fn device(&self) -> Set {
        self.queued
    }

    /// What a wait for the stream waits for.
    #[must_use]
    pub fn stream(&self, stream: usize) -> Set {
        self.action(stream)
    }

    /// What a wait for the event waits for.
    #[must_use]
    pub fn event(&self) -> Set {
        self.recorded
    }

    /// The event is recorded.
    pub fn record(&mut self, stream: usize) {
        self.recorded = self.action(stream);
    }

    /// The stream waits for the event.
    pub fn stream_wait(&mut self, stream: usize) {
        self.last[stream] = self.action(stream) | self.recorded;
    }

    /// The first comes before the second.
    #[must_use]
    pub fn ordered(&self, first: usize, second: usize) -> bool {
        self.before[second] & (1 << first) != 0
    }

    /// Work that may be unfinished when the host is at the vertex.
    #[must_use]
    pub fn in_flight(&self, host: usize) -> Set {
        self.queued & !self.before[host] & ((1 << host) - 1)
    }

    fn closed(&self, set: Set) -> Set {
        let mut all = set;
        for (vertex, before) in self.before.iter().enumerate() {
            if set & (1 << vertex) != 0 {
                all |= before;
            }
        }
        all
    }
}
