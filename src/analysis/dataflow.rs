//! The fixpoint iteration of every forward may-analysis: states only grow at joins, and `transfer` is monotone.

use std::collections::BTreeSet;

use super::cfg::Cfg;
use super::program::{NodeId, Program};

/// The state before each node; `None` where control never gets. `join` grows its first argument and tells whether it did.
pub(super) fn forward<S: Clone>(
    program: &Program,
    cfg: &Cfg<'_>,
    entry: S,
    join: impl Fn(&mut S, &S) -> bool,
    transfer: impl Fn(NodeId, &mut S),
) -> Vec<Option<S>> {
    let mut before: Vec<Option<S>> = vec![None; program.graph.node_count()];
    before[program.entry.index()] = Some(entry);
    let mut work = BTreeSet::from([0]);
    while let Some(position) = work.pop_first() {
        let node = cfg.order()[position];
        let Some(mut state) = before[node.index()].clone() else { continue };
        transfer(node, &mut state);
        for next in cfg.successors(node) {
            let grown = match &mut before[next.index()] {
                Some(old) => join(old, &state),
                unseen => {
                    *unseen = Some(state.clone());
                    true
                }
            };
            if grown {
                work.extend(cfg.position(next));
            }
        }
    }
    before
}
