//! What an edge of the control flow says of numbers: behind the edge that `n - 1 == 0` takes, `n` is 1 and `4 * n` is 4.
//!
//! Constants are computed as the instructions compute them, modulo 2^width. That an instruction promises not to wrap (`nsw`, `nuw`) adds
//! nothing here: where it breaks the promise its result may be anything, the wrapped result too.

use super::flow::Flow;
use crate::ir::{Block, IntPredicate, Opcode, Value};
use crate::mutants::{Mutant, off};

/// How deep a number is taken apart. The sizes of real programs are five or six deep.
const MAX_DEPTH: u32 = 8;

/// A value that is one constant if control has gone from `from` to `target`.
pub(super) struct Known<'a, 'm> {
    flow: &'a Flow<'m>,
    value: Value<'m>,
    constant: u64,
    from: Block<'m>,
    target: Block<'m>,
}

/// What the branch at the end of `from` says if control goes to `target`.
pub(super) fn known_on<'a, 'm>(flow: &'a Flow<'m>, from: Block<'m>, target: Block<'m>) -> Option<Known<'a, 'm>> {
    let condition = from.terminator()?.branch_condition()?;
    let [yes, no] = from.successors()[..] else { return None };
    let equal = match condition.integer_predicate()? {
        IntPredicate::LLVMIntEQ => yes,
        IntPredicate::LLVMIntNE => no,
        _ => return None,
    };
    if yes == no || equal != target {
        return None;
    }
    let (mut value, mut constant) = (condition.operand(0)?, condition.operand(1)?.constant_uint()?);
    // What is added to a number can be taken away again, wrapped or not.
    while value.is_instruction()
        && value.opcode() == Some(Opcode::LLVMAdd)
        && let Some(added) = value.operand(1).and_then(Value::constant_uint)
    {
        constant = truncated(constant.wrapping_sub(added), value.ty().int_width()?)?;
        value = value.operand(0)?;
    }
    Some(Known { flow, value, constant, from, target })
}

impl<'m> Known<'_, 'm> {
    /// The constant that the number is, if control has just taken the edge, or that it would be if it were computed then.
    pub(super) fn evaluate(&self, number: Value<'m>) -> Option<u64> {
        self.at_depth(number, 0)
    }

    fn at_depth(&self, number: Value<'m>, depth: u32) -> Option<u64> {
        if number == self.value {
            return Some(self.constant);
        }
        if let Some(constant) = number.constant_uint() {
            return Some(constant);
        }
        if depth == MAX_DEPTH || !number.is_instruction() {
            return None;
        }
        let width = number.ty().int_width()?;
        let operand = |index| self.at_depth(number.operand(index)?, depth + 1);
        let shift = || operand(1).and_then(|shift| u32::try_from(shift).ok()).filter(|shift| *shift < width);
        let result = match number.opcode()? {
            // The phi of a loop that the edge leaves is still what it was before the edge back.
            Opcode::LLVMPHI
                if number.block() == Some(self.target)
                    || !self.flow.repeats(number)
                    || off(Mutant::LowerPhiOfLastRound) =>
            {
                let incoming = number.incoming();
                let (input, _) = incoming.iter().find(|(_, by)| *by == self.from)?;
                self.at_depth(*input, depth + 1)?
            }
            Opcode::LLVMMul => match (operand(0), operand(1)) {
                (Some(0), _) | (_, Some(0)) => 0,
                (left, right) => left?.wrapping_mul(right?),
            },
            Opcode::LLVMAnd => match (operand(0), operand(1)) {
                (Some(0), _) | (_, Some(0)) => 0,
                (left, right) => left? & right?,
            },
            Opcode::LLVMAdd => operand(0)?.wrapping_add(operand(1)?),
            Opcode::LLVMSub => operand(0)?.wrapping_sub(operand(1)?),
            Opcode::LLVMOr => operand(0)? | operand(1)?,
            // Of zero, whatever the distance.
            Opcode::LLVMShl | Opcode::LLVMLShr | Opcode::LLVMAShr if operand(0) == Some(0) => 0,
            Opcode::LLVMShl => operand(0)? << shift()?,
            Opcode::LLVMLShr => operand(0)? >> shift()?,
            Opcode::LLVMAShr => signed(operand(0)?, width)?.wrapping_shr(shift()?).cast_unsigned(),
            Opcode::LLVMUDiv | Opcode::LLVMSDiv if operand(0) == Some(0) => 0,
            Opcode::LLVMUDiv => operand(0)?.checked_div(operand(1)?)?,
            Opcode::LLVMZExt | Opcode::LLVMTrunc | Opcode::LLVMFreeze => operand(0)?,
            Opcode::LLVMSExt => signed(operand(0)?, number.operand(0)?.ty().int_width()?)?.cast_unsigned(),
            _ => return None,
        };
        truncated(result, width)
    }
}

/// The low bits of a number; `None` for integers wider than 64 bits.
fn truncated(number: u64, width: u32) -> Option<u64> {
    match width {
        0 => None,
        1..64 => Some(number & ((1 << width) - 1)),
        64 => Some(number),
        _ => None,
    }
}

/// The low bits read as two's complement.
fn signed(number: u64, width: u32) -> Option<i64> {
    let unused = 64_u32.checked_sub(width).filter(|unused| *unused < 64)?;
    Some((number << unused).cast_signed() >> unused)
}
