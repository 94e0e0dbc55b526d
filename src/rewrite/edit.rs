//! Changing the IR of one function: the few edits that R1–R4 are made of.
//!
//! Safety of the whole file: an [`Editor`] belongs to one function of a module that is alive (`'m`) and that nobody else changes meanwhile.
//! It is the only thing that erases instructions; whoever holds a handle asks [`Editor::current`] for what became of it.

use std::collections::HashMap;
use std::ffi::CString;

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::debuginfo::LLVMInstructionGetDebugLoc;
use inkwell::llvm_sys::prelude::*;
use inkwell::llvm_sys::{LLVMAttributeReturnIndex, LLVMOpcode};

use crate::ir::{IntPredicate, Module, Value};

unsafe extern "C" {
    fn echo_sr_shim_change_to_call(invoke: LLVMValueRef) -> LLVMValueRef;
    fn echo_sr_shim_guard(instruction: LLVMValueRef, condition: LLVMValueRef) -> LLVMValueRef;
    fn echo_sr_shim_join(instruction: LLVMValueRef, end: LLVMValueRef, value: LLVMValueRef);
}

/// Edits one function.
pub(super) struct Editor<'m> {
    module: LLVMModuleRef,
    context: LLVMContextRef,
    builder: LLVMBuilderRef,
    entry: LLVMBasicBlockRef,
    /// What became of instructions that were replaced by others.
    replaced: HashMap<Value<'m>, Value<'m>>,
}

/// Integer types that the edits use.
#[derive(Clone, Copy)]
pub(super) enum Int {
    /// `cudaError_t`, flags.
    I32,
    /// `size_t`.
    I64,
}

impl<'m> Editor<'m> {
    /// An editor of the function that `instruction` stands in; `None` if it stands in none.
    pub(super) fn new(module: Module<'m>, instruction: Value<'m>) -> Option<Self> {
        let entry = instruction.function()?.blocks().next()?.raw();
        // SAFETY: the module is alive; the builder is freed by `drop`.
        unsafe {
            let context = LLVMGetModuleContext(module.raw());
            let builder = LLVMCreateBuilderInContext(context);
            Some(Self { module: module.raw(), context, builder, entry, replaced: HashMap::new() })
        }
    }

    /// What stands for an instruction now.
    pub(super) fn current(&self, instruction: Value<'m>) -> Value<'m> {
        self.replaced.get(&instruction).copied().unwrap_or(instruction)
    }

    /// New instructions go before `instruction` from now on, and count as part of it for debuggers.
    pub(super) fn before(&mut self, instruction: Value<'m>) {
        // SAFETY: the instruction is alive and in this function.
        unsafe {
            LLVMPositionBuilderBefore(self.builder, instruction.raw());
            LLVMSetCurrentDebugLocation2(self.builder, LLVMInstructionGetDebugLoc(instruction.raw()));
        }
    }

    /// New instructions go directly after `instruction`, which must not end its block, and count as part of it for debuggers.
    pub(super) fn after(&mut self, instruction: Value<'m>) {
        if let Some(next) = instruction.next() {
            self.before(next);
            // SAFETY: as above.
            unsafe { LLVMSetCurrentDebugLocation2(self.builder, LLVMInstructionGetDebugLoc(instruction.raw())) }
        }
    }

    /// An invoke becomes a call that goes on in its normal block. (What it calls is about to be a function that cannot throw.)
    pub(super) fn as_call(&mut self, instruction: Value<'m>) -> Value<'m> {
        let instruction = self.current(instruction);
        if instruction.normal_destination().is_none() {
            return instruction;
        }
        // SAFETY: it is an invoke of this function; LLVM erases it, and `replaced` remembers that.
        let Some(call) = (unsafe { Value::from_raw(echo_sr_shim_change_to_call(instruction.raw())) }) else {
            return instruction;
        };
        self.replaced.insert(instruction, call);
        call
    }

    /// `instruction`, a call or an invoke, runs only where `condition` is false from now on; new instructions go where it does not run.
    /// Gives the end of that way, for [`Editor::join`].
    pub(super) fn guard(&mut self, instruction: Value<'m>, condition: Value<'m>) -> Value<'m> {
        // SAFETY: both are alive in this function, and the condition dominates the instruction.
        let end = self.wrap(unsafe { echo_sr_shim_guard(instruction.raw(), condition.raw()) });
        self.before(end);
        // SAFETY: the instruction is alive.
        unsafe { LLVMSetCurrentDebugLocation2(self.builder, LLVMInstructionGetDebugLoc(instruction.raw())) }
        end
    }

    /// Where control comes by `end`, `value` stands for what `instruction` would have given.
    pub(super) fn join(&mut self, instruction: Value<'m>, end: Value<'m>, value: Value<'m>) {
        // SAFETY: `end` is what `guard` gave for the instruction, `value` has its type and dominates `end`.
        unsafe { echo_sr_shim_join(instruction.raw(), end.raw(), value.raw()) }
    }

    /// A text that the program can read, as a pointer to its bytes, which end in NUL.
    pub(super) fn text(&mut self, text: &str) -> Value<'m> {
        let text = c_string(text);
        // SAFETY: the builder stands in a function of the module, to which the constant is added.
        self.wrap(unsafe { LLVMBuildGlobalString(self.builder, text.as_ptr(), c"echo.site".as_ptr()) })
    }

    /// `value` is not null.
    pub(super) fn not_null(&mut self, value: Value<'m>) -> Value<'m> {
        let null = self.null();
        // SAFETY: both are pointers that dominate the position.
        self.wrap(unsafe {
            LLVMBuildICmp(self.builder, IntPredicate::LLVMIntNE, value.raw(), null.raw(), c"".as_ptr())
        })
    }

    /// A constant.
    pub(super) fn int(&self, ty: Int, value: u64) -> Value<'m> {
        // SAFETY: the type belongs to the module's context.
        self.wrap(unsafe { LLVMConstInt(self.int_type(ty), value, 0) })
    }

    /// The null pointer.
    pub(super) fn null(&self) -> Value<'m> {
        // SAFETY: as above.
        self.wrap(unsafe { LLVMConstNull(self.pointer_type()) })
    }

    /// A pointer variable, in the entry block.
    pub(super) fn variable(&mut self, name: &str) -> Value<'m> {
        let name = c_string(name);
        // SAFETY: the entry block has a terminator, so it has a first instruction; the position is put back by the next `before`.
        unsafe {
            LLVMPositionBuilderBefore(self.builder, LLVMGetFirstInstruction(self.entry));
            LLVMSetCurrentDebugLocation2(self.builder, std::ptr::null_mut());
            self.wrap(LLVMBuildAlloca(self.builder, self.pointer_type(), name.as_ptr()))
        }
    }

    /// A pointer variable that is null when the function begins.
    pub(super) fn null_variable(&mut self, name: &str) -> Value<'m> {
        let variable = self.variable(name);
        if let Some(next) = variable.next() {
            self.before(next);
        }
        // SAFETY: the builder lives.
        unsafe { LLVMSetCurrentDebugLocation2(self.builder, std::ptr::null_mut()) }
        let null = self.null();
        self.store(null, variable);
        variable
    }

    /// A variable that holds a number, zero at first, in the entry block.
    pub(super) fn counter(&mut self, name: &str) -> Value<'m> {
        let name = c_string(name);
        // SAFETY: as for `variable`; the store goes behind the alloca.
        unsafe {
            LLVMPositionBuilderBefore(self.builder, LLVMGetFirstInstruction(self.entry));
            LLVMSetCurrentDebugLocation2(self.builder, std::ptr::null_mut());
            let variable = self.wrap(LLVMBuildAlloca(self.builder, self.int_type(Int::I64), name.as_ptr()));
            let zero = self.int(Int::I64, 0);
            self.store(zero, variable);
            variable
        }
    }

    /// A load of a number.
    pub(super) fn load_count(&mut self, address: Value<'m>) -> Value<'m> {
        // SAFETY: the address is a variable of `counter`, in the entry block.
        self.wrap(unsafe { LLVMBuildLoad2(self.builder, self.int_type(Int::I64), address.raw(), c"".as_ptr()) })
    }

    /// `left + right`
    pub(super) fn add(&mut self, left: Value<'m>, right: Value<'m>) -> Value<'m> {
        // SAFETY: both are i64 and dominate the position.
        self.wrap(unsafe { LLVMBuildAdd(self.builder, left.raw(), right.raw(), c"".as_ptr()) })
    }

    /// A copy of a call at the position, with other values for some of its arguments. What was known of the size of the memory that its
    /// result or those arguments point to is forgotten.
    pub(super) fn call_again(&mut self, call: Value<'m>, arguments: &[(u32, Value<'m>)]) -> Value<'m> {
        const SIZED: [&str; 3] = ["dereferenceable", "dereferenceable_or_null", "nonnull"];
        // SAFETY: the copy has operands of the same types that dominate the position; it is put into the block there.
        unsafe {
            let copy = LLVMInstructionClone(call.raw());
            LLVMInsertIntoBuilderWithName(self.builder, copy, c"".as_ptr());
            let forget = |index: u32| {
                for name in SIZED {
                    let kind = LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
                    LLVMRemoveCallSiteEnumAttribute(copy, index, kind);
                }
            };
            forget(LLVMAttributeReturnIndex);
            for (index, value) in arguments {
                LLVMSetOperand(copy, *index, value.raw());
                forget(index + 1);
            }
            self.wrap(copy)
        }
    }

    /// A load of a pointer.
    pub(super) fn load(&mut self, address: Value<'m>, name: &str) -> Value<'m> {
        let name = c_string(name);
        // SAFETY: the address is a pointer that dominates the position.
        self.wrap(unsafe { LLVMBuildLoad2(self.builder, self.pointer_type(), address.raw(), name.as_ptr()) })
    }

    /// A store.
    pub(super) fn store(&mut self, value: Value<'m>, address: Value<'m>) {
        // SAFETY: both dominate the position.
        unsafe { LLVMBuildStore(self.builder, value.raw(), address.raw()) };
    }

    /// `left == right`
    pub(super) fn equal(&mut self, left: Value<'m>, right: Value<'m>) -> Value<'m> {
        // SAFETY: both have the same type and dominate the position.
        self.wrap(unsafe {
            LLVMBuildICmp(self.builder, IntPredicate::LLVMIntEQ, left.raw(), right.raw(), c"".as_ptr())
        })
    }

    /// `condition ? yes : no`
    pub(super) fn select(&mut self, condition: Value<'m>, yes: Value<'m>, no: Value<'m>) -> Value<'m> {
        // SAFETY: the types fit and all dominate the position.
        self.wrap(unsafe { LLVMBuildSelect(self.builder, condition.raw(), yes.raw(), no.raw(), c"".as_ptr()) })
    }

    /// `left * right`, or the largest number where that does not fit.
    pub(super) fn saturating_product(&mut self, left: Value<'m>, right: Value<'m>) -> Value<'m> {
        let largest = self.int(Int::I64, u64::MAX);
        let name = "llvm.umul.with.overflow";
        // SAFETY: the intrinsic exists for i64, takes two of them and returns {i64, i1}.
        unsafe {
            let mut ty = self.int_type(Int::I64);
            let id = LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
            let function = LLVMGetIntrinsicDeclaration(self.module, id, &raw mut ty, 1);
            let mut arguments = [left.raw(), right.raw()];
            let signature = LLVMIntrinsicGetType(self.context, id, &raw mut ty, 1);
            let both = LLVMBuildCall2(self.builder, signature, function, arguments.as_mut_ptr(), 2, c"".as_ptr());
            let product = self.wrap(LLVMBuildExtractValue(self.builder, both, 0, c"".as_ptr()));
            let overflow = self.wrap(LLVMBuildExtractValue(self.builder, both, 1, c"".as_ptr()));
            self.select(overflow, largest, product)
        }
    }

    /// Sets `length` bytes to zero.
    pub(super) fn zero(&mut self, address: Value<'m>, length: Value<'m>) {
        const ALIGNMENT: u32 = 1;
        // SAFETY: the address is a pointer, the length an i64; both dominate the position.
        unsafe {
            let zero = LLVMConstInt(LLVMInt8TypeInContext(self.context), 0, 0);
            LLVMBuildMemSet(self.builder, address.raw(), zero, length.raw(), ALIGNMENT);
        }
    }

    /// A call of a runtime function that returns an error code; it is declared if it is not yet.
    pub(super) fn cuda(&mut self, function: &str, arguments: &[Value<'m>]) -> Value<'m> {
        let result = self.int_type(Int::I32);
        self.call(function, result, arguments)
    }

    /// The same of one that returns a pointer.
    pub(super) fn runtime_pointer(&mut self, function: &str, arguments: &[Value<'m>]) -> Value<'m> {
        let result = self.pointer_type();
        self.call(function, result, arguments)
    }

    fn call(&mut self, function: &str, result: LLVMTypeRef, arguments: &[Value<'m>]) -> Value<'m> {
        let name = c_string(function);
        let mut types: Vec<_> = arguments.iter().map(|argument| argument.ty().raw()).collect();
        let mut arguments: Vec<_> = arguments.iter().map(|argument| argument.raw()).collect();
        let count = u32::try_from(arguments.len()).unwrap_or(0);
        // SAFETY: the function is declared with the types of the arguments; with opaque pointers another declaration is as good.
        self.wrap(unsafe {
            let signature = LLVMFunctionType(result, types.as_mut_ptr(), count, 0);
            let mut callee = LLVMGetNamedFunction(self.module, name.as_ptr());
            if callee.is_null() {
                callee = LLVMAddFunction(self.module, name.as_ptr(), signature);
            }
            LLVMBuildCall2(self.builder, signature, callee, arguments.as_mut_ptr(), count, c"".as_ptr())
        })
    }

    /// Gives a call another argument.
    pub(super) fn set_argument(&mut self, call: Value<'m>, index: u32, value: Value<'m>) {
        if index < call.argument_count() {
            // SAFETY: a call's arguments are its first operands; the value is a constant of the argument's type (a C `int`).
            unsafe { LLVMSetOperand(call.raw(), index, value.raw()) }
        }
    }

    /// Everybody who used `instruction` uses `value`, and it goes.
    pub(super) fn replace(&mut self, instruction: Value<'m>, value: Value<'m>) {
        // SAFETY: the types are the same, `value` dominates all uses (the caller's plan), and the handle is forgotten.
        unsafe {
            LLVMReplaceAllUsesWith(instruction.raw(), value.raw());
            LLVMInstructionEraseFromParent(instruction.raw());
        }
        self.replaced.insert(instruction, value);
    }

    /// An instruction without uses goes.
    pub(super) fn erase(&mut self, instruction: Value<'m>) {
        // SAFETY: nobody uses it.
        unsafe { LLVMInstructionEraseFromParent(instruction.raw()) }
    }

    /// Takes `!noalias` and `!alias.scope` from every call of the function: what a launch or a wait touches now includes memory that a
    /// `__restrict__` parameter pointed to. Loads and stores keep theirs, because host code touched no device buffer before.
    pub(super) fn forget_call_scopes(&mut self) {
        const KINDS: [&str; 2] = ["noalias", "alias.scope"];
        // SAFETY: the function's blocks and instructions are alive; taking metadata away changes no instruction.
        unsafe {
            let kinds =
                KINDS.map(|kind| LLVMGetMDKindIDInContext(self.context, kind.as_ptr().cast(), kind.len() as u32));
            let mut block = self.entry;
            while !block.is_null() {
                let mut instruction = LLVMGetFirstInstruction(block);
                while !instruction.is_null() {
                    let is_call = matches!(
                        LLVMGetInstructionOpcode(instruction),
                        LLVMOpcode::LLVMCall | LLVMOpcode::LLVMInvoke | LLVMOpcode::LLVMCallBr
                    );
                    if is_call && LLVMGetIntrinsicID(LLVMGetCalledValue(instruction)) == 0 {
                        kinds.iter().for_each(|kind| LLVMSetMetadata(instruction, *kind, std::ptr::null_mut()));
                    }
                    instruction = LLVMGetNextInstruction(instruction);
                }
                block = LLVMGetNextBasicBlock(block);
            }
        }
    }

    fn int_type(&self, ty: Int) -> LLVMTypeRef {
        // SAFETY: the context is alive.
        unsafe {
            match ty {
                Int::I32 => LLVMInt32TypeInContext(self.context),
                Int::I64 => LLVMInt64TypeInContext(self.context),
            }
        }
    }

    fn pointer_type(&self) -> LLVMTypeRef {
        // SAFETY: the context is alive.
        unsafe { LLVMPointerTypeInContext(self.context, 0) }
    }

    fn wrap(&self, raw: LLVMValueRef) -> Value<'m> {
        // SAFETY: LLVM's builders return a value of this module, and never null.
        unsafe { Value::from_raw(raw) }.unwrap_or_else(|| unreachable!("LLVM's builders return a value"))
    }
}

impl Drop for Editor<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once.
        unsafe { LLVMDisposeBuilder(self.builder) }
    }
}

/// The names that the edits use hold no NUL.
fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}
