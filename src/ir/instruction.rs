//! What single instructions say.

use inkwell::llvm_sys::LLVMAtomicOrdering;
use inkwell::llvm_sys::core::*;

use super::{IntPredicate, Opcode, Type, Value};

impl<'m> Value<'m> {
    /// Is it a load or store (or another memory operation) marked volatile, or an atomic one?
    #[must_use]
    pub fn is_volatile_or_atomic(self) -> bool {
        // SAFETY: each is asked only of the instructions that have the property.
        unsafe {
            match self.opcode() {
                Some(Opcode::LLVMLoad | Opcode::LLVMStore) if self.is_instruction() => {
                    LLVMGetVolatile(self.raw) != 0
                        || LLVMGetOrdering(self.raw) != LLVMAtomicOrdering::LLVMAtomicOrderingNotAtomic
                }
                Some(Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg) => true,
                _ => false,
            }
        }
    }

    /// The type that a GEP's first index counts in.
    #[must_use]
    pub fn gep_source_type(self) -> Option<Type<'m>> {
        // SAFETY: asked only of GEPs (instructions or expressions).
        (self.opcode() == Some(Opcode::LLVMGetElementPtr))
            .then(|| Type::wrap(unsafe { LLVMGetGEPSourceElementType(self.raw) }))
    }

    /// Does a GEP promise that its offset arithmetic does not wrap in the signed sense (inbounds or nusw)?
    #[must_use]
    pub fn gep_does_not_wrap(self) -> bool {
        if self.opcode() != Some(Opcode::LLVMGetElementPtr) {
            return false;
        }
        // SAFETY: asked only of GEPs.
        #[cfg(feature = "llvm22")]
        return unsafe { LLVMGEPGetNoWrapFlags(self.raw) }
            & (inkwell::llvm_sys::LLVMGEPFlagInBounds | inkwell::llvm_sys::LLVMGEPFlagNUSW)
            != 0;
        // SAFETY: asked only of GEPs.
        #[cfg(not(feature = "llvm22"))]
        return unsafe { LLVMIsInBounds(self.raw) != 0 };
    }

    /// The type that an alloca allocates.
    #[must_use]
    pub fn allocated_type(self) -> Option<Type<'m>> {
        // SAFETY: asked only of allocas.
        (self.opcode() == Some(Opcode::LLVMAlloca)).then(|| Type::wrap(unsafe { LLVMGetAllocatedType(self.raw) }))
    }

    /// Arithmetic that is marked not to wrap in the signed sense.
    #[must_use]
    pub fn no_signed_wrap(self) -> bool {
        // SAFETY: asked only of instructions that carry the flag.
        self.is_arithmetic() && unsafe { LLVMGetNSW(self.raw) != 0 }
    }

    /// Arithmetic that is marked not to wrap in the unsigned sense.
    #[must_use]
    pub fn no_unsigned_wrap(self) -> bool {
        // SAFETY: asked only of instructions that carry the flag.
        self.is_arithmetic() && unsafe { LLVMGetNUW(self.raw) != 0 }
    }

    fn is_arithmetic(self) -> bool {
        self.is_instruction()
            && matches!(self.opcode(), Some(Opcode::LLVMAdd | Opcode::LLVMSub | Opcode::LLVMMul | Opcode::LLVMShl))
    }

    /// An `or` whose operands share no bit: it adds.
    #[must_use]
    pub fn is_disjoint_or(self) -> bool {
        // SAFETY: asked only of `or` instructions.
        self.is_instruction() && self.opcode() == Some(Opcode::LLVMOr) && unsafe { LLVMGetIsDisjoint(self.raw) != 0 }
    }

    /// How an integer or pointer comparison compares.
    #[must_use]
    pub fn integer_predicate(self) -> Option<IntPredicate> {
        // SAFETY: asked only of icmp instructions.
        (self.is_instruction() && self.opcode() == Some(Opcode::LLVMICmp))
            .then(|| unsafe { LLVMGetICmpPredicate(self.raw) })
    }

    /// Does an insertvalue set the first field?
    #[must_use]
    pub fn inserts_first(self) -> bool {
        // SAFETY: asked only of insertvalue instructions, which have at least one index.
        self.is_instruction()
            && self.opcode() == Some(Opcode::LLVMInsertValue)
            && unsafe { LLVMGetNumIndices(self.raw) == 1 && *LLVMGetIndices(self.raw) == 0 }
    }

    /// Does an extractvalue take the first field?
    #[must_use]
    pub fn extracts_first(self) -> bool {
        // SAFETY: asked only of extractvalue instructions, which have at least one index.
        self.is_instruction()
            && self.opcode() == Some(Opcode::LLVMExtractValue)
            && unsafe { LLVMGetNumIndices(self.raw) == 1 && *LLVMGetIndices(self.raw) == 0 }
    }
}
