//! Calls: what is called with what, and what attributes promise of it.
//!
//! A promise may stand at the call or at the function that it names; both hold.

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::llvm_sys::{LLVMAttributeFunctionIndex, LLVMTailCallKind};

use super::global::attribute_kind;
use super::{Opcode, Value, text};

unsafe extern "C" {
    fn echo_sr_shim_call_memory(call: LLVMValueRef) -> u32;
    fn echo_sr_shim_call_argument(call: LLVMValueRef, index: u32) -> u32;
}

/// What a call may do with one argument, and with the memory behind it if it is a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentEffect {
    /// The memory may be read.
    pub reads: bool,
    /// The memory may be written.
    pub writes: bool,
    /// The pointer may be kept, compared, returned.
    pub captures: bool,
    /// The callee gets a hidden copy of what the pointer points to (byval).
    pub copied: bool,
}

impl<'m> Value<'m> {
    /// Is it a call of any form (call, invoke, callbr)?
    #[must_use]
    pub fn is_call(self) -> bool {
        self.is_instruction()
            && matches!(self.opcode(), Some(Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMCallBr))
    }

    /// What a call calls: a function, or a pointer.
    #[must_use]
    pub fn called(self) -> Option<Self> {
        // SAFETY: asked only of calls.
        self.is_call().then(|| unsafe { LLVMGetCalledValue(self.raw) }).and_then(Self::wrap)
    }

    /// The function that a call names directly.
    #[must_use]
    pub fn called_function(self) -> Option<Self> {
        self.called().filter(|callee| callee.is_function())
    }

    /// Number of arguments of a call.
    #[must_use]
    pub fn argument_count(self) -> u32 {
        // SAFETY: asked only of calls.
        if self.is_call() { unsafe { LLVMGetNumArgOperands(self.raw) } } else { 0 }
    }

    /// One argument of a call.
    #[must_use]
    pub fn argument(self, index: u32) -> Option<Self> {
        // A call's first operands are its arguments.
        if index < self.argument_count() { self.operand(index) } else { None }
    }

    /// All arguments of a call.
    #[must_use]
    pub fn arguments(self) -> Vec<Self> {
        (0..self.argument_count()).filter_map(|index| self.argument(index)).collect()
    }

    /// What a call may do with an argument; anything, where there is no such argument.
    #[must_use]
    pub fn argument_effect(self, argument: u32) -> ArgumentEffect {
        if argument >= self.argument_count() {
            return ArgumentEffect { reads: true, writes: true, captures: true, copied: false };
        }
        let memory = self.call_memory();
        // SAFETY: it is a call, and has that argument.
        let bits = unsafe { echo_sr_shim_call_argument(self.raw, argument) };
        ArgumentEffect {
            reads: bits & memory & 1 != 0,
            writes: bits & memory & 2 != 0,
            captures: bits & 4 != 0,
            copied: bits & 8 != 0,
        }
    }

    /// Does the call touch no memory but that behind its arguments (and memory that the program cannot reach)?
    #[must_use]
    pub fn touches_arguments_only(self) -> bool {
        self.call_memory() & 4 == 0
    }

    /// Does the call write no memory but that behind its arguments (not even memory that the program cannot reach)?
    #[must_use]
    pub fn writes_arguments_only(self) -> bool {
        self.call_memory() & 8 == 0
    }

    /// See shim.cpp; everything, where it is no call.
    fn call_memory(self) -> u32 {
        // SAFETY: asked only of calls.
        if self.is_call() { unsafe { echo_sr_shim_call_memory(self.raw) } } else { !0 }
    }

    /// Does the call promise not to free memory that it is given?
    #[must_use]
    pub fn does_not_free(self, argument: u32) -> bool {
        self.call_has_attribute(LLVMAttributeFunctionIndex, "nofree") || self.call_has_attribute(argument + 1, "nofree")
    }

    /// Is it a call that must end its function and give the caller's frame away?
    #[must_use]
    pub fn is_must_tail(self) -> bool {
        // SAFETY: asked only of call instructions.
        self.opcode() == Some(Opcode::LLVMCall)
            && unsafe { LLVMGetTailCallKind(self.raw) == LLVMTailCallKind::LLVMTailCallKindMustTail }
    }

    /// May an exception come out of the call?
    #[must_use]
    pub fn may_unwind(self) -> bool {
        self.is_call() && !self.call_has_attribute(LLVMAttributeFunctionIndex, "nounwind")
    }

    /// Gives a call, not the function that it names, an enum attribute that carries no number, and the string attribute `tag`, which says who
    /// did so. Nothing happens where the call has the former already.
    pub fn tag_call(self, name: &str, tag: &str) {
        let function = LLVMAttributeFunctionIndex;
        let Some(kind) = attribute_kind(name).filter(|_| self.is_call()) else { return };
        let length = |text: &str| u32::try_from(text.len()).unwrap_or(0);
        // SAFETY: it is a call of a module that is lent for changes; the attributes are of its context, the texts are read for their length.
        unsafe {
            if !LLVMGetCallSiteEnumAttribute(self.raw, function, kind).is_null() {
                return;
            }
            let context = LLVMGetTypeContext(LLVMTypeOf(self.raw));
            LLVMAddCallSiteAttribute(self.raw, function, LLVMCreateEnumAttribute(context, kind, 0));
            let tag = LLVMCreateStringAttribute(context, tag.as_ptr().cast(), length(tag), c"".as_ptr(), 0);
            LLVMAddCallSiteAttribute(self.raw, function, tag);
        }
    }

    /// Takes both from a call that has the tag; true if it had.
    pub fn untag_call(self, name: &str, tag: &str) -> bool {
        let function = LLVMAttributeFunctionIndex;
        let Some(kind) = attribute_kind(name).filter(|_| self.is_call()) else { return false };
        let (text, length) = (tag.as_ptr().cast(), u32::try_from(tag.len()).unwrap_or(0));
        // SAFETY: as above.
        unsafe {
            if LLVMGetCallSiteStringAttribute(self.raw, function, text, length).is_null() {
                return false;
            }
            LLVMRemoveCallSiteEnumAttribute(self.raw, function, kind);
            LLVMRemoveCallSiteStringAttribute(self.raw, function, text, length);
        }
        true
    }

    /// Does a call site or the function called have an enum attribute (at LLVM's index: of itself, or of an argument)?
    fn call_has_attribute(self, index: u32, name: &str) -> bool {
        let Some(kind) = attribute_kind(name).filter(|_| self.is_call()) else { return false };
        // SAFETY: asked only of calls.
        let at_call = unsafe { !LLVMGetCallSiteEnumAttribute(self.raw, index, kind).is_null() };
        at_call || self.called_function().is_some_and(|callee| callee.has_attribute_at(index, name))
    }

    /// Tags of a call's operand bundles.
    #[must_use]
    pub fn bundle_tags(self) -> Vec<String> {
        if !self.is_call() {
            return Vec::new();
        }
        // SAFETY: asked only of calls with indices in range; a bundle handle is freed after its tag was copied.
        unsafe {
            (0..LLVMGetNumOperandBundles(self.raw))
                .map(|index| {
                    let bundle = LLVMGetOperandBundleAtIndex(self.raw, index);
                    let mut length = 0;
                    let tag = text(LLVMGetOperandBundleTag(bundle, &raw mut length), length);
                    LLVMDisposeOperandBundle(bundle);
                    tag
                })
                .collect()
        }
    }
}

/// Is it the name of an intrinsic whose result is its first argument, as far as memory goes?
#[must_use]
pub fn passes_pointer_on(name: &str) -> bool {
    const PREFIXES: [&str; 5] = [
        "llvm.launder.invariant.group.",
        "llvm.strip.invariant.group.",
        "llvm.ptrmask.",
        "llvm.ptr.annotation.",
        "llvm.ssa.copy.",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
