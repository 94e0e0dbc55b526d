//! Functions and global variables.

use inkwell::llvm_sys::LLVMAttributeFunctionIndex;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::LLVMValueRef;

use super::{Block, Linkage, Type, Value, c_text, chain};

unsafe extern "C" {
    fn echo_sr_shim_byval_size(function: LLVMValueRef, index: u32) -> u64;
    fn echo_sr_shim_may_inline(caller: LLVMValueRef, callee: LLVMValueRef) -> bool;
}

/// Both.
impl<'m> Value<'m> {
    /// Is it a function?
    #[must_use]
    pub fn is_function(self) -> bool {
        // SAFETY: the value is valid ('m); every `LLVMIsA*` takes any value.
        unsafe { !LLVMIsAFunction(self.raw).is_null() }
    }

    /// Is it a global variable?
    #[must_use]
    pub fn is_global_variable(self) -> bool {
        // SAFETY: as above.
        unsafe { !LLVMIsAGlobalVariable(self.raw).is_null() }
    }

    fn is_global(self) -> bool {
        self.is_function() || self.is_global_variable()
    }

    /// Is it only declared here?
    #[must_use]
    pub fn is_declaration(self) -> bool {
        // SAFETY: asked only of globals.
        self.is_global() && unsafe { LLVMIsDeclaration(self.raw) != 0 }
    }

    /// Its linkage.
    #[must_use]
    pub fn linkage(self) -> Option<Linkage> {
        // SAFETY: asked only of globals.
        self.is_global().then(|| unsafe { LLVMGetLinkage(self.raw) })
    }

    /// May another module's definition replace it (so that nothing may be concluded from its body)?
    #[must_use]
    pub fn is_interposable(self) -> bool {
        use Linkage::{LLVMCommonLinkage, LLVMExternalWeakLinkage, LLVMLinkOnceAnyLinkage, LLVMWeakAnyLinkage};
        matches!(
            self.linkage(),
            Some(LLVMWeakAnyLinkage | LLVMLinkOnceAnyLinkage | LLVMExternalWeakLinkage | LLVMCommonLinkage)
        )
    }

    /// The section that it is put in; empty for the default.
    #[must_use]
    pub fn section(self) -> String {
        if !self.is_global() {
            return String::new();
        }
        // SAFETY: asked only of globals; the C string belongs to the module and is copied at once.
        unsafe { c_text(LLVMGetSection(self.raw)) }
    }

    /// The initial value of a global variable.
    #[must_use]
    pub fn initializer(self) -> Option<Self> {
        // SAFETY: asked only of global variables.
        self.is_global_variable().then(|| unsafe { LLVMGetInitializer(self.raw) }).and_then(Self::wrap)
    }

    /// The type of a global variable's contents.
    #[must_use]
    pub fn value_type(self) -> Option<Type<'m>> {
        // SAFETY: asked only of global variables.
        self.is_global_variable().then(|| Type::wrap(unsafe { LLVMGlobalGetValueType(self.raw) }))
    }

    /// Is it a global variable of which each thread has its own?
    #[must_use]
    pub fn is_thread_local(self) -> bool {
        // SAFETY: asked only of global variables.
        self.is_global_variable() && unsafe { LLVMIsThreadLocal(self.raw) != 0 }
    }

    /// Is it a global variable that something outside of the module initialises?
    #[must_use]
    pub fn is_initialised_elsewhere(self) -> bool {
        // SAFETY: asked only of global variables.
        self.is_global_variable() && unsafe { LLVMIsExternallyInitialized(self.raw) != 0 }
    }

    /// Is it a global variable that is never written?
    #[must_use]
    pub fn is_global_constant(self) -> bool {
        // SAFETY: asked only of global variables.
        self.is_global_variable() && unsafe { LLVMIsGlobalConstant(self.raw) != 0 }
    }
}

/// Functions.
impl<'m> Value<'m> {
    /// The parameters of a function.
    #[must_use]
    pub fn parameters(self) -> Vec<Self> {
        if !self.is_function() {
            return Vec::new();
        }
        // SAFETY: asked only of functions, with indices in range.
        unsafe {
            (0..LLVMCountParams(self.raw)).filter_map(|index| Self::wrap(LLVMGetParam(self.raw, index))).collect()
        }
    }

    /// The blocks of a function, in order.
    pub fn blocks(self) -> impl Iterator<Item = Block<'m>> {
        // SAFETY: asked only of functions.
        let first = self.is_function().then(|| unsafe { LLVMGetFirstBasicBlock(self.raw) }).and_then(Block::wrap);
        // SAFETY: each is a block of the function, as it comes from the list itself.
        chain(first, |block| Block::wrap(unsafe { LLVMGetNextBasicBlock(block.raw) }))
    }

    /// The instructions of a function, block by block.
    pub fn instructions(self) -> impl Iterator<Item = Self> {
        self.blocks().flat_map(Block::instructions)
    }

    /// The number of a function's calling convention.
    #[must_use]
    pub fn calling_convention(self) -> Option<u32> {
        // SAFETY: asked only of functions.
        self.is_function().then(|| unsafe { LLVMGetFunctionCallConv(self.raw) })
    }

    /// Does a function take more arguments than it names?
    #[must_use]
    pub fn is_variadic(self) -> bool {
        // SAFETY: asked only of functions, whose value type is a function type.
        self.is_function() && unsafe { LLVMIsFunctionVarArg(LLVMGlobalGetValueType(self.raw)) != 0 }
    }

    /// Does a function have an enum attribute (`noreturn`, `optnone` …)?
    #[must_use]
    pub fn has_attribute(self, name: &str) -> bool {
        self.has_attribute_at(LLVMAttributeFunctionIndex, name)
    }

    /// Gives a function an enum attribute that carries no number.
    pub fn add_attribute(self, name: &str) {
        let Some(kind) = attribute_kind(name).filter(|_| self.is_function()) else { return };
        // SAFETY: it is a function of a module that is lent for changes, and the attribute is of its context.
        unsafe {
            let attribute = LLVMCreateEnumAttribute(LLVMGetTypeContext(LLVMTypeOf(self.raw)), kind, 0);
            LLVMAddAttributeAtIndex(self.raw, LLVMAttributeFunctionIndex, attribute);
        }
    }

    /// Does a function have an enum attribute at LLVM's index: of itself, of its result or of a parameter?
    pub(super) fn has_attribute_at(self, index: u32, name: &str) -> bool {
        let Some(kind) = attribute_kind(name).filter(|_| self.is_function()) else { return false };
        // SAFETY: asked only of functions.
        unsafe { !LLVMGetEnumAttributeAtIndex(self.raw, index, kind).is_null() }
    }

    /// Bytes of the copy that parameter `index` is; `None` where it is not passed as a copy (byval), or does not exist.
    #[must_use]
    pub fn byval_size(self, index: usize) -> Option<u64> {
        let index = u32::try_from(index).ok()?;
        // SAFETY: asked only of functions, with the number of one of the parameters.
        let size = unsafe {
            if !self.is_function() || index >= LLVMCountParams(self.raw) {
                return None;
            }
            echo_sr_shim_byval_size(self.raw, index)
        };
        (size != u64::MAX).then_some(size)
    }

    /// Do the attributes of the two functions (target, sanitizers …) allow `callee`'s body in this one?
    #[must_use]
    pub fn may_inline(self, callee: Self) -> bool {
        // SAFETY: asked only of functions.
        self.is_function() && callee.is_function() && unsafe { echo_sr_shim_may_inline(self.raw, callee.raw) }
    }
}

/// LLVM's number of an enum attribute; `None` where this LLVM has none of that name.
pub(super) fn attribute_kind(name: &str) -> Option<u32> {
    // SAFETY: the name is read for its length only.
    let kind = unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) };
    (kind != 0).then_some(kind)
}
