//! Buffers that are not allocated where they have no bytes: `std::vector<float> h(n)` allocates nothing for n = 0, and its pointer is null then.
//!
//! ```text
//!   br (n == 0), join, some        ; the edge to `join` is ruled out
//! some:  %h = operator new(4n) ... ; and what fills it
//! join:  phi [ null ], [ %h ]
//! ```
//!
//! Why the edge may be ruled out, and so may `if (h) delete h`:
//! - For the buffer's own pair: with n = 0 neither half has a byte, so nothing accesses p. In P' the null pointer flows where P's did, the
//!   device half is null as well (P's cudaMalloc of zero bytes makes it so), copies of nothing and frees of null do nothing in both.
//! - For all else: between the branch and `join` there is nothing but what concerns this buffer. So a run that takes the edge does what
//!   some run on the graph does, less what it does to a buffer without bytes. Anything else between them, and the edge stays.

use std::collections::HashSet;

use super::allocations::{Allocation, Delivery, space};
use super::edges::known_on;
use super::flow::Flow;
use super::intrinsics::{Intrinsic, intrinsic};
use crate::analysis::program::Space;
use crate::calls::models::Action;
use crate::calls::{Callee, classify};
use crate::ir::{Block, Opcode, Value};

/// A buffer that is not allocated where it has no bytes.
#[derive(Clone, Debug)]
pub(super) struct Empty<'m> {
    /// Its allocation.
    pub call: Value<'m>,
    /// Its pointer, or null, behind all ways.
    pub joined: Value<'m>,
    /// The edges to there that control takes only if the buffer has no bytes.
    pub edges: Vec<(Block<'m>, Block<'m>)>,
}

/// All such buffers. One that is allocated in a loop is none: where it is empty, the pointer of an earlier round must not be met.
pub(super) fn empties<'m>(flow: &Flow<'m>, allocations: &[Allocation<'m>]) -> Vec<Empty<'m>> {
    let candidates = allocations.iter().filter(|allocation| {
        allocation.delivery == Delivery::Returned
            && space(allocation.allocator) == Space::Host
            && !flow.repeats(allocation.call)
    });
    candidates.filter_map(|allocation| empty(flow, allocation)).collect()
}

fn empty<'m>(flow: &Flow<'m>, allocation: &Allocation<'m>) -> Option<Empty<'m>> {
    let call = allocation.call;
    let phis = call.uses().into_iter().map(|usage| usage.user).filter(|user| user.opcode() == Some(Opcode::LLVMPHI));
    phis.filter(|phi| flow.reaches(*phi)).find_map(|joined| {
        let join = joined.block()?;
        let incoming = joined.incoming();
        let known = incoming.iter().all(|(input, _)| input.is_null() || *input == call);
        // A loop that fills the buffer may be left out as well, and its guard may have been joined with the allocation's.
        let is_empty = |from: Block<'m>| {
            known_on(flow, from, join)
                .is_some_and(|known| allocation.size_operands.iter().any(|size| known.evaluate(*size) == Some(0)))
                && concerns_only(flow, from, join, call, &[call, joined])
        };
        let edges: Vec<_> = incoming.iter().map(|(_, from)| *from).filter(|from| is_empty(*from)).collect();
        let nulls_are_empty = incoming.iter().all(|(input, from)| !input.is_null() || edges.contains(from));
        let is_left_out = incoming.iter().any(|(input, _)| input.is_null());
        (known && is_left_out && nulls_are_empty).then(|| Empty {
            call,
            joined,
            edges: edges.into_iter().map(|from| (from, join)).collect(),
        })
    })
}

/// Is there nothing on the ways from the branch to `join`, its edge to there left out, but what concerns the buffer that `call` allocates?
/// `names`: the values that are its pointer.
pub(super) fn concerns_only<'m>(
    flow: &Flow<'m>,
    branch: Block<'m>,
    join: Block<'m>,
    call: Value<'m>,
    names: &[Value<'m>],
) -> bool {
    let [start] = flow.successors(branch).filter(|successor| *successor != join).collect::<Vec<_>>()[..] else {
        return false;
    };
    let mut between = HashSet::from([start]);
    let mut open = vec![start];
    while let Some(block) = open.pop() {
        open.extend(flow.successors(block).filter(|next| *next != join && between.insert(*next)));
    }
    // Behind an exception, or an exit, control does not come to `join` any more.
    let mut comes: HashSet<Block<'m>> = HashSet::new();
    loop {
        let more: Vec<_> = between
            .iter()
            .filter(|block| !comes.contains(*block))
            .filter(|block| flow.successors(**block).any(|next| next == join || comes.contains(&next)))
            .copied()
            .collect();
        if more.is_empty() {
            break;
        }
        comes.extend(more);
    }
    let Some(first) = start.instructions().next() else { return false };
    comes.contains(&start)
        && !comes.contains(&branch)
        && comes.iter().all(|block| {
            block.instructions().next().is_some_and(|own| flow.dominates_always(first, own))
                && block.instructions().all(|instruction| instruction == call || concerns(instruction, names))
        })
}

/// Does the instruction do nothing to any memory but the buffer's?
fn concerns<'m>(instruction: Value<'m>, names: &[Value<'m>]) -> bool {
    if instruction.is_volatile_or_atomic() {
        return false;
    }
    let ours =
        |pointer: Option<Value<'m>>| pointer.is_some_and(|pointer| points_into(pointer, names, &mut HashSet::new()));
    match instruction.opcode() {
        Some(Opcode::LLVMStore) => {
            ours(instruction.operand(1)) && !instruction.operand(0).is_some_and(|stored| stored.ty().is_pointer())
        }
        Some(Opcode::LLVMCall | Opcode::LLVMInvoke) => {
            let Some(callee) = instruction.called_function().filter(|callee| callee.is_declaration()) else {
                return false;
            };
            let name = callee.name();
            if name.starts_with("llvm.") {
                return match intrinsic(&name) {
                    Intrinsic::Harmless | Intrinsic::PassesOn { .. } => true,
                    Intrinsic::Set => ours(instruction.argument(0)),
                    Intrinsic::Copy => ours(instruction.argument(0)) && ours(instruction.argument(1)),
                    _ => false,
                };
            }
            matches!(classify(&name), Callee::Modelled(model) if model.action == Action::Free(0))
                && ours(instruction.argument(0))
        }
        Some(
            Opcode::LLVMCallBr
            | Opcode::LLVMAtomicRMW
            | Opcode::LLVMAtomicCmpXchg
            | Opcode::LLVMFence
            | Opcode::LLVMVAArg
            | Opcode::LLVMRet
            | Opcode::LLVMAlloca,
        ) => false,
        _ => true,
    }
}

fn points_into<'m>(pointer: Value<'m>, names: &[Value<'m>], seen: &mut HashSet<Value<'m>>) -> bool {
    if names.contains(&pointer) || !seen.insert(pointer) {
        return true;
    }
    match pointer.opcode() {
        Some(Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMFreeze) => {
            pointer.operand(0).is_some_and(|base| points_into(base, names, seen))
        }
        Some(Opcode::LLVMPHI) => pointer.incoming().into_iter().all(|(input, _)| points_into(input, names, seen)),
        _ => false,
    }
}
