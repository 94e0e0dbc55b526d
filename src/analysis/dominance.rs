//! Dominance in constant time: the dominator tree with the span of its subtree at each node.
//!
//! Both sides ask very often ("does the allocation come before this use on every way?"), and the tree of a function without branches is as
//! deep as the function is long, so walking up from the node would cost its length each time.

use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};

/// The dominator tree of the nodes that control can reach from a root.
#[derive(Clone)]
pub(crate) struct Dominance {
    /// When a walk of the tree enters and leaves each node's subtree; `None` where control never gets.
    spans: Vec<Option<(u32, u32)>>,
}

impl Dominance {
    pub(crate) fn new<N>(graph: &DiGraph<N, ()>, root: NodeIndex) -> Self {
        let dominators = simple_fast(graph, root);
        let mut children: Vec<Vec<NodeIndex>> = vec![Vec::new(); graph.node_count()];
        for node in graph.node_indices() {
            if let Some(above) = dominators.immediate_dominator(node) {
                children[above.index()].push(node);
            }
        }
        let mut spans = vec![None; graph.node_count()];
        let mut time = 0;
        // A node is on the stack once to be entered and once to be left.
        let mut open = vec![(root, false)];
        while let Some((node, left)) = open.pop() {
            match &mut spans[node.index()] {
                Some((_, end)) if left => *end = time,
                span => {
                    *span = Some((time, time));
                    time += 1;
                    open.push((node, true));
                    open.extend(children[node.index()].iter().map(|child| (*child, false)));
                }
            }
        }
        Self { spans }
    }

    /// Every path from the root to `below` passes `above` (or they are one node). False where control never gets.
    pub(crate) fn dominates(&self, above: NodeIndex, below: NodeIndex) -> bool {
        match (self.spans[above.index()], self.spans[below.index()]) {
            (Some((start, end)), Some((inside, _))) => start <= inside && inside < end,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_taking_the_node_away() {
        let mut seed = 5_u64;
        let mut random = |end: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % end
        };
        for _ in 0..200 {
            let count = 2 + random(10);
            let mut graph = DiGraph::<(), ()>::new();
            let nodes: Vec<NodeIndex> = (0..count).map(|_| graph.add_node(())).collect();
            for _ in 0..random(2 * count) {
                let (from, to) = (random(count), random(count));
                graph.update_edge(nodes[from as usize], nodes[to as usize], ());
            }
            let reached = |without: Option<NodeIndex>| {
                let mut seen = vec![false; nodes.len()];
                let mut open: Vec<NodeIndex> = nodes.first().copied().into_iter().collect();
                while let Some(node) = open.pop() {
                    if Some(node) != without && !std::mem::replace(&mut seen[node.index()], true) {
                        open.extend(graph.neighbors(node));
                    }
                }
                seen
            };
            let all = reached(None);
            let dominance = Dominance::new(&graph, nodes[0]);
            for &above in &nodes {
                let without = reached(Some(above));
                for &below in &nodes {
                    let expected = all[above.index()] && all[below.index()] && !without[below.index()];
                    assert_eq!(dominance.dominates(above, below), expected, "{above:?} {below:?} {graph:?}");
                }
            }
        }
    }
}
