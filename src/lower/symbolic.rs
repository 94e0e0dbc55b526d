//! Integers of the IR as sums in ℤ.
//!
//! LLVM's integers wrap, sums do not. So an operation is taken apart only where it provably does not wrap in the sense (signed or
//! unsigned) in which its result is read: it is marked so (`nsw`, `nuw`), or its operands are too narrow. Everything else is an atom,
//! which still compares equal to itself: `n * 4` without a flag, computed once, is one atom wherever it is used.
//!
//! Sizes and lengths are read as signed: an allocation of 2^63 bytes or more fails and a copy of that many is an error, so in every
//! execution that goes on the two readings agree. That is the premise "allocations succeed" of the proof, not a new one.

use rustc_hash::FxHashMap;

use super::edges::known_on;
use super::flow::Flow;
use crate::analysis::symbolic::{AtomId, Sym};
use crate::ir::{Block, Module, Opcode, Type, Value};
use crate::mutants::{Mutant, off};

/// How deep an expression is taken apart; deeper parts are atoms. Bounds the work on shared subexpressions (2^8); the sizes of real
/// programs (`w * h * channels * sizeof(float) + header`) are five or six deep.
const MAX_DEPTH: u32 = 8;

/// How the bits of an integer are read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Reading {
    /// Two's complement.
    Signed,
    /// Natural number.
    Unsigned,
}

/// What an atom stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key<'m> {
    /// A value.
    Value(Value<'m>, Reading),
    /// The low bits of a value times a constant: `shl`, `mul` and `umul.with.overflow` all compute just that.
    Product(Value<'m>, u64, Reading),
}

/// The atoms of one function.
#[derive(Default)]
pub(super) struct Atoms<'m> {
    /// Phis that can have one value only, as control never comes from the other blocks.
    certain: FxHashMap<Value<'m>, Value<'m>>,
    ids: FxHashMap<Key<'m>, AtomId>,
    values: Vec<Value<'m>>,
}

impl<'m> Atoms<'m> {
    /// The IR value that determines each atom, by id.
    #[must_use]
    pub(super) fn values(&self) -> &[Value<'m>] {
        &self.values
    }

    /// Looks through phis that are one value on all ways that are not ruled out. Whoever uses a phi is behind it, and the phi behind that
    /// value, so the value means the same there: to get a new one, control would pass the phi again.
    pub(super) fn look_through(&mut self, flow: &Flow<'m>) {
        let phis = flow.blocks().iter().flat_map(|block| block.instructions()).filter(|instruction| {
            instruction.opcode() == Some(Opcode::LLVMPHI) && instruction.ty().int_width().is_some()
        });
        self.certain = phis.filter_map(|phi| Some((phi, only_value(flow, phi)?))).collect();
    }

    /// A size or length argument as a sum.
    pub(super) fn length(&mut self, value: Value<'m>) -> Sym {
        self.read(value, Reading::Signed, 0)
    }

    /// Any integer as a sum, read in one way or the other.
    pub(super) fn number(&mut self, value: Value<'m>, reading: Reading) -> Sym {
        self.read(value, reading, 0)
    }

    /// The size that an allocation asks for, as a sum. `new T[n]` asks for all ones (which no allocation satisfies) where the product would
    /// wrap: that case is left out, as allocations succeed.
    pub(super) fn allocation_size(&mut self, value: Value<'m>) -> Sym {
        let size = without_failure(value);
        // The same, one phi later: if the block has a phi of what remains of the inputs, that is the size.
        let inputs: Vec<_> = size.incoming().into_iter().map(|(input, from)| (without_failure(input), from)).collect();
        let twin = size
            .block()
            .filter(|_| !inputs.is_empty())
            .and_then(|block| block.instructions().find(|candidate| candidate.incoming() == inputs));
        self.length(twin.unwrap_or(size))
    }

    /// Byte offset that a GEP adds to its base; `None` where its arithmetic may wrap or its types have no fixed size.
    pub(super) fn gep_offset(&mut self, module: Module<'m>, gep: Value<'m>) -> Option<Sym> {
        let mut ty: Type<'m> = gep.gep_source_type()?;
        let exact = gep.gep_does_not_wrap();
        let mut offset = Sym::default();
        for operand in 1..gep.operand_count() {
            let index = gep.operand(operand)?;
            if operand > 1 {
                if ty.is_struct() {
                    let field = u32::try_from(index.constant_uint()?).ok()?;
                    offset = offset.add(&Sym::from(module.field_offset(ty, field)?))?;
                    ty = ty.field(field)?;
                    continue;
                }
                ty = ty.element()?;
            }
            if !exact && index.constant_int().is_none() && !off(Mutant::LowerAddressWrap) {
                return None;
            }
            let scale = Sym::from(module.alloc_size(ty)?);
            offset = offset.add(&self.read(index, Reading::Signed, 0).mul(&scale)?)?;
        }
        Some(offset)
    }

    fn read(&mut self, value: Value<'m>, reading: Reading, depth: u32) -> Sym {
        let value = self.certain.get(&value).copied().unwrap_or(value);
        self.fold(value, reading, depth).unwrap_or_else(|| self.atom(value, reading))
    }

    fn fold(&mut self, value: Value<'m>, reading: Reading, depth: u32) -> Option<Sym> {
        if depth > MAX_DEPTH {
            return None;
        }
        match reading {
            Reading::Signed => {
                if let Some(constant) = value.constant_int() {
                    return Some(Sym::constant(i128::from(constant)));
                }
            }
            Reading::Unsigned => {
                if let Some(constant) = value.constant_uint() {
                    return Some(Sym::from(constant));
                }
            }
        }
        if !value.is_instruction() {
            return None;
        }
        let left = value.operand(0)?;
        match value.opcode()? {
            Opcode::LLVMZExt => Some(self.read(left, Reading::Unsigned, depth + 1)),
            Opcode::LLVMSExt if reading == Reading::Signed => Some(self.read(left, Reading::Signed, depth + 1)),
            Opcode::LLVMSExt if is_not_negative(left) => Some(self.read(left, Reading::Unsigned, depth + 1)),
            opcode @ (Opcode::LLVMAdd | Opcode::LLVMSub | Opcode::LLVMMul | Opcode::LLVMShl) => {
                let marked = match reading {
                    Reading::Signed => value.no_signed_wrap(),
                    Reading::Unsigned => value.no_unsigned_wrap(),
                };
                // Both readings of a result that needs fewer bits than it has agree, and nothing wrapped on the way.
                let narrow = opcode != Opcode::LLVMSub && bits(value, depth).is_some();
                if !marked && !narrow && !off(Mutant::LowerWrap) {
                    return None;
                }
                let reading = if marked { reading } else { Reading::Unsigned };
                let right = value.operand(1)?;
                if opcode == Opcode::LLVMShl {
                    let shift = u32::try_from(right.constant_uint()?).ok().filter(|shift| *shift < 64)?;
                    return self.read(left, reading, depth + 1).mul(&Sym::constant(1 << shift));
                }
                let (left, right) = (self.read(left, reading, depth + 1), self.read(right, reading, depth + 1));
                match opcode {
                    Opcode::LLVMAdd => left.add(&right),
                    Opcode::LLVMSub => left.sub(&right),
                    _ => left.mul(&right),
                }
            }
            // No bit in common: no carry, so neither reading wraps.
            Opcode::LLVMOr if value.is_disjoint_or() => {
                let right = value.operand(1)?;
                self.read(left, reading, depth + 1).add(&self.read(right, reading, depth + 1))
            }
            _ => None,
        }
    }

    fn atom(&mut self, value: Value<'m>, reading: Reading) -> Sym {
        // A value that is not negative reads the same both ways: one atom.
        let reading = if is_not_negative(value) || off(Mutant::LowerSign) { Reading::Unsigned } else { reading };
        let (key, source) = match scaled(value) {
            Some((source, scale)) => (Key::Product(source, scale, reading), source),
            None => (Key::Value(value, reading), value),
        };
        let next = AtomId(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
        let id = *self.ids.entry(key).or_insert_with(|| {
            self.values.push(source);
            next
        });
        Sym::atom(id)
    }
}

/// What a phi is on the ways that are left: its one input, or one that each constant among the inputs equals where it comes in.
/// (`std::vector` of n elements allocates `4 * n` bytes, and the way around the loop that fills the rest of them has `n == 1` and gives 4.)
fn only_value<'m>(flow: &Flow<'m>, phi: Value<'m>) -> Option<Value<'m>> {
    let block = phi.block()?;
    let incoming: Vec<_> = phi.incoming().into_iter().filter(|(_, from)| flow.takes(*from, block)).collect();
    let value = incoming.iter().map(|(input, _)| *input).find(|input| input.constant_uint().is_none());
    let value = value.or_else(|| flow.only_input(phi))?;
    let is_value = |input: Value<'m>, from: Block<'m>| {
        input == value
            || input.constant_uint().is_some_and(|constant| {
                let comes_before =
                    !value.is_instruction() || from.terminator().is_some_and(|end| flow.dominates_always(value, end));
                comes_before && known_on(flow, from, block).and_then(|known| known.evaluate(value)) == Some(constant)
            })
    };
    incoming.into_iter().all(|(input, from)| is_value(input, from)).then_some(value)
}

/// The size that is asked for where it is not all ones.
fn without_failure(value: Value<'_>) -> Value<'_> {
    let is_all_ones = |value: Value<'_>| value.constant_int() == Some(-1);
    match (value.opcode(), value.operand(1), value.operand(2)) {
        (Some(Opcode::LLVMSelect), Some(yes), Some(no)) if is_all_ones(yes) => no,
        (Some(Opcode::LLVMSelect), Some(yes), Some(no)) if is_all_ones(no) => yes,
        _ => value,
    }
}

/// A value times a constant, all that wraps left out.
fn scaled(value: Value<'_>) -> Option<(Value<'_>, u64)> {
    let product = |operation: Value<'_>| {
        let constant = |index| operation.operand(index).and_then(Value::constant_uint);
        constant(1).or_else(|| constant(0))
    };
    if !value.is_instruction() {
        return None;
    }
    let (operation, scale) = match value.opcode()? {
        Opcode::LLVMShl => (value, 1_u64.checked_shl(u32::try_from(value.operand(1)?.constant_uint()?).ok()?)?),
        Opcode::LLVMMul => (value, product(value)?),
        Opcode::LLVMExtractValue => {
            let both = value.operand(0).filter(|_| value.extracts_first())?;
            let callee = both.called_function()?;
            if !callee.name().starts_with("llvm.umul.with.overflow.") {
                return None;
            }
            (both, product(both)?)
        }
        _ => return None,
    };
    let source =
        operation.operand(0).filter(|operand| operand.constant_uint().is_none()).or_else(|| operation.operand(1))?;
    (source.ty().int_width() == Some(64)).then_some((source, scale))
}

/// Is the sign bit certainly clear?
fn is_not_negative(value: Value<'_>) -> bool {
    bits(value, 0).is_some()
}

/// How many bits the value needs as a natural number, where that is certainly fewer than its type has.
fn bits(value: Value<'_>, depth: u32) -> Option<u32> {
    let width = value.ty().int_width()?;
    let needed = if let Some(constant) = value.constant_uint() {
        64 - constant.leading_zeros()
    } else if depth > MAX_DEPTH || !value.is_instruction() {
        return None;
    } else {
        let operand = |index| bits(value.operand(index)?, depth + 1);
        match value.opcode()? {
            Opcode::LLVMZExt => {
                let source = value.operand(0)?;
                bits(source, depth + 1).or_else(|| source.ty().int_width())?
            }
            Opcode::LLVMSExt => operand(0)?,
            Opcode::LLVMAdd => operand(0)?.max(operand(1)?) + 1,
            Opcode::LLVMMul => operand(0)? + operand(1)?,
            Opcode::LLVMShl => operand(0)? + u32::try_from(value.operand(1)?.constant_uint()?).ok()?,
            Opcode::LLVMAnd => operand(0).into_iter().chain(operand(1)).min()?,
            Opcode::LLVMLShr => {
                let shift = u32::try_from(value.operand(1)?.constant_uint()?).ok()?;
                operand(0).unwrap_or(width).saturating_sub(shift)
            }
            Opcode::LLVMUDiv => operand(0)?,
            _ => return None,
        }
    };
    (needed < width).then_some(needed)
}
