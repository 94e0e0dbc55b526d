//! A module: what it holds, checking it, adding a constant.

use std::ffi::CString;
use std::marker::PhantomData;

use inkwell::llvm_sys::analysis::{LLVMVerifierFailureAction, LLVMVerifyModule};
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::{LLVMModuleRef, LLVMValueRef};

use super::{Linkage, Module, Value, c_text, chain};

unsafe extern "C" {
    fn echo_sr_shim_keep(module: LLVMModuleRef, global: LLVMValueRef);
}

impl<'m> Module<'m> {
    /// Wraps the module that LLVM gave to the pass.
    ///
    /// # Safety
    /// `raw` is a valid module for all of `'m`, and no one else changes it in that time. A value that the pass deletes is not used again.
    pub unsafe fn new(raw: LLVMModuleRef) -> Self {
        Self { raw, life: PhantomData }
    }

    /// The handle for LLVM's C API; valid as long as `'m`.
    #[must_use]
    pub fn raw(self) -> LLVMModuleRef {
        self.raw
    }

    /// Target triple.
    #[must_use]
    pub fn triple(self) -> String {
        // SAFETY: the module is valid ('m); the returned C string belongs to it and is copied at once.
        unsafe { c_text(LLVMGetTarget(self.raw)) }
    }

    /// All functions, declared and defined.
    pub fn functions(self) -> impl Iterator<Item = Value<'m>> {
        // SAFETY: the module is valid ('m).
        let first = unsafe { LLVMGetFirstFunction(self.raw) };
        // SAFETY: each raw value is a function of the module, as it comes from the list itself.
        chain(Value::wrap(first), |function| Value::wrap(unsafe { LLVMGetNextFunction(function.raw) }))
    }

    /// All global variables.
    pub fn globals(self) -> impl Iterator<Item = Value<'m>> {
        // SAFETY: the module is valid ('m).
        let first = unsafe { LLVMGetFirstGlobal(self.raw) };
        // SAFETY: each raw value is a global variable of the module, as it comes from the list itself.
        chain(Value::wrap(first), |global| Value::wrap(unsafe { LLVMGetNextGlobal(global.raw) }))
    }

    /// Puts a mark on the module (an empty named metadata, which means nothing to LLVM); false if it was there.
    pub fn mark(self, name: &str) -> bool {
        // SAFETY: the module is valid ('m); both calls read `len` bytes of the name.
        unsafe {
            let known = LLVMGetNamedMetadata(self.raw, name.as_ptr().cast(), name.len());
            known.is_null() && !LLVMGetOrInsertNamedMetadata(self.raw, name.as_ptr().cast(), name.len()).is_null()
        }
    }

    /// The function of that name.
    #[must_use]
    pub fn function(self, name: &str) -> Option<Value<'m>> {
        let name = CString::new(name).ok()?;
        // SAFETY: the module is valid ('m) and the name a C string.
        Value::wrap(unsafe { LLVMGetNamedFunction(self.raw, name.as_ptr()) })
    }

    /// The operands of each node of a named metadata list, as values; `None` where an operand is no value.
    #[must_use]
    pub fn named_metadata(self, name: &str) -> Vec<Vec<Option<Value<'m>>>> {
        let Ok(name) = CString::new(name) else { return Vec::new() };
        // SAFETY: the module is valid ('m) and the name a C string; LLVM fills exactly as many places as it counted.
        let nodes = unsafe {
            let count = LLVMGetNamedMetadataNumOperands(self.raw, name.as_ptr());
            let mut nodes = vec![std::ptr::null_mut(); count as usize];
            LLVMGetNamedMetadataOperands(self.raw, name.as_ptr(), nodes.as_mut_ptr());
            nodes
        };
        nodes.into_iter().filter(|node| !node.is_null()).map(metadata_operands).collect()
    }

    /// Is the module valid IR?
    ///
    /// # Errors
    /// What LLVM's verifier says.
    pub fn verify(self) -> Result<(), String> {
        let mut message = std::ptr::null_mut();
        // SAFETY: the module is valid ('m); LLVM gives a message of its own, which is copied and given back.
        unsafe {
            let action = LLVMVerifierFailureAction::LLVMReturnStatusAction;
            let broken = LLVMVerifyModule(self.raw, action, &raw mut message) != 0;
            let text = c_text(message);
            LLVMDisposeMessage(message);
            if broken { Err(text) } else { Ok(()) }
        }
    }

    /// Adds a constant of these bytes that no pass and no linker removes: internal, in `llvm.used`. Nothing is added where the name holds
    /// a NUL.
    pub fn keep_constant(self, name: &str, bytes: &[u8], address_space: u32) {
        let Ok(name) = CString::new(name) else { return };
        // SAFETY: the module is valid ('m) and lent for changes; the text is read for its length and copied; the new global is of the
        // initialiser's type and belongs to the module.
        unsafe {
            let context = LLVMGetModuleContext(self.raw);
            let value = LLVMConstStringInContext2(context, bytes.as_ptr().cast(), bytes.len(), 1);
            let global = LLVMAddGlobalInAddressSpace(self.raw, LLVMTypeOf(value), name.as_ptr(), address_space);
            LLVMSetInitializer(global, value);
            LLVMSetGlobalConstant(global, 1);
            LLVMSetLinkage(global, Linkage::LLVMInternalLinkage);
            LLVMSetAlignment(global, 16);
            echo_sr_shim_keep(self.raw, global);
        }
    }
}

fn metadata_operands<'m>(node: LLVMValueRef) -> Vec<Option<Value<'m>>> {
    // SAFETY: `node` is an MDNode of a valid module, wrapped as a value; LLVM fills exactly as many places as it counted.
    let operands = unsafe {
        let mut operands = vec![std::ptr::null_mut(); LLVMGetMDNodeNumOperands(node) as usize];
        LLVMGetMDNodeOperands(node, operands.as_mut_ptr());
        operands
    };
    operands.into_iter().map(Value::wrap).collect()
}
