//! What a launch writes for certain: the kernel's claim ([`WritesAll`]) with the launch's arguments and configuration put in.
//!
//! A kernel that writes element `t` in thread `t`, for `t < n`, writes all of `[0, n·scale)` if the launch has n threads in the x dimension.
//! That is proved for constants, and for `(n + B - 1) / B` blocks of `B` threads and its like, where the sum in it does not wrap: with
//! `A = n + C` exactly, `(A / D + k)` blocks of `B ≥ D` threads have at least `A - (D - 1) + k·D` threads. An `unsigned n` without a flag
//! may wrap, so it proves nothing. Block and grid have a `y` and a `z`, which only make more threads.
//!
//! Numbers at two places are one where their sums are: see `symbolic`. The configuration's instructions dominate it, the argument's store
//! dominates the launch, so a number that is computed anew reaches both or neither.

use super::Lowering;
use super::launches::KernelArgument;
use super::symbolic::Reading;
use crate::analysis::symbolic::Sym;
use crate::effects::{Count, WritesAll};
use crate::ir::{Opcode, Value};

/// The configuration of a launch, as CUDA's interface takes it: x in the low half of a 64-bit integer, y in the high half.
#[derive(Clone, Copy)]
pub(super) struct Configuration<'m> {
    pub grid: Value<'m>,
    pub block: Value<'m>,
}

/// More threads than this a block cannot have: such a launch fails.
const MAX_BLOCK: u32 = 1024;

/// The x part of a configuration.
#[derive(Clone, Copy)]
enum Width<'m> {
    Constant(u32),
    Value(Value<'m>),
}

impl<'m> Lowering<'_, 'm> {
    /// How many bytes from the pointer on the launch writes all of; `None` if that is not proved.
    pub(super) fn written_length(
        &mut self,
        claim: &WritesAll,
        arguments: &[KernelArgument<'m>],
        configuration: Option<Configuration<'m>>,
    ) -> Option<Sym> {
        let threads = configuration.and_then(|configuration| threads(configuration));
        if let Some(width) = claim.block
            && threads.is_none_or(|(_, block)| block != width)
        {
            return None;
        }
        let (count, reading, most) = match claim.count {
            Count::Threads => match threads? {
                (Width::Constant(grid), block) => {
                    let all = u64::from(grid) * u64::from(block);
                    return (all <= claim.limit).then(|| Sym::from(all).mul(&Sym::from(claim.scale))).flatten();
                }
                (Width::Value(_), _) => return None,
            },
            Count::Constant(count) => (Sym::from(count), Reading::Unsigned, i128::from(count)),
            Count::Param { index, bits, signed } => {
                let value = arguments.get(index as usize)?.value?;
                if value.ty().int_width() != Some(bits) || bits > 64 {
                    return None;
                }
                let reading = if signed { Reading::Signed } else { Reading::Unsigned };
                let count = self.atoms.number(value, reading);
                let most = count.as_constant().unwrap_or((1_i128 << (bits - u32::from(signed))) - 1);
                (count, reading, most)
            }
        };
        let enough = claim.whatever_grid || threads.is_some_and(|(grid, block)| self.has(grid, block, &count, reading));
        (most <= i128::from(claim.limit) && enough).then(|| count.mul(&Sym::from(claim.scale))).flatten()
    }

    /// Has a launch of so many blocks of so many threads at least `count` threads?
    fn has(&mut self, grid: Width<'m>, block: u32, count: &Sym, reading: Reading) -> bool {
        match grid {
            Width::Constant(grid) => {
                count.as_constant().is_some_and(|count| i128::from(grid) * i128::from(block) >= count)
            }
            Width::Value(grid) => self.rounds_up(grid, block, count, reading).is_some(),
        }
    }

    /// `grid = (count + C) / D + k` that is enough; see the module.
    fn rounds_up(&mut self, grid: Value<'m>, block: u32, count: &Sym, reading: Reading) -> Option<()> {
        let (quotient, more) = match grid.opcode()? {
            Opcode::LLVMAdd => {
                let more = grid.operand(1)?.constant_uint().filter(|more| *more <= u64::from(MAX_BLOCK))?;
                (grid.operand(0)?, i128::from(more))
            }
            _ => (grid, 0),
        };
        let (dividend, right) = (quotient.operand(0)?, quotient.operand(1)?.constant_uint()?);
        // Of a dividend that is read as signed and not negative all of these are the same.
        let divisor = match (quotient.opcode()?, reading) {
            (Opcode::LLVMUDiv, _) | (Opcode::LLVMSDiv, Reading::Signed) => right,
            (Opcode::LLVMLShr, _) | (Opcode::LLVMAShr, Reading::Signed) => {
                1_u64.checked_shl(u32::try_from(right).ok()?)?
            }
            _ => return None,
        };
        if divisor == 0 || divisor > u64::from(block) {
            return None;
        }
        let divisor = i128::from(divisor);
        let added = self.atoms.number(dividend, reading).sub(count)?.as_constant()?;
        // Where there is something to write the count is at least 1, so that the dividend is not negative. The quotient and `more` together
        // do not wrap: a divisor of 1 with something added is left out.
        let exact = added >= -1 && (more == 0 || divisor > 1);
        (exact && added - (divisor - 1) + more * divisor >= 0).then_some(())
    }
}

/// Blocks, and threads of a block.
fn threads(configuration: Configuration<'_>) -> Option<(Width<'_>, u32)> {
    match low_half(configuration.block)? {
        Width::Constant(block @ 1..=MAX_BLOCK) => Some((low_half(configuration.grid)?, block)),
        _ => None,
    }
}

/// The low 32 bits of a 64-bit integer.
fn low_half(value: Value<'_>) -> Option<Width<'_>> {
    if let Some(constant) = value.constant_uint() {
        return u32::try_from(constant & u64::from(u32::MAX)).ok().map(Width::Constant);
    }
    let (left, right) = (value.operand(0)?, value.operand(1));
    match value.opcode()? {
        Opcode::LLVMZExt if left.ty().int_width() == Some(32) => Some(Width::Value(left)),
        Opcode::LLVMOr if is_high(right?) => low_half(left),
        Opcode::LLVMOr if is_high(left) => low_half(right?),
        _ => None,
    }
}

/// Are the low 32 bits zero?
fn is_high(value: Value<'_>) -> bool {
    match value.constant_uint() {
        Some(constant) => constant & u64::from(u32::MAX) == 0,
        None => {
            value.opcode() == Some(Opcode::LLVMShl)
                && value.operand(1).and_then(Value::constant_uint).is_some_and(|shift| (32..64).contains(&shift))
        }
    }
}
