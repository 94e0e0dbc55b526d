//! Blocks, and how control flows between them.

use std::marker::PhantomData;

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMValueRef};

use super::{Block, Opcode, Value, chain};

unsafe extern "C" {
    fn echo_sr_shim_comes_before(first: LLVMValueRef, second: LLVMValueRef) -> bool;
}

impl<'m> Block<'m> {
    pub(super) fn wrap(raw: LLVMBasicBlockRef) -> Option<Self> {
        (!raw.is_null()).then_some(Self { raw, life: PhantomData })
    }

    /// The handle for LLVM's C API.
    #[must_use]
    pub fn raw(self) -> LLVMBasicBlockRef {
        self.raw
    }

    /// Its instructions, in order.
    pub fn instructions(self) -> impl Iterator<Item = Value<'m>> {
        // SAFETY: the block is valid ('m).
        chain(Value::wrap(unsafe { LLVMGetFirstInstruction(self.raw) }), Value::next)
    }

    /// Its last instruction.
    #[must_use]
    pub fn terminator(self) -> Option<Value<'m>> {
        // SAFETY: the block is valid ('m).
        Value::wrap(unsafe { LLVMGetBasicBlockTerminator(self.raw) })
    }

    /// Where control may go from here.
    #[must_use]
    pub fn successors(self) -> Vec<Self> {
        let Some(terminator) = self.terminator() else { return Vec::new() };
        // SAFETY: asked only of terminators, with indices in range.
        unsafe {
            (0..LLVMGetNumSuccessors(terminator.raw))
                .filter_map(|index| Self::wrap(LLVMGetSuccessor(terminator.raw, index)))
                .collect()
        }
    }
}

/// Where an instruction stands, and where control goes from it.
impl<'m> Value<'m> {
    /// The function that an instruction stands in.
    #[must_use]
    pub fn function(self) -> Option<Self> {
        // SAFETY: the block is valid ('m).
        self.block().and_then(|block| Self::wrap(unsafe { LLVMGetBasicBlockParent(block.raw) }))
    }

    /// The block of an instruction.
    #[must_use]
    pub fn block(self) -> Option<Block<'m>> {
        // SAFETY: asked only of instructions.
        self.is_instruction().then(|| unsafe { LLVMGetInstructionParent(self.raw) }).and_then(Block::wrap)
    }

    /// The instruction before it in its block.
    #[must_use]
    pub fn previous(self) -> Option<Self> {
        // SAFETY: asked only of instructions.
        self.is_instruction().then(|| unsafe { LLVMGetPreviousInstruction(self.raw) }).and_then(Self::wrap)
    }

    /// The instruction after it in its block.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        // SAFETY: asked only of instructions.
        self.is_instruction().then(|| unsafe { LLVMGetNextInstruction(self.raw) }).and_then(Self::wrap)
    }

    /// Does it stand before another instruction of the same block? False for one and the same, and where the blocks differ.
    #[must_use]
    pub fn comes_before(self, other: Self) -> bool {
        // SAFETY: asked only of two instructions of one block.
        self.block().is_some()
            && self.block() == other.block()
            && unsafe { echo_sr_shim_comes_before(self.raw, other.raw) }
    }

    /// The condition of a conditional branch; its first successor is where control goes if it is true.
    #[must_use]
    pub fn branch_condition(self) -> Option<Self> {
        // SAFETY: asked only of branches, and for the condition of conditional ones.
        unsafe {
            (self.is_instruction() && self.opcode() == Some(Opcode::LLVMBr) && LLVMIsConditional(self.raw) != 0)
                .then(|| LLVMGetCondition(self.raw))
        }
        .and_then(Self::wrap)
    }

    /// The block where an invoke goes on.
    #[must_use]
    pub fn normal_destination(self) -> Option<Block<'m>> {
        // SAFETY: asked only of invokes.
        unsafe { if LLVMIsAInvokeInst(self.raw).is_null() { None } else { Block::wrap(LLVMGetNormalDest(self.raw)) } }
    }

    /// The block where an invoke goes on if what it calls throws.
    #[must_use]
    pub fn unwind_destination(self) -> Option<Block<'m>> {
        // SAFETY: asked only of invokes.
        unsafe { if LLVMIsAInvokeInst(self.raw).is_null() { None } else { Block::wrap(LLVMGetUnwindDest(self.raw)) } }
    }

    /// Incoming values of a phi, with their blocks.
    #[must_use]
    pub fn incoming(self) -> Vec<(Self, Block<'m>)> {
        if self.opcode() != Some(Opcode::LLVMPHI) {
            return Vec::new();
        }
        // SAFETY: asked only of phis, with indices in range.
        unsafe {
            (0..LLVMCountIncoming(self.raw))
                .filter_map(|index| {
                    Some((
                        Self::wrap(LLVMGetIncomingValue(self.raw, index))?,
                        Block::wrap(LLVMGetIncomingBlock(self.raw, index))?,
                    ))
                })
                .collect()
        }
    }
}
