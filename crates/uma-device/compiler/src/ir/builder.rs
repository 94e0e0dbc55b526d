//! Building instructions.

use super::{Block, Opcode, Predicate, Type, Value, c_string, context};
use llvm_sys::core::*;
use llvm_sys::prelude::LLVMBuilderRef;
use std::ffi::c_uint;

/// Inserts instructions at a place.
pub(crate) struct Builder(LLVMBuilderRef);

impl Drop for Builder {
    fn drop(&mut self) {
        // SAFETY: the builder is owned.
        unsafe { LLVMDisposeBuilder(self.0) }
    }
}

impl Builder {
    fn new() -> Builder {
        // SAFETY: the context lives.
        Builder(unsafe { LLVMCreateBuilderInContext(context()) })
    }

    pub(crate) fn at_end(block: Block) -> Builder {
        let builder = Builder::new();
        // SAFETY: live block.
        unsafe { LLVMPositionBuilderAtEnd(builder.0, block.0) };
        builder
    }

    /// Before an instruction; what is built has the instruction's debug location.
    pub(crate) fn before(instruction: Value) -> Builder {
        let builder = Builder::new();
        // SAFETY: an instruction in a block.
        unsafe {
            LLVMPositionBuilderBefore(builder.0, instruction.0);
            let location = llvm_sys::debuginfo::LLVMInstructionGetDebugLoc(instruction.0);
            LLVMSetCurrentDebugLocation2(builder.0, location);
        }
        builder
    }

    /// At the start of a function, where allocas stand.
    pub(crate) fn at_start_of(function: Value) -> Builder {
        let builder = Builder::new();
        // SAFETY: a defined function has a first instruction.
        unsafe {
            let entry = LLVMGetEntryBasicBlock(function.0);
            LLVMPositionBuilderBefore(builder.0, LLVMGetFirstInstruction(entry));
        }
        builder
    }

    /// Inserts an instruction that is in no block.
    pub(crate) fn insert(&self, instruction: Value, name: &str) {
        let name = c_string(name);
        // SAFETY: live handles.
        unsafe { LLVMInsertIntoBuilderWithName(self.0, instruction.0, name.as_ptr()) }
    }

    pub(crate) fn phi(&self, ty: Type, name: &str) -> Value {
        let name = c_string(name);
        // SAFETY: the builder has a place.
        Value(unsafe { LLVMBuildPhi(self.0, ty.0, name.as_ptr()) })
    }

    pub(crate) fn call(&self, callee: Value, ty: Type, arguments: &[Value], name: &str) -> Value {
        let mut arguments: Vec<_> = arguments.iter().map(|value| value.0).collect();
        let name = c_string(name);
        // SAFETY: the arguments fit the function type.
        Value(unsafe {
            LLVMBuildCall2(self.0, ty.0, callee.0, arguments.as_mut_ptr(), arguments.len() as c_uint, name.as_ptr())
        })
    }

    pub(crate) fn load(&self, ty: Type, pointer: Value, name: &str) -> Value {
        let name = c_string(name);
        // SAFETY: a sized type and a pointer.
        Value(unsafe { LLVMBuildLoad2(self.0, ty.0, pointer.0, name.as_ptr()) })
    }

    /// A pointer `offset` bytes on.
    pub(crate) fn offset(&self, pointer: Value, offset: u64, name: &str) -> Value {
        let name = c_string(name);
        let mut offset = Type::int(64).constant(offset).0;
        // SAFETY: one index over bytes.
        Value(unsafe { LLVMBuildInBoundsGEP2(self.0, Type::int(8).0, pointer.0, &mut offset, 1, name.as_ptr()) })
    }

    pub(crate) fn alloca(&self, ty: Type) -> Value {
        // SAFETY: a sized type.
        Value(unsafe { LLVMBuildAlloca(self.0, ty.0, c"".as_ptr()) })
    }

    pub(crate) fn copy_bytes(&self, to: Value, from: Value, align: u32, count: u32) {
        let count = Type::int(32).constant(count.into());
        // SAFETY: pointers aligned as said.
        unsafe { LLVMBuildMemCpy(self.0, to.0, align, from.0, align, count.0) };
    }

    pub(crate) fn gep(&self, element: Type, pointer: Value, indices: &[Value]) -> Value {
        let mut indices: Vec<_> = indices.iter().map(|value| value.0).collect();
        // SAFETY: the indices fit the type: they come from a GEP over it.
        Value(unsafe {
            LLVMBuildGEP2(self.0, element.0, pointer.0, indices.as_mut_ptr(), indices.len() as c_uint, c"".as_ptr())
        })
    }

    pub(crate) fn cast(&self, opcode: Opcode, value: Value, ty: Type) -> Value {
        // SAFETY: a cast that LLVM allows between these types, as its origin shows.
        Value(unsafe { LLVMBuildCast(self.0, opcode, value.0, ty.0, c"".as_ptr()) })
    }

    pub(crate) fn binary(&self, opcode: Opcode, left: Value, right: Value) -> Value {
        // SAFETY: operands of one type.
        Value(unsafe { LLVMBuildBinOp(self.0, opcode, left.0, right.0, c"".as_ptr()) })
    }

    /// An addition that does not wrap.
    pub(crate) fn add_no_wrap(&self, left: Value, right: Value, name: &str) -> Value {
        let name = c_string(name);
        // SAFETY: operands of one type; the flag is set on the addition just built.
        unsafe {
            let sum = LLVMBuildNUWAdd(self.0, left.0, right.0, name.as_ptr());
            if Value(sum).is_instruction() {
                LLVMSetNSW(sum, 1);
            }
            Value(sum)
        }
    }

    pub(crate) fn compare(&self, predicate: Predicate, left: Value, right: Value) -> Value {
        // SAFETY: operands of one type.
        Value(unsafe { LLVMBuildICmp(self.0, predicate, left.0, right.0, c"".as_ptr()) })
    }

    pub(crate) fn branch(&self, target: Block) -> Value {
        // SAFETY: a block of the same function.
        Value(unsafe { LLVMBuildBr(self.0, target.0) })
    }

    pub(crate) fn conditional_branch(&self, condition: Value, yes: Block, no: Block) -> Value {
        // SAFETY: blocks of the same function.
        Value(unsafe { LLVMBuildCondBr(self.0, condition.0, yes.0, no.0) })
    }

    pub(crate) fn unreachable(&self) -> Value {
        // SAFETY: the builder has a place.
        Value(unsafe { LLVMBuildUnreachable(self.0) })
    }

    pub(crate) fn return_void(&self) -> Value {
        // SAFETY: a function without result.
        Value(unsafe { LLVMBuildRetVoid(self.0) })
    }
}
