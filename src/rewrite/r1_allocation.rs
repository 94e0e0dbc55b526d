//! R1: the allocation of h or d that dominates the other makes p.
//!
//! For `target=managed` p is `cudaMallocManaged(&p, max(N, 1), cudaMemAttachGlobal)`: of zero bytes the call would fail, while P goes on.
//! For `target=adaptive` it is what `echo_rt_create` makes of N bytes, or null: then the pair stays two buffers, and each of its calls
//! stays what it was (`guard`). What the program sees of the call stays as it was in both: malloc's result is p (null if it failed),
//! cudaMalloc's is the error code, with p in the variable that it was given, posix_memalign's is an errno.
//!
//! Where the plan keeps the host buffer, its own allocation stays as well (`names`): for one byte, or for all if p could not be made.

use super::edit::{Editor, Int};
use super::guard::Guard;
use super::names::Names;
use super::{Target, allocation, r2_renaming};
use crate::analysis::program::Allocator;
use crate::analysis::verdict::MergePlan;
use crate::ir::Value;
use crate::lower::{Allocation, Delivery, Lowered};
use crate::mutants::{Mutant, off};

/// `cudaMemAttachGlobal` of driver_types.h.
const ATTACH_GLOBAL: u64 = 1;
/// `ENOMEM` of errno.h.
const OUT_OF_MEMORY: u64 = 12;
/// `ECHO_RT_EXCLUSIVE` of echo-rt: S5 holds for the pair.
const EXCLUSIVE: u64 = 1;

/// The merged buffer.
pub(super) enum Merged<'m> {
    /// p, or null where allocating failed; dominates the other allocation.
    Value {
        /// p.
        pointer: Value<'m>,
        /// The error code of making it.
        error: Value<'m>,
        /// The program goes on without p where that failed, so the other allocation reports the failure.
        reports_failure: bool,
    },
    /// p is in this variable, where there is one.
    Variable(Value<'m>),
}

impl<'m> Merged<'m> {
    /// p.
    pub(super) fn pointer(&self, editor: &mut Editor<'m>) -> Value<'m> {
        match self {
            Self::Value { pointer, .. } => *pointer,
            Self::Variable(variable) => editor.load(*variable, "echo.merged.pointer"),
        }
    }

    /// The error code that the other allocation gives, if it gives one.
    pub(super) fn error(&self, editor: &Editor<'m>) -> Value<'m> {
        match self {
            Self::Value { error, reports_failure: true, .. } => *error,
            Self::Value { .. } | Self::Variable(_) => editor.int(Int::I32, 0),
        }
    }
}

pub(super) fn apply<'m>(
    editor: &mut Editor<'m>,
    lowered: &Lowered<'m>,
    plan: &MergePlan,
    target: Target,
    guard: Guard<'m>,
    names: &Names<'m>,
) -> Merged<'m> {
    let creator = if lowered.instruction(plan.creates()) == Some(allocation(lowered, plan.host()).call) {
        allocation(lowered, plan.host())
    } else {
        allocation(lowered, plan.device())
    };
    match (target, guard) {
        (Target::Adaptive { threshold }, Guard::WhereMerged(variable)) => {
            ask_runtime(editor, lowered, plan, creator, threshold, variable);
            Merged::Variable(variable)
        }
        (Target::Managed, _) | (_, Guard::Always) => allocate_managed(editor, creator, names),
    }
}

fn allocate_managed<'m>(editor: &mut Editor<'m>, creator: &Allocation<'m>, names: &Names<'m>) -> Merged<'m> {
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
        (Delivery::Returned, _) => match names.own {
            Some(own) => keep(editor, creator, call, succeeded, pointer, own),
            None => pointer,
        },
        (_, Allocator::AlignedAlloc) if !off(Mutant::R1Errno) => {
            let failure = editor.int(Int::I32, OUT_OF_MEMORY);
            editor.select(succeeded, success, failure)
        }
        _ => error,
    };
    editor.replace(call, result);
    let pointer = creator.joined.unwrap_or(pointer);
    Merged::Value { pointer, error, reports_failure: names.own.is_some() }
}

/// Asks the runtime for p before the call; the call itself happens where it gave none.
fn ask_runtime<'m>(
    editor: &mut Editor<'m>,
    lowered: &Lowered<'m>,
    plan: &MergePlan,
    creator: &Allocation<'m>,
    threshold: u64,
    variable: Value<'m>,
) {
    editor.before(creator.call);
    let size = byte_count(editor, creator);
    let threshold = editor.int(Int::I64, threshold);
    let facts = editor.int(Int::I32, if plan.exclusive_ok() || off(Mutant::AdaptiveExclusive) { EXCLUSIVE } else { 0 });
    let site = editor.text(&site(lowered, plan));
    let pointer = editor.runtime_pointer("echo_rt_create", &[size, threshold, facts, site]);
    editor.store(pointer, variable);
    let site = Guard::WhereMerged(variable).open(editor, creator.call);
    if creator.allocator == Allocator::Calloc {
        r2_renaming::clear(editor, pointer, size);
    }
    let success = editor.int(Int::I32, 0);
    let result = r2_renaming::deliver(editor, creator, site.call, pointer, success);
    site.close(editor, Some(result));
}

/// What a user calls the pair: `function: h (file:line) with d (file:line)`.
fn site(lowered: &Lowered<'_>, plan: &MergePlan) -> String {
    let program = &lowered.program;
    let buffer = |id| {
        let object = program.object(id);
        let name = if object.name.is_empty() { "a buffer" } else { &object.name };
        if object.site.line == 0 { name.to_owned() } else { format!("{name} ({})", object.site) }
    };
    format!("{}: {} with {}", program.function, buffer(plan.host()), buffer(plan.device()))
}

/// The host buffer's own allocation; gives h. All allocators that are kept take the size as their first arguments (calloc as two).
fn keep<'m>(
    editor: &mut Editor<'m>,
    allocation: &Allocation<'m>,
    call: Value<'m>,
    succeeded: Value<'m>,
    pointer: Value<'m>,
    own: Value<'m>,
) -> Value<'m> {
    let one = editor.int(Int::I64, 1);
    let arguments: Vec<_> = allocation
        .size_operands
        .iter()
        .zip(0..)
        .map(|(size, index)| (index, editor.select(succeeded, one, *size)))
        .collect();
    let host = editor.call_again(call, &arguments);
    editor.store(host, own);
    editor.select(succeeded, pointer, host)
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
