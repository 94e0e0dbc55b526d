//! The pass `echo-sr-prepare`: thin wrappers around CUDA calls become `alwaysinline`, so that LLVM's inliner dissolves them before
//! `echo-sr` looks at their callers.
//!
//! A wrapper is a small function that calls the CUDA runtime itself or calls a wrapper: a checked-call helper, constructor and destructor
//! of a device buffer, `launch_foo`, the compiler's launch stubs. Inlining never changes what a program does, so this pass needs no proof,
//! only a budget. What the user or the language keeps apart stays apart: `noinline`, `optnone`, recursive and variadic functions, functions
//! that the linker may replace, that are compiled for another target than a caller, or that nobody calls by name.
//!
//! What is no wrapper keeps its calls of the CUDA runtime, of allocators, and of larger functions that work with it, *single* until `echo-sr`
//! ran ([`TAG`]): jump threading likes to put the one call between two loops over `n` into both arms of `n > 0`, or one `malloc` behind a
//! default size and another behind the size that was given, which makes two allocation sites of one. In loops that is left to LLVM, because unrolling a loop over an array of buffers shows each of them.

use std::collections::{HashMap, HashSet};

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::calls::models::Action;
use crate::calls::{Callee, classify};
use crate::ir::{Module, Value};
use crate::lower::Flow;

/// Instructions of a wrapper, with the wrappers that it calls itself dissolved in it. A launch stub of clang has 25 and 4 a parameter
/// before simplification, a checked-call helper that prints and exits about 30, a constructor that allocates through one about 60; 400
/// holds a function that makes five launches, and a caller with a hundred such calls stays below what LLVM's own inliner accepts.
pub const WRAPPER_BUDGET: usize = 400;

/// Instructions that a module may grow by; wrappers are dissolved from the innermost outwards until it is used up. At about a
/// microsecond an instruction and pass it bounds the time that a module of many wrappers costs.
pub const MODULE_BUDGET: usize = 100_000;

/// At a call that is marked `noduplicate` by this pass; `echo-sr` takes both away.
pub const TAG: &str = "echo-sr-single";

/// Marks wrappers, and calls that are to stay single; true if there are any.
pub fn run(module: Module<'_>) -> bool {
    if !calls_cuda(module) {
        return false;
    }
    let graph = CallGraph::of(module);
    let wrappers = find_wrappers(&graph);
    for wrapper in &wrappers {
        wrapper.add_attribute("alwaysinline");
    }
    let marked = keep_single(&graph, &wrappers.iter().copied().collect());
    marked || !wrappers.is_empty()
}

/// Takes the marks of [`run`] from all calls; true if there were any.
pub fn forget_single_calls(module: Module<'_>) -> bool {
    let mut changed = false;
    for call in module.functions().flat_map(Value::instructions).filter(|instruction| instruction.is_call()) {
        changed |= call.untag_call("noduplicate", TAG);
    }
    changed
}

/// Marks calls that stand in no loop, in functions that are no wrappers.
fn keep_single<'m>(graph: &CallGraph<'m>, wrappers: &HashSet<Value<'m>>) -> bool {
    // Functions that work with the runtime: they call it, or call one that does.
    let mut working: HashSet<Value<'m>> = HashSet::new();
    let mut open: Vec<_> =
        graph.graph.node_weights().filter(|function| function.calls_cuda).map(|function| function.value).collect();
    while let Some(function) = open.pop() {
        if working.insert(function) {
            open.extend(graph.callers(function));
        }
    }
    let mut marked = false;
    for function in working.iter().filter(|function| !wrappers.contains(function)) {
        let Some(flow) = Flow::of(*function) else { continue };
        for call in function.instructions() {
            let Some(callee) = call.called_function() else { continue };
            let keeps = if callee.is_declaration() {
                is_cuda_call(callee) || allocates(callee)
            } else {
                working.contains(&callee) && !wrappers.contains(&callee)
            };
            if keeps && !flow.repeats(call) {
                call.tag_call("noduplicate", TAG);
                marked = true;
            }
        }
    }
    marked
}

/// Some function of the module calls the CUDA runtime.
#[must_use]
pub fn calls_cuda(module: Module<'_>) -> bool {
    module.functions().any(|function| is_cuda_call(function) && function.is_used())
}

/// A function of the CUDA runtime that programs call (not the registration functions, which compilers call).
fn is_cuda_call(function: Value<'_>) -> bool {
    const LAUNCH: [&str; 3] = ["__cudaPushCallConfiguration", "__cudaPopCallConfiguration", "__cudaLaunchKernel"];
    // A name is looked up in a table, so the cheap question comes first: a module has few declarations and may have many functions.
    function.is_declaration()
        && (function.name_starts_with("cuda") || LAUNCH.iter().any(|name| function.name_starts_with(name)))
}

/// A function of a library that makes a buffer.
fn allocates(function: Value<'_>) -> bool {
    matches!(classify(&function.name()), Callee::Modelled(model) if matches!(model.action, Action::Allocate { .. }))
}

/// One defined function.
struct Function<'m> {
    value: Value<'m>,
    /// Instructions of its own.
    size: usize,
    /// It calls the CUDA runtime.
    calls_cuda: bool,
    /// Defined functions that it calls by name, one entry a call.
    callees: Vec<Value<'m>>,
}

/// The defined functions and their calls.
struct CallGraph<'m> {
    graph: DiGraph<Function<'m>, ()>,
    /// One entry a call.
    callers: HashMap<Value<'m>, Vec<Value<'m>>>,
}

impl<'m> CallGraph<'m> {
    fn of(module: Module<'m>) -> Self {
        let mut graph = DiGraph::<Function<'m>, ()>::new();
        let mut nodes: HashMap<Value<'m>, NodeIndex> = HashMap::new();
        for value in module.functions().filter(|function| !function.is_declaration()) {
            nodes.insert(value, graph.add_node(describe(value)));
        }
        let mut callers: HashMap<Value<'m>, Vec<Value<'m>>> = HashMap::new();
        for node in graph.node_indices() {
            for callee in graph[node].callees.clone() {
                callers.entry(callee).or_default().push(graph[node].value);
                graph.add_edge(node, nodes[&callee], ());
            }
        }
        Self { graph, callers }
    }

    fn callers(&self, function: Value<'m>) -> &[Value<'m>] {
        self.callers.get(&function).map_or(&[], Vec::as_slice)
    }
}

/// The wrappers, callees before callers.
fn find_wrappers<'m>(calls: &CallGraph<'m>) -> Vec<Value<'m>> {
    let graph = &calls.graph;
    let mut wrappers = Vec::new();
    // Size of each wrapper with all inner wrappers dissolved.
    let mut sizes: HashMap<Value<'m>, usize> = HashMap::new();
    let mut growth = 0;
    for component in tarjan_scc(graph) {
        // Tarjan's order: callees come first. A component of several functions is a recursion.
        let [node] = component[..] else { continue };
        let function = &graph[node];
        let inner: Vec<usize> = function.callees.iter().filter_map(|callee| sizes.get(callee).copied()).collect();
        let size = function.size + inner.iter().sum::<usize>();
        let callers = calls.callers(function.value);
        let compatible = callers.iter().all(|caller| caller.may_inline(function.value));
        let recursive = function.callees.contains(&function.value);
        let wraps = function.calls_cuda || !inner.is_empty();
        let called = !callers.is_empty() && compatible;
        if wraps && !recursive && called && size <= WRAPPER_BUDGET && may_be_inlined(function.value) {
            growth += size * callers.len();
            if growth > MODULE_BUDGET {
                break;
            }
            sizes.insert(function.value, size);
            wrappers.push(function.value);
        }
    }
    wrappers
}

fn describe(value: Value<'_>) -> Function<'_> {
    let mut function = Function { value, size: 0, calls_cuda: false, callees: Vec::new() };
    for inst in value.instructions() {
        let Some(callee) = inst.called_function() else {
            function.size += 1;
            continue;
        };
        let name = callee.name();
        if name.starts_with("llvm.dbg.") || name.starts_with("llvm.lifetime.") {
            continue;
        }
        function.size += 1;
        if !callee.is_declaration() {
            function.callees.push(callee);
        } else if is_cuda_call(callee) {
            function.calls_cuda = true;
        }
    }
    function
}

fn may_be_inlined(function: Value<'_>) -> bool {
    let kept = ["noinline", "optnone", "naked", "returns_twice"];
    !function.is_variadic() && !function.is_interposable() && !kept.iter().any(|name| function.has_attribute(name))
}
