//! Calls: what is called with what, and what attributes promise.

use inkwell::llvm_sys::LLVMAttributeFunctionIndex;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::*;

use super::{Block, Opcode, Value, text};

/// What may be done with the memory behind a pointer argument, from attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentEffect {
    /// It may be read.
    pub reads: bool,
    /// It may be written.
    pub writes: bool,
    /// The pointer may be kept, compared, returned.
    pub captures: bool,
}

impl<'m> Value<'m> {
    /// Is it a call or invoke?
    #[must_use]
    pub fn is_call(self) -> bool {
        matches!(self.opcode(), Some(Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMCallBr))
            && self.is_instruction()
    }

    /// What a call calls.
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
        if index < self.argument_count() { self.operand(index) } else { None }
    }

    /// The block where an invoke goes on.
    #[must_use]
    pub fn normal_destination(self) -> Option<Block<'m>> {
        // SAFETY: asked only of invokes.
        unsafe { if LLVMIsAInvokeInst(self.raw).is_null() { None } else { Block::wrap(LLVMGetNormalDest(self.raw)) } }
    }

    /// Does the function have an enum attribute (`noreturn`, `optnone` …)?
    #[must_use]
    pub fn has_function_attribute(self, name: &str) -> bool {
        self.attribute(LLVMAttributeFunctionIndex, name).is_some()
    }

    /// Does the call, or the function that it calls, have an enum attribute?
    #[must_use]
    pub fn call_has_attribute(self, name: &str) -> bool {
        self.call_attribute(LLVMAttributeFunctionIndex, name).is_some()
    }

    /// Is the argument of a call passed by value (a hidden copy)?
    #[must_use]
    pub fn is_by_value(self, argument: u32) -> bool {
        self.call_attribute(argument + 1, "byval").is_some()
    }

    /// What a call may do with the memory behind its pointer argument, from attributes of the argument and of the call.
    #[must_use]
    pub fn argument_effect(self, argument: u32) -> ArgumentEffect {
        let has = |name| self.call_attribute(argument + 1, name).is_some();
        // `memory(…)`: two bits a location, the first location being the memory behind arguments. Bit 0 reads, bit 1 writes.
        let memory = self.call_attribute(LLVMAttributeFunctionIndex, "memory").unwrap_or(!0) & 3;
        let none = has("readnone");
        ArgumentEffect {
            reads: memory & 1 != 0 && !none && !has("writeonly"),
            writes: memory & 2 != 0 && !none && !has("readonly"),
            captures: !self.argument_is_not_captured(argument),
        }
    }

    fn argument_is_not_captured(self, argument: u32) -> bool {
        // LLVM 21 replaced `nocapture` by `captures(…)`, whose value 0 is captures(none).
        self.call_attribute(argument + 1, "nocapture").is_some()
            || self.call_attribute(argument + 1, "captures") == Some(0)
    }

    /// Does the call write no memory but that behind its arguments (not even memory that the program cannot reach)?
    #[must_use]
    pub fn writes_arguments_only(self) -> bool {
        // Two bits a location (read, write), the memory behind arguments first.
        const WRITES_ELSEWHERE: u64 = 0xAAAA_AAAA_AAAA_AAAA & !3;
        self.call_attribute(LLVMAttributeFunctionIndex, "memory").is_some_and(|effects| effects & WRITES_ELSEWHERE == 0)
    }

    /// Does the call promise not to free memory that it is given?
    #[must_use]
    pub fn does_not_free(self, argument: u32) -> bool {
        self.call_has_attribute("nofree") || self.call_attribute(argument + 1, "nofree").is_some()
    }

    /// The value of an enum attribute of a call site or of the function called; for plain attributes 0.
    fn call_attribute(self, index: u32, name: &str) -> Option<u64> {
        if !self.is_call() {
            return None;
        }
        let kind = attribute_kind(name)?;
        // SAFETY: asked only of calls; the attribute is owned by the context.
        let own = unsafe { attribute_value(LLVMGetCallSiteEnumAttribute(self.raw, index, kind)) };
        own.or_else(|| self.called_function()?.attribute(index, name))
    }

    fn attribute(self, index: u32, name: &str) -> Option<u64> {
        if !self.is_function() {
            return None;
        }
        let kind = attribute_kind(name)?;
        // SAFETY: asked only of functions; the attribute is owned by the context.
        unsafe { attribute_value(LLVMGetEnumAttributeAtIndex(self.raw, index, kind)) }
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

fn attribute_kind(name: &str) -> Option<u32> {
    // SAFETY: the name is read for its length only; 0 means that this LLVM has no such attribute.
    let kind = unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) };
    (kind != 0).then_some(kind)
}

/// The number that an attribute carries; 0 for attributes that carry none or something else (a type). `None` for null.
///
/// # Safety
/// `attribute` is null or an attribute of a live context.
unsafe fn attribute_value(attribute: LLVMAttributeRef) -> Option<u64> {
    if attribute.is_null() {
        return None;
    }
    // SAFETY: the caller's promise; only enum attributes are asked for a number.
    Some(unsafe { if LLVMIsEnumAttribute(attribute) == 0 { 0 } else { LLVMGetEnumAttributeValue(attribute) } })
}
