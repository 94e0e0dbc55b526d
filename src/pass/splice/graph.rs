//! Who calls whom in the module, and which functions work with the CUDA runtime.

use std::collections::{HashMap, HashSet};

use petgraph::Direction;
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::calls::cuda::Meaning;
use crate::calls::{Callee, classify};
use crate::ir::Value;
use crate::lower::Context;

/// The defined functions of a module and their direct calls, as they were before anything was spliced.
pub(super) struct CallGraph<'m> {
    graph: DiGraph<Value<'m>, ()>,
    nodes: HashMap<Value<'m>, NodeIndex>,
    /// Instructions of each function; debug and lifetime intrinsics do not count.
    sizes: HashMap<Value<'m>, usize>,
    recursive: HashSet<Value<'m>>,
    works_with_cuda: HashSet<Value<'m>>,
    /// Callers before callees, where there is no recursion.
    order: Vec<Value<'m>>,
}

impl<'m> CallGraph<'m> {
    pub(super) fn of(context: &Context<'m>) -> Self {
        let mut graph = DiGraph::new();
        let defined: Vec<_> = context.module.functions().filter(|function| !function.is_declaration()).collect();
        let nodes: HashMap<_, _> = defined.iter().map(|function| (*function, graph.add_node(*function))).collect();
        let mut sizes = HashMap::new();
        let mut works = Vec::new();
        for function in &defined {
            let mut size = 0;
            for instruction in function.instructions() {
                let Some(callee) = instruction.called_function() else {
                    size += 1;
                    continue;
                };
                let marker = callee.name_starts_with("llvm.dbg.") || callee.name_starts_with("llvm.lifetime.");
                size += usize::from(!marker);
                let seen = match nodes.get(&callee) {
                    Some(node) => {
                        graph.update_edge(nodes[function], *node, ());
                        // The launch that a stub makes is understood from the stub's call, which stays one.
                        context.is_stub(callee)
                    }
                    None => shows_in_the_proof(callee),
                };
                works.extend(seen.then_some(*function));
            }
            sizes.insert(*function, size);
        }
        let mut recursive = HashSet::new();
        let mut order = Vec::new();
        for component in tarjan_scc(&graph) {
            let recurs = component.len() > 1 || graph.contains_edge(component[0], component[0]);
            recursive.extend(component.iter().filter(|_| recurs).map(|node| graph[*node]));
            order.extend(component.iter().map(|node| graph[*node]));
        }
        order.reverse();
        let mut works_with_cuda = HashSet::new();
        let mut open: Vec<_> = works.into_iter().filter(|function| !context.is_stub(*function)).collect();
        while let Some(function) = open.pop() {
            if works_with_cuda.insert(function) {
                open.extend(graph.neighbors_directed(nodes[&function], Direction::Incoming).map(|node| graph[node]));
            }
        }
        Self { graph, nodes, sizes, recursive, works_with_cuda, order }
    }

    /// Every function, callers before callees (except in a recursion).
    pub(super) fn top_down(&self) -> &[Value<'m>] {
        &self.order
    }

    pub(super) fn callees(&self, function: Value<'m>) -> impl Iterator<Item = Value<'m>> + '_ {
        self.nodes.get(&function).into_iter().flat_map(|node| self.graph.neighbors(*node)).map(|node| self.graph[node])
    }

    pub(super) fn callers(&self, function: Value<'m>) -> Vec<Value<'m>> {
        let node = self.nodes.get(&function).into_iter();
        node.flat_map(|node| self.graph.neighbors_directed(*node, Direction::Incoming))
            .map(|node| self.graph[node])
            .collect()
    }

    /// The function that a call names, where the module defines it.
    pub(super) fn callee(&self, call: Value<'m>) -> Option<Value<'m>> {
        call.called_function().filter(|callee| self.nodes.contains_key(callee))
    }

    pub(super) fn size(&self, function: Value<'m>) -> usize {
        self.sizes.get(&function).copied().unwrap_or(0)
    }

    pub(super) fn is_recursive(&self, function: Value<'m>) -> bool {
        self.recursive.contains(&function)
    }

    /// Does calling it do something that the proof of a pair has to see: allocate, copy, launch, wait?
    pub(super) fn works_with_cuda(&self, function: Value<'m>) -> bool {
        self.works_with_cuda.contains(&function)
    }

    /// The functions from which one of `targets` can be reached by calls, and `targets`.
    pub(super) fn reaching(&self, targets: impl IntoIterator<Item = Value<'m>>) -> HashSet<Value<'m>> {
        let mut open: Vec<_> = targets.into_iter().collect();
        let mut reaching = HashSet::new();
        while let Some(function) = open.pop() {
            if reaching.insert(function) {
                open.extend(self.callers(function));
            }
        }
        reaching
    }
}

/// Is it a CUDA call that is an event of the proof?
fn shows_in_the_proof(declaration: Value<'_>) -> bool {
    if !declaration.name_starts_with("cuda") && !declaration.name_starts_with("__cuda") {
        return false;
    }
    let Callee::Cuda { row, .. } = classify(&declaration.name()) else { return false };
    match row.meaning {
        Meaning::Allocate { .. }
        | Meaning::MallocPitch { .. }
        | Meaning::Free { .. }
        | Meaning::Copy { .. }
        | Meaning::SymbolCopy { .. }
        | Meaning::Memset { .. }
        | Meaning::Launch { .. }
        | Meaning::WaitDevice
        | Meaning::WaitStream { .. }
        | Meaning::WaitEvent { .. }
        | Meaning::CreateStream { .. }
        | Meaning::CreateEvent { .. }
        | Meaning::Record { .. }
        | Meaning::StreamWait { .. } => true,
        Meaning::PushConfiguration { .. }
        | Meaning::PopConfiguration { .. }
        | Meaning::SelectDevice { .. }
        | Meaning::DeviceReset
        | Meaning::StreamCapture
        | Meaning::Harmless
        | Meaning::Keeps
        | Meaning::OtherWork => false,
    }
}
