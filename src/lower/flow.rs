//! Control flow between the blocks that control can reach: order, dominance, cycles, and searches against the flow.

use std::collections::HashSet;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::DfsPostOrder;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::dominance::Dominance;
use crate::calls::{Callee, classify};
use crate::ir::{Block, Opcode, Value};

/// Control flow of one function.
pub(crate) struct Flow<'m> {
    blocks: Vec<Block<'m>>,
    index: FxHashMap<Block<'m>, NodeIndex>,
    graph: DiGraph<Block<'m>, ()>,
    /// Of all edges.
    always: Dominance,
    /// Without the edges that are ruled out.
    taken: Dominance,
    cyclic: FxHashSet<Block<'m>>,
    ruled_out: HashSet<(Block<'m>, Block<'m>)>,
    /// By node: the rank of its strongly connected component. Control never gets from a higher rank to a lower one.
    ranks: Vec<usize>,
}

/// Instructions that searches against the flow look for.
#[derive(Default)]
pub(super) struct Marks<'m> {
    instructions: FxHashSet<Value<'m>>,
    /// The blocks that have some.
    blocks: FxHashSet<Block<'m>>,
}

impl<'m> FromIterator<Value<'m>> for Marks<'m> {
    fn from_iter<I: IntoIterator<Item = Value<'m>>>(instructions: I) -> Self {
        let instructions: FxHashSet<_> = instructions.into_iter().collect();
        let blocks = instructions.iter().filter_map(|instruction| instruction.block()).collect();
        Self { instructions, blocks }
    }
}

/// With more blocks of marks than this, a search does not try whether one of them decides alone: that costs a look at each. A variable
/// is written in one or two blocks, a loop variable that clang left in memory in three.
const FEW_BLOCKS: usize = 16;

impl<'m> Flow<'m> {
    /// Of a function with a body; `None` for a declaration.
    #[must_use]
    pub(crate) fn of(function: Value<'m>) -> Option<Self> {
        let entry = function.blocks().next()?;
        let mut graph = DiGraph::new();
        let mut index = FxHashMap::from_iter([(entry, graph.add_node(entry))]);
        let mut open = vec![entry];
        while let Some(block) = open.pop() {
            for successor in successors(block) {
                let target = *index.entry(successor).or_insert_with(|| {
                    open.push(successor);
                    graph.add_node(successor)
                });
                graph.add_edge(index[&block], target, ());
            }
        }
        let mut order = Vec::new();
        let mut post_order = DfsPostOrder::new(&graph, index[&entry]);
        while let Some(node) = post_order.next(&graph) {
            order.push(graph[node]);
        }
        order.reverse();
        // A component comes before those that lead to it. (Not Tarjan's algorithm, which recurses in petgraph.)
        let components = kosaraju_scc(&graph);
        let mut ranks = vec![0; graph.node_count()];
        for (rank, component) in components.iter().rev().enumerate() {
            component.iter().for_each(|node| ranks[node.index()] = rank);
        }
        let cyclic = components
            .into_iter()
            .filter(|component| component.len() > 1 || graph.contains_edge(component[0], component[0]))
            .flatten()
            .map(|node| graph[node])
            .collect();
        let entry = index[&entry];
        let always = Dominance::new(&graph, entry);
        let taken = always.clone();
        Some(Self { blocks: order, index, graph, always, taken, cyclic, ruled_out: HashSet::new(), ranks })
    }

    /// Control never takes these edges.
    pub(super) fn rule_out(&mut self, edges: HashSet<(Block<'m>, Block<'m>)>) {
        self.ruled_out = edges;
        let taken = self.graph.filter_map(
            |_, block| Some(*block),
            |edge, ()| {
                let (from, to) = self.graph.edge_endpoints(edge)?;
                self.takes(self.graph[from], self.graph[to]).then_some(())
            },
        );
        // No node is left out, so that the indices stay the same; the first one is the entry.
        self.taken = Dominance::new(&taken, NodeIndex::new(0));
    }

    /// Can control come from a block to its successor?
    #[must_use]
    pub(super) fn takes(&self, from: Block<'m>, to: Block<'m>) -> bool {
        self.index.contains_key(&from) && !self.ruled_out.contains(&(from, to))
    }

    /// What a phi is on the ways that are left, if that is one value.
    #[must_use]
    pub(super) fn only_input(&self, phi: Value<'m>) -> Option<Value<'m>> {
        let block = phi.block()?;
        let mut inputs: Vec<_> =
            phi.incoming().into_iter().filter(|(_, from)| self.takes(*from, block)).map(|(input, _)| input).collect();
        inputs.dedup();
        if let [input] = inputs[..] { Some(input) } else { None }
    }

    /// The blocks that control can reach, each before its successors where there is no cycle; the entry is the first.
    #[must_use]
    pub(super) fn blocks(&self) -> &[Block<'m>] {
        &self.blocks
    }

    /// Where control may go from a block.
    pub(super) fn successors(&self, block: Block<'m>) -> impl Iterator<Item = Block<'m>> + '_ {
        self.index.get(&block).into_iter().flat_map(|node| self.graph.neighbors(*node)).map(|node| self.graph[node])
    }

    fn predecessors(&self, block: Block<'m>) -> impl Iterator<Item = Block<'m>> + '_ {
        self.index
            .get(&block)
            .into_iter()
            .flat_map(|node| self.graph.neighbors_directed(*node, petgraph::Direction::Incoming))
            .map(|node| self.graph[node])
            .filter(move |predecessor| self.takes(*predecessor, block))
    }

    /// Can control reach the instruction?
    #[must_use]
    pub(super) fn reaches(&self, instruction: Value<'m>) -> bool {
        instruction.block().is_some_and(|block| self.index.contains_key(&block))
    }

    /// Can the instruction run more than once in one call of the function?
    #[must_use]
    pub(crate) fn repeats(&self, instruction: Value<'m>) -> bool {
        instruction.block().is_none_or(|block| self.cyclic.contains(&block))
    }

    /// Does every way that control takes to `later` pass `earlier` first? True for one and the same instruction.
    #[must_use]
    pub(super) fn dominates(&self, earlier: Value<'m>, later: Value<'m>) -> bool {
        self.dominates_in(&self.taken, earlier, later)
    }

    /// The same of all ways, those that are ruled out too: LLVM's notion, which is what values need.
    #[must_use]
    pub(super) fn dominates_always(&self, earlier: Value<'m>, later: Value<'m>) -> bool {
        self.dominates_in(&self.always, earlier, later)
    }

    fn dominates_in(&self, dominance: &Dominance, earlier: Value<'m>, later: Value<'m>) -> bool {
        let (Some(first), Some(second)) = (earlier.block(), later.block()) else { return false };
        if first == second {
            return earlier == later || earlier.comes_before(later);
        }
        let (Some(first), Some(second)) = (self.index.get(&first), self.index.get(&second)) else { return false };
        dominance.dominates(*first, *second)
    }

    /// Walks from just before `at` against control flow. On each way, the first instruction for which `found` answers ends it; `entry` is
    /// the answer of a way that reaches the function's start. Answers come once each. Only instructions in `marks` are asked.
    pub(super) fn backwards<T: PartialEq + Copy>(
        &self,
        at: Value<'m>,
        marks: &Marks<'m>,
        found: impl Fn(Value<'m>) -> Option<T>,
        entry: T,
    ) -> Vec<T> {
        let mut answers: Vec<T> = Vec::new();
        let mut answer = |result: T| {
            if !answers.contains(&result) {
                answers.push(result);
            }
        };
        let search = |last: Option<Value<'m>>| {
            std::iter::successors(last, |instruction| instruction.previous())
                .filter(|instruction| marks.instructions.contains(instruction))
                .find_map(&found)
        };
        let Some(start) = at.block() else { return answers };
        if let Some(result) = search(at.previous()) {
            answer(result);
            return answers;
        }
        match self.decides(start, marks) {
            Some(None) => return vec![entry],
            Some(Some(block)) => {
                if let Some(result) = search(block.terminator()) {
                    return vec![result];
                }
            }
            None => {}
        }
        let mut seen = FxHashSet::default();
        let mut open = vec![start];
        while let Some(block) = open.pop() {
            if self.blocks.first() == Some(&block) {
                answer(entry);
            }
            for predecessor in self.predecessors(block) {
                if !seen.insert(predecessor) {
                    continue;
                }
                match if marks.blocks.contains(&predecessor) { search(predecessor.terminator()) } else { None } {
                    Some(result) => answer(result),
                    None => open.push(predecessor),
                }
            }
        }
        answers
    }

    /// The block of marks that every way to the start of `at` passes, if no way from there to `at` meets another; `Some(None)`: no way
    /// from the function's start meets any. `None` if that is not so, or not known without a walk.
    fn decides(&self, at: Block<'m>, marks: &Marks<'m>) -> Option<Option<Block<'m>>> {
        if marks.blocks.len() > FEW_BLOCKS {
            return None;
        }
        // Where control only comes over edges that are ruled out, no way comes from anywhere.
        let here = *self.index.get(&at).filter(|node| self.taken.dominates(**node, **node))?;
        let marked = || marks.blocks.iter().filter_map(|block| self.index.get(block)).copied();
        let above = marked().filter(|node| *node != here && self.taken.dominates(*node, here));
        // Dominators of one block dominate each other: the last is the one that all others dominate.
        let last = above.reduce(|one, other| if self.taken.dominates(one, other) { other } else { one });
        let from = last.map_or(0, |node| self.ranks[node.index()]);
        let between = |node: NodeIndex| {
            let rank = self.ranks[node.index()];
            let is_here = node == here && !self.cyclic.contains(&at);
            Some(node) != last && !is_here && from <= rank && rank <= self.ranks[here.index()]
        };
        (!marked().any(between)).then(|| last.map(|node| self.graph[node]))
    }
}

/// Where control may go. The CUDA runtime is a C interface that reports errors as values: its calls do not unwind, even where the compiler
/// had to assume it.
fn successors(block: Block<'_>) -> Vec<Block<'_>> {
    let Some(terminator) = block.terminator() else { return Vec::new() };
    if terminator.opcode() == Some(Opcode::LLVMInvoke)
        && terminator
            .called_function()
            .is_some_and(|callee| callee.is_declaration() && matches!(classify(&callee.name()), Callee::Cuda { .. }))
    {
        return terminator.normal_destination().into_iter().collect();
    }
    block.successors()
}
