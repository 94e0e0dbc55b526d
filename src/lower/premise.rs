//! The premise "allocations succeed": which edges it rules out.
//!
//! `if (h == NULL) return 1;` between the two allocations of a pair would be a way on which only one of them is made. The proof's premise is
//! that allocations succeed, so control never takes that edge. What lies behind it stays on the graph, so that the rewrite treats it like the
//! rest (in P' an allocation that fails all the same then runs the program's own error handling, with null pointers); but where control
//! would come back from there to the rest of the function, the graph ends it as an exit that does not return.
//!
//! `if (d) cudaFree(d)` is the same: d is not null. (Of zero bytes it may be in P, and is not in P'; then there is nothing to see in it.)
//!
//! `<<<…>>>` puts the launch's configuration on a stack before it launches, and does not launch if that fails: it allocates, so it does not.
//!
//! With `goto cleanup` the pointer that is tested there is null only on ways that the premise rules out; so what it holds is asked again
//! without them, until no more edges are found.

use std::collections::{HashMap, HashSet};

use super::allocations::{Allocation, Delivery, POINTER_BYTES};
use super::empty::{Empty, concerns_only, empties, is_the_same_behind};
use super::flow::Flow;
use super::slots::{Definition, Slots};
use crate::calls::cuda::Meaning;
use crate::calls::{Callee, classify};
use crate::ir::{Block, IntPredicate, Module, Opcode, Value};
use crate::mutants::{Mutant, off};

/// Where control only comes if an allocation has failed.
#[derive(Default)]
pub(super) struct Failures<'m> {
    /// The edges at which the graph ends: from there to where control comes otherwise too.
    pub(super) cut: HashSet<(Block<'m>, Block<'m>)>,
    /// The blocks that are reached otherwise too.
    pub(super) normal: HashSet<Block<'m>>,
    /// The buffers that are not allocated where they have no bytes.
    pub(super) empties: Vec<Empty<'m>>,
    /// The edges that are taken if the pointer of such a buffer is null, each with the buffer's allocation.
    null_tests: Vec<(Value<'m>, (Block<'m>, Block<'m>))>,
}

/// Finds what the premise rules out, and tells `flow`.
pub(super) fn rule_out_failures<'m>(
    module: Module<'m>,
    flow: &mut Flow<'m>,
    slots: &Slots<'m>,
    allocations: &[Allocation<'m>],
) -> Failures<'m> {
    let mut empties = empties(flow, allocations);
    loop {
        let failures = |flow: &Flow<'m>| failures(module, flow, slots, allocations, &empties);
        let mut found = failures(flow);
        loop {
            // An edge that was ruled out stays so: with fewer ways more pointers are known, never fewer.
            flow.rule_out(found.cut.clone());
            let more = failures(flow);
            if more.cut == found.cut {
                break;
            }
            found = more;
        }
        // Which ways are left is known only now.
        let told = |empty: &Empty<'m>| {
            let tests = found.null_tests.iter().filter(|(call, _)| *call == empty.call).map(|(_, edge)| edge);
            empty.edges.iter().chain(tests).any(|(from, to)| {
                found.normal.contains(to) && !is_the_same_behind(flow, *from, *to, &[empty.call, empty.joined])
            })
        };
        let count = empties.len();
        let left: Vec<_> = empties.iter().filter(|empty| !told(empty)).cloned().collect();
        if left.len() == count {
            return Failures { empties: left, ..found };
        }
        empties = left;
        flow.rule_out(HashSet::new());
    }
}

fn failures<'m>(
    module: Module<'m>,
    flow: &Flow<'m>,
    slots: &Slots<'m>,
    allocations: &[Allocation<'m>],
    empties: &[Empty<'m>],
) -> Failures<'m> {
    let results: HashMap<Value<'m>, Delivery<'m>> =
        allocations.iter().map(|allocation| (allocation.call, allocation.delivery)).collect();
    // A pointer variable that holds what an allocation stored there, and nothing else.
    let holds_allocation = |tested: Value<'m>| {
        (tested.opcode() == Some(Opcode::LLVMLoad))
            .then(|| slots.cell(module, tested.operand(0)?))
            .flatten()
            .is_some_and(|cell| match slots.reaching(cell, POINTER_BYTES, tested, flow)[..] {
                [.., Definition::Call(call)] | [Definition::Call(call), ..]
                    if off(Mutant::LowerNullForAnotherReason) =>
                {
                    results.contains_key(&call)
                }
                [Definition::Call(call)] => results.contains_key(&call),
                _ => false,
            })
    };
    let failed_if_null = |tested: Value<'m>| match results.get(&flow.only_input(tested).unwrap_or(tested)) {
        Some(Delivery::Returned) => Some(true),
        // An error code.
        Some(Delivery::Slot(_) | Delivery::Memory) => Some(false),
        None if is_push(tested) => Some(false),
        None => holds_allocation(flow.only_input(tested).unwrap_or(tested)).then_some(true),
    };
    // Where there are no bytes null is no failure: what hangs on it must be on the graph, unless it is nothing.
    let empty_of = |tested: Value<'m>| {
        let call = flow.only_input(tested).unwrap_or(tested);
        empties.iter().filter(|empty| tested != empty.call).find(|empty| empty.call == call || empty.joined == call)
    };
    let mut null_tests = Vec::new();
    let mut may_fail = |block: Block<'m>, to: Block<'m>, tested: Value<'m>| {
        empty_of(tested).is_none_or(|empty| {
            let nothing = concerns_only(flow, block, to, empty.call, &[empty.call, empty.joined]);
            null_tests.extend(nothing.then_some((empty.call, (block, to))));
            nothing
        })
    };
    let edges: HashMap<Block<'m>, Block<'m>> = flow
        .blocks()
        .iter()
        .filter_map(|block| {
            let (tested, failure) = failure_edge(*block, failed_if_null)?;
            may_fail(*block, failure, tested).then_some((*block, failure))
        })
        .collect();
    let left_out: HashSet<_> = empties.iter().flat_map(|empty| empty.edges.iter().copied()).collect();
    let mut open: Vec<_> = flow.blocks().first().copied().into_iter().collect();
    let mut normal: HashSet<_> = open.iter().copied().collect();
    while let Some(block) = open.pop() {
        for successor in flow.successors(block) {
            if edges.get(&block) != Some(&successor)
                && !left_out.contains(&(block, successor))
                && normal.insert(successor)
            {
                open.push(successor);
            }
        }
    }
    let is_cut = |from: Block<'m>, to: Block<'m>| {
        let taken = edges.get(&from) != Some(&to) && !left_out.contains(&(from, to));
        normal.contains(&to) && !(normal.contains(&from) && taken)
    };
    let cut = flow
        .blocks()
        .iter()
        .flat_map(|from| flow.successors(*from).map(|to| (*from, to)))
        .filter(|(from, to)| is_cut(*from, *to))
        .collect();
    Failures { cut, normal, empties: Vec::new(), null_tests }
}

fn is_push(call: Value<'_>) -> bool {
    let callee = call.called_function().filter(|callee| callee.is_declaration());
    callee.is_some_and(|callee| match classify(&callee.name()) {
        Callee::Cuda { row, .. } => matches!(row.meaning, Meaning::PushConfiguration { .. }),
        _ => false,
    })
}

/// The result of an allocation that a block tests, and where it goes if the allocation has failed.
fn failure_edge<'m>(
    block: Block<'m>,
    failed_if_null: impl Fn(Value<'m>) -> Option<bool>,
) -> Option<(Value<'m>, Block<'m>)> {
    let branch = block.terminator()?;
    let condition = branch.branch_condition().filter(|_| !off(Mutant::LowerPremise))?;
    let predicate = condition.integer_predicate()?;
    let tested = condition.operand(0).filter(|_| condition.operand(1).is_some_and(Value::is_null))?;
    let failed_if_null = failed_if_null(tested)?;
    let is_null = match predicate {
        IntPredicate::LLVMIntEQ => true,
        IntPredicate::LLVMIntNE => false,
        _ => return None,
    };
    let [yes, no] = block.successors()[..] else { return None };
    let (failure, success) = if is_null == failed_if_null { (yes, no) } else { (no, yes) };
    (failure != success).then_some((tested, failure))
}
