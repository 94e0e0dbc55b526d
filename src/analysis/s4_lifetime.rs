//! S4 lifetime: p must exist from the first access of either buffer to the last, and end where the last of both ended.
//!
//! p is made by the allocation that dominates the other, its *creator*; the other one *yields* it. Each buffer has one allocation site, and
//! no buffer is allocated again before it is certainly freed, so an access always means the newest one. Then p has at each moment two names,
//! or one, or none: h, if it is allocated and not freed, and d likewise. p must be there while it has a name, and goes with the last one.
//!
//! *Why that holds.* All that p's names mean is this round's p: a buffer is used only where its allocation dominates, the creator dominates
//! the yielder, so behind a new visit of the creator no use of the yielder comes before its own new visit. Where the yielder is visited the
//! creator is certainly not freed (without this check `free(h); cudaMalloc(&d)` would yield a dead p), so p is there. From the creator on p
//! is released at the free that leaves it without a name, once, because P frees nothing twice; and if P leaks one of the two, p is leaked.
//! Which free that is, is decided here if it is the same on all paths on which P gets there. Else p counts its names while the program runs
//! (`MergePlan::counted`), which is exact on every path: `if (failed) cudaFree(d); free(h);`. A free of a pointer that may be null counts if
//! the pointer is not.
//!
//! *The yielder may be visited many times, or never.* Many times: `h = malloc(); for (…) { cudaMalloc(&d); …; cudaFree(d); } free(h);`. Each d
//! is p. It begins with undefined contents in P, so whatever p holds will do, and nothing is done to p where it begins, so h keeps its value
//! (what a write to d does to h is S1's question, and of h's life S1 sees all: p is one buffer to it). Two of these d's are never used at the
//! same time: cudaFree of the first waits for the device, and leaves that wait. Never: then p is the creator's buffer alone. If that is d,
//! nothing changes. If it is h, P may be running where there is no device, and p cannot be made; so the rewrite keeps h's own allocation for
//! that case (`MergePlan::keeps_host`). Without this, `h = malloc(); if (gpus > 0) { cudaMalloc(&d); … }` would crash on a machine with none.
//! (Where P then ends with a failure, p is not kept from failing first.)
//!
//! p also ends with its device, and a malloc'd buffer does not: what may reset the device while the host buffer is still to be used
//! declines.

use std::collections::BTreeSet;

use super::dataflow::forward;
use super::decline::Decline;
use super::pair::Pair;
use super::program::{Allocator, BlemishKind, Event, NodeId, ObjectId};
use super::verdict::Reason;
use crate::mutants::{Mutant, off};

/// Where p begins and ends.
#[derive(Clone, Debug)]
pub(super) struct Lifetime {
    pub(super) creates: NodeId,
    pub(super) yields: NodeId,
    /// The frees of both halves.
    pub(super) frees: BTreeSet<NodeId>,
    /// Those of them at which p may be released.
    pub(super) releases: BTreeSet<NodeId>,
    /// At some of those it is not: see `MergePlan::counted`.
    pub(super) counted: bool,
    /// See `MergePlan::keeps_host`.
    pub(super) keeps_host: bool,
}

/// `None` if there is a reason against the pair.
pub(super) fn check(pair: &Pair<'_>, reasons: &mut Vec<Reason>) -> Option<Lifetime> {
    let count = reasons.len();
    let [Some(host), Some(device)] = pair.objects().map(|object| only_allocation(pair, object, reasons)) else {
        return None;
    };
    for (object, alloc) in [(pair.host, host), (pair.device, device)] {
        check_dominance(pair, object, alloc, reasons);
        check_rounds(pair, object, alloc, reasons);
    }
    let begin = creator(pair, host, device, reasons)?;
    let keeps_host = check_alone(pair, &begin, reasons);
    check_reset(pair, &begin, reasons);
    let Ends { frees, releases, counted } = check_frees(pair, &begin, reasons);
    let Begin { creates, yields, .. } = begin;
    (reasons.len() == count).then_some(Lifetime { creates, yields, frees, releases, counted, keeps_host })
}

fn only_allocation(pair: &Pair<'_>, object: ObjectId, reasons: &mut Vec<Reason>) -> Option<NodeId> {
    let all = pair.accesses.allocations(object).iter().copied();
    let reached = all.filter(|node| pair.cfg.position(*node).is_some());
    match reached.collect::<Vec<_>>().as_slice() {
        [one] => Some(*one),
        [one, ..] if off(Mutant::S4OneSite) => Some(*one),
        several => {
            let decline = Decline::AllocationSites { buffer: pair.name(object), count: several.len() };
            // The places stand for a path.
            let shown = pair.reason_on(decline, several.first().copied().unwrap_or(pair.program.entry), several);
            reasons.push(Reason { at: pair.program.object(object).site.clone(), ..shown });
            None
        }
    }
}

fn check_dominance(pair: &Pair<'_>, object: ObjectId, alloc: NodeId, reasons: &mut Vec<Reason>) {
    for &node in pair.nodes {
        let uses = pair.touches(node).any(|touch| touch.object == object) || certainly_frees(pair, node, object);
        if uses && !pair.cfg.dominates(alloc, node) && !off(Mutant::S4Dominance) {
            let last = pair.cfg.rank(node);
            let path = pair.cfg.path_before(last, pair.program.entry, |at| at == node, |at| at == alloc);
            let path = path.unwrap_or_default();
            reasons.push(pair.reason_on(Decline::NotDominated { buffer: pair.name(object) }, node, &path));
        }
    }
}

fn check_rounds(pair: &Pair<'_>, object: ObjectId, alloc: NodeId, reasons: &mut Vec<Reason>) {
    let last = pair.cfg.rank(alloc);
    let again = pair.cfg.path_before(last, alloc, |node| node == alloc, |node| certainly_frees(pair, node, object));
    if let Some(path) = again.filter(|_| !off(Mutant::S4AllocatedAgain)) {
        reasons.push(pair.reason_on(Decline::AllocatedAgain { buffer: pair.name(object) }, alloc, &path));
    }
}

/// The two allocations in their order.
struct Begin {
    creates: NodeId,
    yields: NodeId,
    /// What the first one allocates.
    creator: ObjectId,
}

fn creator(pair: &Pair<'_>, host: NodeId, device: NodeId, reasons: &mut Vec<Reason>) -> Option<Begin> {
    let ids = (pair.host.min(pair.device), pair.host.max(pair.device));
    let unordered = pair.program.unordered.contains(&ids) && !off(Mutant::S4Unordered);
    if !unordered && pair.cfg.dominates(host, device) {
        return Some(Begin { creates: host, yields: device, creator: pair.host });
    }
    if !unordered && pair.cfg.dominates(device, host) {
        return Some(Begin { creates: device, yields: host, creator: pair.device });
    }
    let last = pair.cfg.rank(device);
    let path = pair.cfg.path_before(last, pair.program.entry, |at| at == device, |at| at == host).unwrap_or_default();
    reasons.push(pair.reason_on(Decline::AllocationsUnordered, device, &path));
    None
}

/// Whether h can come to be used where d is never allocated and no call of CUDA made it.
fn check_alone(pair: &Pair<'_>, begin: &Begin, reasons: &mut Vec<Reason>) -> bool {
    let origin = pair.program.object(begin.creator).origin;
    if begin.creator == pair.device || origin == Allocator::PinnedHost || off(Mutant::S4KeepsHost) {
        return false;
    }
    let ends = |node: NodeId| match pair.program.node(node).event {
        Event::Exit { returns } => returns,
        _ => node == begin.creates || pair.cfg.successors(node).next().is_none(),
    };
    let Some(path) = pair.cfg.path(begin.creates, ends, |node| node == begin.yields) else { return false };
    // These hand out the pointer in more than one way, and are rare: the rewrite does not keep them.
    let absent = pair.program.object(begin.creator).may_be_absent;
    if absent || origin == Allocator::AlignedAlloc && !off(Mutant::S4AlignedAlone) {
        reasons.push(pair.reason_on(Decline::AllocationsNotPaired, begin.yields, &path));
    }
    true
}

/// Which names p may have: one bit for each of the four combinations.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Names(u8);

/// Whether the creator's name and the yielder's are there.
type Both = (bool, bool);

impl Names {
    const NONE: Self = Self::of((false, false));

    const fn of((creator, yielder): Both) -> Self {
        Self(1 << (creator as u8 + 2 * yielder as u8))
    }

    fn all(self) -> impl Iterator<Item = Both> {
        let combinations = [(false, false), (true, false), (false, true), (true, true)];
        combinations.into_iter().filter(move |both| self.0 & Self::of(*both).0 != 0)
    }

    fn map(self, change: impl Fn(Both) -> Both) -> Self {
        Self(self.all().fold(0, |set, both| set | Self::of(change(both)).0))
    }

    /// Those with the creator's name, or the yielder's.
    fn having(self, creator: bool) -> Self {
        Self(
            self.all().filter(|both| if creator { both.0 } else { both.1 }).fold(0, |set, both| set | Self::of(both).0),
        )
    }

    /// One of the two is freed. P frees only what is there.
    fn free(self, creator: bool, may_be_null: bool) -> Self {
        let freed = self.having(creator).map(|both| if creator { (false, both.1) } else { (both.0, false) });
        if may_be_null && !off(Mutant::S4FreeOfNull) { Self(freed.0 | self.0) } else { freed }
    }
}

struct Ends {
    frees: BTreeSet<NodeId>,
    releases: BTreeSet<NodeId>,
    counted: bool,
}

fn check_frees(pair: &Pair<'_>, begin: &Begin, reasons: &mut Vec<Reason>) -> Ends {
    let join = |into: &mut Names, from: &Names| {
        let old = into.0;
        into.0 |= from.0;
        into.0 != old
    };
    let states = forward(pair.program, pair.cfg, pair.region, Names::NONE, join, |node, state| {
        if node == begin.creates {
            *state = Names::of((true, false));
        } else if node == begin.yields {
            // Without bytes the second half may be left out, and p is there all the same.
            let absent = pair.program.object(pair.partner(begin.creator)).may_be_absent;
            let named = state.map(|both| (both.0, true));
            *state = if absent { Names(state.0 | named.0) } else { named };
        } else if let Some((object, may_be_null)) = frees(pair, node) {
            *state = state.free(object == begin.creator, may_be_null);
        }
    });
    let at = |node: NodeId| states[node.index()].unwrap_or(Names(0));
    if at(begin.yields).all().any(|(creator, _)| !creator) && !off(Mutant::S4FreedBetween) {
        let is_free = |node: &&NodeId| frees(pair, **node).is_some_and(|(object, _)| object == begin.creator);
        let last = pair.cfg.rank(begin.yields);
        let path = pair.nodes.iter().filter(is_free).find_map(|free| {
            pair.cfg.path_before(last, *free, |node| node == begin.yields, |node| node == begin.creates)
        });
        reasons.push(pair.reason_on(Decline::AllocationsNotPaired, begin.yields, &path.unwrap_or_default()));
    }
    let mut ends = Ends { frees: BTreeSet::new(), releases: BTreeSet::new(), counted: false };
    for &node in pair.nodes {
        let Some((object, _)) = frees(pair, node) else { continue };
        let in_stream_order = matches!(pair.program.node(node).event, Event::Free { stream: Some(_), .. });
        if in_stream_order && !off(Mutant::S4StreamOrderedFree) {
            let path = pair.cfg.path(begin.creates, |at| at == node, |_| false).unwrap_or_default();
            reasons.push(pair.reason_on(Decline::StreamOrderedFree, node, &path));
        }
        ends.frees.insert(node);
        let is_creator = object == begin.creator;
        let other_is_there = |there: bool| {
            at(node).having(is_creator).all().any(|both| if is_creator { both.1 == there } else { both.0 == there })
        };
        let later = off(Mutant::S4LaterFree);
        match (other_is_there(later), other_is_there(!later)) {
            // Where the process is about to end, p may as well be left to it.
            (true, true) if ends_process(pair, node) && !off(Mutant::S4LeftToTheEnd) => {}
            (true, undecided) => {
                ends.releases.insert(node);
                ends.counted |= undecided && !off(Mutant::S4Counted);
            }
            (false, _) => {}
        }
    }
    ends
}

/// From here control can only get to an exit that does not return.
fn ends_process(pair: &Pair<'_>, node: NodeId) -> bool {
    let goes_on = |next: NodeId| match pair.program.node(next).event {
        Event::Alloc(_) | Event::Exit { returns: true } => true,
        Event::Exit { returns: false } => false,
        _ => pair.cfg.successors(next).next().is_none(),
    };
    pair.cfg.path(node, goes_on, |_| false).is_none()
}

/// What may end the device between p's creation and the last use of the host buffer.
fn check_reset(pair: &Pair<'_>, begin: &Begin, reasons: &mut Vec<Reason>) {
    let uses = |object: ObjectId, node: NodeId| {
        pair.touches(node).any(|touch| touch.object == object)
            || frees(pair, node).is_some_and(|(freed, _)| freed == object)
    };
    // A device buffer that is allocated behind a reset is sound in P, and p is not.
    let needs_p = |node: NodeId| uses(pair.host, node) || node == begin.yields;
    for blemish in pair.program.blemishes.iter().filter(|blemish| blemish.kind == BlemishKind::DeviceReset) {
        // The mark may stand on the node before or behind the call, so a use at the node itself counts.
        let path = if off(Mutant::S4Reset) {
            None
        } else if needs_p(blemish.node) {
            Some(vec![blemish.node])
        } else {
            pair.cfg.path_before(pair.region.last, blemish.node, needs_p, |node| node == begin.creates)
        };
        if let Some(path) = path {
            let decline = Decline::UsedAfterReset { buffer: pair.name(pair.host) };
            reasons.push(pair.reason_on(decline, path[path.len() - 1], &path));
        }
    }
    for &node in pair.accesses.launching() {
        let Event::Opaque { launches: true, name } = &pair.program.node(node).event else { continue };
        let path = pair.cfg.path_before(pair.region.last, node, needs_p, |node| node == begin.creates);
        if let Some(path) = path.filter(|_| !off(Mutant::S4MayBeReset)) {
            reasons.push(pair.reason_on(Decline::MayBeReset { callee: name.clone() }, node, &path));
        }
    }
}

/// The half of the pair that the node frees, and whether the pointer may be null instead.
fn frees(pair: &Pair<'_>, node: NodeId) -> Option<(ObjectId, bool)> {
    match pair.program.node(node).event {
        Event::Free { object, may_be_null, .. } if pair.has(object) => Some((object, may_be_null)),
        _ => None,
    }
}

fn certainly_frees(pair: &Pair<'_>, node: NodeId, object: ObjectId) -> bool {
    frees(pair, node) == Some((object, false))
}
