//! What any value has: kind, name, type, operands, uses.

use std::marker::PhantomData;

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::LLVMValueRef;

use super::{Opcode, Type, Value, ValueKind};

/// One use of a value.
#[derive(Clone, Copy, Debug)]
pub struct Use<'m> {
    /// Who uses it.
    pub user: Value<'m>,
    /// As which operand.
    pub operand: u32,
}

impl<'m> Value<'m> {
    pub(super) fn wrap(raw: LLVMValueRef) -> Option<Self> {
        (!raw.is_null()).then_some(Self { raw, life: PhantomData })
    }

    /// The value of a handle that a C function returned; `None` for null.
    ///
    /// # Safety
    /// The handle is null or a value of a module that is valid for all of `'m`.
    #[must_use]
    pub unsafe fn from_raw(raw: LLVMValueRef) -> Option<Self> {
        Self::wrap(raw)
    }

    /// The handle for LLVM's C API.
    #[must_use]
    pub fn raw(self) -> LLVMValueRef {
        self.raw
    }

    /// Its symbol or name; empty if it has none.
    #[must_use]
    pub fn name(self) -> String {
        String::from_utf8_lossy(self.name_bytes()).into_owned()
    }

    /// Does its name begin so? (Quicker than [`Self::name`]: every function of every module is asked.)
    #[must_use]
    pub fn name_starts_with(self, prefix: &str) -> bool {
        self.name_bytes().starts_with(prefix.as_bytes())
    }

    /// Not for keeping: a rename frees it.
    fn name_bytes(&self) -> &[u8] {
        let mut length = 0;
        // SAFETY: the value is valid ('m); the name has `length` bytes and belongs to it until it is renamed, which this type can't do.
        unsafe {
            let data = LLVMGetValueName2(self.raw, &raw mut length).cast::<u8>();
            if data.is_null() { &[] } else { std::slice::from_raw_parts(data, length) }
        }
    }

    /// Its type.
    #[must_use]
    pub fn ty(self) -> Type<'m> {
        // SAFETY: the value is valid ('m).
        Type::wrap(unsafe { LLVMTypeOf(self.raw) })
    }

    /// What sort of value it is.
    #[must_use]
    pub fn kind(self) -> ValueKind {
        // SAFETY: the value is valid ('m).
        unsafe { LLVMGetValueKind(self.raw) }
    }

    /// Is it an instruction?
    #[must_use]
    pub fn is_instruction(self) -> bool {
        // SAFETY: the value is valid ('m); every `LLVMIsA*` takes any value.
        unsafe { !LLVMIsAInstruction(self.raw).is_null() }
    }

    /// Is it an argument of the function?
    #[must_use]
    pub fn is_argument(self) -> bool {
        // SAFETY: as above.
        unsafe { !LLVMIsAArgument(self.raw).is_null() }
    }

    /// Is it inline assembly?
    #[must_use]
    pub fn is_inline_asm(self) -> bool {
        // SAFETY: as above.
        unsafe { !LLVMIsAInlineAsm(self.raw).is_null() }
    }

    /// Which operation, for instructions and constant expressions.
    #[must_use]
    pub fn opcode(self) -> Option<Opcode> {
        // SAFETY: each C function is asked only of the kind of value that it takes.
        unsafe {
            if self.is_instruction() {
                Some(LLVMGetInstructionOpcode(self.raw))
            } else if !LLVMIsAConstantExpr(self.raw).is_null() {
                Some(LLVMGetConstOpcode(self.raw))
            } else {
                None
            }
        }
    }

    /// Its operands, for instructions and constants; none for other values.
    #[must_use]
    pub fn operands(self) -> Vec<Self> {
        (0..self.operand_count()).filter_map(|index| self.operand(index)).collect()
    }

    /// How many operands.
    #[must_use]
    pub fn operand_count(self) -> u32 {
        // SAFETY: asked only of users.
        unsafe {
            if LLVMIsAUser(self.raw).is_null() { 0 } else { u32::try_from(LLVMGetNumOperands(self.raw)).unwrap_or(0) }
        }
    }

    /// One operand.
    #[must_use]
    pub fn operand(self, index: u32) -> Option<Self> {
        // SAFETY: it is a user, and the index is in range. An operand may be null.
        (index < self.operand_count()).then(|| unsafe { LLVMGetOperand(self.raw, index) }).and_then(Self::wrap)
    }

    /// Does something use it?
    #[must_use]
    pub fn is_used(self) -> bool {
        // SAFETY: the value is valid ('m).
        unsafe { !LLVMGetFirstUse(self.raw).is_null() }
    }

    /// Its uses, by instructions and constants; debug information does not count.
    #[must_use]
    pub fn uses(self) -> Vec<Use<'m>> {
        let mut uses = Vec::new();
        // SAFETY: the list belongs to the valid value, and nothing changes it meanwhile; operand indices are in range.
        unsafe {
            let mut next = LLVMGetFirstUse(self.raw);
            while !next.is_null() {
                if let Some(user) = Self::wrap(LLVMGetUser(next)) {
                    let count = user.operand_count();
                    uses.extend(
                        (0..count)
                            .filter(|index| LLVMGetOperandUse(user.raw, *index) == next)
                            .map(|operand| Use { user, operand }),
                    );
                }
                next = LLVMGetNextUse(next);
            }
        }
        uses
    }

    /// The text of a metadata string.
    #[must_use]
    pub fn metadata_string(self) -> Option<String> {
        if self.kind() != ValueKind::LLVMMetadataAsValueValueKind {
            return None;
        }
        let mut length = 0;
        // SAFETY: it is metadata wrapped as a value; null unless it is a string of `length` bytes, which is copied at once.
        unsafe {
            let data = LLVMGetMDString(self.raw, &raw mut length);
            (!data.is_null()).then(|| super::text(data, length as usize))
        }
    }
}
