//! Waits of the event program as calls, and where a copy call has its direction.

use super::edit::Editor;
use crate::analysis::program::WaitScope;
use crate::analysis::verdict::{MergePlan, RepairPlace};
use crate::calls::cuda::{CopyKind, Meaning, StreamArg};
use crate::calls::{Callee, classify};
use crate::ir::{Block, Opcode, Value};
use crate::lower::Lowered;
use crate::mutants::{Mutant, off};

/// Inserts the wait that stands in for `call`, which is still there; gives its error code.
///
/// A stream is named as the call names its own, which is the one that it waited for. Where the call has none, or an event is meant, the
/// whole device is waited for, which covers both.
pub(super) fn wait<'m>(editor: &mut Editor<'m>, scope: WaitScope, call: Value<'m>) -> Value<'m> {
    match scope {
        WaitScope::Stream(_) => match own_stream(editor, call) {
            Some((stream, per_thread)) => {
                let function = if per_thread { "cudaStreamSynchronize_ptsz" } else { "cudaStreamSynchronize" };
                editor.cuda(function, &[stream])
            }
            None => editor.cuda("cudaDeviceSynchronize", &[]),
        },
        WaitScope::Device | WaitScope::Event(_) => editor.cuda("cudaDeviceSynchronize", &[]),
    }
}

/// Waits for the device that P did not have, to supply an order that was missing.
pub(super) fn repair<'m>(editor: &mut Editor<'m>, lowered: &Lowered<'m>, plan: &MergePlan) {
    for (node, place) in plan.repairs() {
        let Some(instruction) = lowered.instruction(*node) else { continue };
        let instruction = editor.current(instruction);
        let unwound = instruction.unwind_destination().filter(|_| !off(Mutant::RepairThrows));
        let behind = [instruction.normal_destination(), unwound];
        // Where a call that may throw goes on, others may come too: they wait as well, which adds order only.
        let throwing = behind.into_iter().flatten().filter_map(first_place);
        let places: Vec<_> = match place {
            RepairPlace::Before => vec![instruction],
            RepairPlace::Behind => throwing.chain(instruction.next()).collect(),
        };
        for place in places {
            editor.before(place);
            editor.cuda("cudaDeviceSynchronize", &[]);
        }
    }
}

/// Where new instructions of a block can stand first.
fn first_place(block: Block<'_>) -> Option<Value<'_>> {
    block.instructions().find(|first| !matches!(first.opcode(), Some(Opcode::LLVMPHI | Opcode::LLVMLandingPad)))
}

/// The handle of the stream that a copy runs on, and whether null means the per-thread default stream.
fn own_stream<'m>(editor: &Editor<'m>, call: Value<'m>) -> Option<(Value<'m>, bool)> {
    let Callee::Cuda { row, per_thread } = classify(&call.called_function()?.name()) else { return None };
    let stream = match row.meaning {
        Meaning::Copy { stream, .. } | Meaning::SymbolCopy { stream, .. } => stream,
        _ => return None,
    };
    let handle = match stream {
        StreamArg::Default => editor.null(),
        StreamArg::Arg(index) => call.argument(u32::from(index))?,
    };
    Some((handle, per_thread && !off(Mutant::R3PerThreadWait)))
}

/// Which argument of a copy call gives its direction.
pub(super) fn direction(call: Value<'_>) -> Option<u32> {
    let Callee::Cuda { row, .. } = classify(&call.called_function()?.name()) else { return None };
    match row.meaning {
        Meaning::Copy { kind: CopyKind::Arg(argument), .. } => Some(u32::from(argument)),
        // The last one; a stream comes behind it.
        Meaning::SymbolCopy { asynchronous, .. } => call.argument_count().checked_sub(1 + u32::from(asynchronous)),
        _ => None,
    }
}
