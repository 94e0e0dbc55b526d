//! R1: the allocation of h or d that dominates the other makes p.
//!
//! p is `cudaMallocManaged(&p, max(N, 1), cudaMemAttachGlobal)`: of zero bytes the call would fail, while P goes on. What the program sees
//! of the call stays as it was: malloc's result is p (null if it failed), cudaMalloc's is the error code, with p in the variable that it
//! was given, posix_memalign's is an errno.

use super::edit::{Editor, Int};
use super::{allocation, r2_renaming};
use crate::analysis::program::Allocator;
use crate::analysis::verdict::MergePlan;
use crate::ir::Value;
use crate::lower::{Allocation, Delivery, Lowered};
use crate::mutants::{Mutant, off};

/// `cudaMemAttachGlobal` of driver_types.h.
const ATTACH_GLOBAL: u64 = 1;
/// `ENOMEM` of errno.h.
const OUT_OF_MEMORY: u64 = 12;

/// The merged buffer.
pub(super) struct Merged<'m> {
    /// p, or null where allocating failed; dominates the other allocation.
    pub(super) pointer: Value<'m>,
}

pub(super) fn apply<'m>(editor: &mut Editor<'m>, lowered: &Lowered<'m>, plan: &MergePlan) -> Merged<'m> {
    let creator = if lowered.instruction(plan.creates()) == Some(allocation(lowered, plan.host()).call) {
        allocation(lowered, plan.host())
    } else {
        allocation(lowered, plan.device())
    };
    let call = editor.as_call(creator.call);
    // A variable of its own where the pointer is a result; else the program's.
    let variable = match creator.delivery {
        Delivery::Returned => editor.variable("echo.merged"),
        Delivery::Slot(_) | Delivery::Memory => out_argument(creator, call),
    };
    editor.before(call);
    let size = byte_count(editor, creator);
    let zero = editor.int(Int::I64, 0);
    let (empty, one) = (editor.equal(size, zero), editor.int(Int::I64, 1));
    let at_least_one = if off(Mutant::R1ZeroBytes) { size } else { editor.select(empty, one, size) };
    if creator.delivery == Delivery::Returned {
        let null = editor.null();
        editor.store(null, variable);
    }
    let global = editor.int(Int::I32, ATTACH_GLOBAL);
    let error = editor.cuda("cudaMallocManaged", &[variable, at_least_one, global]);
    let success = editor.int(Int::I32, 0);
    let succeeded = editor.equal(error, success);
    let made = editor.load(variable, "echo.merged.pointer");
    let null = editor.null();
    let pointer = if off(Mutant::R1FailureIsNull) { made } else { editor.select(succeeded, made, null) };
    if creator.allocator == Allocator::Calloc {
        r2_renaming::clear(editor, pointer, size);
    }
    let result = match (creator.delivery, creator.allocator) {
        (Delivery::Returned, _) => pointer,
        (_, Allocator::AlignedAlloc) if !off(Mutant::R1Errno) => {
            let failure = editor.int(Int::I32, OUT_OF_MEMORY);
            editor.select(succeeded, success, failure)
        }
        _ => error,
    };
    editor.replace(call, result);
    Merged { pointer }
}

/// Bytes that an allocation asks for; the largest number where that does not fit, which no allocation satisfies.
pub(super) fn byte_count<'m>(editor: &mut Editor<'m>, allocation: &Allocation<'m>) -> Value<'m> {
    match allocation.size_operands[..] {
        [size] => size,
        [count, size] => editor.saturating_product(count, size),
        _ => unreachable!("an allocation without a size is in no pair"),
    }
}

/// The address of the variable that an allocation stores its pointer in: the first argument of all such calls.
pub(super) fn out_argument<'m>(allocation: &Allocation<'m>, call: Value<'m>) -> Value<'m> {
    call.argument(0).unwrap_or(allocation.call)
}
