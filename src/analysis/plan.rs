//! The only maker of a [`MergePlan`]: it takes what the conditions proved and writes it down for the rewrite.

use super::candidate::Candidate;
use super::program::NodeId;
use super::rewritten::{Order, Rewritten, Role};
use super::s4_lifetime::Lifetime;
use super::verdict::{FreeAction, MergePlan, SyncAction};
use crate::mutants::{Mutant, off};

/// The plan of one pair in the order of P'. The caller has checked every condition of the pair on just this order.
pub(super) fn plan(
    candidate: &Candidate,
    lifetime: &Lifetime,
    rewritten: &Rewritten<'_>,
    order: &Order,
    exclusive_ok: bool,
) -> MergePlan {
    let wait = |node: &NodeId| order.waits[node.index()];
    let copies = candidate.links.iter().map(|node| {
        let wait = wait(node).filter(|_| !off(Mutant::PlanCopyWaits));
        (*node, wait.map_or(SyncAction::Nothing, SyncAction::Wait))
    });
    let frees = lifetime.frees.iter().map(|node| {
        let wait = wait(node).filter(|_| !off(Mutant::PlanFreeWaits));
        let action = match lifetime.releases.contains(node) && !off(Mutant::PlanReleases) {
            _ if lifetime.counted => FreeAction::Count { wait },
            true => FreeAction::Release { wait },
            false => FreeAction::Drop { wait },
        };
        (*node, action)
    });
    let waits = candidate.nodes.iter().filter_map(|node| {
        let stays = rewritten.role(*node) == Role::TouchesMerged && !off(Mutant::PlanKeptWaits);
        let mine = stays && rewritten.owner(*node).is_some_and(|merge| merge.host == candidate.host);
        mine.then_some((*node, wait(node)?))
    });
    MergePlan {
        host: candidate.host,
        device: candidate.device,
        creates: lifetime.creates,
        yields: lifetime.yields,
        copies: copies.collect(),
        frees: frees.collect(),
        waits: waits.collect(),
        repairs: Vec::new(),
        counted: lifetime.counted,
        keeps_host: lifetime.keeps_host,
        exclusive_ok,
    }
}
