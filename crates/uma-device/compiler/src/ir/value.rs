//! What all values have, blocks, and attributes.

use super::{Attribute, Block, Type, Value, attribute_kind, c_string, context, take_message, text, walk};
use llvm_sys::LLVMValueKind;
use llvm_sys::core::*;
use llvm_sys::prelude::LLVMValueRef;

impl Block {
    pub(crate) fn append(function: Value, name: &str) -> Block {
        let name = c_string(name);
        // SAFETY: live function.
        Block(unsafe { LLVMAppendBasicBlockInContext(context(), function.0, name.as_ptr()) })
    }

    pub(crate) fn as_value(self) -> Value {
        // SAFETY: live handle.
        Value(unsafe { LLVMBasicBlockAsValue(self.0) })
    }

    pub(crate) fn instructions(self) -> Vec<Value> {
        // SAFETY: live handle.
        walk(unsafe { LLVMGetFirstInstruction(self.0) }, |value| unsafe { LLVMGetNextInstruction(value) })
    }

    pub(crate) fn terminator(self) -> Option<Value> {
        // SAFETY: live handle.
        Value::from_raw(unsafe { LLVMGetBasicBlockTerminator(self.0) })
    }
}

impl Attribute {
    /// An attribute that is only a name, as `alwaysinline`, or has a number, as `align`.
    pub(crate) fn known(name: &str, number: u64) -> Attribute {
        // SAFETY: the context lives; the names used here are LLVM's own.
        Attribute(unsafe { LLVMCreateEnumAttribute(context(), attribute_kind(name), number) })
    }

    /// The kind and value of a string attribute.
    pub(super) fn as_text(self) -> Option<(String, String)> {
        // SAFETY: attributes live as long as the context.
        unsafe {
            if LLVMIsStringAttribute(self.0) == 0 {
                return None;
            }
            let mut length = 0;
            let kind = LLVMGetStringAttributeKind(self.0, &mut length);
            let kind = text(kind, length as usize);
            let value = LLVMGetStringAttributeValue(self.0, &mut length);
            Some((kind, text(value, length as usize)))
        }
    }
}

impl Value {
    pub(super) fn from_raw(raw: LLVMValueRef) -> Option<Value> {
        (!raw.is_null()).then_some(Value(raw))
    }

    pub(crate) fn ty(self) -> Type {
        // SAFETY: live handle.
        Type(unsafe { LLVMTypeOf(self.0) })
    }

    pub(crate) fn name(self) -> String {
        let mut length = 0;
        // SAFETY: live handle; the name belongs to it.
        unsafe { text(LLVMGetValueName2(self.0, &mut length), length) }
    }

    pub(crate) fn set_name(self, name: &str) {
        // SAFETY: live handle, pointer and length of a string.
        unsafe { LLVMSetValueName2(self.0, name.as_ptr().cast(), name.len()) }
    }

    pub(crate) fn replace_all_uses_with(self, other: Value) {
        // SAFETY: live handles of one type.
        unsafe { LLVMReplaceAllUsesWith(self.0, other.0) }
    }

    /// The users, each as often as it uses the value.
    pub(crate) fn users(self) -> Vec<Value> {
        // SAFETY: live handle; the list is read before anything changes it.
        unsafe {
            let mut users = Vec::new();
            let mut each = LLVMGetFirstUse(self.0);
            while !each.is_null() {
                users.push(Value(LLVMGetUser(each)));
                each = LLVMGetNextUse(each);
            }
            users
        }
    }

    pub(crate) fn operands(self) -> Vec<Value> {
        (0..self.operand_count()).filter_map(|index| self.operand(index)).collect()
    }

    pub(crate) fn operand_count(self) -> u32 {
        // SAFETY: live handle.
        unsafe { LLVMGetNumOperands(self.0) }.max(0) as u32
    }

    pub(crate) fn operand(self, index: u32) -> Option<Value> {
        // SAFETY: live handle; callers stay below the operand count. (Null for operands that are no values.)
        Value::from_raw(unsafe { LLVMGetOperand(self.0, index) })
    }

    pub(crate) fn set_operand(self, index: u32, value: Value) {
        // SAFETY: live handles; the index is below the operand count.
        unsafe { LLVMSetOperand(self.0, index, value.0) }
    }

    pub(super) fn kind(self) -> LLVMValueKind {
        // SAFETY: live handle.
        unsafe { LLVMGetValueKind(self.0) }
    }

    pub(crate) fn is_instruction(self) -> bool {
        self.kind() == LLVMValueKind::LLVMInstructionValueKind
    }

    pub(crate) fn is_function(self) -> bool {
        self.kind() == LLVMValueKind::LLVMFunctionValueKind
    }

    pub(crate) fn is_global_variable(self) -> bool {
        self.kind() == LLVMValueKind::LLVMGlobalVariableValueKind
    }

    pub(crate) fn is_constant_expression(self) -> bool {
        self.kind() == LLVMValueKind::LLVMConstantExprValueKind
    }

    pub(crate) fn is_constant(self) -> bool {
        // SAFETY: live handle.
        unsafe { LLVMIsConstant(self.0) != 0 }
    }

    pub(crate) fn is_zero_or_undefined(self) -> bool {
        // SAFETY: live handle.
        unsafe { LLVMIsNull(self.0) != 0 || LLVMIsUndef(self.0) != 0 }
    }

    pub(crate) fn is_block_address(self) -> bool {
        self.kind() == LLVMValueKind::LLVMBlockAddressValueKind
    }

    /// The value of an integer constant of at most 64 bits.
    pub(crate) fn as_constant_int(self) -> Option<u64> {
        // SAFETY: live handle; the value is read from integer constants only.
        (self.kind() == LLVMValueKind::LLVMConstantIntValueKind).then(|| unsafe { LLVMConstIntGetZExtValue(self.0) })
    }

    /// The text of inline assembly.
    pub(crate) fn inline_assembly(self) -> Option<String> {
        if self.kind() != LLVMValueKind::LLVMInlineAsmValueKind {
            return None;
        }
        let mut length = 0;
        // SAFETY: an inline assembly value; the text belongs to it.
        Some(unsafe { text(LLVMGetInlineAsmAsmString(self.0, &mut length), length) })
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: live handle.
        f.write_str(&take_message(unsafe { LLVMPrintValueToString(self.0) }))
    }
}
