//! The control-flow side of an event program: order, dominance, loops, and "can control get from here to there without …".
//!
//! Nodes that cannot be reached from the entry do not exist for the analysis. An exit that does not return ends the process, so a path
//! that ends there owes nothing to the code behind it.

use std::collections::VecDeque;

use petgraph::Direction;
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use petgraph::visit::DfsPostOrder;

use super::dominance::Dominance;
use super::program::{NodeId, Program};

/// See the module.
pub(super) struct Cfg<'a> {
    program: &'a Program,
    order: Vec<NodeId>,
    position: Vec<Option<usize>>,
    dominance: Dominance,
    depth: Vec<u32>,
}

impl<'a> Cfg<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
        let graph = &program.graph;
        let mut order = Vec::new();
        let mut walk = DfsPostOrder::new(graph, program.entry);
        while let Some(node) = walk.next(graph) {
            order.push(node);
        }
        order.reverse();
        let mut position = vec![None; graph.node_count()];
        for (index, node) in order.iter().enumerate() {
            position[node.index()] = Some(index);
        }
        let depth = loop_depths(program, &order, &position);
        Self { program, order, position, dominance: Dominance::new(graph, program.entry), depth }
    }

    /// The nodes that control can reach, in reverse post-order.
    pub(super) fn order(&self) -> &[NodeId] {
        &self.order
    }

    /// The node's place in [`Self::order`]; `None` where control never gets there.
    pub(super) fn position(&self, node: NodeId) -> Option<usize> {
        self.position[node.index()]
    }

    /// How many loops are around the node, natural or irreducible.
    pub(super) fn depth(&self, node: NodeId) -> u32 {
        self.depth[node.index()]
    }

    pub(super) fn successors(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.program.graph.neighbors_directed(node, Direction::Outgoing)
    }

    /// Every path from the entry to `below` passes `above` (or they are one node).
    pub(super) fn dominates(&self, above: NodeId, below: NodeId) -> bool {
        self.dominance.dominates(above, below)
    }

    /// A shortest path that leaves `from`, ends at the first node for which `goal` holds, and passes no node for which `barrier` holds
    /// (the goal is asked first, and `from` itself can be the goal if control comes back to it). The path starts with `from`.
    pub(super) fn path(
        &self,
        from: NodeId,
        goal: impl Fn(NodeId) -> bool,
        barrier: impl Fn(NodeId) -> bool,
    ) -> Option<Vec<NodeId>> {
        let mut cause: Vec<Option<NodeId>> = vec![None; self.position.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for next in self.successors(node) {
                if cause[next.index()].is_some() {
                    continue;
                }
                cause[next.index()] = Some(node);
                if goal(next) {
                    let mut path = vec![next];
                    let mut at = node;
                    while at != from {
                        path.push(at);
                        at = cause[at.index()].unwrap_or(from);
                    }
                    path.push(from);
                    path.reverse();
                    return Some(path);
                }
                if !barrier(next) {
                    queue.push_back(next);
                }
            }
        }
        None
    }

    /// Control can leave `from` and arrive at `to` without passing `around`.
    pub(super) fn reaches(&self, from: NodeId, to: NodeId, around: NodeId) -> bool {
        self.path(from, |node| node == to, |node| node == around).is_some()
    }
}

/// Loops are the strongly connected components; inside one, those that remain without its first node in reverse post-order.
fn loop_depths(program: &Program, order: &[NodeId], position: &[Option<usize>]) -> Vec<u32> {
    let mut depth = vec![0; program.graph.node_count()];
    let mut regions = vec![order.to_vec()];
    while let Some(region) = regions.pop() {
        let mut inside: DiGraph<NodeId, ()> = DiGraph::new();
        let mut index = vec![None; program.graph.node_count()];
        for node in &region {
            index[node.index()] = Some(inside.add_node(*node));
        }
        for node in &region {
            for next in program.graph.neighbors(*node) {
                if let (Some(from), Some(to)) = (index[node.index()], index[next.index()]) {
                    inside.add_edge(from, to, ());
                }
            }
        }
        for component in tarjan_scc(&inside) {
            let cyclic = component.len() > 1 || inside.contains_edge(component[0], component[0]);
            if !cyclic {
                continue;
            }
            let mut nodes: Vec<NodeId> = component.iter().map(|inner| inside[*inner]).collect();
            for node in &nodes {
                depth[node.index()] += 1;
            }
            nodes.sort_by_key(|node| position[node.index()]);
            nodes.remove(0);
            regions.push(nodes);
        }
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::Build;

    #[test]
    fn nested_and_irreducible_loops_have_their_depth() {
        let mut build = Build::main();
        let outside = build.skip();
        let outer = build.skip();
        let inner = build.skip();
        let after = build.skip();
        build.edge(inner, inner);
        build.edge(after, outer);
        build.exit();
        let program = build.done();
        let cfg = Cfg::new(&program);
        assert_eq!([outside, outer, inner, after].map(|node| cfg.depth(node)), [0, 1, 2, 1]);

        // Two entries into the cycle left <-> right.
        let mut build = Build::main();
        let split = build.skip();
        let left = build.skip();
        let right = build.skip();
        build.edge(split, right);
        build.edge(right, left);
        build.exit();
        let program = build.done();
        let cfg = Cfg::new(&program);
        assert_eq!([split, left, right].map(|node| cfg.depth(node)), [0, 1, 1]);
    }
}
