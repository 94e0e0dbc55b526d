//! The control-flow side of an event program: order, dominance, loops, and "can control get from here to there without …".
//!
//! Nodes that cannot be reached from the entry do not exist for the analysis. An exit that does not return ends the process, so a path
//! that ends there owes nothing to the code behind it.

use std::cell::Cell;
use std::collections::VecDeque;

use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
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
    /// The strongly connected components, each in reverse post-order; control never gets from one to an earlier one.
    components: Vec<Vec<NodeId>>,
    /// Which of them a node is in.
    rank: Vec<usize>,
    scratch: Cell<Scratch>,
}

/// Nodes in a row of [`Cfg::components`], first and last rank. What lies before and behind it is left out of a search or an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Region {
    pub(super) const ALL: Self = Self { first: 0, last: usize::MAX };
}

/// Where a search came from, kept between searches so that each costs what it visits and not the size of the graph.
#[derive(Default)]
struct Scratch {
    search: u32,
    /// By node: the search that met it last, and the node before it then.
    met: Vec<(u32, NodeId)>,
}

impl Scratch {
    fn start(&mut self, nodes: usize) {
        if self.met.len() != nodes || self.search == u32::MAX {
            *self = Self { search: 0, met: vec![(0, NodeId::new(0)); nodes] };
        }
        self.search += 1;
    }

    /// The first time that this search meets the node.
    fn meet(&mut self, node: NodeId, before: NodeId) -> bool {
        let met = &mut self.met[node.index()];
        let first = met.0 != self.search;
        if first {
            *met = (self.search, before);
        }
        first
    }

    fn before(&self, node: NodeId) -> NodeId {
        self.met[node.index()].1
    }
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
        // A component comes before those that lead to it. (Tarjan's algorithm gives the same, but petgraph's recurses: a long function would
        // end the compiler's stack.)
        let mut components: Vec<Vec<NodeId>> = kosaraju_scc(graph);
        components.retain(|component| position[component[0].index()].is_some());
        components.reverse();
        let mut rank = vec![0; graph.node_count()];
        for (index, component) in components.iter_mut().enumerate() {
            component.sort_unstable_by_key(|node| position[node.index()]);
            component.iter().for_each(|node| rank[node.index()] = index);
        }
        let dominance = Dominance::new(graph, program.entry);
        Self { program, order, position, dominance, depth, components, rank, scratch: Cell::default() }
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

    /// The strongly connected components of [`Self::order`], each in that order; control never gets from one to an earlier one.
    pub(super) fn components(&self) -> &[Vec<NodeId>] {
        &self.components
    }

    /// The index of the node's component. Of nodes that control never reaches it says nothing.
    pub(super) fn rank(&self, node: NodeId) -> usize {
        self.rank[node.index()]
    }

    /// The smallest region with all these nodes.
    pub(super) fn region(&self, nodes: &[NodeId]) -> Region {
        let ranks = || nodes.iter().map(|node| self.rank(*node));
        Region { first: ranks().min().unwrap_or(0), last: ranks().max().unwrap_or(0) }
    }

    /// Nodes from which control gets to `node` in one step.
    pub(super) fn predecessors(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.program
            .graph
            .neighbors_directed(node, Direction::Incoming)
            .filter(|before| self.position(*before).is_some())
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
        self.path_before(usize::MAX, from, goal, barrier)
    }

    /// The same where no goal has a higher rank than `last`: what lies behind that is not searched.
    pub(super) fn path_before(
        &self,
        last: usize,
        from: NodeId,
        goal: impl Fn(NodeId) -> bool,
        barrier: impl Fn(NodeId) -> bool,
    ) -> Option<Vec<NodeId>> {
        let mut scratch = self.scratch.take();
        scratch.start(self.position.len());
        let path = self.search(&mut scratch, last, from, goal, barrier);
        self.scratch.set(scratch);
        path
    }

    fn search(
        &self,
        scratch: &mut Scratch,
        last: usize,
        from: NodeId,
        goal: impl Fn(NodeId) -> bool,
        barrier: impl Fn(NodeId) -> bool,
    ) -> Option<Vec<NodeId>> {
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for next in self.successors(node) {
                if self.rank(next) > last || !scratch.meet(next, node) {
                    continue;
                }
                if goal(next) {
                    let mut path = vec![next];
                    let mut at = node;
                    while at != from {
                        path.push(at);
                        at = scratch.before(at);
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
        self.path_before(self.rank(to), from, |node| node == to, |node| node == around).is_some()
    }
}

/// Loops are the strongly connected components; inside one, those that remain without its first node in reverse post-order.
fn loop_depths(program: &Program, order: &[NodeId], position: &[Option<usize>]) -> Vec<u32> {
    let mut depth = vec![0; program.graph.node_count()];
    let mut regions = vec![order.to_vec()];
    let mut index = vec![None; program.graph.node_count()];
    while let Some(region) = regions.pop() {
        let mut inside: DiGraph<NodeId, ()> = DiGraph::new();
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
        for component in kosaraju_scc(&inside) {
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
        region.iter().for_each(|node| index[node.index()] = None);
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
