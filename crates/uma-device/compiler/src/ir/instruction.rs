//! Instructions, calls above all.

use super::{At, Block, Metadata, Opcode, Type, Value, attribute_kind, context, text};
use llvm_sys::core::*;
use std::ffi::c_uint;

impl Value {
    pub(crate) fn opcode(self) -> Opcode {
        // SAFETY: asked of instructions only.
        unsafe { LLVMGetInstructionOpcode(self.0) }
    }

    /// The opcode of a constant expression.
    pub(crate) fn constant_opcode(self) -> Opcode {
        // SAFETY: asked of constant expressions only.
        unsafe { LLVMGetConstOpcode(self.0) }
    }

    pub(crate) fn block(self) -> Block {
        // SAFETY: asked of instructions in a block only.
        Block(unsafe { LLVMGetInstructionParent(self.0) })
    }

    /// The function that holds an instruction.
    pub(crate) fn function(self) -> Value {
        // SAFETY: asked of instructions in a block only.
        Value(unsafe { LLVMGetBasicBlockParent(LLVMGetInstructionParent(self.0)) })
    }

    pub(crate) fn clone_instruction(self) -> Value {
        // SAFETY: asked of instructions only.
        Value(unsafe { LLVMInstructionClone(self.0) })
    }

    pub(crate) fn erase(self) {
        // SAFETY: an instruction without uses; the handle is not used again.
        unsafe { LLVMInstructionEraseFromParent(self.0) }
    }

    pub(crate) fn incoming(self) -> Vec<(Value, Block)> {
        // SAFETY: asked of phis only.
        unsafe {
            (0..LLVMCountIncoming(self.0))
                .map(|i| (Value(LLVMGetIncomingValue(self.0, i)), Block(LLVMGetIncomingBlock(self.0, i))))
                .collect()
        }
    }

    pub(crate) fn add_incoming(self, value: Value, block: Block) {
        let (mut value, mut block) = (value.0, block.0);
        // SAFETY: asked of phis only; one of each.
        unsafe { LLVMAddIncoming(self.0, &mut value, &mut block, 1) }
    }

    /// What a call calls.
    pub(crate) fn callee(self) -> Value {
        // SAFETY: asked of calls only.
        Value(unsafe { LLVMGetCalledValue(self.0) })
    }

    pub(crate) fn callee_type(self) -> Type {
        // SAFETY: asked of calls only.
        Type(unsafe { LLVMGetCalledFunctionType(self.0) })
    }

    pub(crate) fn call_arguments(self) -> Vec<Value> {
        // SAFETY: asked of calls only.
        let count = unsafe { LLVMGetNumArgOperands(self.0) };
        (0..count).filter_map(|index| self.operand(index)).collect()
    }

    /// Copies the attributes of a call's result and first `params` parameters, its fast-math flags and its metadata to another call.
    pub(crate) fn copy_call_properties_to(self, other: Value, params: u32) {
        // SAFETY: live calls; the vectors have the lengths that LLVM fills.
        unsafe {
            for at in std::iter::once(At::Return).chain((0..params).map(At::Param)) {
                let mut attributes =
                    vec![std::ptr::null_mut(); LLVMGetCallSiteAttributeCount(self.0, at.index()) as usize];
                LLVMGetCallSiteAttributes(self.0, at.index(), attributes.as_mut_ptr());
                for attribute in attributes {
                    LLVMAddCallSiteAttribute(other.0, at.index(), attribute);
                }
            }
            if LLVMCanValueUseFastMathFlags(self.0) != 0 && LLVMCanValueUseFastMathFlags(other.0) != 0 {
                LLVMSetFastMathFlags(other.0, LLVMGetFastMathFlags(self.0));
            }
            llvm_sys::debuginfo::LLVMInstructionSetDebugLoc(
                other.0,
                llvm_sys::debuginfo::LLVMInstructionGetDebugLoc(self.0),
            );
        }
    }

    /// Drops what a call site claims about its callee (`memory(none)`, `convergent` and the like).
    pub(crate) fn clear_call_site_claims(self) {
        for name in
            ["memory", "convergent", "nosync", "nofree", "willreturn", "speculatable", "noinline", "noduplicate"]
        {
            // SAFETY: asked of calls only.
            unsafe { LLVMRemoveCallSiteEnumAttribute(self.0, At::Function.index(), attribute_kind(name)) }
        }
    }

    pub(crate) fn is_volatile(self) -> bool {
        // SAFETY: asked of loads, stores and atomics only.
        unsafe { LLVMGetVolatile(self.0) != 0 }
    }

    pub(crate) fn is_atomic(self) -> bool {
        // SAFETY: asked of instructions only.
        unsafe { LLVMIsAtomic(self.0) != 0 }
    }

    pub(crate) fn element_type(self) -> Type {
        // SAFETY: asked of GEPs only, instruction or constant.
        Type(unsafe { LLVMGetGEPSourceElementType(self.0) })
    }

    pub(crate) fn set_metadata(self, kind: &str, node: Metadata) {
        // SAFETY: live instruction; the node lives in the context.
        unsafe {
            let kind = LLVMGetMDKindIDInContext(context(), kind.as_ptr().cast(), kind.len() as c_uint);
            LLVMSetMetadata(self.0, kind, node.0);
        }
    }

    /// File (as clang was given it) and line of an instruction, then of the call that inlining put it in place of, and so on.
    pub(crate) fn source_locations(self) -> Vec<(String, u32)> {
        use llvm_sys::debuginfo::*;
        let mut found = Vec::new();
        // SAFETY: asked of instructions only; locations, scopes and files live as long as the context.
        unsafe {
            let mut location = LLVMInstructionGetDebugLoc(self.0);
            while !location.is_null() {
                let file = LLVMDIScopeGetFile(LLVMDILocationGetScope(location));
                if !file.is_null() {
                    let mut length = 0;
                    let name = LLVMDIFileGetFilename(file, &mut length);
                    found.push((text(name, length as usize), LLVMDILocationGetLine(location)));
                }
                location = LLVMDILocationGetInlinedAt(location);
            }
        }
        found
    }
}
