//! Modules.

use super::{Metadata, Type, Value, c_string, context, take_message, text, walk};
use llvm_sys::core::*;
use llvm_sys::prelude::LLVMModuleRef;
use std::path::Path;

/// A module, freed when dropped.
pub(crate) struct Module(LLVMModuleRef);

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the module is owned.
        unsafe { LLVMDisposeModule(self.0) }
    }
}

impl Module {
    /// Reads textual or binary IR.
    pub(crate) fn parse(bytes: &[u8], name: &str) -> Result<Module, String> {
        let mut module = std::ptr::null_mut();
        let mut message = std::ptr::null_mut();
        let name = c_string(name);
        // SAFETY: the buffer is copied; on success `module` is owned, on failure `message` is.
        unsafe {
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.as_ptr().cast(), bytes.len(), name.as_ptr());
            let failed = llvm_sys::ir_reader::LLVMParseIRInContext2(context(), buffer, &mut module, &mut message);
            LLVMDisposeMemoryBuffer(buffer);
            if failed != 0 {
                return Err(take_message(message));
            }
        }
        Ok(Module(module))
    }

    pub(crate) fn as_raw(&self) -> LLVMModuleRef {
        self.0
    }

    /// Moves all of `other` into this module.
    pub(crate) fn link(&self, other: Module) -> Result<(), String> {
        let raw = other.0;
        std::mem::forget(other);
        // SAFETY: linking consumes `raw`, which is no longer owned elsewhere.
        let failed = unsafe { llvm_sys::linker::LLVMLinkModules2(self.0, raw) };
        if failed != 0 { Err("two modules cannot be linked".into()) } else { Ok(()) }
    }

    /// Writes the module as text.
    pub(crate) fn save(&self, path: &Path) -> Result<(), String> {
        let mut message = std::ptr::null_mut();
        let path = c_string(&path.to_string_lossy());
        // SAFETY: live module, C string.
        let failed = unsafe { LLVMPrintModuleToFile(self.0, path.as_ptr(), &mut message) };
        if failed != 0 { Err(take_message(message)) } else { Ok(()) }
    }

    /// Checks the module; the error says what is wrong.
    pub(crate) fn verify(&self) -> Result<(), String> {
        let mut message = std::ptr::null_mut();
        let action = llvm_sys::analysis::LLVMVerifierFailureAction::LLVMReturnStatusAction;
        // SAFETY: live module.
        let broken = unsafe { llvm_sys::analysis::LLVMVerifyModule(self.0, action, &mut message) };
        let message = take_message(message);
        if broken != 0 { Err(message) } else { Ok(()) }
    }

    pub(crate) fn set_target(&self, triple: &str, layout: &str) {
        let (triple, layout) = (c_string(triple), c_string(layout));
        // SAFETY: live module, C strings.
        unsafe {
            LLVMSetTarget(self.0, triple.as_ptr());
            LLVMSetDataLayout(self.0, layout.as_ptr());
        }
    }

    /// Forgets debug information.
    pub(crate) fn strip_debug_info(&self) {
        // SAFETY: live module.
        unsafe { llvm_sys::debuginfo::LLVMStripModuleDebugInfo(self.0) };
    }

    pub(crate) fn inline_assembly(&self) -> String {
        let mut length = 0;
        // SAFETY: live module; the text belongs to it.
        unsafe { text(LLVMGetModuleInlineAsm(self.0, &mut length), length) }
    }

    pub(crate) fn functions(&self) -> Vec<Value> {
        // SAFETY: live module.
        walk(unsafe { LLVMGetFirstFunction(self.0) }, |value| unsafe { LLVMGetNextFunction(value) })
    }

    pub(crate) fn globals(&self) -> Vec<Value> {
        // SAFETY: live module.
        walk(unsafe { LLVMGetFirstGlobal(self.0) }, |value| unsafe { LLVMGetNextGlobal(value) })
    }

    pub(crate) fn aliases(&self) -> Vec<Value> {
        // SAFETY: live module.
        walk(unsafe { LLVMGetFirstGlobalAlias(self.0) }, |value| unsafe { LLVMGetNextGlobalAlias(value) })
    }

    pub(crate) fn function(&self, name: &str) -> Option<Value> {
        let name = c_string(name);
        // SAFETY: live module, C string.
        Value::from_raw(unsafe { LLVMGetNamedFunction(self.0, name.as_ptr()) })
    }

    pub(crate) fn global(&self, name: &str) -> Option<Value> {
        let name = c_string(name);
        // SAFETY: live module, C string.
        Value::from_raw(unsafe { LLVMGetNamedGlobal(self.0, name.as_ptr()) })
    }

    pub(crate) fn add_function(&self, name: &str, kind: Type) -> Value {
        let name = c_string(name);
        // SAFETY: live module; `kind` is a function type.
        Value(unsafe { LLVMAddFunction(self.0, name.as_ptr(), kind.0) })
    }

    pub(crate) fn add_global(&self, name: &str, kind: Type) -> Value {
        let name = c_string(name);
        // SAFETY: live module.
        Value(unsafe { LLVMAddGlobal(self.0, kind.0, name.as_ptr()) })
    }

    /// Operands of a named metadata node.
    pub(crate) fn named_metadata(&self, name: &str) -> Vec<Metadata> {
        let name = c_string(name);
        // SAFETY: live module; the vector has the length that LLVM fills.
        unsafe {
            let count = LLVMGetNamedMetadataNumOperands(self.0, name.as_ptr());
            let mut operands = vec![std::ptr::null_mut(); count as usize];
            LLVMGetNamedMetadataOperands(self.0, name.as_ptr(), operands.as_mut_ptr());
            operands.into_iter().map(Metadata).collect()
        }
    }
}
