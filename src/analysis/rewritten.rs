//! The program P' that a set of merges makes of P, and the waits that keep P's order in it (R3, R4).
//!
//! What P' loses against P, and what stands in for it:
//! - A linking copy is gone. If it made the host wait, a wait stays wherever work may be pending that the copy's wait *may* have covered.
//!   Which streams are related is then read generously, the opposite of [`super::pending`].
//! - A linking copy was also work on its stream `s`. Work before it and work behind it on `s` stay ordered without it. What it alone
//!   ordered is work on *other* streams, through the mutual barrier of the legacy default stream and blocking streams; see [`Order::lost`].
//! - A copy that stays but touches a merged buffer was ordered by rules for pageable, pinned or device memory. Of managed memory nothing
//!   is assumed but stream order; where P's copy waited or had consumed another buffer at its return, a wait is put behind it.
//! - cudaFree waited for its device; where it goes, a wait stays if work may be pending. The one release of p waits for work on p.
//!
//! Under [`super::Target::Adaptive`] the runtime decides a buffer at a time whether it is merged, so P' is a family of programs: each linking
//! copy and each free of half a pair is there as P had it, or its stand-in is. The state behind it joins both ([`super::pending`]), so a wait
//! is kept, and an order demanded, if some member of the family needs it; a wait that stands where it is not needed adds order only. Copies
//! that stay are read as in the program that merges all: a member that does not merge waits there for more, not for less.
//!
//! Why dropping a wait is sound for all merges together: on any path, the first node of P that covers some work still finds it pending in
//! P', because nothing before it waited for that work in P and P' adds no trust in any wait. So that node keeps its wait.

use std::collections::BTreeSet;

use super::access::{Accesses, link};
use super::cfg::Cfg;
use super::pending::{Item, Pending, Streams, Waits, pending};
use super::program::{Allocator, Copy, Event, NodeId, ObjectId, Program, Space, Stream, StreamId, WaitScope};
use crate::mutants::{Mutant, off};

/// A pair that P' merges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Merge<'a> {
    pub(super) host: ObjectId,
    pub(super) device: ObjectId,
    /// The frees at which p may be released.
    pub(super) releases: &'a BTreeSet<NodeId>,
}

impl Merge<'_> {
    pub(super) fn has(&self, object: ObjectId) -> bool {
        object == self.host || object == self.device
    }
}

/// What a node of P becomes in P'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It stays as it is.
    Kept,
    /// A linking copy of a merged pair: it goes.
    Linking,
    /// A copy that stays, with a merged buffer on one side.
    TouchesMerged,
    /// The free of half of a merged pair.
    FreesMerged,
}

/// P with its merges.
pub(super) struct Rewritten<'a> {
    program: &'a Program,
    merges: &'a [Merge<'a>],
    /// By object, the merge that it is in.
    merged: Vec<Option<usize>>,
    roles: Vec<Role>,
    links_may_stay: bool,
}

impl<'a> Rewritten<'a> {
    pub(super) fn new(program: &'a Program, accesses: &Accesses, merges: &'a [Merge<'a>]) -> Self {
        let mut merged = vec![None; program.objects.len()];
        for (index, merge) in merges.iter().enumerate() {
            for object in [merge.host, merge.device] {
                merged[object.0 as usize].get_or_insert(index);
            }
        }
        let of = |object: ObjectId| merged[object.0 as usize];
        let role = |node: NodeId| match &program.node(node).event {
            Event::Free { object, .. } if of(*object).is_some() => Role::FreesMerged,
            Event::Copy(copy) => {
                let sides = [copy.dst.object.and_then(of), copy.src.object.and_then(of)];
                let links = |index: usize| link(program, merges[index].host, merges[index].device, node).is_some();
                if sides.into_iter().flatten().any(links) {
                    Role::Linking
                } else if sides != [None; 2] {
                    Role::TouchesMerged
                } else {
                    Role::Kept
                }
            }
            _ => Role::Kept,
        };
        let mut roles = vec![Role::Kept; program.graph.node_count()];
        accesses.movers().iter().for_each(|node| roles[node.index()] = role(*node));
        Self { program, merges, merged, roles, links_may_stay: false }
    }

    /// Which of the merges are carried out is known only at run time, one buffer at a time: everything that is said of P' holds whichever
    /// they are.
    pub(super) fn decided_at_run_time(self) -> Self {
        Self { links_may_stay: true, ..self }
    }

    pub(super) fn links_may_stay(&self) -> bool {
        self.links_may_stay
    }

    pub(super) fn program(&self) -> &'a Program {
        self.program
    }

    pub(super) fn role(&self, node: NodeId) -> Role {
        self.roles[node.index()]
    }

    fn merge_of(&self, object: ObjectId) -> Option<&Merge<'a>> {
        self.merged[object.0 as usize].map(|index| &self.merges[index])
    }

    /// The first merge that the copy touches; where two do, the wait behind it belongs to that one's plan.
    pub(super) fn owner(&self, node: NodeId) -> Option<&Merge<'a>> {
        let Event::Copy(copy) = &self.program.node(node).event else { return None };
        let sides = [copy.dst.object, copy.src.object].into_iter().flatten();
        sides.filter_map(|object| self.merged[object.0 as usize]).min().map(|index| &self.merges[index])
    }

    fn released_at(&self, node: NodeId) -> Option<&Merge<'a>> {
        let Event::Free { object, .. } = &self.program.node(node).event else { return None };
        self.merge_of(*object).filter(|merge| merge.releases.contains(&node))
    }

    /// The wait behind a copy that stays and touches a merged buffer.
    fn wait_behind(&self, copy: &Copy) -> Option<WaitScope> {
        let source_merged_host =
            copy.src.object.is_some_and(|src| self.merge_of(src).is_some_and(|merge| merge.host == src));
        let other_source_consumed = copy.host_source_consumed && !source_merged_host;
        let target_merged = copy.dst.object.is_some_and(|dst| self.merges.iter().any(|merge| merge.host == dst));
        let waits_in_practice = target_merged && to_pageable(self.program, copy);
        (copy.waits_before
            || copy.waits_after
            || waits_in_practice
            || other_source_consumed && !off(Mutant::R3OtherSourceConsumed))
        .then(|| stream_or_device(Streams::new(self.program), copy.stream))
    }
}

/// The order of P': the waits that are kept, and what may be pending with them.
pub(super) struct Order {
    pub(super) waits: Waits,
    pub(super) pending: Vec<Option<Pending>>,
    /// How it was found, for [`Self::with`].
    roles: Vec<Role>,
    /// The waits behind copies that stay; the states with these alone; with all waits that may be needed as well; and those states.
    always: Waits,
    bare: Vec<Option<Pending>>,
    all: Waits,
    full: Vec<Option<Pending>>,
}

impl Order {
    pub(super) fn new(rewritten: &Rewritten<'_>, cfg: &Cfg<'_>, accesses: &Accesses) -> Self {
        Self::find(None, rewritten, cfg, accesses)
    }

    /// The order of other merges of the same program. It is what [`Self::new`] finds; where the merges differ little, it costs little.
    pub(super) fn with(&self, rewritten: &Rewritten<'_>, cfg: &Cfg<'_>, accesses: &Accesses) -> Self {
        Self::find(Some(self), rewritten, cfg, accesses)
    }

    /// The same waits, and the same pending work everywhere.
    pub(super) fn equals(&self, other: &Self) -> bool {
        self.waits == other.waits && self.pending == other.pending
    }

    fn find(known: Option<&Self>, rewritten: &Rewritten<'_>, cfg: &Cfg<'_>, accesses: &Accesses) -> Self {
        let program = rewritten.program();
        let movers = accesses.movers();
        // `old`: the waits and the states of another solution, for the roles of `known`, or, if `same`, for ours.
        let solve = |waits: &Waits, old: Option<(&Waits, &[Option<Pending>])>, same: bool| {
            let roles = if same { Some(&rewritten.roles) } else { known.map(|known| &known.roles) };
            let (Some((old_waits, states)), Some(roles)) = (old, roles) else {
                return pending(rewritten, cfg, waits, None);
            };
            let differs = |node: &NodeId| {
                let at = node.index();
                old_waits[at] != waits[at] || roles[at] != rewritten.roles[at]
            };
            let changed: Vec<NodeId> = movers.iter().copied().filter(differs).collect();
            pending(rewritten, cfg, waits, Some((states, &changed)))
        };
        let mut always: Waits = vec![None; program.graph.node_count()];
        for &node in movers {
            if let (Event::Copy(copy), Role::TouchesMerged) = (&program.node(node).event, rewritten.role(node)) {
                always[node.index()] = rewritten.wait_behind(copy).filter(|_| !off(Mutant::R3WaitBehindKept));
            }
        }
        // Scopes are chosen where nothing was waited for: that is a superset of what will be pending, so each is wide enough.
        let bare = solve(&always, known.map(|known| (&known.always, known.bare.as_slice())), false);
        let needed = |node: NodeId, states: &[Option<Pending>]| {
            states[node.index()].as_ref().and_then(|state| needed_wait(rewritten, accesses, node, state))
        };
        let candidates: Vec<(NodeId, WaitScope)> =
            movers.iter().filter_map(|node| Some((*node, needed(*node, &bare)?))).collect();
        let mut all = always.clone();
        candidates.iter().for_each(|(node, scope)| all[node.index()] = Some(*scope));
        let full = solve(&all, known.map(|known| (&known.all, known.full.as_slice())), false);
        // Then those go that are needless given the others. Taking one away can make another needed again, which then stays for good.
        let mut dropped: Vec<NodeId> =
            candidates.iter().map(|(node, _)| *node).filter(|node| needed(*node, &full).is_none()).collect();
        let mut found: Option<(Waits, Vec<Option<Pending>>)> = None;
        loop {
            let mut waits = all.clone();
            dropped.iter().for_each(|node| waits[node.index()] = always[node.index()]);
            let states = match (&found, known) {
                (Some((old, states)), _) => solve(&waits, Some((old, states)), true),
                (None, Some(known)) => solve(&waits, Some((&known.waits, known.pending.as_slice())), false),
                (None, None) => solve(&waits, Some((&all, full.as_slice())), true),
            };
            let count = dropped.len();
            dropped.retain(|node| needed(*node, &states).is_none() || off(Mutant::R3DroppedWaits));
            if dropped.len() == count {
                let roles = rewritten.roles.clone();
                return Self { waits, pending: states, roles, always, bare, all, full };
            }
            found = Some((waits, states));
        }
    }

    /// The state before a node; empty where control never gets.
    pub(super) fn at(&self, node: NodeId) -> impl Iterator<Item = (Item, super::pending::Cover)> + '_ {
        self.pending[node.index()].iter().flat_map(Pending::items)
    }

    /// Pending work on another stream that only this linking copy ordered before later work or waits (the copy does not make the host
    /// wait, so nothing stands in for it).
    pub(super) fn lost(
        &self,
        program: &Program,
        node: NodeId,
        copy: &Copy,
        own: impl Fn(NodeId) -> bool,
    ) -> Option<Item> {
        if self.waits[node.index()] == Some(WaitScope::Device) {
            return None;
        }
        self.pending[node.index()].as_ref()?.any_work_but(&own)?;
        let streams = Streams::new(program);
        let others = self.at(node).map(|(item, _)| item).filter(|item| !matches!(item, Item::Work(work) if own(*work)));
        others.into_iter().find(|item| {
            let other = item_stream(program, *item);
            match (streams.kind(copy.stream), other) {
                (Stream::NonBlocking, _) => false,
                (Stream::Unknown, _) | (_, None) => true,
                (_, Some(other)) => {
                    other != copy.stream
                        && (streams.kind(other) == Stream::Unknown || streams.related(other, copy.stream))
                }
            }
        })
    }
}

/// The wait that has to stand where P had a linking copy or a free of half a pair, if `state` is what may be pending there.
fn needed_wait(rewritten: &Rewritten<'_>, accesses: &Accesses, node: NodeId, state: &Pending) -> Option<WaitScope> {
    let program = rewritten.program();
    match (&program.node(node).event, rewritten.role(node)) {
        (Event::Copy(copy), Role::Linking) if copy.waits_before || copy.waits_after || to_pageable(program, copy) => {
            if off(Mutant::R3CopyWaits) {
                return None;
            }
            stand_in(program, WaitScope::Stream(copy.stream), state)
        }
        (Event::Free { waits, .. }, Role::FreesMerged) => {
            let in_use = rewritten.released_at(node).is_some_and(|merge| {
                state.items().any(|(item, _)| match item {
                    // A linking copy of the merge that may stay stays only if there is no p.
                    Item::Work(work) => {
                        link(program, merge.host, merge.device, work).is_none()
                            && accesses.at(work).iter().any(|touch| merge.has(touch.object))
                    }
                    _ => false,
                })
            });
            if in_use && !off(Mutant::R4ReleaseWaits) {
                Some(WaitScope::Device)
            } else {
                waits.filter(|_| !off(Mutant::R4FreeWaits)).and_then(|scope| stand_in(program, scope, state))
            }
        }
        _ => None,
    }
}

/// A download to pageable memory. Even the asynchronous call waits for it in practice, though newer documentation only says that it may:
/// so nothing in P is taken to be ordered by that, but programs rely on it, and a wait stays. That holds for copies that go and for those
/// that stay and download to a merged buffer, which is pageable no more.
fn to_pageable(program: &Program, copy: &Copy) -> bool {
    copy.dst.object.is_some_and(|dst| {
        let dst = program.object(dst);
        dst.space == Space::Host && dst.origin != Allocator::PinnedHost && !off(Mutant::R3PageableDownload)
    })
}

/// A wait that covers all that P's wait of `scope` may have covered; `None` if nothing such is pending.
fn stand_in(program: &Program, scope: WaitScope, state: &Pending) -> Option<WaitScope> {
    state.any_work()?;
    let WaitScope::Stream(stream) = scope else { return Some(scope) };
    let streams = Streams::new(program);
    match streams.kind(stream) {
        // Only work on it, or before events that it waits for: its own wait covers just that.
        Stream::NonBlocking => {
            let concerned = |item| match item_stream(program, item) {
                None => true,
                Some(other) => other == stream || streams.kind(other) == Stream::Unknown,
            };
            state.items().any(|(item, _)| concerned(item)).then_some(scope)
        }
        Stream::Unknown if off(Mutant::R3UnknownStreamWait) => Some(scope),
        Stream::Unknown => Some(WaitScope::Device),
        Stream::LegacyDefault | Stream::Blocking | Stream::PerThreadDefault => {
            let mut own = false;
            for (item, _) in state.items() {
                match item_stream(program, item) {
                    Some(other) if other == stream => own = true,
                    Some(other) if streams.kind(other) != Stream::Unknown && !streams.related(other, stream) => {}
                    // The copy was held back by this work; a wait for the stream without the copy would not be.
                    _ if off(Mutant::R3HeldBackWait) => own = true,
                    _ => return Some(WaitScope::Device),
                }
            }
            own.then_some(scope)
        }
    }
}

/// The stream that an item runs on; `None` where it could be any.
pub(super) fn item_stream(program: &Program, item: Item) -> Option<StreamId> {
    match item {
        Item::Outside => None,
        Item::Work(node) | Item::StreamWait(node) => match &program.node(node).event {
            Event::Enqueue { stream, .. } | Event::StreamWait { stream, .. } => Some(*stream),
            Event::Copy(copy) => Some(copy.stream),
            _ => None,
        },
    }
}

fn stream_or_device(streams: Streams<'_>, stream: StreamId) -> WaitScope {
    if streams.kind(stream) == Stream::Unknown { WaitScope::Device } else { WaitScope::Stream(stream) }
}
