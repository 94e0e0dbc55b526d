//! Changing functions: a scratch copy, a call's callee in its place, simplification, a global variable as a local one.
//!
//! These say how, not whether. All of them keep what a program does.

use std::collections::HashSet;
use std::ffi::{c_char, c_void};

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::LLVMValueRef;

use crate::ir::{Module, Value};
use crate::lower::Part;

unsafe extern "C" {
    fn echo_sr_shim_clone(function: LLVMValueRef) -> LLVMValueRef;
    fn echo_sr_shim_inline(
        call: LLVMValueRef,
        why: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
        data: *mut c_void,
    ) -> bool;
    fn echo_sr_shim_simplify(function: LLVMValueRef, passes: *const c_char, length: usize);
    fn echo_sr_shim_expand_constants(global: LLVMValueRef, function: LLVMValueRef);
    fn echo_sr_shim_describe_part(whole: LLVMValueRef, part: LLVMValueRef, offset: u64, size: u64);
    fn echo_sr_shim_make_local(global: LLVMValueRef, function: LLVMValueRef);
}

/// A copy of a function, to try things on. When it goes, the module is again what it was.
pub(in super::super) struct Scratch<'m> {
    module: Module<'m>,
    function: Value<'m>,
    /// What the module had before: a pass may declare what it calls, or make a constant.
    known: HashSet<Value<'m>>,
}

impl<'m> Scratch<'m> {
    /// A copy of a defined function; nobody calls it.
    pub(in super::super) fn of(module: Module<'m>, function: Value<'m>) -> Option<Self> {
        let known = module.functions().chain(module.globals()).collect();
        // SAFETY: it is a function of a module that is lent for changes; LLVM gives a function of the same module.
        let copy = unsafe { Value::from_raw(echo_sr_shim_clone(function.raw())) }?;
        Some(Self { module, function: copy, known })
    }

    pub(in super::super) fn function(&self) -> Value<'m> {
        self.function
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody but the owner of this has handles into the copy, and nothing calls it.
        unsafe { LLVMDeleteFunction(self.function.raw()) };
        let is_new = |value: &Value<'_>| !self.known.contains(value) && !value.is_used();
        let functions: Vec<_> = self.module.functions().filter(is_new).collect();
        let globals: Vec<_> = self.module.globals().filter(is_new).collect();
        // SAFETY: each is of this module, was made for the copy, and has no use.
        unsafe {
            functions.into_iter().for_each(|function| LLVMDeleteFunction(function.raw()));
            globals.into_iter().for_each(|global| LLVMDeleteGlobal(global.raw()));
        }
    }
}

/// Puts the body of the function that a call names in place of the call, which is gone then.
///
/// # Errors
/// LLVM can't; it says why, and the call is as it was.
pub(super) fn inline(call: Value<'_>) -> Result<(), String> {
    unsafe extern "C" fn keep(data: *mut c_void, text: *const c_char, length: usize) {
        // SAFETY: `data` is the string below, which outlives the call, and the text has `length` bytes.
        let (why, bytes) = unsafe { (&mut *data.cast::<String>(), std::slice::from_raw_parts(text.cast(), length)) };
        *why = String::from_utf8_lossy(bytes).into_owned();
    }
    let mut why = String::new();
    // SAFETY: it is a call in a module that is lent for changes; `keep` gets the string that it expects.
    let done = unsafe { echo_sr_shim_inline(call.raw(), keep, (&raw mut why).cast()) };
    if done { Ok(()) } else { Err(why) }
}

/// Runs function passes.
pub(super) fn simplify(function: Value<'_>, passes: &str) {
    // SAFETY: it is a defined function of a module that is lent for changes; the text is read for its length.
    unsafe { echo_sr_shim_simplify(function.raw(), passes.as_ptr().cast(), passes.len()) }
}

/// Makes constant expressions of a global variable instructions, in one function.
pub(super) fn expand_constants(global: Value<'_>, function: Value<'_>) {
    // SAFETY: a global variable and a defined function of a module that is lent for changes.
    unsafe { echo_sr_shim_expand_constants(global.raw(), function.raw()) }
}

/// A local variable, made and initialised where the function starts, takes the place of a global one in that function.
pub(super) fn make_local(global: Value<'_>, function: Value<'_>) {
    // SAFETY: as above.
    unsafe { echo_sr_shim_make_local(global.raw(), function.raw()) }
}

/// Gives a part of a variable a variable of its own.
pub(super) fn separate<'m>(module: Module<'m>, function: Value<'m>, part: &Part<'m>) {
    let Some(first) = function.instructions().next() else { return };
    // SAFETY: all are instructions of one function of a module that is lent for changes. The new variable stands at its start, so it
    // dominates every use; operands that were addresses become an address. The builder is freed.
    unsafe {
        let context = LLVMGetModuleContext(module.raw());
        let pointer = LLVMPointerTypeInContext(context, 0);
        let builder = LLVMCreateBuilderInContext(context);
        LLVMPositionBuilderBefore(builder, first.raw());
        LLVMSetCurrentDebugLocation2(builder, std::ptr::null_mut());
        let variable = LLVMBuildAlloca(builder, pointer, c"".as_ptr());
        for (user, operand) in &part.uses {
            LLVMSetOperand(user.raw(), *operand, variable);
        }
        for zeroed in &part.zeroed {
            LLVMPositionBuilderBefore(builder, zeroed.raw());
            LLVMBuildStore(builder, LLVMConstNull(pointer), variable);
        }
        echo_sr_shim_describe_part(part.cell.alloca.raw(), variable, part.cell.offset, Part::BYTES);
        LLVMDisposeBuilder(builder);
    }
}
