//! What constants say.

use inkwell::llvm_sys::core::*;

use super::{Opcode, Value};

impl Value<'_> {
    /// Is it a constant of any kind? (Functions and global variables are.)
    #[must_use]
    pub fn is_constant(self) -> bool {
        // SAFETY: the value is valid ('m).
        unsafe { LLVMIsConstant(self.raw) != 0 }
    }

    /// Is it a constant expression?
    #[must_use]
    pub fn is_constant_expression(self) -> bool {
        // SAFETY: the value is valid ('m); every `LLVMIsA*` takes any value.
        unsafe { !LLVMIsAConstantExpr(self.raw).is_null() }
    }

    /// Is it the null pointer or zero?
    #[must_use]
    pub fn is_null(self) -> bool {
        // SAFETY: the value is valid ('m); every value may be asked.
        unsafe { LLVMIsNull(self.raw) != 0 }
    }

    /// Is it undef or poison?
    #[must_use]
    pub fn is_undef(self) -> bool {
        // SAFETY: as above.
        unsafe { LLVMIsUndef(self.raw) != 0 || LLVMIsPoison(self.raw) != 0 }
    }

    /// The sign-extended value of a constant integer of at most 64 bits.
    #[must_use]
    pub fn constant_int(self) -> Option<i64> {
        // SAFETY: asked only of constant integers of at most 64 bits.
        self.is_short_integer().then(|| unsafe { LLVMConstIntGetSExtValue(self.raw) })
    }

    /// The zero-extended value of a constant integer of at most 64 bits.
    #[must_use]
    pub fn constant_uint(self) -> Option<u64> {
        // SAFETY: asked only of constant integers of at most 64 bits.
        self.is_short_integer().then(|| unsafe { LLVMConstIntGetZExtValue(self.raw) })
    }

    fn is_short_integer(self) -> bool {
        // SAFETY: the value is valid ('m).
        let is_integer = unsafe { !LLVMIsAConstantInt(self.raw).is_null() };
        // (A vector of equal integers has no width.)
        is_integer && self.ty().int_width().is_some_and(|width| width <= 64)
    }

    /// An element of a constant array or structure.
    #[must_use]
    pub fn constant_element(self, index: u32) -> Option<Self> {
        if !self.is_constant() {
            return None;
        }
        // SAFETY: asked only of constants; null, where there is no such element, is `None`.
        Self::wrap(unsafe { LLVMGetAggregateElement(self.raw, index) })
    }

    /// The bytes of a constant array of `i8` that is written as a string.
    #[must_use]
    pub fn as_bytes(self) -> Option<Vec<u8>> {
        let mut length = 0;
        // SAFETY: asked only of constant data sequences that are strings; LLVM returns `length` bytes that it owns, copied at once.
        unsafe {
            if LLVMIsAConstantDataSequential(self.raw).is_null() || LLVMIsConstantString(self.raw) == 0 {
                return None;
            }
            let data = LLVMGetAsString(self.raw, &raw mut length).cast::<u8>();
            Some(std::slice::from_raw_parts(data, length).to_vec())
        }
    }

    /// The value that a pointer is, under bitcasts, address space casts and GEPs whose indices are all zero.
    #[must_use]
    pub fn strip_casts(self) -> Self {
        let mut value = self;
        loop {
            let operands = value.operands();
            value = match (value.opcode(), operands.as_slice()) {
                (Some(Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast), [inner]) => *inner,
                (Some(Opcode::LLVMGetElementPtr), [base, indices @ ..])
                    if indices.iter().all(|index| index.constant_uint() == Some(0)) =>
                {
                    *base
                }
                _ => return value,
            };
        }
    }
}
