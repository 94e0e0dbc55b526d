//! How a process ends where control goes no further: with a failure, or as if `main` had returned.
//!
//! A program that finds no GPU, does its work on the CPU and calls `exit(0)` has done what it was to do, and must do so in P' as well. One that
//! calls `exit(1)`, `abort` or a failing `assert` has not, and there it is enough that it fails.

use crate::calls::{Callee, classify};
use crate::ir::{Opcode, Value};
use crate::mutants::{Mutant, off};

/// Functions of the module within functions that are looked at.
const MAX_DEPTH: u32 = 4;

/// May the process end well at this `unreachable`? `false` too where control cannot come there.
pub(super) fn ends_well(unreachable: Value<'_>, depth: u32) -> bool {
    let mut before = std::iter::successors(unreachable.previous(), |before| before.previous());
    let last = before.find(|before| !is_note(*before));
    last.is_some_and(|call| call.is_call() && !fails(call, depth)) && !off(Mutant::LowerExit)
}

fn is_note(instruction: Value<'_>) -> bool {
    instruction.called_function().is_some_and(|callee| callee.name_starts_with("llvm."))
}

/// Does a call that does not return end the process with a failure, or go on elsewhere (a throw)?
fn fails(call: Value<'_>, depth: u32) -> bool {
    let Some(callee) = call.called_function() else { return false };
    if !callee.is_declaration() {
        let mut ends = callee.instructions().filter(|end| end.opcode() == Some(Opcode::LLVMUnreachable));
        return depth < MAX_DEPTH && !callee.is_interposable() && ends.all(|end| !ends_well(end, depth + 1));
    }
    match callee.name().as_str() {
        "exit" | "_exit" | "_Exit" | "quick_exit" => {
            call.argument(0).and_then(Value::constant_int).is_some_and(|status| status != 0)
        }
        name => matches!(classify(name), Callee::Modelled(model) if model.no_return),
    }
}
