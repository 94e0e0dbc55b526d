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

pub(super) fn check(pair: &Pair<'_>, order: &Order, reasons: &mut Vec<Reason>) {
    for Broken { node, item, by } in broken(pair, order) {
        let decline = match by {
            None => Decline::StreamOrderLost { work: describe_item(pair.program, item) },
            Some((actor, work)) => match (actor, &pair.program.node(work).event) {
                (Actor::Host, Event::Copy(_)) => Decline::CopyPending,
                (Actor::Host, _) => Decline::KernelPending { work: describe(pair.program, work) },
                (Actor::Gpu(_), _) => Decline::UnorderedStreams {
                    first: describe(pair.program, work),
                    second: describe(pair.program, node),
                },
            },
        };
        reasons.push(pair.reason_on(decline, node, &path(pair, item, node)));
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

fn broken<'a>(pair: &'a Pair<'_>, order: &'a Order) -> impl Iterator<Item = Broken> + 'a {
    pair.nodes.iter().flat_map(move |&node| {
        let link = link(pair.program, pair.host, pair.device, node);
        let lost = link.and_then(|copy| order.lost(pair.program, node, copy));
        let beside = if link.is_none() { Some(order.at(node)) } else { None };
        lost.map(|item| Broken { node, item, by: None })
            .into_iter()
            .chain(beside.into_iter().flatten().filter_map(move |(item, cover)| unordered(pair, node, item, cover)))
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
                (earlier.writes || later.writes)
                    && !(earlier.object == pair.device && later.object == pair.device)
                    && !disjoint(&earlier.range, &later.range)
            })
    })?;
    Some(Broken { node, item, by: Some((touch.actor, work)) })
}

/// How control gets from the pending work to the node.
pub(super) fn path(pair: &Pair<'_>, item: Item, node: NodeId) -> Vec<NodeId> {
    match item {
        Item::Outside => Vec::new(),
        Item::Work(work) | Item::StreamWait(work) => {
            pair.cfg.path_before(pair.cfg.rank(node), work, |at| at == node, |_| false).unwrap_or_default()
        }
    }
}
