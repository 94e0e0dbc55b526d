//! S2 order: two accesses of p, one of them a write, must be ordered in P'.
//!
//! In P they touched two buffers, so nothing had to order them: the host may read `h` while a kernel writes `d`. In P' that is a race.
//! Checked on the order of P' ([`Order`]), with the waits that the plan keeps. Two accesses of the device buffer are exempt: P is free of
//! races by premise, and every order of P survives in P' (that no linking copy carried such an order alone is checked here as well).
//! Two accesses of the host buffer are not exempt: a copy that stays may have read `h` before it returned in P, and not in P'.

use super::access::{Actor, disjoint, link};
use super::decline::Decline;
use super::pair::{Pair, describe, describe_item};
use super::pending::{Item, Streams};
use super::program::{Event, NodeId};
use super::rewritten::Order;
use super::verdict::Reason;
use crate::mutants::{Mutant, off};

pub(super) fn check(pair: &Pair<'_>, order: &Order, reasons: &mut Vec<Reason>) {
    let own = |work| link(pair.program, pair.host, pair.device, work).is_some();
    for &node in pair.cfg.order() {
        match link(pair.program, pair.host, pair.device, node) {
            Some(copy) => {
                let lost = order.lost(pair.program, node, copy, own).filter(|_| !off(Mutant::S2StreamOrderLost));
                if let Some(item) = lost {
                    let work = describe_item(pair.program, item);
                    reasons.push(pair.reason_on(Decline::StreamOrderLost { work }, node, &path(pair, item, node)));
                }
            }
            None => check_node(pair, order, node, reasons),
        }
    }
}

fn check_node(pair: &Pair<'_>, order: &Order, node: NodeId, reasons: &mut Vec<Reason>) {
    let streams = Streams::new(pair.program);
    for (item, cover) in order.at(node) {
        let Item::Work(work) = item else { continue };
        if link(pair.program, pair.host, pair.device, work).is_some() {
            continue;
        }
        let unordered = pair.touches(node).find(|later| {
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
        });
        let Some(touch) = unordered else { continue };
        let decline = match (touch.actor, &pair.program.node(work).event) {
            (Actor::Host, Event::Copy(_)) => Decline::CopyPending,
            (Actor::Host, _) => Decline::KernelPending { work: describe(pair.program, work) },
            (Actor::Gpu(_), _) => {
                Decline::UnorderedStreams { first: describe(pair.program, work), second: describe(pair.program, node) }
            }
        };
        if !off(Mutant::s2_order(&decline)) {
            reasons.push(pair.reason_on(decline, node, &path(pair, item, node)));
        }
    }
}

/// How control gets from the pending work to the node.
pub(super) fn path(pair: &Pair<'_>, item: Item, node: NodeId) -> Vec<NodeId> {
    match item {
        Item::Outside => Vec::new(),
        Item::Work(work) | Item::StreamWait(work) => {
            pair.cfg.path(work, |at| at == node, |_| false).unwrap_or_default()
        }
    }
}
