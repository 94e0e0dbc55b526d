//! S5 exclusive access: where concurrentManagedAccess is 0 the host must not touch managed memory while any GPU work may be running.
//!
//! malloc'd memory has no such rule, so without this check a merge turns a correct program into one that crashes. Any work counts, of this
//! pair or not, of this function or not. It decides only whether p may be *managed* memory on such devices.

use super::access::{Actor, link};
use super::decline::Decline;
use super::pair::{Pair, describe_item};
use super::pending::Item;
use super::program::{Event, NodeId};
use super::rewritten::Order;
use super::s2_order::path;
use super::s4_lifetime::Lifetime;
use super::verdict::Reason;
use crate::mutants::{Mutant, off};

pub(super) fn check(pair: &Pair<'_>, lifetime: Option<&Lifetime>, order: &Order, reasons: &mut Vec<Reason>) {
    if pair.program.module.starts_threads && !off(Mutant::S5Threads) {
        let site = pair.program.object(pair.host).site.clone();
        reasons.push(pair.reason_at_site(Decline::Threads, site));
        return;
    }
    for Broken { node, item, allocates } in broken(pair, lifetime, order) {
        let work = describe_item(pair.program, item);
        let decline =
            if allocates { Decline::AllocatedInFlight { work } } else { Decline::HostAccessInFlight { work } };
        reasons.push(pair.unordered(decline, item, node, &path(pair, item, node)));
    }
}

/// The pair breaks the condition.
pub(super) fn fails(pair: &Pair<'_>, lifetime: Option<&Lifetime>, order: &Order) -> bool {
    (pair.program.module.starts_threads && !off(Mutant::S5Threads)) || broken(pair, lifetime, order).next().is_some()
}

/// Where the condition is broken.
struct Broken {
    node: NodeId,
    /// What is pending there.
    item: Item,
    /// p would begin there; else the host touches it.
    allocates: bool,
}

fn broken<'a>(
    pair: &'a Pair<'_>,
    lifetime: Option<&'a Lifetime>,
    order: &'a Order,
) -> impl Iterator<Item = Broken> + 'a {
    // Where linking copies may stay, those of this pair stay only if it is not merged. (One of an earlier buffer of the same allocation site
    // is done: S4 has a cudaFree between the two.)
    let own = |work| link(pair.program, pair.host, pair.device, work).is_some();
    pair.nodes.iter().flat_map(move |&node| {
        let item = order.pending[node.index()].as_ref().and_then(|state| state.any_work_but(own));
        let creates = lifetime.is_some_and(|lifetime| lifetime.creates == node) && !off(Mutant::S5AllocatedInFlight);
        let begins = item.filter(|_| creates);
        let touched = item.filter(|_| by_host(pair, node));
        let begins = begins.map(|item| Broken { node, item, allocates: true });
        begins.into_iter().chain(touched.map(|item| Broken { node, item, allocates: false }))
    })
}

fn by_host(pair: &Pair<'_>, node: NodeId) -> bool {
    if link(pair.program, pair.host, pair.device, node).is_some() {
        return false;
    }
    // The driver may read or write the host side of a copy with the CPU.
    let is_copy = matches!(pair.program.node(node).event, Event::Copy(_)) && !off(Mutant::S5CopyByHost);
    let touched = pair.touches(node).any(|touch| touch.actor == Actor::Host || is_copy && touch.object == pair.host);
    touched && !off(Mutant::S5HostAccess)
}
