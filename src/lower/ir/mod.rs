//! Read-only view of LLVM IR: thin, checked wrappers over LLVM's C API.
//!
//! Why not inkwell's value types: an analysis meets every kind of value (constant expressions, metadata, target types), and those types
//! panic on what they do not know. Here a value is one copyable handle, and each query answers `None` where it does not apply.
//!
//! Safety of the whole file: a handle is made only from a [`Module`] (or from another handle) and carries its lifetime, so what it
//! points to is owned by a module that is alive. Each query checks the kind of value that the C function asks for. Handles of *erased*
//! instructions dangle; only `rewrite` erases, and it forgets a handle when it does.

use std::ffi::CStr;
use std::marker::PhantomData;

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::*;
use inkwell::llvm_sys::target::*;
use inkwell::llvm_sys::{LLVMAtomicOrdering, LLVMIntPredicate, LLVMTypeKind};

mod calls;
mod debug;

pub use self::calls::ArgumentEffect;
pub use self::debug::Location;
pub use inkwell::llvm_sys::LLVMOpcode as Opcode;

/// A module.
#[derive(Clone, Copy)]
pub struct Module<'m> {
    raw: LLVMModuleRef,
    module: PhantomData<&'m ()>,
}

/// Any value: instruction, argument, constant, global, function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value<'m> {
    raw: LLVMValueRef,
    module: PhantomData<&'m ()>,
}

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Block<'m> {
    raw: LLVMBasicBlockRef,
    module: PhantomData<&'m ()>,
}

/// A type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Type<'m> {
    raw: LLVMTypeRef,
    module: PhantomData<&'m ()>,
}

/// One use of a value.
#[derive(Clone, Copy, Debug)]
pub struct Use<'m> {
    /// Who uses it.
    pub user: Value<'m>,
    /// As which operand.
    pub operand: u32,
}

impl<'m> Module<'m> {
    /// The view of a module that is lent to the pass.
    #[must_use]
    pub fn new(module: crate::pass::ir::Module<'m>) -> Self {
        Self { raw: module.raw(), module: PhantomData }
    }

    /// The handle for LLVM's C API; alive as long as `'m`.
    #[must_use]
    pub fn raw(self) -> LLVMModuleRef {
        self.raw
    }

    /// All functions, declared and defined.
    pub fn functions(self) -> impl Iterator<Item = Value<'m>> {
        // SAFETY: the module is alive ('m).
        let first = unsafe { LLVMGetFirstFunction(self.raw) };
        // SAFETY: each raw value is a function of the module, as it comes from the list itself.
        chain(Value::wrap(first), |function| Value::wrap(unsafe { LLVMGetNextFunction(function.raw) }))
    }

    /// All global variables.
    pub fn globals(self) -> impl Iterator<Item = Value<'m>> {
        // SAFETY: the module is alive ('m).
        let first = unsafe { LLVMGetFirstGlobal(self.raw) };
        // SAFETY: each raw value is a global of the module, as it comes from the list itself.
        chain(Value::wrap(first), |global| Value::wrap(unsafe { LLVMGetNextGlobal(global.raw) }))
    }

    /// Bytes that a value of the type takes in memory (with padding); `None` for types without a size.
    #[must_use]
    pub fn alloc_size(self, ty: Type<'m>) -> Option<u64> {
        // SAFETY: the type and the module are alive; only sized types are asked for their size, and scalable ones are refused.
        unsafe {
            if LLVMTypeIsSized(ty.raw) == 0 || ty.is_scalable() {
                return None;
            }
            Some(LLVMABISizeOfType(LLVMGetModuleDataLayout(self.raw), ty.raw))
        }
    }

    /// Bytes that a store of the type may write.
    #[must_use]
    pub fn store_size(self, ty: Type<'m>) -> Option<u64> {
        // SAFETY: as in `alloc_size`.
        unsafe {
            if LLVMTypeIsSized(ty.raw) == 0 || ty.is_scalable() {
                return None;
            }
            Some(LLVMStoreSizeOfType(LLVMGetModuleDataLayout(self.raw), ty.raw))
        }
    }

    /// Byte offset of a structure's field.
    #[must_use]
    pub fn field_offset(self, structure: Type<'m>, field: u32) -> Option<u64> {
        // SAFETY: checked to be a sized structure with that field.
        unsafe {
            if structure.kind() != LLVMTypeKind::LLVMStructTypeKind
                || LLVMTypeIsSized(structure.raw) == 0
                || field >= LLVMCountStructElementTypes(structure.raw)
            {
                return None;
            }
            Some(LLVMOffsetOfElement(LLVMGetModuleDataLayout(self.raw), structure.raw, field))
        }
    }
}

impl<'m> Type<'m> {
    fn wrap(raw: LLVMTypeRef) -> Self {
        Self { raw, module: PhantomData }
    }

    /// The handle for LLVM's C API.
    #[must_use]
    pub fn raw(self) -> LLVMTypeRef {
        self.raw
    }

    fn kind(self) -> LLVMTypeKind {
        // SAFETY: the type is alive ('m).
        unsafe { LLVMGetTypeKind(self.raw) }
    }

    fn is_scalable(self) -> bool {
        self.kind() == LLVMTypeKind::LLVMScalableVectorTypeKind
    }

    /// Is it a pointer?
    #[must_use]
    pub fn is_pointer(self) -> bool {
        self.kind() == LLVMTypeKind::LLVMPointerTypeKind
    }

    /// The width of an integer type.
    #[must_use]
    pub fn int_width(self) -> Option<u32> {
        // SAFETY: asked only of integer types.
        (self.kind() == LLVMTypeKind::LLVMIntegerTypeKind).then(|| unsafe { LLVMGetIntTypeWidth(self.raw) })
    }

    /// Is it a structure?
    #[must_use]
    pub fn is_struct(self) -> bool {
        self.kind() == LLVMTypeKind::LLVMStructTypeKind
    }

    /// The type of an array's or fixed vector's element.
    #[must_use]
    pub fn element(self) -> Option<Self> {
        match self.kind() {
            LLVMTypeKind::LLVMArrayTypeKind | LLVMTypeKind::LLVMVectorTypeKind => {
                // SAFETY: asked only of arrays and vectors.
                Some(Self::wrap(unsafe { LLVMGetElementType(self.raw) }))
            }
            _ => None,
        }
    }

    /// The type of a structure's field.
    #[must_use]
    pub fn field(self, index: u32) -> Option<Self> {
        // SAFETY: checked to be a structure with that field.
        unsafe {
            (self.is_struct() && index < LLVMCountStructElementTypes(self.raw))
                .then(|| Self::wrap(LLVMStructGetTypeAtIndex(self.raw, index)))
        }
    }
}

impl<'m> Value<'m> {
    fn wrap(raw: LLVMValueRef) -> Option<Self> {
        (!raw.is_null()).then_some(Self { raw, module: PhantomData })
    }

    /// The handle for LLVM's C API.
    #[must_use]
    pub fn raw(self) -> LLVMValueRef {
        self.raw
    }

    /// The value of a handle that a C function returned; `None` for null.
    ///
    /// # Safety
    /// The handle is null or a value of a module that lives as long as `'m`.
    #[must_use]
    pub unsafe fn from_raw(raw: LLVMValueRef) -> Option<Self> {
        Self::wrap(raw)
    }

    /// Its type.
    #[must_use]
    pub fn ty(self) -> Type<'m> {
        // SAFETY: the value is alive ('m).
        Type::wrap(unsafe { LLVMTypeOf(self.raw) })
    }

    /// Its symbol or name; empty if it has none.
    #[must_use]
    pub fn name(self) -> String {
        let mut length = 0;
        // SAFETY: the value is alive; LLVM returns a pointer to `length` bytes that it owns.
        unsafe { text(LLVMGetValueName2(self.raw, &raw mut length), length) }
    }

    /// Which operation, for instructions and constant expressions.
    #[must_use]
    pub fn opcode(self) -> Option<Opcode> {
        // SAFETY: each C function is asked only of the kind of value that it takes.
        unsafe {
            if self.is_instruction() {
                Some(LLVMGetInstructionOpcode(self.raw))
            } else if !LLVMIsAConstantExpr(self.raw).is_null() {
                Some(LLVMGetConstOpcode(self.raw))
            } else {
                None
            }
        }
    }

    /// Is it an instruction?
    #[must_use]
    pub fn is_instruction(self) -> bool {
        // SAFETY: the value is alive ('m); every `LLVMIsA*` takes any value.
        unsafe { !LLVMIsAInstruction(self.raw).is_null() }
    }

    /// Is it an argument of the function?
    #[must_use]
    pub fn is_argument(self) -> bool {
        // SAFETY: as above.
        unsafe { !LLVMIsAArgument(self.raw).is_null() }
    }

    /// Is it a constant of any kind?
    #[must_use]
    pub fn is_constant(self) -> bool {
        // SAFETY: as above.
        unsafe { !LLVMIsAConstant(self.raw).is_null() }
    }

    /// Is it the null pointer or zero?
    #[must_use]
    pub fn is_null(self) -> bool {
        // SAFETY: as above.
        unsafe { LLVMIsNull(self.raw) != 0 }
    }

    /// Is it undef or poison?
    #[must_use]
    pub fn is_undef(self) -> bool {
        // SAFETY: as above.
        unsafe { LLVMIsUndef(self.raw) != 0 || LLVMIsPoison(self.raw) != 0 }
    }

    /// Is it a function?
    #[must_use]
    pub fn is_function(self) -> bool {
        // SAFETY: as above.
        unsafe { !LLVMIsAFunction(self.raw).is_null() }
    }

    /// Is it a global variable?
    #[must_use]
    pub fn is_global_variable(self) -> bool {
        // SAFETY: as above.
        unsafe { !LLVMIsAGlobalVariable(self.raw).is_null() }
    }

    /// Is it inline assembly?
    #[must_use]
    pub fn is_inline_asm(self) -> bool {
        // SAFETY: as above.
        unsafe { !LLVMIsAInlineAsm(self.raw).is_null() }
    }

    /// The sign-extended value of a constant integer of at most 64 bits.
    #[must_use]
    pub fn constant_int(self) -> Option<i64> {
        // SAFETY: asked only of constant integers of at most 64 bits.
        unsafe {
            (!LLVMIsAConstantInt(self.raw).is_null() && self.ty().int_width()? <= 64)
                .then(|| LLVMConstIntGetSExtValue(self.raw))
        }
    }

    /// The zero-extended value of a constant integer of at most 64 bits.
    #[must_use]
    pub fn constant_uint(self) -> Option<u64> {
        // SAFETY: asked only of constant integers of at most 64 bits.
        unsafe {
            (!LLVMIsAConstantInt(self.raw).is_null() && self.ty().int_width()? <= 64)
                .then(|| LLVMConstIntGetZExtValue(self.raw))
        }
    }

    /// Its operands.
    #[must_use]
    pub fn operands(self) -> Vec<Self> {
        (0..self.operand_count()).filter_map(|index| self.operand(index)).collect()
    }

    /// How many operands.
    #[must_use]
    pub fn operand_count(self) -> u32 {
        // SAFETY: asked only of users.
        unsafe {
            if LLVMIsAUser(self.raw).is_null() { 0 } else { u32::try_from(LLVMGetNumOperands(self.raw)).unwrap_or(0) }
        }
    }

    /// One operand.
    #[must_use]
    pub fn operand(self, index: u32) -> Option<Self> {
        // SAFETY: the index is in range.
        (index < self.operand_count()).then(|| unsafe { LLVMGetOperand(self.raw, index) }).and_then(Self::wrap)
    }

    /// Its uses, by instructions and constants; debug information does not count.
    #[must_use]
    pub fn uses(self) -> Vec<Use<'m>> {
        let mut uses = Vec::new();
        // SAFETY: the list belongs to the live value, and nothing changes it meanwhile.
        unsafe {
            let mut next = LLVMGetFirstUse(self.raw);
            while !next.is_null() {
                if let Some(user) = Self::wrap(LLVMGetUser(next)) {
                    let count = user.operand_count();
                    uses.extend(
                        (0..count)
                            .filter(|index| LLVMGetOperandUse(user.raw, *index) == next)
                            .map(|operand| Use { user, operand }),
                    );
                }
                next = LLVMGetNextUse(next);
            }
        }
        uses
    }

    /// The block of an instruction.
    #[must_use]
    pub fn block(self) -> Option<Block<'m>> {
        // SAFETY: asked only of instructions.
        self.is_instruction().then(|| unsafe { LLVMGetInstructionParent(self.raw) }).and_then(Block::wrap)
    }

    /// The instruction before it in its block.
    #[must_use]
    pub fn previous(self) -> Option<Self> {
        // SAFETY: asked only of instructions.
        self.is_instruction().then(|| unsafe { LLVMGetPreviousInstruction(self.raw) }).and_then(Self::wrap)
    }

    /// The instruction after it in its block.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        // SAFETY: asked only of instructions.
        self.is_instruction().then(|| unsafe { LLVMGetNextInstruction(self.raw) }).and_then(Self::wrap)
    }

    /// Is it a load or store (or another memory operation) marked volatile, or an atomic one?
    #[must_use]
    pub fn is_volatile_or_atomic(self) -> bool {
        // SAFETY: each is asked only of the instructions that have the property.
        unsafe {
            match self.opcode() {
                Some(Opcode::LLVMLoad | Opcode::LLVMStore) if self.is_instruction() => {
                    LLVMGetVolatile(self.raw) != 0
                        || LLVMGetOrdering(self.raw) != LLVMAtomicOrdering::LLVMAtomicOrderingNotAtomic
                }
                Some(Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg) => true,
                _ => false,
            }
        }
    }

    /// The type that a GEP's first index counts in.
    #[must_use]
    pub fn gep_source_type(self) -> Option<Type<'m>> {
        // SAFETY: asked only of GEPs (instructions or expressions).
        (self.opcode() == Some(Opcode::LLVMGetElementPtr))
            .then(|| Type::wrap(unsafe { LLVMGetGEPSourceElementType(self.raw) }))
    }

    /// Does a GEP promise that its offset arithmetic does not wrap in the signed sense (inbounds or nusw)?
    #[must_use]
    pub fn gep_does_not_wrap(self) -> bool {
        if self.opcode() != Some(Opcode::LLVMGetElementPtr) {
            return false;
        }
        // SAFETY: asked only of GEPs.
        #[cfg(feature = "llvm22")]
        return unsafe { LLVMGEPGetNoWrapFlags(self.raw) }
            & (inkwell::llvm_sys::LLVMGEPFlagInBounds | inkwell::llvm_sys::LLVMGEPFlagNUSW)
            != 0;
        // SAFETY: asked only of GEPs.
        #[cfg(not(feature = "llvm22"))]
        return unsafe { LLVMIsInBounds(self.raw) != 0 };
    }

    /// The type that an alloca allocates.
    #[must_use]
    pub fn allocated_type(self) -> Option<Type<'m>> {
        // SAFETY: asked only of allocas.
        (self.opcode() == Some(Opcode::LLVMAlloca)).then(|| Type::wrap(unsafe { LLVMGetAllocatedType(self.raw) }))
    }

    /// Arithmetic that is marked not to wrap in the signed sense.
    #[must_use]
    pub fn no_signed_wrap(self) -> bool {
        // SAFETY: asked only of instructions that carry the flag.
        self.is_arithmetic() && unsafe { LLVMGetNSW(self.raw) != 0 }
    }

    /// Arithmetic that is marked not to wrap in the unsigned sense.
    #[must_use]
    pub fn no_unsigned_wrap(self) -> bool {
        // SAFETY: asked only of instructions that carry the flag.
        self.is_arithmetic() && unsafe { LLVMGetNUW(self.raw) != 0 }
    }

    fn is_arithmetic(self) -> bool {
        self.is_instruction()
            && matches!(self.opcode(), Some(Opcode::LLVMAdd | Opcode::LLVMSub | Opcode::LLVMMul | Opcode::LLVMShl))
    }

    /// An `or` whose operands share no bit: it adds.
    #[must_use]
    pub fn is_disjoint_or(self) -> bool {
        // SAFETY: asked only of `or` instructions.
        self.is_instruction() && self.opcode() == Some(Opcode::LLVMOr) && unsafe { LLVMGetIsDisjoint(self.raw) != 0 }
    }

    /// The condition of a conditional branch; its first successor is where control goes if it is true.
    #[must_use]
    pub fn branch_condition(self) -> Option<Self> {
        // SAFETY: asked only of branches, and for the condition of conditional ones.
        unsafe {
            (self.is_instruction() && self.opcode() == Some(Opcode::LLVMBr) && LLVMIsConditional(self.raw) != 0)
                .then(|| LLVMGetCondition(self.raw))
        }
        .and_then(Self::wrap)
    }

    /// How an integer or pointer comparison compares.
    #[must_use]
    pub fn integer_predicate(self) -> Option<LLVMIntPredicate> {
        // SAFETY: asked only of icmp instructions.
        (self.is_instruction() && self.opcode() == Some(Opcode::LLVMICmp))
            .then(|| unsafe { LLVMGetICmpPredicate(self.raw) })
    }

    /// Does an extractvalue take the first field?
    #[must_use]
    pub fn extracts_first(self) -> bool {
        // SAFETY: asked only of extractvalue instructions, which have at least one index.
        self.is_instruction()
            && self.opcode() == Some(Opcode::LLVMExtractValue)
            && unsafe { LLVMGetNumIndices(self.raw) == 1 && *LLVMGetIndices(self.raw) == 0 }
    }

    /// Incoming values of a phi, with their blocks.
    #[must_use]
    pub fn incoming(self) -> Vec<(Self, Block<'m>)> {
        if self.opcode() != Some(Opcode::LLVMPHI) {
            return Vec::new();
        }
        // SAFETY: asked only of phis, with indices in range.
        unsafe {
            (0..LLVMCountIncoming(self.raw))
                .filter_map(|index| {
                    Some((
                        Self::wrap(LLVMGetIncomingValue(self.raw, index))?,
                        Block::wrap(LLVMGetIncomingBlock(self.raw, index))?,
                    ))
                })
                .collect()
        }
    }

    /// Is a function only declared here?
    #[must_use]
    pub fn is_declaration(self) -> bool {
        // SAFETY: asked only of globals.
        unsafe { !LLVMIsAGlobalValue(self.raw).is_null() && LLVMIsDeclaration(self.raw) != 0 }
    }

    /// Can no other module name this global?
    #[must_use]
    pub fn is_local(self) -> bool {
        use inkwell::llvm_sys::LLVMLinkage::{LLVMInternalLinkage, LLVMPrivateLinkage};
        // SAFETY: asked only of globals.
        unsafe {
            !LLVMIsAGlobalValue(self.raw).is_null()
                && matches!(LLVMGetLinkage(self.raw), LLVMInternalLinkage | LLVMPrivateLinkage)
        }
    }

    /// May another module's definition replace this function's body (so that nothing may be concluded from it)?
    #[must_use]
    pub fn is_interposable(self) -> bool {
        use inkwell::llvm_sys::LLVMLinkage::{
            LLVMCommonLinkage, LLVMExternalWeakLinkage, LLVMLinkOnceAnyLinkage, LLVMWeakAnyLinkage,
        };
        // SAFETY: asked only of globals.
        unsafe {
            !LLVMIsAGlobalValue(self.raw).is_null()
                && matches!(
                    LLVMGetLinkage(self.raw),
                    LLVMWeakAnyLinkage | LLVMLinkOnceAnyLinkage | LLVMExternalWeakLinkage | LLVMCommonLinkage
                )
        }
    }

    /// The section that a global is put in; empty for the default.
    #[must_use]
    pub fn section(self) -> String {
        // SAFETY: asked only of globals; the string is owned by the module.
        unsafe {
            if LLVMIsAGlobalObject(self.raw).is_null() {
                return String::new();
            }
            let section = LLVMGetSection(self.raw);
            if section.is_null() { String::new() } else { CStr::from_ptr(section).to_string_lossy().into_owned() }
        }
    }

    /// A global variable's initial value.
    #[must_use]
    pub fn initializer(self) -> Option<Self> {
        // SAFETY: asked only of global variables.
        self.is_global_variable().then(|| unsafe { LLVMGetInitializer(self.raw) }).and_then(Self::wrap)
    }

    /// The text of a constant byte array, without its final zero.
    #[must_use]
    pub fn constant_string(self) -> Option<String> {
        // SAFETY: asked only of constant data sequences that are strings; LLVM returns a pointer to `length` bytes that it owns.
        unsafe {
            if LLVMIsAConstantDataSequential(self.raw).is_null() || LLVMIsConstantString(self.raw) == 0 {
                return None;
            }
            let mut length = 0;
            let start = LLVMGetAsString(self.raw, &raw mut length);
            Some(text(start, length).trim_end_matches('\0').to_owned())
        }
    }

    /// Parameters of a function.
    #[must_use]
    pub fn params(self) -> Vec<Self> {
        if !self.is_function() {
            return Vec::new();
        }
        // SAFETY: asked only of functions, with indices in range.
        unsafe {
            (0..LLVMCountParams(self.raw)).filter_map(|index| Self::wrap(LLVMGetParam(self.raw, index))).collect()
        }
    }

    /// Blocks of a function, in order.
    #[must_use]
    pub fn blocks(self) -> Vec<Block<'m>> {
        if !self.is_function() {
            return Vec::new();
        }
        // SAFETY: asked only of functions, walking the function's own list.
        unsafe {
            chain(Block::wrap(LLVMGetFirstBasicBlock(self.raw)), |block| Block::wrap(LLVMGetNextBasicBlock(block.raw)))
                .collect()
        }
    }

    /// The function that an instruction stands in.
    #[must_use]
    pub fn function(self) -> Option<Self> {
        // SAFETY: the block is alive.
        self.block().and_then(|block| Self::wrap(unsafe { LLVMGetBasicBlockParent(block.raw) }))
    }
}

impl<'m> Block<'m> {
    fn wrap(raw: LLVMBasicBlockRef) -> Option<Self> {
        (!raw.is_null()).then_some(Self { raw, module: PhantomData })
    }

    /// The handle for LLVM's C API.
    #[must_use]
    pub fn raw(self) -> LLVMBasicBlockRef {
        self.raw
    }

    /// Its instructions, in order.
    pub fn instructions(self) -> impl Iterator<Item = Value<'m>> {
        // SAFETY: the block is alive ('m).
        chain(Value::wrap(unsafe { LLVMGetFirstInstruction(self.raw) }), Value::next)
    }

    /// Its last instruction.
    #[must_use]
    pub fn terminator(self) -> Option<Value<'m>> {
        // SAFETY: the block is alive ('m).
        Value::wrap(unsafe { LLVMGetBasicBlockTerminator(self.raw) })
    }

    /// Where control may go from here.
    #[must_use]
    pub fn successors(self) -> Vec<Self> {
        let Some(terminator) = self.terminator() else { return Vec::new() };
        // SAFETY: asked only of terminators, with indices in range.
        unsafe {
            (0..LLVMGetNumSuccessors(terminator.raw))
                .filter_map(|index| Self::wrap(LLVMGetSuccessor(terminator.raw, index)))
                .collect()
        }
    }
}

fn chain<T: Copy>(first: Option<T>, next: impl Fn(T) -> Option<T>) -> impl Iterator<Item = T> {
    std::iter::successors(first, move |item| next(*item))
}

/// Text that LLVM owns, copied.
///
/// # Safety
/// `start` is null, or points to `length` bytes.
unsafe fn text(start: *const std::ffi::c_char, length: usize) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(start.cast(), length) }).into_owned()
}
