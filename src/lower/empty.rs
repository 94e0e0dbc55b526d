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
//! - For all else: between the branch and `join` there is nothing but what concerns this buffer, and no number or pointer is another one
//!   behind `join` because of the way that was taken (`src = n == 0 ? a : b` would be `b` on the graph). So a run that takes the edge does
//!   what some run on the graph does, less what it does to a buffer without bytes. Anything else, and the edge stays.

use std::collections::HashSet;

use super::allocations::{Allocation, Delivery, space};
use super::edges::known_on;
use super::flow::Flow;
use super::intrinsics::{Intrinsic, intrinsic};
use crate::analysis::program::Space;
use crate::calls::models::Action;
use crate::calls::{Callee, classify};
use crate::ir::{Block, Opcode, Value};
use crate::mutants::{Mutant, off};

/// How far a truth value is followed to what it decides.
const MAX_DEPTH: u32 = 4;

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
    between(flow, branch, join).is_some_and(|blocks| {
        let instructions = blocks.into_iter().flat_map(Block::instructions);
        instructions.into_iter().all(|instruction| instruction == call || concerns(instruction, names))
    })
}

/// The blocks on the ways from the branch to `join`, its edge to there left out; `None` if other ways lead into them.
fn between<'m>(flow: &Flow<'m>, branch: Block<'m>, join: Block<'m>) -> Option<HashSet<Block<'m>>> {
    let [start] = flow.successors(branch).filter(|successor| *successor != join).collect::<Vec<_>>()[..] else {
        return None;
    };
    let mut behind = HashSet::from([start]);
    let mut open = vec![start];
    while let Some(block) = open.pop() {
        open.extend(flow.successors(block).filter(|next| *next != join && behind.insert(*next)));
    }
    // Behind an exception, or an exit, control does not come to `join` any more.
    let mut comes: HashSet<Block<'m>> = HashSet::new();
    loop {
        let more: Vec<_> = behind
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
    let first = start.instructions().next()?;
    let is_behind_start =
        |block: &Block<'m>| block.instructions().next().is_some_and(|own| flow.dominates_always(first, own));
    (comes.contains(&start) && !comes.contains(&branch) && comes.iter().all(is_behind_start)).then_some(comes)
}

/// Is behind `join` everything, but the pointers into the buffer, as if control had come there by way of the buffer's allocation? Then some
/// edge from there that is not ruled out gives each phi the value that the branch's edge gives it.
pub(super) fn is_the_same_behind<'m>(flow: &Flow<'m>, branch: Block<'m>, join: Block<'m>, names: &[Value<'m>]) -> bool {
    if off(Mutant::LowerEmptyTellsTheWay) {
        return true;
    }
    let known = known_on(flow, branch, join);
    // A phi of the block behind the branch, for control that comes from there.
    let input = |value: Value<'m>| {
        let incoming = value.incoming();
        incoming.iter().find(|(_, from)| *from == branch).map_or(value, |(input, _)| *input)
    };
    let is_same = |here: Value<'m>, there: Value<'m>| {
        let there_is = |constant| known.as_ref().and_then(|known| known.evaluate(there)) == Some(constant);
        here == input(there)
            || here.is_undef()
            || here.ty().is_pointer() && here.is_null() && points_into(there, names, &mut HashSet::new())
            || here.constant_uint().is_some_and(there_is)
    };
    let phis: Vec<_> = join
        .instructions()
        .take_while(|phi| phi.opcode() == Some(Opcode::LLVMPHI))
        .filter(|phi| !only_decides(*phi, 0))
        .map(Value::incoming)
        .collect();
    let is_same_from = |from: Block<'m>| {
        phis.iter().all(|incoming| {
            let of = |block: Block<'m>| incoming.iter().find(|(_, by)| *by == block).map(|(input, _)| *input);
            of(branch).zip(of(from)).is_some_and(|(here, there)| is_same(here, there))
        })
    };
    between(flow, branch, join).is_some_and(|blocks| {
        blocks
            .into_iter()
            .any(|from| flow.successors(from).any(|next| next == join) && flow.takes(from, join) && is_same_from(from))
    })
}

/// Is the truth value used only to choose between ways or values? The graph has all of them.
fn only_decides(value: Value<'_>, depth: u32) -> bool {
    value.ty().int_width() == Some(1)
        && value.uses().into_iter().all(|usage| match usage.user.opcode() {
            Some(Opcode::LLVMBr) => true,
            Some(Opcode::LLVMSelect) if usage.operand == 0 => true,
            Some(Opcode::LLVMXor | Opcode::LLVMAnd | Opcode::LLVMOr | Opcode::LLVMSelect | Opcode::LLVMFreeze) => {
                depth < MAX_DEPTH && only_decides(usage.user, depth + 1)
            }
            _ => false,
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
