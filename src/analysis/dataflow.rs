//! The fixpoint iteration of every forward may-analysis: states only grow at joins, and `transfer` is monotone.
//!
//! Strongly connected components are taken in the order of control, so each is brought to its fixpoint once; only loops are repeated.
//! An analysis of one pair runs on the [`Region`] between the first and the last node that mentions the pair: before it nothing has
//! happened to the pair, behind it nobody asks. Where a few nodes change what they do, only what comes out different is computed anew.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::cfg::{Cfg, Region};
use super::program::{NodeId, Program};

/// An analysis. `join` grows its first argument and tells whether it did.
pub(super) struct Forward<'a, S, J, T> {
    pub(super) program: &'a Program,
    pub(super) cfg: &'a Cfg<'a>,
    pub(super) region: Region,
    /// The state where control comes into the region.
    pub(super) outside: S,
    pub(super) join: J,
    pub(super) transfer: T,
}

impl<S, J, T> Forward<'_, S, J, T>
where
    S: Clone + PartialEq,
    J: Fn(&mut S, &S) -> bool,
    T: Fn(NodeId, &mut S),
{
    /// The state before each node of the region; `None` elsewhere, and where control never gets.
    pub(super) fn solve(&self) -> Vec<Option<S>> {
        let mut before = vec![None; self.program.graph.node_count()];
        let count = self.cfg.components().len();
        for rank in self.region.first..self.region.last.saturating_add(1).min(count) {
            self.settle(rank, &mut before);
        }
        before
    }

    /// The same from the solution of an analysis that differs in what `changed` nodes do.
    pub(super) fn solve_again(&self, solution: &[Option<S>], changed: impl Iterator<Item = NodeId>) -> Vec<Option<S>> {
        let mut before = solution.to_vec();
        let behind = |node: NodeId| self.cfg.successors(node).map(|next| self.cfg.rank(next));
        let mut open: BTreeSet<usize> = changed.flat_map(behind).collect();
        while let Some(rank) = open.pop_first() {
            let component = &self.cfg.components()[rank];
            component.iter().for_each(|node| before[node.index()] = None);
            self.settle(rank, &mut before);
            for node in component.iter().filter(|node| before[node.index()] != solution[node.index()]) {
                open.extend(behind(*node).filter(|next| *next > rank));
            }
        }
        before
    }

    /// Brings a component to its fixpoint; those before it have theirs, and its own states are `None`.
    fn settle(&self, rank: usize, before: &mut [Option<S>]) {
        let component = &self.cfg.components()[rank];
        let mut cyclic = component.len() > 1;
        for &node in component {
            if node == self.program.entry {
                self.merge(&mut before[node.index()], &self.outside);
            }
            for from in self.cfg.predecessors(node) {
                let other = self.cfg.rank(from);
                cyclic |= other == rank;
                if other < self.region.first {
                    self.merge(&mut before[node.index()], &self.outside);
                } else if other != rank
                    && let Some(mut state) = before[from.index()].clone()
                {
                    (self.transfer)(from, &mut state);
                    self.merge(&mut before[node.index()], &state);
                }
            }
        }
        if !cyclic {
            return;
        }
        // By place in the component, which is in reverse post-order.
        let mut work: BinaryHeap<Reverse<usize>> = (0..component.len()).map(Reverse).collect();
        while let Some(Reverse(place)) = work.pop() {
            while work.peek() == Some(&Reverse(place)) {
                work.pop();
            }
            let node = component[place];
            let Some(mut state) = before[node.index()].clone() else { continue };
            (self.transfer)(node, &mut state);
            for next in self.cfg.successors(node).filter(|next| self.cfg.rank(*next) == rank) {
                if self.merge(&mut before[next.index()], &state) {
                    let place =
                        component.binary_search_by_key(&self.cfg.position(next), |node| self.cfg.position(*node));
                    work.extend(place.ok().map(Reverse));
                }
            }
        }
    }

    fn merge(&self, into: &mut Option<S>, state: &S) -> bool {
        match into {
            Some(old) => (self.join)(old, state),
            unseen => {
                *unseen = Some(state.clone());
                true
            }
        }
    }
}

/// See [`Forward::solve`].
pub(super) fn forward<S: Clone + PartialEq>(
    program: &Program,
    cfg: &Cfg<'_>,
    region: Region,
    outside: S,
    join: impl Fn(&mut S, &S) -> bool,
    transfer: impl Fn(NodeId, &mut S),
) -> Vec<Option<S>> {
    Forward { program, cfg, region, outside, join, transfer }.solve()
}
