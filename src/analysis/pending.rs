//! Which GPU work may still be running when control is at a node: the order side of the proof.
//!
//! A forward may-analysis. An [`Item`] is in the state if it may be unfinished; with it goes a [`Cover`]: what is *certain* to be behind
//! it. A wait removes an item only where that follows from what CUDA documents:
//! - a device wait removes everything, a stream wait what the stream covers, an event wait what the event covers;
//! - a stream covers the work queued on it, the work before an event that it waits for, and, once something is queued on it, the work
//!   that its kind holds it back for: the legacy default stream and blocking streams (the per-thread default stream is one) hold each
//!   other back, non-blocking streams don't take part;
//! - an event covers what its stream covered at the last record, if only one event can be meant;
//! - cudaFree "may perform implicit synchronization", so it removes nothing. (Where one of P's goes that may have waited, a wait is put.)
//!
//! The state at a join keeps every item of both sides and only the cover on which both agree. The analysis runs on the program *as
//! rewritten* ([`super::rewritten::Rewritten`]): there linking copies are gone and copies of managed memory are not trusted to wait. Where
//! a linking copy goes or stays at run time ([`super::Target::Adaptive`]), the state behind it is the join of both.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::cfg::{Cfg, Region};
use super::dataflow::Forward;
use super::program::{Copy, CudaEventId, Event, NodeId, Program, Stream, StreamId, WaitScope};
use super::rewritten::{Rewritten, Role};
use crate::mutants::{Mutant, off};

/// Something that a wait would wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// Work that this function did not start: the caller's, another thread's.
    Outside,
    /// Work that this node started: a launch, a memset, a library call, a copy, a call that nobody modelled.
    Work(NodeId),
    /// No work, but a stream that this node makes wait for an event: who waits for the stream waits for that.
    StreamWait(NodeId),
}

/// Streams and events of which it is certain that they are done only when the item is. One bit an id; ids past the last bit are not
/// tracked, which loses orders and never invents one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cover {
    streams: u64,
    events: u64,
}

/// The state: see the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pending {
    /// Most nodes have the state of the one before, and share it.
    items: Rc<BTreeMap<Item, Cover>>,
}

impl Pending {
    pub(super) fn items(&self) -> impl Iterator<Item = (Item, Cover)> + '_ {
        self.items.iter().map(|(item, cover)| (*item, *cover))
    }

    /// GPU work of any kind may be running (a stream's wait alone is none).
    pub(super) fn any_work(&self) -> Option<Item> {
        self.any_work_but(|_| false)
    }

    /// The same, work of the nodes that are `left_out` not counted.
    pub(super) fn any_work_but(&self, left_out: impl Fn(NodeId) -> bool) -> Option<Item> {
        self.items.keys().copied().find(|item| match item {
            Item::Outside => true,
            Item::Work(node) => !left_out(*node),
            Item::StreamWait(_) => false,
        })
    }

    /// Grows to cover both; tells whether it grew.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        if Rc::ptr_eq(&self.items, &other.items) {
            return false;
        }
        let mut grown = false;
        for (item, cover) in other.items.iter() {
            match self.items.get(item) {
                None if off(Mutant::S2JoinKeepsBoth) => {}
                None => {
                    self.change().insert(*item, *cover);
                    grown = true;
                }
                Some(mine) => {
                    let mut both = Cover { streams: mine.streams & cover.streams, events: mine.events & cover.events };
                    if off(Mutant::S2JoinAgrees) {
                        both = Cover { streams: mine.streams | cover.streams, events: mine.events | cover.events };
                    }
                    if both != *mine {
                        self.change().insert(*item, both);
                        grown = true;
                    }
                }
            }
        }
        grown
    }

    fn change(&mut self) -> &mut BTreeMap<Item, Cover> {
        Rc::make_mut(&mut self.items)
    }

    fn queue(&mut self, streams: Streams<'_>, item: Item, stream: StreamId) {
        let bit = streams.bit(stream);
        for cover in self.change().values_mut() {
            if streams.ordered(*cover, stream) {
                cover.streams |= bit;
            }
        }
        self.add(item, bit);
    }

    fn add(&mut self, item: Item, bit: u64) {
        // An earlier visit's item of the same node may be pending too: both must be covered.
        let old = self.items.get(&item).copied();
        let events = old.filter(|_| off(Mutant::S2QueuedAgain)).map_or(0, |old| old.events);
        let new = Cover { streams: old.map_or(bit, |old| old.streams & bit), events };
        if old != Some(new) {
            self.change().insert(item, new);
        }
    }

    fn wait(&mut self, streams: Streams<'_>, scope: WaitScope) {
        match scope {
            WaitScope::Device if off(Mutant::S2DeviceWait) => {}
            WaitScope::Device => self.keep(|_| false),
            WaitScope::Stream(stream) => {
                let bit = streams.bit(stream);
                self.keep(|cover| cover.streams & bit == 0 && !off(Mutant::S2StreamWaitScope));
            }
            WaitScope::Event(event) => {
                let bit = streams.event_bit(event);
                self.keep(|cover| cover.events & bit == 0 && !off(Mutant::S2EventWaitScope));
            }
        }
    }

    fn keep(&mut self, stays: impl Fn(Cover) -> bool) {
        if self.items.values().any(|cover| !stays(*cover)) {
            self.change().retain(|_, cover| stays(*cover));
        }
    }

    /// A copy as P has it.
    fn copy(&mut self, streams: Streams<'_>, node: NodeId, copy: &Copy) {
        if copy.waits_before {
            self.wait(streams, WaitScope::Stream(copy.stream));
        }
        self.queue(streams, Item::Work(node), copy.stream);
        if copy.waits_after {
            self.wait(streams, WaitScope::Stream(copy.stream));
            self.change().remove(&Item::Work(node));
        }
    }

    fn record(&mut self, streams: Streams<'_>, event: CudaEventId, stream: StreamId) {
        let (stream_bit, event_bit) = (streams.bit(stream), streams.event_bit(event));
        for cover in self.change().values_mut() {
            if cover.streams & stream_bit != 0 {
                cover.events |= event_bit;
            } else if !off(Mutant::S2RecordReplaces) {
                cover.events &= !event_bit;
            }
        }
    }

    fn stream_wait(&mut self, streams: Streams<'_>, node: NodeId, stream: StreamId, event: CudaEventId) {
        let (stream_bit, event_bit) = (streams.bit(stream), streams.event_bit(event));
        for cover in self.change().values_mut() {
            if cover.events & event_bit != 0 {
                cover.streams |= stream_bit;
            }
        }
        if !off(Mutant::S2StreamWaitPends) {
            self.add(Item::StreamWait(node), stream_bit);
        }
    }
}

/// What is known of the streams of a program.
#[derive(Clone, Copy)]
pub(super) struct Streams<'a> {
    program: &'a Program,
}

impl<'a> Streams<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
        Self { program }
    }

    pub(super) fn kind(self, stream: StreamId) -> Stream {
        self.program.streams.get(stream.0 as usize).copied().unwrap_or(Stream::Unknown)
    }

    fn bit(self, stream: StreamId) -> u64 {
        if self.kind(stream) == Stream::Unknown && !off(Mutant::S2UnknownStream) {
            0
        } else {
            1_u64.checked_shl(stream.0).unwrap_or(0)
        }
    }

    fn event_bit(self, event: CudaEventId) -> u64 {
        let unique = self.program.cuda_events.get(event.0 as usize).is_some_and(|event| event.unique);
        if unique || off(Mutant::S2UniqueEvent) { 1_u64.checked_shl(event.0).unwrap_or(0) } else { 0 }
    }

    /// Work on the one holds back later work on the other because of their kinds.
    pub(super) fn related(self, left: StreamId, right: StreamId) -> bool {
        let barrier = |one, other| {
            one == Stream::LegacyDefault
                && matches!(other, Stream::LegacyDefault | Stream::Blocking | Stream::PerThreadDefault)
        };
        let (left, right) = (self.kind(left), self.kind(right));
        barrier(left, right) || barrier(right, left)
    }

    /// Whatever is queued on `stream` now runs after an item with this cover.
    pub(super) fn ordered(self, cover: Cover, stream: StreamId) -> bool {
        let tracked = u32::try_from(self.program.streams.len()).unwrap_or(64).min(64);
        self.bit(stream) != 0
            && (0..tracked).map(StreamId).any(|covered| {
                cover.streams & self.bit(covered) != 0
                    && (covered == stream
                        || self.related(covered, stream) && !off(Mutant::S2Barrier)
                        || off(Mutant::S2StreamsApart))
            })
    }
}

/// By node, where a wait stands in P': where linking copies and frees of merged objects were, and behind copies that stay.
pub(super) type Waits = Vec<Option<WaitScope>>;

/// The state before each node of the rewritten program, with `waits`. `known`: a solution for other merges or other waits, and the nodes that
/// do something else now.
pub(super) fn pending(
    rewritten: &Rewritten<'_>,
    cfg: &Cfg<'_>,
    waits: &[Option<WaitScope>],
    known: Option<(&[Option<Pending>], &[NodeId])>,
) -> Vec<Option<Pending>> {
    let program = rewritten.program();
    let facts = program.module;
    let mut outside = Pending::default();
    if !facts.entry_quiet && !off(Mutant::S2CallersWork) || facts.starts_threads || facts.other_devices {
        outside.add(Item::Outside, 0);
    }
    let transfer = |node, state: &mut Pending| {
        transfer(rewritten, waits, node, state);
        if facts.starts_threads || facts.other_devices {
            // Another thread may have started something meanwhile; what runs on another device was not waited for.
            state.add(Item::Outside, 0);
        }
    };
    let analysis = Forward { program, cfg, region: Region::ALL, outside, join: Pending::join, transfer };
    match known {
        None => analysis.solve(),
        Some((solution, changed)) => analysis.solve_again(solution, changed.iter().copied()),
    }
}

fn transfer(rewritten: &Rewritten<'_>, waits: &[Option<WaitScope>], node: NodeId, state: &mut Pending) {
    let program = rewritten.program();
    let streams = Streams::new(program);
    let kept = |state: &mut Pending| {
        if let Some(scope) = waits[node.index()] {
            state.wait(streams, scope);
        }
    };
    match &program.node(node).event {
        Event::Skip | Event::Alloc(_) | Event::Host(_) | Event::Exit { .. } | Event::Opaque { launches: false, .. } => {
        }
        Event::Opaque { launches: true, .. } if off(Mutant::S2UnknownCallsPend) => {}
        Event::Opaque { launches: true, .. } => state.add(Item::Work(node), 0),
        Event::Enqueue { stream, .. } => state.queue(streams, Item::Work(node), *stream),
        Event::Wait(scope) => state.wait(streams, *scope),
        Event::Record { event, stream } => state.record(streams, *event, *stream),
        Event::StreamWait { stream, event } => state.stream_wait(streams, node, *stream, *event),
        // P's own cudaFree may wait, or not.
        Event::Free { .. } if rewritten.role(node) == Role::FreesMerged => either_way(rewritten, state, |_| {}, kept),
        Event::Free { waits: Some(scope), .. } if off(Mutant::S2FreeMayWait) => state.wait(streams, *scope),
        Event::Free { .. } => {}
        Event::Copy(copy) => match rewritten.role(node) {
            Role::Linking => either_way(rewritten, state, |state| state.copy(streams, node, copy), kept),
            Role::TouchesMerged if !off(Mutant::S2MergedCopyWaits) => {
                state.queue(streams, Item::Work(node), copy.stream);
                kept(state);
            }
            _ => state.copy(streams, node, copy),
        },
    }
}

/// Behind a node of a merged pair: what it leaves in P', or, where only the run tells whether the pair is merged, what it leaves in either
/// program.
fn either_way(
    rewritten: &Rewritten<'_>,
    state: &mut Pending,
    as_in_p: impl Fn(&mut Pending),
    merged: impl Fn(&mut Pending),
) {
    let apart = (rewritten.links_may_stay() && !off(Mutant::AdaptiveLinksMayStay)).then(|| {
        let mut apart = state.clone();
        as_in_p(&mut apart);
        apart
    });
    merged(state);
    if let Some(apart) = apart {
        state.join(&apart);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::access::Accesses;
    use crate::analysis::testing::{Build, reads};

    fn rewritten(program: &Program) -> Rewritten<'_> {
        let cfg = Cfg::new(program);
        Rewritten::new(program, &Accesses::new(program, &cfg), &[])
    }

    fn leq(small: &Pending, large: &Pending) -> bool {
        let mut join = large.clone();
        !join.join(small)
    }

    #[test]
    fn join_is_idempotent_and_every_step_is_monotone() {
        // One node of each kind; the states are random subsets with random covers.
        let mut b = Build::main();
        let streams = [Stream::Blocking, Stream::NonBlocking, Stream::PerThreadDefault, Stream::Unknown];
        let streams = streams.map(|kind| b.stream(kind));
        let event = b.cuda_event();
        let d = b.cuda_malloc("d");
        let mut nodes = Vec::new();
        for stream in streams {
            nodes.push(b.launch_on(stream, "k", &[reads(d)]));
            nodes.push(b.record(event, stream));
            nodes.push(b.stream_wait(stream, event));
            nodes.push(b.wait(WaitScope::Stream(stream)));
        }
        nodes.push(b.wait(WaitScope::Event(event)));
        nodes.push(b.wait(WaitScope::Device));
        nodes.push(b.opaque("f"));
        b.exit();
        let program = b.done();
        let rewritten = rewritten(&program);
        let waits = vec![None; program.graph.node_count()];
        let mut seed = 3_u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        let mut state = || {
            let mut state = Pending::default();
            for node in &nodes {
                if random() % 3 == 0 {
                    let cover = Cover { streams: random() % 32, events: random() % 2 };
                    state.change().insert(Item::Work(*node), cover);
                }
            }
            state
        };
        for _ in 0..2_000 {
            let (small, mut large) = (state(), state());
            let mut same = small.clone();
            assert!(!same.join(&small.clone()), "joining a state with itself changes nothing");
            large.join(&small);
            assert!(leq(&small, &large));
            for &node in &nodes {
                let (mut from_small, mut from_large) = (small.clone(), large.clone());
                transfer(&rewritten, &waits, node, &mut from_small);
                transfer(&rewritten, &waits, node, &mut from_large);
                assert!(leq(&from_small, &from_large), "{:?}", program.node(node).event);
            }
        }
    }

    #[test]
    fn ids_past_the_last_bit_are_not_tracked() {
        let mut b = Build::main();
        let mut last = StreamId(0);
        for _ in 0..70 {
            last = b.stream(Stream::NonBlocking);
        }
        let d = b.cuda_malloc("d");
        let queued = b.launch_on(last, "k", &[reads(d)]);
        let waited = b.wait(WaitScope::Stream(last));
        let end = b.exit();
        let program = b.done();
        let cfg = Cfg::new(&program);
        let states = pending(&rewritten(&program), &cfg, &vec![None; program.graph.node_count()], None);
        assert!(states[waited.index()].as_ref().is_some_and(|state| state.any_work() == Some(Item::Work(queued))));
        assert!(states[end.index()].as_ref().is_some_and(|state| state.any_work().is_some()), "not taken for done");
    }
}
