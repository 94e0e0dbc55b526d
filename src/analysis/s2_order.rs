//! S2 order: two accesses of p, one of them a write, must be ordered in P'.
//!
//! In P they touched two buffers, so nothing had to order them: the host may read `h` while a kernel writes `d`. In P' that is a race.
//! Checked on the order of P' ([`Order`]), with the waits that the plan keeps. Two accesses of the device buffer are exempt: P is free of
//! races by premise, and every order of P survives in P' (that no linking copy carried such an order alone is checked here as well).
//! Two accesses of the host buffer are not exempt: a copy that stays may have read `h` before it returned in P, and not in P'.

use super::access::{Actor, disjoint, link};
use super::decline::Decline;
use super::pair::{Pair, describe, describe_item};
use super::pending::{Cover, Item, Streams};
use super::program::{Event, NodeId};
use super::rewritten::Order;
use super::verdict::Reason;
use crate::mutants::{Mutant, off};

pub(super) fn check(pair: &Pair<'_>, order: &Order, reasons: &mut Vec<Reason>) {
    for broken in broken(pair, order) {
        let path = path(pair, broken.item, broken.node);
        reasons.push(pair.unordered(broken.decline(pair), broken.item, broken.node, &path));
    }
}

/// The pair breaks the condition.
pub(super) fn fails(pair: &Pair<'_>, order: &Order) -> bool {
    broken(pair, order).next().is_some()
}

/// Where the condition is broken.
struct Broken {
    node: NodeId,
    /// What is pending there.
    item: Item,
    /// Who touches p at the node, and the work that does so unordered; `None`: a linking copy orders that work alone.
    by: Option<(Actor, NodeId)>,
}

impl Broken {
    fn decline(&self, pair: &Pair<'_>) -> Decline {
        let program = pair.program;
        match self.by {
            None => Decline::StreamOrderLost { work: describe_item(program, self.item) },
            Some((actor, work)) => match (actor, &program.node(work).event) {
                (Actor::Host, Event::Copy(_)) => Decline::CopyPending,
                (Actor::Host, _) => Decline::KernelPending { work: describe(program, work) },
                (Actor::Gpu(_), _) => {
                    Decline::UnorderedStreams { first: describe(program, work), second: describe(program, self.node) }
                }
            },
        }
    }
}

fn broken<'a>(pair: &'a Pair<'_>, order: &'a Order) -> impl Iterator<Item = Broken> + 'a {
    let own = |work| link(pair.program, pair.host, pair.device, work).is_some();
    let all = pair.nodes.iter().flat_map(move |&node| {
        let link = link(pair.program, pair.host, pair.device, node);
        let lost = link.and_then(|copy| order.lost(pair.program, node, copy, own));
        let beside = link.is_none().then(|| order.at(node)).into_iter().flatten();
        let lost = lost.map(|item| Broken { node, item, by: None });
        lost.into_iter().chain(beside.filter_map(move |(item, cover)| unordered(pair, node, item, cover)))
    });
    all.filter(|broken| match broken.by {
        None => !off(Mutant::S2StreamOrderLost),
        // The words are made for a mutant alone.
        Some(_) => !cfg!(feature = "mutants") || !off(Mutant::s2_order(&broken.decline(pair))),
    })
}

/// The item is work that touches p in conflict with what the node does, and nothing orders the two.
fn unordered(pair: &Pair<'_>, node: NodeId, item: Item, cover: Cover) -> Option<Broken> {
    let streams = Streams::new(pair.program);
    let Item::Work(work) = item else { return None };
    if link(pair.program, pair.host, pair.device, work).is_some() {
        return None;
    }
    let touch = pair.touches(node).find(|later| {
        let ordered = match later.actor {
            Actor::Host | Actor::Gpu(None) => false,
            Actor::Gpu(Some(stream)) => streams.ordered(cover, stream),
        };
        !ordered
            && pair.touches(work).any(|earlier| {
                let exempt = later.object == pair.device || off(Mutant::S2HostNotExempt);
                (earlier.writes || later.writes)
                    && !(exempt && earlier.object == later.object)
                    && !disjoint(&earlier.range, &later.range)
            })
    })?;
    Some(Broken { node, item, by: Some((touch.actor, work)) })
}

/// How control gets from the pending work to the node.
pub(super) fn path(pair: &Pair<'_>, item: Item, node: NodeId) -> Vec<NodeId> {
    match item {
        Item::Outside => pair.cfg.path(pair.program.entry, |at| at == node, |_| false).unwrap_or_default(),
        Item::Work(work) | Item::StreamWait(work) => {
            pair.cfg.path_before(pair.cfg.rank(node), work, |at| at == node, |_| false).unwrap_or_default()
        }
    }
}
