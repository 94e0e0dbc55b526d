//! A thin view of LLVM IR for the passes: what the C API says, without its raw pointers.
//!
//! `'m` is the time for which the module is lent to the pass. Handles are plain copies; nothing here keeps IR alive. Unlike a typed
//! wrapper, a handle of an instruction, type or constant that is not known here is an ordinary value, so that no input can make the pass
//! panic.

use std::ffi::{CString, c_char};
use std::marker::PhantomData;

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::{LLVMModuleRef, LLVMTypeRef, LLVMValueRef};
pub use inkwell::llvm_sys::{LLVMLinkage, LLVMOpcode, LLVMTypeKind, LLVMValueKind};

unsafe extern "C" {
    fn echo_sr_shim_call_memory(call: LLVMValueRef) -> u32;
    fn echo_sr_shim_call_argument(call: LLVMValueRef, index: u32) -> u32;
    fn echo_sr_shim_byval_size(function: LLVMValueRef, index: u32) -> u64;
    fn echo_sr_shim_keep(module: LLVMModuleRef, global: LLVMValueRef);
}

/// A module lent to the pass.
#[derive(Clone, Copy)]
pub struct Module<'m> {
    raw: LLVMModuleRef,
    life: PhantomData<&'m ()>,
}

/// Any value: function, global, instruction, argument, constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value<'m> {
    raw: LLVMValueRef,
    life: PhantomData<&'m ()>,
}

/// A type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Type<'m> {
    raw: LLVMTypeRef,
    life: PhantomData<&'m ()>,
}

/// What memory a call may touch. (Memory that no program can reach is left out.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallMemory {
    /// It may read through its pointer arguments.
    pub reads_arguments: bool,
    /// It may write through its pointer arguments.
    pub writes_arguments: bool,
    /// It may touch memory that it did not get as an argument.
    pub elsewhere: bool,
}

/// What a call does with one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallArgument {
    /// It may read through it.
    pub reads: bool,
    /// It may write through it.
    pub writes: bool,
    /// It may keep it.
    pub captures: bool,
    /// The callee gets a copy of what it points to (byval).
    pub copied: bool,
}

impl<'m> Module<'m> {
    /// Wraps the module that LLVM gave to the pass.
    ///
    /// # Safety
    /// `raw` is a valid module for all of `'m`, and no one else changes it in that time. A value that the pass deletes is not used again.
    pub unsafe fn new(raw: LLVMModuleRef) -> Self {
        Self { raw, life: PhantomData }
    }

    /// For the C API.
    #[must_use]
    pub fn raw(self) -> LLVMModuleRef {
        self.raw
    }

    /// Target triple.
    #[must_use]
    pub fn triple(self) -> String {
        // SAFETY: the module is valid ('m); the returned C string belongs to it and is copied at once.
        unsafe { std::ffi::CStr::from_ptr(LLVMGetTarget(self.raw)) }.to_string_lossy().into_owned()
    }

    /// All functions, declared and defined.
    pub fn functions(self) -> impl Iterator<Item = Value<'m>> {
        // SAFETY: the module is valid ('m); LLVMGetNextFunction takes a function of it, as the iterator keeps.
        chain(unsafe { LLVMGetFirstFunction(self.raw) }, |raw| unsafe { LLVMGetNextFunction(raw) })
    }

    /// All global variables.
    pub fn globals(self) -> impl Iterator<Item = Value<'m>> {
        // SAFETY: the module is valid ('m); LLVMGetNextGlobal takes a global variable of it, as the iterator keeps.
        chain(unsafe { LLVMGetFirstGlobal(self.raw) }, |raw| unsafe { LLVMGetNextGlobal(raw) })
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
}

/// Checks and changes.
impl Module<'_> {
    /// Is the module valid IR?
    ///
    /// # Errors
    /// What LLVM's verifier says.
    pub fn verify(self) -> Result<(), String> {
        use inkwell::llvm_sys::analysis::{LLVMVerifierFailureAction, LLVMVerifyModule};
        let mut message = std::ptr::null_mut();
        // SAFETY: the module is valid ('m); LLVM gives a message of its own, which is copied and given back.
        unsafe {
            let action = LLVMVerifierFailureAction::LLVMReturnStatusAction;
            let broken = LLVMVerifyModule(self.raw, action, &raw mut message) != 0;
            let text = if message.is_null() {
                String::new()
            } else {
                std::ffi::CStr::from_ptr(message).to_string_lossy().into()
            };
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
            LLVMSetLinkage(global, LLVMLinkage::LLVMInternalLinkage);
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

fn chain<'m>(first: LLVMValueRef, next: impl Fn(LLVMValueRef) -> LLVMValueRef) -> impl Iterator<Item = Value<'m>> {
    std::iter::successors(Value::wrap(first), move |value| Value::wrap(next(value.raw)))
}

impl<'m> Value<'m> {
    fn wrap(raw: LLVMValueRef) -> Option<Self> {
        (!raw.is_null()).then_some(Self { raw, life: PhantomData })
    }

    /// Wraps a value of the module that is lent.
    ///
    /// # Safety
    /// `raw` is a valid value of a module that is valid for all of `'m`.
    pub unsafe fn new(raw: LLVMValueRef) -> Self {
        Self { raw, life: PhantomData }
    }

    /// For the C API.
    #[must_use]
    pub fn raw(self) -> LLVMValueRef {
        self.raw
    }

    /// Its name; empty where it has none.
    #[must_use]
    pub fn name(self) -> String {
        String::from_utf8_lossy(self.name_bytes()).into_owned()
    }

    /// Its name begins so. (Quicker than [`Self::name`]: every function of every module is asked.)
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

    /// What sort of value it is.
    #[must_use]
    pub fn kind(self) -> LLVMValueKind {
        // SAFETY: the value is valid ('m).
        unsafe { LLVMGetValueKind(self.raw) }
    }

    /// Its type.
    #[must_use]
    pub fn ty(self) -> Type<'m> {
        // SAFETY: the value is valid ('m).
        Type { raw: unsafe { LLVMTypeOf(self.raw) }, life: PhantomData }
    }

    /// It is an instruction.
    #[must_use]
    pub fn is_instruction(self) -> bool {
        self.kind() == LLVMValueKind::LLVMInstructionValueKind
    }

    /// It is a function.
    #[must_use]
    pub fn is_function(self) -> bool {
        self.kind() == LLVMValueKind::LLVMFunctionValueKind
    }

    /// It is a global variable.
    #[must_use]
    pub fn is_global(self) -> bool {
        self.kind() == LLVMValueKind::LLVMGlobalVariableValueKind
    }

    /// The operation of an instruction or constant expression.
    #[must_use]
    pub fn opcode(self) -> Option<LLVMOpcode> {
        match self.kind() {
            // SAFETY: the value is an instruction ('m).
            LLVMValueKind::LLVMInstructionValueKind => Some(unsafe { LLVMGetInstructionOpcode(self.raw) }),
            // SAFETY: the value is a constant expression ('m).
            LLVMValueKind::LLVMConstantExprValueKind => Some(unsafe { LLVMGetConstOpcode(self.raw) }),
            _ => None,
        }
    }

    /// Operands of an instruction or constant; none for other values.
    #[must_use]
    pub fn operands(self) -> Vec<Value<'m>> {
        if !self.is_instruction() && !self.is_constant() {
            return Vec::new();
        }
        // SAFETY: instructions and constants are users; the index is below the count. Operands may be null (a detached block).
        unsafe {
            let count = u32::try_from(LLVMGetNumOperands(self.raw)).unwrap_or(0);
            (0..count).filter_map(|index| Self::wrap(LLVMGetOperand(self.raw, index))).collect()
        }
    }

    /// It is a constant (functions and globals are).
    #[must_use]
    pub fn is_constant(self) -> bool {
        // SAFETY: the value is valid ('m).
        unsafe { LLVMIsConstant(self.raw) != 0 }
    }

    /// Something uses it.
    #[must_use]
    pub fn is_used(self) -> bool {
        // SAFETY: the value is valid ('m).
        unsafe { !LLVMGetFirstUse(self.raw).is_null() }
    }

    /// Instructions and constants that use it, one entry a use.
    #[must_use]
    pub fn users(self) -> Vec<Value<'m>> {
        let mut users = Vec::new();
        // SAFETY: the value is valid ('m), and uses are not changed while they are walked.
        unsafe {
            let mut edge = LLVMGetFirstUse(self.raw);
            while !edge.is_null() {
                users.extend(Self::wrap(LLVMGetUser(edge)));
                edge = LLVMGetNextUse(edge);
            }
        }
        users
    }

    /// The value of a constant integer of up to 64 bits, zero-extended.
    #[must_use]
    pub fn as_integer(self) -> Option<u64> {
        if self.kind() != LLVMValueKind::LLVMConstantIntValueKind || self.ty().integer_bits()? > 64 {
            return None;
        }
        // SAFETY: it is a ConstantInt of at most 64 bits.
        Some(unsafe { LLVMConstIntGetZExtValue(self.raw) })
    }

    /// The bytes of a constant array of `i8` that is written as a string.
    #[must_use]
    pub fn as_bytes(self) -> Option<Vec<u8>> {
        if self.kind() != LLVMValueKind::LLVMConstantDataArrayValueKind {
            return None;
        }
        let mut length = 0;
        // SAFETY: it is a ConstantDataSequential; where it is a string of i8, the data has `length` bytes and is copied at once.
        unsafe {
            if LLVMIsConstantString(self.raw) == 0 {
                return None;
            }
            let data = LLVMGetAsString(self.raw, &raw mut length).cast::<u8>();
            Some(std::slice::from_raw_parts(data, length).to_vec())
        }
    }

    /// The text of a metadata string.
    #[must_use]
    pub fn metadata_string(self) -> Option<String> {
        if self.kind() != LLVMValueKind::LLVMMetadataAsValueValueKind {
            return None;
        }
        let mut length = 0;
        // SAFETY: it is metadata wrapped as a value ('m); null unless it is a string of `length` bytes, which is copied at once.
        unsafe {
            let data = LLVMGetMDString(self.raw, &raw mut length).cast::<u8>();
            if data.is_null() {
                return None;
            }
            Some(String::from_utf8_lossy(std::slice::from_raw_parts(data, length as usize)).into_owned())
        }
    }

    /// Under bitcasts, address space casts and GEPs with zero indices alone: the value that the pointer is.
    #[must_use]
    pub fn strip_casts(self) -> Value<'m> {
        let mut value = self;
        loop {
            let operands = value.operands();
            value = match (value.opcode(), operands.as_slice()) {
                (Some(LLVMOpcode::LLVMBitCast | LLVMOpcode::LLVMAddrSpaceCast), [inner]) => *inner,
                (Some(LLVMOpcode::LLVMGetElementPtr), [base, indices @ ..])
                    if indices.iter().all(|index| index.as_integer() == Some(0)) =>
                {
                    *base
                }
                _ => return value,
            };
        }
    }
}

/// Global variables.
impl<'m> Value<'m> {
    /// The initialiser of a global variable.
    #[must_use]
    pub fn initializer(self) -> Option<Value<'m>> {
        if !self.is_global() {
            return None;
        }
        // SAFETY: it is a global variable ('m).
        Self::wrap(unsafe { LLVMGetInitializer(self.raw) })
    }

    /// A global variable that is never written.
    #[must_use]
    pub fn is_global_constant(self) -> bool {
        // SAFETY: LLVMIsGlobalConstant is asked of a global variable only.
        self.is_global() && unsafe { LLVMIsGlobalConstant(self.raw) != 0 }
    }

    /// Section of a global; empty without one.
    #[must_use]
    pub fn section(self) -> String {
        if !self.is_global() && !self.is_function() {
            return String::new();
        }
        // SAFETY: it is a global object ('m); the returned C string belongs to it and is copied at once.
        unsafe {
            let section: *const c_char = LLVMGetSection(self.raw);
            if section.is_null() {
                String::new()
            } else {
                std::ffi::CStr::from_ptr(section).to_string_lossy().into_owned()
            }
        }
    }

    /// Linkage of a function or global variable.
    #[must_use]
    pub fn linkage(self) -> Option<LLVMLinkage> {
        // SAFETY: it is a global value ('m).
        (self.is_global() || self.is_function()).then(|| unsafe { LLVMGetLinkage(self.raw) })
    }
}

/// Functions.
impl<'m> Value<'m> {
    /// A function without a body.
    #[must_use]
    pub fn is_declaration(self) -> bool {
        // SAFETY: LLVMIsDeclaration is asked of a global value only.
        (self.is_global() || self.is_function()) && unsafe { LLVMIsDeclaration(self.raw) != 0 }
    }

    /// The parameters of a function.
    #[must_use]
    pub fn parameters(self) -> Vec<Value<'m>> {
        if !self.is_function() {
            return Vec::new();
        }
        // SAFETY: it is a function ('m); the index is below the count.
        unsafe {
            (0..LLVMCountParams(self.raw)).filter_map(|index| Self::wrap(LLVMGetParam(self.raw, index))).collect()
        }
    }

    /// Number of its calling convention.
    #[must_use]
    pub fn calling_convention(self) -> Option<u32> {
        // SAFETY: it is a function ('m).
        self.is_function().then(|| unsafe { LLVMGetFunctionCallConv(self.raw) })
    }

    /// All instructions of a function, in order.
    #[must_use]
    pub fn instructions(self) -> Vec<Value<'m>> {
        let mut all = Vec::new();
        if !self.is_function() {
            return all;
        }
        // SAFETY: it is a function ('m); blocks and instructions are walked by LLVM's own links and not changed meanwhile.
        unsafe {
            let mut block = LLVMGetFirstBasicBlock(self.raw);
            while !block.is_null() {
                all.extend(chain(LLVMGetFirstInstruction(block), |raw| LLVMGetNextInstruction(raw)));
                block = LLVMGetNextBasicBlock(block);
            }
        }
        all
    }

    /// The function has the enum attribute (by its textual name).
    #[must_use]
    pub fn has_attribute(self, name: &str) -> bool {
        // SAFETY: it is a function ('m); the name is passed with its length. An unknown name has kind 0, which no function has.
        self.is_function()
            && unsafe {
                let kind = LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
                kind != 0
                    && !LLVMGetEnumAttributeAtIndex(self.raw, inkwell::llvm_sys::LLVMAttributeFunctionIndex, kind)
                        .is_null()
            }
    }

    /// Gives the function an enum attribute without a value (by its textual name).
    pub fn add_attribute(self, name: &str) {
        if !self.is_function() {
            return;
        }
        // SAFETY: it is a function ('m); the name is passed with its length, and kind 0 (unknown) is not added.
        unsafe {
            let kind = LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            if kind != 0 {
                let context = LLVMGetTypeContext(LLVMTypeOf(self.raw));
                let attribute = LLVMCreateEnumAttribute(context, kind, 0);
                LLVMAddAttributeAtIndex(self.raw, inkwell::llvm_sys::LLVMAttributeFunctionIndex, attribute);
            }
        }
    }

    /// Bytes of the copy that parameter `index` is; `None` where it is not passed as a copy (byval), or does not exist.
    #[must_use]
    pub fn byval_size(self, index: usize) -> Option<u64> {
        let index = u32::try_from(index).ok()?;
        // SAFETY: it is a function ('m), and `index` is the number of one of its parameters.
        let size = unsafe {
            if !self.is_function() || index >= LLVMCountParams(self.raw) {
                return None;
            }
            echo_sr_shim_byval_size(self.raw, index)
        };
        (size != u64::MAX).then_some(size)
    }

    /// The function takes more arguments than it names.
    #[must_use]
    pub fn is_variadic(self) -> bool {
        // SAFETY: it is a function ('m), so its value type is a function type.
        self.is_function() && unsafe { LLVMIsFunctionVarArg(LLVMGlobalGetValueType(self.raw)) != 0 }
    }
}

/// Instructions.
impl<'m> Value<'m> {
    /// A call of any form (call, invoke, callbr).
    #[must_use]
    pub fn is_call(self) -> bool {
        use LLVMOpcode::{LLVMCall, LLVMCallBr, LLVMInvoke};
        self.is_instruction() && matches!(self.opcode(), Some(LLVMCall | LLVMInvoke | LLVMCallBr))
    }

    /// What a call calls: a function, or a pointer.
    #[must_use]
    pub fn called(self) -> Option<Value<'m>> {
        // SAFETY: it is a call ('m).
        if self.is_call() { Self::wrap(unsafe { LLVMGetCalledValue(self.raw) }) } else { None }
    }

    /// The function that a call names.
    #[must_use]
    pub fn called_function(self) -> Option<Value<'m>> {
        self.called().map(Value::strip_casts).filter(|called| called.is_function())
    }

    /// Arguments of a call.
    #[must_use]
    pub fn arguments(self) -> Vec<Value<'m>> {
        if !self.is_call() {
            return Vec::new();
        }
        // SAFETY: it is a call ('m), whose first operands are its arguments; the index is below their count.
        unsafe {
            (0..LLVMGetNumArgOperands(self.raw))
                .filter_map(|index| Self::wrap(LLVMGetOperand(self.raw, index)))
                .collect()
        }
    }

    /// What memory a call may touch, by its attributes and its callee's. Anything, where it is no call.
    #[must_use]
    pub fn call_memory(self) -> CallMemory {
        // SAFETY: it is a call ('m).
        let bits = if self.is_call() { unsafe { echo_sr_shim_call_memory(self.raw) } } else { !0 };
        CallMemory { reads_arguments: bits & 1 != 0, writes_arguments: bits & 2 != 0, elsewhere: bits & 4 != 0 }
    }

    /// What a call does with its argument `index`, by its attributes and its callee's. Anything, where there is no such argument.
    #[must_use]
    pub fn call_argument(self, index: usize) -> CallArgument {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        // SAFETY: it is a call ('m), and `index` is the number of one of its arguments.
        let bits = unsafe {
            if self.is_call() && index < LLVMGetNumArgOperands(self.raw) {
                echo_sr_shim_call_argument(self.raw, index)
            } else {
                1 | 2 | 4
            }
        };
        CallArgument { reads: bits & 1 != 0, writes: bits & 2 != 0, captures: bits & 4 != 0, copied: bits & 8 != 0 }
    }

    /// The values that meet in a phi.
    #[must_use]
    pub fn incoming(self) -> Vec<Value<'m>> {
        if !self.is_instruction() || self.opcode() != Some(LLVMOpcode::LLVMPHI) {
            return Vec::new();
        }
        // SAFETY: it is a phi ('m); the index is below the count.
        unsafe {
            (0..LLVMCountIncoming(self.raw))
                .filter_map(|index| Self::wrap(LLVMGetIncomingValue(self.raw, index)))
                .collect()
        }
    }
}

impl Type<'_> {
    /// What sort of type it is.
    #[must_use]
    pub fn kind(self) -> LLVMTypeKind {
        // SAFETY: the type is valid ('m).
        unsafe { LLVMGetTypeKind(self.raw) }
    }

    /// It is a pointer.
    #[must_use]
    pub fn is_pointer(self) -> bool {
        self.kind() == LLVMTypeKind::LLVMPointerTypeKind
    }

    /// Address space of a pointer.
    #[must_use]
    pub fn address_space(self) -> Option<u32> {
        // SAFETY: it is a pointer type ('m).
        self.is_pointer().then(|| unsafe { LLVMGetPointerAddressSpace(self.raw) })
    }

    /// Width of an integer.
    #[must_use]
    pub fn integer_bits(self) -> Option<u32> {
        // SAFETY: it is an integer type ('m).
        (self.kind() == LLVMTypeKind::LLVMIntegerTypeKind).then(|| unsafe { LLVMGetIntTypeWidth(self.raw) })
    }
}
