//! R2: h and d are p.
//!
//! The pointers flow as they did: the second allocation yields p where it would have handed out its own pointer, and with that every use
//! of h and of d uses p. In between nothing is touched, so a variable that is null on some way stays null there.

use super::allocation;
use super::edit::{Editor, Int};
use super::guard::Guard;
use super::r1_allocation::{Merged, byte_count, out_argument};
use crate::analysis::program::Allocator;
use crate::analysis::verdict::MergePlan;
use crate::ir::Value;
use crate::lower::{Allocation, Delivery, Lowered};
use crate::mutants::{Mutant, off};

pub(super) fn apply<'m>(
    editor: &mut Editor<'m>,
    lowered: &Lowered<'m>,
    plan: &MergePlan,
    guard: Guard<'m>,
    merged: &Merged<'m>,
) {
    let second = if lowered.instruction(plan.yields()) == Some(allocation(lowered, plan.host()).call) {
        allocation(lowered, plan.host())
    } else {
        allocation(lowered, plan.device())
    };
    let site = guard.open(editor, second.call);
    let pointer = merged.pointer(editor);
    if second.allocator == Allocator::Calloc {
        let size = byte_count(editor, second);
        clear(editor, pointer, size);
    }
    let error = merged.error(editor);
    let result = deliver(editor, second, site.call, pointer, error);
    site.close(editor, Some(result));
}

/// Hands out p where the allocation would hand out its own pointer; gives the call's result, `error` where that is an error code.
pub(super) fn deliver<'m>(
    editor: &mut Editor<'m>,
    allocation: &Allocation<'m>,
    call: Value<'m>,
    pointer: Value<'m>,
    error: Value<'m>,
) -> Value<'m> {
    match allocation.delivery {
        Delivery::Returned => pointer,
        Delivery::Slot(_) | Delivery::Memory => {
            editor.store(pointer, out_argument(allocation, call));
            error
        }
    }
}

/// calloc's zeroes; none where p is null.
pub(super) fn clear<'m>(editor: &mut Editor<'m>, pointer: Value<'m>, size: Value<'m>) {
    if off(Mutant::R1CallocZeroes) {
        return;
    }
    let (null, zero) = (editor.null(), editor.int(Int::I64, 0));
    let failed = editor.equal(pointer, null);
    let length = editor.select(failed, zero, size);
    editor.zero(pointer, length);
}
