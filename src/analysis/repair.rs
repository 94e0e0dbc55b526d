//! Repair: where a pair is declined for nothing but missing orders, waits for the device are put in that supply them (`repair=on`).
//!
//! Sound because adding order never breaks P: a program with one more wait behaves as P does when the GPU happens to be quick. What is decided
//! in the end is the program with the waits in it, by the same conditions as any other, and what comes out accepted is merged together with
//! those waits. (One thing can break: a kernel that spins until the host does something behind the wait. It is why repair is off unless
//! asked for.)
//!
//! Where a wait stands. Directly before the node that comes too early, unless that node can be visited again without new work in between:
//! then a wait there would be made in every round of a loop that fills a buffer, so it stands directly behind the work. What one instruction
//! does is not taken apart: the wait stands before or behind all of it (a callee that starts work and then touches the buffer cannot be made
//! to wait in between).
//!
//! A wait that no accepted pair turns out to need is taken out again.

use std::collections::BTreeSet;

use petgraph::Direction;

use super::cfg::Cfg;
use super::program::{Event, Node, NodeId, ObjectId, Program, WaitScope};
use super::verdict::{Decision, MissingOrder, Note, RepairPlace, Verdict};
use super::{Options, decide};
use crate::mutants::{Mutant, off};

/// How often a program is looked at again after waits were put in. Each look puts in all that are missing; a wait can only bring to light
/// what an earlier reason hid, which has not been seen to happen more than once.
const MAX_LOOKS: usize = 8;

type Waits = BTreeSet<(NodeId, RepairPlace)>;
type Accepted = BTreeSet<(ObjectId, ObjectId)>;

/// The verdicts, with the waits in the plans of the pairs that need them.
pub(super) fn analyse(program: &Program, options: &Options) -> Vec<Verdict> {
    let as_it_is = decide(program, options);
    let mut waits = Waits::new();
    let mut verdicts = as_it_is.clone();
    for _ in 0..MAX_LOOKS {
        let missing = missing(program, &verdicts);
        if missing.is_subset(&waits) {
            break;
        }
        waits.extend(missing);
        verdicts = decide(&with(program, &waits), options);
    }
    if accepted(&verdicts).is_subset(&accepted(&as_it_is)) {
        return as_it_is;
    }
    let mut owners = Vec::new();
    for wait in waits.clone() {
        let mut fewer = waits.clone();
        fewer.remove(&wait);
        let without = decide(&with(program, &fewer), options);
        match accepted(&verdicts).difference(&accepted(&without)).next() {
            Some(pair) => owners.push((*pair, wait)),
            None => (waits, verdicts) = (fewer, without),
        }
    }
    for (pair, wait) in owners {
        for verdict in verdicts.iter_mut().filter(|verdict| (verdict.host, verdict.device) == pair) {
            if let Decision::Accept(plan) = &mut verdict.decision {
                plan.repairs.extend((!off(Mutant::RepairInPlan)).then_some(wait));
                if !verdict.notes.contains(&Note::Repaired) {
                    verdict.notes.push(Note::Repaired);
                }
            }
        }
    }
    verdicts
}

fn accepted(verdicts: &[Verdict]) -> Accepted {
    let merged = verdicts.iter().filter(|verdict| matches!(verdict.decision, Decision::Accept(_)));
    merged.map(|verdict| (verdict.host, verdict.device)).collect()
}

/// Where waits would supply the orders that pairs lack that lack nothing else.
fn missing(program: &Program, verdicts: &[Verdict]) -> Waits {
    let cfg = Cfg::new(program);
    let mut waits = Waits::new();
    for verdict in verdicts {
        let Decision::Decline(reasons) = &verdict.decision else { continue };
        let orders: Option<Vec<MissingOrder>> = reasons.iter().map(|reason| reason.order).collect();
        waits.extend(orders.into_iter().flatten().map(|order| place(program, &cfg, order)));
    }
    waits
}

fn place(program: &Program, cfg: &Cfg<'_>, order: MissingOrder) -> (NodeId, RepairPlace) {
    let (node, place) = match order.work {
        Some(work) if work != order.at && cfg.reaches(order.at, order.at, work) && !off(Mutant::RepairPlace) => {
            (work, RepairPlace::Behind)
        }
        _ => (order.at, RepairPlace::Before),
    };
    (end_of_instruction(program, node, place), place)
}

/// The first or the last node of the instruction that a node belongs to.
fn end_of_instruction(program: &Program, node: NodeId, place: RepairPlace) -> NodeId {
    let origin = program.node(node).origin;
    let next = |node: NodeId| {
        program.graph.neighbors_directed(node, direction(place)).find(|next| program.node(*next).origin == origin)
    };
    let nodes = std::iter::successors(Some(node), |node| next(*node));
    if origin == 0 || off(Mutant::RepairInside) { node } else { nodes.last().unwrap_or(node) }
}

fn direction(place: RepairPlace) -> Direction {
    match place {
        RepairPlace::Before => Direction::Incoming,
        RepairPlace::Behind => Direction::Outgoing,
    }
}

/// The program with the waits in it. Its nodes keep their ids.
fn with(program: &Program, waits: &Waits) -> Program {
    let mut program = program.clone();
    for (node, place) in waits {
        let site = program.node(*node).site.clone();
        let wait = program.graph.add_node(Node { event: Event::Wait(WaitScope::Device), site, origin: 0 });
        let others: Vec<NodeId> = program.graph.neighbors_directed(*node, direction(*place)).collect();
        program.graph.retain_edges(|graph, index| {
            graph.edge_endpoints(index).is_none_or(|(from, to)| match place {
                RepairPlace::Before => to != *node,
                RepairPlace::Behind => from != *node,
            })
        });
        for other in others {
            let (from, to) = match place {
                RepairPlace::Before => (other, wait),
                RepairPlace::Behind => (wait, other),
            };
            program.graph.update_edge(from, to, ());
        }
        match place {
            RepairPlace::Before => program.graph.update_edge(wait, *node, ()),
            RepairPlace::Behind => program.graph.update_edge(*node, wait, ()),
        };
    }
    program
}
