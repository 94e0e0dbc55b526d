//! The fixpoint iteration of every forward may-analysis: states only grow at joins, and `transfer` is monotone.
//!
//! Strongly connected components are taken in the order of control, so each is brought to its fixpoint once; only loops are repeated.
//! An analysis of one pair runs on the [`Region`] between the first and the last node that mentions the pair: before it nothing has
//! happened to the pair, behind it nobody asks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::cfg::{Cfg, Region};
use super::program::{NodeId, Program};

/// The state before each node of `region`; `None` elsewhere, and where control never gets. `outside` is the state where control comes into
/// the region. `join` grows its first argument and tells whether it did.
pub(super) fn forward<S: Clone>(
    program: &Program,
    cfg: &Cfg<'_>,
    region: Region,
    outside: &S,
    join: impl Fn(&mut S, &S) -> bool,
    transfer: impl Fn(NodeId, &mut S),
) -> Vec<Option<S>> {
    let mut before: Vec<Option<S>> = vec![None; program.graph.node_count()];
    let first = region.first.min(cfg.components().len());
    let count = region.last.saturating_add(1).min(cfg.components().len());
    let mut work = BinaryHeap::new();
    for component in &cfg.components()[first..count] {
        for &node in component {
            let enters = node == program.entry || cfg.predecessors(node).any(|from| cfg.rank(from) < region.first);
            if enters {
                match &mut before[node.index()] {
                    Some(state) => {
                        join(state, outside);
                    }
                    unseen => *unseen = Some(outside.clone()),
                }
            }
        }
        // By place in the component, which is in reverse post-order.
        work.extend((0..component.len()).map(Reverse));
        while let Some(Reverse(place)) = work.pop() {
            while work.peek() == Some(&Reverse(place)) {
                work.pop();
            }
            let node = component[place];
            let Some(mut state) = before[node.index()].clone() else { continue };
            transfer(node, &mut state);
            for next in cfg.successors(node) {
                if !region.has(cfg.rank(next)) {
                    continue;
                }
                let grown = match &mut before[next.index()] {
                    Some(old) => join(old, &state),
                    unseen => {
                        *unseen = Some(state.clone());
                        true
                    }
                };
                if grown && cfg.rank(next) == cfg.rank(node) {
                    let place = component.binary_search_by_key(&cfg.position(next), |node| cfg.position(*node));
                    work.extend(place.ok().map(Reverse));
                }
            }
        }
    }
    before
}
