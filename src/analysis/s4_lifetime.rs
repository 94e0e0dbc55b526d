//! S4 lifetime: p must exist from the first access of either buffer to the last.
//!
//! p is created by the allocation that dominates the other and released at the later free. Both are places that the analysis has to know:
//! each buffer has one allocation site, the two are visited in turn, no round begins before the last one's buffer is freed (so an access
//! always means the newest object), and at each free it is certain whether the other half is already free. Without this check `free(h)`
//! before the kernel that uses `d`, or an allocation under a condition, would leave a launch with a dead buffer.
//!
//! p also ends with its device, and a malloc'd buffer does not: what may reset the device while the host buffer is still to be used
//! declines.

use std::collections::BTreeSet;

use super::access::allocations;
use super::dataflow::forward;
use super::decline::Decline;
use super::pair::Pair;
use super::program::{BlemishKind, Event, NodeId, ObjectId};
use super::verdict::Reason;
use crate::mutants::{Mutant, off};

/// Where p begins and ends.
#[derive(Clone, Debug)]
pub(super) struct Lifetime {
    pub(super) creates: NodeId,
    pub(super) yields: NodeId,
    /// The frees of both halves.
    pub(super) frees: BTreeSet<NodeId>,
    /// Those of them at which p is released.
    pub(super) releases: BTreeSet<NodeId>,
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
    let (creates, yields) = check_pairing(pair, host, device, reasons)?;
    check_reset(pair, creates, yields, reasons);
    let (frees, releases) = check_frees(pair, creates, yields, reasons);
    (reasons.len() == count).then_some(Lifetime { creates, yields, frees, releases })
}

fn only_allocation(pair: &Pair<'_>, object: ObjectId, reasons: &mut Vec<Reason>) -> Option<NodeId> {
    let reached = allocations(pair.program, object).filter(|node| pair.cfg.position(*node).is_some());
    match reached.collect::<Vec<_>>().as_slice() {
        [one] => Some(*one),
        [one, ..] if off(Mutant::S4OneSite) => Some(*one),
        several => {
            let decline = Decline::AllocationSites { buffer: pair.name(object), count: several.len() };
            reasons.push(pair.reason_at_site(decline, pair.program.object(object).site.clone()));
            None
        }
    }
}

fn check_dominance(pair: &Pair<'_>, object: ObjectId, alloc: NodeId, reasons: &mut Vec<Reason>) {
    for &node in pair.cfg.order() {
        let uses = pair.touches(node).any(|touch| touch.object == object) || frees(pair, node) == Some(object);
        if uses && !pair.cfg.dominates(alloc, node) && !off(Mutant::S4Dominance) {
            reasons.push(pair.reason(Decline::NotDominated { buffer: pair.name(object) }, node));
        }
    }
}

fn check_rounds(pair: &Pair<'_>, object: ObjectId, alloc: NodeId, reasons: &mut Vec<Reason>) {
    let again = pair.cfg.path(alloc, |node| node == alloc, |node| frees(pair, node) == Some(object));
    if let Some(path) = again.filter(|_| !off(Mutant::S4AllocatedAgain)) {
        reasons.push(pair.reason_on(Decline::AllocatedAgain { buffer: pair.name(object) }, alloc, &path));
    }
}

fn check_pairing(pair: &Pair<'_>, host: NodeId, device: NodeId, reasons: &mut Vec<Reason>) -> Option<(NodeId, NodeId)> {
    let unordered = pair.program.unordered.iter().any(|(one, other)| pair.has(*one) && pair.has(*other));
    let (creates, yields) = if unordered && !off(Mutant::S4Unordered) {
        reasons.push(pair.reason(Decline::AllocationsUnordered, device));
        return None;
    } else if pair.cfg.dominates(host, device) {
        (host, device)
    } else if pair.cfg.dominates(device, host) {
        (device, host)
    } else {
        reasons.push(pair.reason(Decline::AllocationsUnordered, device));
        return None;
    };
    if !pair.cfg.equivalent(creates, yields) && !off(Mutant::S4Paired) {
        reasons.push(pair.reason(Decline::AllocationsNotPaired, yields));
        return None;
    }
    Some((creates, yields))
}

/// Which halves are free: one bit for each of the four combinations that may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Freed(u8);

impl Freed {
    const NEITHER: Self = Self(1);

    fn mask(host: bool, device: bool) -> u8 {
        1 << (u8::from(host) + 2 * u8::from(device))
    }

    fn may_be(self, host: bool, device: bool) -> bool {
        self.0 & Self::mask(host, device) != 0
    }

    fn free(self, is_host: bool) -> Self {
        let mut next = 0;
        for (host, device) in [(false, false), (true, false), (false, true), (true, true)] {
            if self.may_be(host, device) {
                next |= Self::mask(host || is_host, device || !is_host);
            }
        }
        Self(next)
    }
}

/// All frees, and those that release p.
fn check_frees(
    pair: &Pair<'_>,
    creates: NodeId,
    yields: NodeId,
    reasons: &mut Vec<Reason>,
) -> (BTreeSet<NodeId>, BTreeSet<NodeId>) {
    let states = forward(
        pair.program,
        pair.cfg,
        Freed::NEITHER,
        |into, from| {
            let old = into.0;
            into.0 |= from.0;
            into.0 != old
        },
        |node, state| {
            if node == creates {
                *state = Freed::NEITHER;
            } else if let Some(object) = frees(pair, node) {
                *state = state.free(object == pair.host);
            }
        },
    );
    let at = |node: NodeId| states[node.index()].unwrap_or(Freed::NEITHER);
    if at(yields) != Freed::NEITHER && !off(Mutant::S4FreedBetween) {
        reasons.push(pair.reason(Decline::AllocationsNotPaired, yields));
    }
    let (mut all, mut releases) = (BTreeSet::new(), BTreeSet::new());
    for &node in pair.cfg.order() {
        let Some(object) = frees(pair, node) else { continue };
        let in_stream_order = matches!(pair.program.node(node).event, Event::Free { stream: Some(_), .. });
        if in_stream_order && !off(Mutant::S4StreamOrderedFree) {
            reasons.push(pair.reason(Decline::StreamOrderedFree, node));
        }
        let partner_may_be = |freed: bool| {
            [false, true].iter().any(|own| {
                if object == pair.host { at(node).may_be(*own, freed) } else { at(node).may_be(freed, *own) }
            })
        };
        let later = !off(Mutant::S4LaterFree);
        match (partner_may_be(later), partner_may_be(!later)) {
            // Where the process is about to end, p may as well be left to it.
            (true, true) if ends_process(pair, node) || off(Mutant::S4FreeOrder) => {}
            (true, true) => {
                reasons.push(pair.reason(Decline::FreeOrderUnknown { buffer: pair.name(object) }, node));
            }
            (true, false) => {
                releases.insert(node);
            }
            (false, _) => {}
        }
        all.insert(node);
    }
    (all, releases)
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
fn check_reset(pair: &Pair<'_>, creates: NodeId, yields: NodeId, reasons: &mut Vec<Reason>) {
    let uses = |object: ObjectId, node: NodeId| {
        pair.touches(node).any(|touch| touch.object == object) || frees(pair, node) == Some(object)
    };
    // A device buffer that is allocated behind a reset is sound in P, and p is not.
    let needs_p = |node: NodeId| uses(pair.host, node) || node == yields;
    for blemish in pair.program.blemishes.iter().filter(|blemish| blemish.kind == BlemishKind::DeviceReset) {
        // The mark may stand on the node before or behind the call, so a use at the node itself counts.
        let path = if off(Mutant::S4Reset) {
            None
        } else if needs_p(blemish.node) {
            Some(vec![blemish.node])
        } else {
            pair.cfg.path(blemish.node, needs_p, |node| node == creates)
        };
        if let Some(path) = path {
            let decline = Decline::UsedAfterReset { buffer: pair.name(pair.host) };
            reasons.push(pair.reason_on(decline, path[path.len() - 1], &path));
        }
    }
    for &node in pair.cfg.order() {
        let Event::Opaque { launches: true, name } = &pair.program.node(node).event else { continue };
        let path = pair.cfg.path(node, needs_p, |node| node == creates);
        if let Some(path) = path.filter(|_| !off(Mutant::S4MayBeReset)) {
            reasons.push(pair.reason_on(Decline::MayBeReset { callee: name.clone() }, node, &path));
        }
    }
}

/// The half of the pair that the node frees.
fn frees(pair: &Pair<'_>, node: NodeId) -> Option<ObjectId> {
    match pair.program.node(node).event {
        Event::Free { object, .. } if pair.has(object) => Some(object),
        _ => None,
    }
}
