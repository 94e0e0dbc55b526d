//! LLVM IR as the rest of the compiler sees it: small copyable handles over LLVM's C API. All `unsafe` of the compiler is here.
//!
//! There is one LLVM context in the process; it is never freed, so types, constants and metadata are always valid. A [`Value`] or
//! [`Block`] is valid until it is erased ([`Value::erase`], [`Value::delete_function`], [`Value::delete_global`]) or its module is
//! dropped; the passes keep no handle beyond that. "Live handle" in the SAFETY comments below means this rule.

use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMLinkage, LLVMValueKind};
use std::ffi::{CStr, CString, c_char, c_uint};
use std::path::Path;
use std::sync::OnceLock;

pub(crate) use llvm_sys::{LLVMIntPredicate as Predicate, LLVMOpcode as Opcode, LLVMTypeKind as TypeKind};

/// A type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Type(LLVMTypeRef);
/// A value: instruction, argument, constant, global or function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Value(LLVMValueRef);
/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Block(LLVMBasicBlockRef);
/// An attribute.
#[derive(Clone, Copy)]
pub(crate) struct Attribute(LLVMAttributeRef);
/// A metadata node.
#[derive(Clone, Copy)]
pub(crate) struct Metadata(LLVMValueRef);

/// Where an attribute stands: the function itself, or a parameter.
#[derive(Clone, Copy)]
pub(crate) enum At {
    Function,
    Return,
    Param(u32),
}

impl At {
    fn index(self) -> c_uint {
        match self {
            At::Function => llvm_sys::LLVMAttributeFunctionIndex,
            At::Return => llvm_sys::LLVMAttributeReturnIndex,
            At::Param(index) => index + 1,
        }
    }
}

/// The context, which lives as long as the process.
fn context() -> LLVMContextRef {
    struct Shared(LLVMContextRef);
    // SAFETY: the compiler uses LLVM from one thread at a time: its entry points take `&mut Llvm`, and tests run it as a program.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}
    static CONTEXT: OnceLock<Shared> = OnceLock::new();
    // SAFETY: creating a context has no precondition.
    CONTEXT.get_or_init(|| Shared(unsafe { LLVMContextCreate() })).0
}

/// A string that LLVM allocated.
fn take_message(message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: LLVM gave a C string that the caller owns.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        text
    }
}

fn c_string(text: &str) -> CString {
    // Names with a NUL byte do not come from clang.
    CString::new(text).unwrap_or_default()
}

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

/// # Safety
/// `data` points to `length` bytes, or is null.
unsafe fn text(data: *const c_char, length: usize) -> String {
    if data.is_null() {
        return String::new();
    }
    // SAFETY: the caller says so.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(data.cast(), length) }).into_owned()
}

fn walk(first: LLVMValueRef, next: impl Fn(LLVMValueRef) -> LLVMValueRef) -> Vec<Value> {
    std::iter::successors(Value::from_raw(first), |value| Value::from_raw(next(value.0))).collect()
}

impl Type {
    pub(crate) fn as_raw(self) -> LLVMTypeRef {
        self.0
    }

    pub(crate) fn int(bits: u32) -> Type {
        // SAFETY: the context lives.
        Type(unsafe { LLVMIntTypeInContext(context(), bits) })
    }

    pub(crate) fn pointer() -> Type {
        // SAFETY: the context lives.
        Type(unsafe { LLVMPointerTypeInContext(context(), 0) })
    }

    pub(crate) fn void() -> Type {
        // SAFETY: the context lives.
        Type(unsafe { LLVMVoidTypeInContext(context()) })
    }

    pub(crate) fn array(self, length: u64) -> Type {
        // SAFETY: a sized type of the context.
        Type(unsafe { LLVMArrayType2(self.0, length) })
    }

    pub(crate) fn function(result: Type, params: &[Type]) -> Type {
        let mut params: Vec<_> = params.iter().map(|param| param.0).collect();
        // SAFETY: types of the context; the length is right.
        Type(unsafe { LLVMFunctionType(result.0, params.as_mut_ptr(), params.len() as c_uint, 0) })
    }

    pub(crate) fn kind(self) -> TypeKind {
        // SAFETY: types live.
        unsafe { LLVMGetTypeKind(self.0) }
    }

    /// Of a function type.
    pub(crate) fn return_type(self) -> Type {
        // SAFETY: asked of function types only.
        Type(unsafe { LLVMGetReturnType(self.0) })
    }

    /// Of a function type.
    pub(crate) fn params(self) -> Vec<Type> {
        // SAFETY: asked of function types only; the vector has the length that LLVM fills.
        unsafe {
            let mut params = vec![std::ptr::null_mut(); LLVMCountParamTypes(self.0) as usize];
            LLVMGetParamTypes(self.0, params.as_mut_ptr());
            params.into_iter().map(Type).collect()
        }
    }

    /// Of a function type.
    pub(crate) fn is_variadic(self) -> bool {
        // SAFETY: asked of function types only.
        unsafe { LLVMIsFunctionVarArg(self.0) != 0 }
    }

    /// Of a pointer type.
    pub(crate) fn address_space(self) -> u32 {
        // SAFETY: asked of pointer types only.
        unsafe { LLVMGetPointerAddressSpace(self.0) }
    }

    pub(crate) fn constant(self, value: u64) -> Value {
        // SAFETY: asked of integer types only.
        Value(unsafe { LLVMConstInt(self.0, value, 0) })
    }

    pub(crate) fn null(self) -> Value {
        // SAFETY: a type that has a zero.
        Value(unsafe { LLVMConstNull(self.0) })
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: types live.
        f.write_str(&take_message(unsafe { LLVMPrintTypeToString(self.0) }))
    }
}

impl Block {
    pub(crate) fn append(function: Value, name: &str) -> Block {
        let name = c_string(name);
        // SAFETY: live function.
        Block(unsafe { LLVMAppendBasicBlockInContext(context(), function.0, name.as_ptr()) })
    }

    pub(crate) fn as_value(self) -> Value {
        // SAFETY: live handle.
        Value(unsafe { LLVMBasicBlockAsValue(self.0) })
    }

    pub(crate) fn instructions(self) -> Vec<Value> {
        // SAFETY: live handle.
        walk(unsafe { LLVMGetFirstInstruction(self.0) }, |value| unsafe { LLVMGetNextInstruction(value) })
    }

    pub(crate) fn terminator(self) -> Option<Value> {
        // SAFETY: live handle.
        Value::from_raw(unsafe { LLVMGetBasicBlockTerminator(self.0) })
    }
}

impl Attribute {
    /// An attribute that is only a name, as `alwaysinline`, or has a number, as `align`.
    pub(crate) fn known(name: &str, number: u64) -> Attribute {
        // SAFETY: the context lives; the names used here are LLVM's own.
        Attribute(unsafe { LLVMCreateEnumAttribute(context(), attribute_kind(name), number) })
    }

    /// The kind and value of a string attribute.
    fn as_text(self) -> Option<(String, String)> {
        // SAFETY: attributes live as long as the context.
        unsafe {
            if LLVMIsStringAttribute(self.0) == 0 {
                return None;
            }
            let mut length = 0;
            let kind = LLVMGetStringAttributeKind(self.0, &mut length);
            let kind = text(kind, length as usize);
            let value = LLVMGetStringAttributeValue(self.0, &mut length);
            Some((kind, text(value, length as usize)))
        }
    }
}

fn attribute_kind(name: &str) -> c_uint {
    // SAFETY: pointer and length of a string.
    unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) }
}

impl Metadata {
    pub(crate) fn set_operand(self, index: u32, node: Metadata) {
        // SAFETY: live nodes; the index is below the operand count.
        unsafe { LLVMReplaceMDNodeOperandWith(self.0, index, LLVMValueAsMetadata(node.0)) }
    }
}

impl Value {
    fn from_raw(raw: LLVMValueRef) -> Option<Value> {
        (!raw.is_null()).then_some(Value(raw))
    }

    pub(crate) fn ty(self) -> Type {
        // SAFETY: live handle.
        Type(unsafe { LLVMTypeOf(self.0) })
    }

    pub(crate) fn name(self) -> String {
        let mut length = 0;
        // SAFETY: live handle; the name belongs to it.
        unsafe { text(LLVMGetValueName2(self.0, &mut length), length) }
    }

    pub(crate) fn set_name(self, name: &str) {
        // SAFETY: live handle, pointer and length of a string.
        unsafe { LLVMSetValueName2(self.0, name.as_ptr().cast(), name.len()) }
    }

    pub(crate) fn replace_all_uses_with(self, other: Value) {
        // SAFETY: live handles of one type.
        unsafe { LLVMReplaceAllUsesWith(self.0, other.0) }
    }

    /// The users, each as often as it uses the value.
    pub(crate) fn users(self) -> Vec<Value> {
        // SAFETY: live handle; the list is read before anything changes it.
        unsafe {
            let mut users = Vec::new();
            let mut each = LLVMGetFirstUse(self.0);
            while !each.is_null() {
                users.push(Value(LLVMGetUser(each)));
                each = LLVMGetNextUse(each);
            }
            users
        }
    }

    pub(crate) fn operands(self) -> Vec<Value> {
        (0..self.operand_count()).filter_map(|index| self.operand(index)).collect()
    }

    pub(crate) fn operand_count(self) -> u32 {
        // SAFETY: live handle.
        unsafe { LLVMGetNumOperands(self.0) }.max(0) as u32
    }

    pub(crate) fn operand(self, index: u32) -> Option<Value> {
        // SAFETY: live handle; callers stay below the operand count. (Null for operands that are no values.)
        Value::from_raw(unsafe { LLVMGetOperand(self.0, index) })
    }

    pub(crate) fn set_operand(self, index: u32, value: Value) {
        // SAFETY: live handles; the index is below the operand count.
        unsafe { LLVMSetOperand(self.0, index, value.0) }
    }

    fn kind(self) -> LLVMValueKind {
        // SAFETY: live handle.
        unsafe { LLVMGetValueKind(self.0) }
    }

    pub(crate) fn is_instruction(self) -> bool {
        self.kind() == LLVMValueKind::LLVMInstructionValueKind
    }

    pub(crate) fn is_function(self) -> bool {
        self.kind() == LLVMValueKind::LLVMFunctionValueKind
    }

    pub(crate) fn is_global_variable(self) -> bool {
        self.kind() == LLVMValueKind::LLVMGlobalVariableValueKind
    }

    pub(crate) fn is_constant_expression(self) -> bool {
        self.kind() == LLVMValueKind::LLVMConstantExprValueKind
    }

    pub(crate) fn is_constant(self) -> bool {
        // SAFETY: live handle.
        unsafe { LLVMIsConstant(self.0) != 0 }
    }

    pub(crate) fn is_zero_or_undefined(self) -> bool {
        // SAFETY: live handle.
        unsafe { LLVMIsNull(self.0) != 0 || LLVMIsUndef(self.0) != 0 }
    }

    pub(crate) fn is_block_address(self) -> bool {
        self.kind() == LLVMValueKind::LLVMBlockAddressValueKind
    }

    /// The value of an integer constant of at most 64 bits.
    pub(crate) fn as_constant_int(self) -> Option<u64> {
        // SAFETY: live handle; the value is read from integer constants only.
        (self.kind() == LLVMValueKind::LLVMConstantIntValueKind).then(|| unsafe { LLVMConstIntGetZExtValue(self.0) })
    }

    /// The text of inline assembly.
    pub(crate) fn inline_assembly(self) -> Option<String> {
        if self.kind() != LLVMValueKind::LLVMInlineAsmValueKind {
            return None;
        }
        let mut length = 0;
        // SAFETY: an inline assembly value; the text belongs to it.
        Some(unsafe { text(LLVMGetInlineAsmAsmString(self.0, &mut length), length) })
    }

    // Functions and globals.

    pub(crate) fn is_declaration(self) -> bool {
        // SAFETY: asked of globals and functions only.
        unsafe { LLVMIsDeclaration(self.0) != 0 }
    }

    pub(crate) fn set_internal(self) {
        // SAFETY: asked of defined globals and functions only.
        unsafe { LLVMSetLinkage(self.0, LLVMLinkage::LLVMInternalLinkage) }
    }

    pub(crate) fn set_exported(self) {
        // SAFETY: asked of globals and functions only.
        unsafe {
            LLVMSetLinkage(self.0, LLVMLinkage::LLVMExternalLinkage);
            LLVMSetVisibility(self.0, llvm_sys::LLVMVisibility::LLVMDefaultVisibility);
        }
    }

    /// The linkage of the lists that LLVM merges, as `llvm.used`.
    pub(crate) fn set_appending(self) {
        // SAFETY: asked of globals only.
        unsafe { LLVMSetLinkage(self.0, LLVMLinkage::LLVMAppendingLinkage) }
    }

    /// What an alias stands for.
    pub(crate) fn aliasee(self) -> Value {
        // SAFETY: asked of aliases only.
        Value(unsafe { LLVMAliasGetAliasee(self.0) })
    }

    pub(crate) fn clear_comdat(self) {
        // SAFETY: asked of globals and functions only; null means none.
        unsafe { llvm_sys::comdat::LLVMSetComdat(self.0, std::ptr::null_mut()) }
    }

    pub(crate) fn set_section(self, section: &str) {
        let section = c_string(section);
        // SAFETY: asked of globals only.
        unsafe { LLVMSetSection(self.0, section.as_ptr()) }
    }

    pub(crate) fn value_type(self) -> Type {
        // SAFETY: asked of globals and functions only.
        Type(unsafe { LLVMGlobalGetValueType(self.0) })
    }

    pub(crate) fn is_externally_initialized(self) -> bool {
        // SAFETY: asked of global variables only.
        unsafe { LLVMIsExternallyInitialized(self.0) != 0 }
    }

    pub(crate) fn is_global_constant(self) -> bool {
        // SAFETY: asked of global variables only.
        unsafe { LLVMIsGlobalConstant(self.0) != 0 }
    }

    pub(crate) fn set_global_constant(self, constant: bool) {
        // SAFETY: asked of global variables only.
        unsafe { LLVMSetGlobalConstant(self.0, constant.into()) }
    }

    pub(crate) fn is_thread_local(self) -> bool {
        // SAFETY: asked of global variables only.
        unsafe { LLVMIsThreadLocal(self.0) != 0 }
    }

    pub(crate) fn initializer(self) -> Option<Value> {
        // SAFETY: asked of global variables only.
        Value::from_raw(unsafe { LLVMGetInitializer(self.0) })
    }

    pub(crate) fn set_initializer(self, value: Value) {
        // SAFETY: asked of global variables only; the types agree.
        unsafe { LLVMSetInitializer(self.0, value.0) }
    }

    pub(crate) fn alignment(self) -> u32 {
        // SAFETY: asked of globals, loads, stores and allocas only.
        unsafe { LLVMGetAlignment(self.0) }
    }

    pub(crate) fn set_alignment(self, bytes: u32) {
        // SAFETY: as above; a power of two.
        unsafe { LLVMSetAlignment(self.0, bytes) }
    }

    pub(crate) fn delete_global(self) {
        // SAFETY: a global without uses; the handle is not used again.
        unsafe { LLVMDeleteGlobal(self.0) }
    }

    pub(crate) fn delete_function(self) {
        // SAFETY: a function without uses outside itself; the handle is not used again.
        unsafe { LLVMDeleteFunction(self.0) }
    }

    pub(crate) fn blocks(self) -> Vec<Block> {
        // SAFETY: asked of functions only; live handles.
        unsafe {
            let mut blocks = Vec::new();
            let mut block = LLVMGetFirstBasicBlock(self.0);
            while !block.is_null() {
                blocks.push(Block(block));
                block = LLVMGetNextBasicBlock(block);
            }
            blocks
        }
    }

    pub(crate) fn instructions(self) -> impl Iterator<Item = Value> {
        self.blocks().into_iter().flat_map(Block::instructions)
    }

    pub(crate) fn params(self) -> Vec<Value> {
        // SAFETY: asked of functions only; the vector has the length that LLVM fills.
        unsafe {
            let mut params = vec![std::ptr::null_mut(); LLVMCountParams(self.0) as usize];
            LLVMGetParams(self.0, params.as_mut_ptr());
            params.into_iter().map(Value).collect()
        }
    }

    pub(crate) fn call_convention(self) -> u32 {
        // SAFETY: asked of functions only.
        unsafe { LLVMGetFunctionCallConv(self.0) }
    }

    pub(crate) fn move_subprogram_to(self, other: Value) {
        // SAFETY: live functions; a null subprogram is none.
        unsafe {
            let subprogram = llvm_sys::debuginfo::LLVMGetSubprogram(self.0);
            if !subprogram.is_null() {
                llvm_sys::debuginfo::LLVMSetSubprogram(other.0, subprogram);
                llvm_sys::debuginfo::LLVMSetSubprogram(self.0, std::ptr::null_mut());
            }
        }
    }

    pub(crate) fn attributes(self, at: At) -> Vec<Attribute> {
        // SAFETY: asked of functions only; the vector has the length that LLVM fills.
        unsafe {
            let count = LLVMGetAttributeCountAtIndex(self.0, at.index());
            let mut attributes = vec![std::ptr::null_mut(); count as usize];
            LLVMGetAttributesAtIndex(self.0, at.index(), attributes.as_mut_ptr());
            attributes.into_iter().map(Attribute).collect()
        }
    }

    pub(crate) fn add_attribute(self, at: At, attribute: Attribute) {
        // SAFETY: asked of functions only.
        unsafe { LLVMAddAttributeAtIndex(self.0, at.index(), attribute.0) }
    }

    pub(crate) fn has_attribute(self, at: At, name: &str) -> bool {
        // SAFETY: asked of functions only.
        !unsafe { LLVMGetEnumAttributeAtIndex(self.0, at.index(), attribute_kind(name)) }.is_null()
    }

    /// The value of a string attribute of a function.
    pub(crate) fn text_attribute(self, name: &str) -> Option<String> {
        self.attributes(At::Function)
            .into_iter()
            .filter_map(Attribute::as_text)
            .find(|(k, _)| k == name)
            .map(|(_, v)| v)
    }

    /// Whether a function is `memory(none)`.
    pub(crate) fn accesses_no_memory(self) -> bool {
        // SAFETY: asked of functions only; the attribute has a number, which is 0 for no access.
        unsafe {
            let attribute = LLVMGetEnumAttributeAtIndex(self.0, At::Function.index(), attribute_kind("memory"));
            !attribute.is_null() && LLVMGetEnumAttributeValue(attribute) == 0
        }
    }

    pub(crate) fn remove_attribute(self, at: At, name: &str) {
        // SAFETY: asked of functions only.
        unsafe {
            match attribute_kind(name) {
                0 => {
                    LLVMRemoveStringAttributeAtIndex(self.0, at.index(), name.as_ptr().cast(), name.len() as c_uint);
                }
                kind => LLVMRemoveEnumAttributeAtIndex(self.0, at.index(), kind),
            }
        }
    }

    /// The type that `byval` of a parameter names.
    pub(crate) fn by_value_type(self, param: u32) -> Option<Type> {
        // SAFETY: asked of functions only; the attribute has a type.
        unsafe {
            let attribute = LLVMGetEnumAttributeAtIndex(self.0, At::Param(param).index(), attribute_kind("byval"));
            (!attribute.is_null()).then(|| Type(LLVMGetTypeAttributeValue(attribute)))
        }
    }

    /// The number of an attribute of a parameter, as `align`.
    pub(crate) fn param_attribute_number(self, param: u32, name: &str) -> Option<u64> {
        // SAFETY: asked of functions only; attributes with a number only.
        unsafe {
            let attribute = LLVMGetEnumAttributeAtIndex(self.0, At::Param(param).index(), attribute_kind(name));
            (!attribute.is_null()).then(|| LLVMGetEnumAttributeValue(attribute))
        }
    }

    // Instructions.

    pub(crate) fn opcode(self) -> Opcode {
        // SAFETY: asked of instructions only.
        unsafe { LLVMGetInstructionOpcode(self.0) }
    }

    /// The opcode of a constant expression.
    pub(crate) fn constant_opcode(self) -> Opcode {
        // SAFETY: asked of constant expressions only.
        unsafe { LLVMGetConstOpcode(self.0) }
    }

    pub(crate) fn block(self) -> Block {
        // SAFETY: asked of instructions in a block only.
        Block(unsafe { LLVMGetInstructionParent(self.0) })
    }

    /// The function that holds an instruction.
    pub(crate) fn function(self) -> Value {
        // SAFETY: asked of instructions in a block only.
        Value(unsafe { LLVMGetBasicBlockParent(LLVMGetInstructionParent(self.0)) })
    }

    pub(crate) fn clone_instruction(self) -> Value {
        // SAFETY: asked of instructions only.
        Value(unsafe { LLVMInstructionClone(self.0) })
    }

    pub(crate) fn erase(self) {
        // SAFETY: an instruction without uses; the handle is not used again.
        unsafe { LLVMInstructionEraseFromParent(self.0) }
    }

    pub(crate) fn incoming(self) -> Vec<(Value, Block)> {
        // SAFETY: asked of phis only.
        unsafe {
            (0..LLVMCountIncoming(self.0))
                .map(|i| (Value(LLVMGetIncomingValue(self.0, i)), Block(LLVMGetIncomingBlock(self.0, i))))
                .collect()
        }
    }

    pub(crate) fn add_incoming(self, value: Value, block: Block) {
        let (mut value, mut block) = (value.0, block.0);
        // SAFETY: asked of phis only; one of each.
        unsafe { LLVMAddIncoming(self.0, &mut value, &mut block, 1) }
    }

    /// What a call calls.
    pub(crate) fn callee(self) -> Value {
        // SAFETY: asked of calls only.
        Value(unsafe { LLVMGetCalledValue(self.0) })
    }

    pub(crate) fn callee_type(self) -> Type {
        // SAFETY: asked of calls only.
        Type(unsafe { LLVMGetCalledFunctionType(self.0) })
    }

    pub(crate) fn call_arguments(self) -> Vec<Value> {
        // SAFETY: asked of calls only.
        let count = unsafe { LLVMGetNumArgOperands(self.0) };
        (0..count).filter_map(|index| self.operand(index)).collect()
    }

    /// Copies the attributes of a call's result and first `params` parameters, its fast-math flags and its metadata to another call.
    pub(crate) fn copy_call_properties_to(self, other: Value, params: u32) {
        // SAFETY: live calls; the vectors have the lengths that LLVM fills.
        unsafe {
            for at in std::iter::once(At::Return).chain((0..params).map(At::Param)) {
                let mut attributes =
                    vec![std::ptr::null_mut(); LLVMGetCallSiteAttributeCount(self.0, at.index()) as usize];
                LLVMGetCallSiteAttributes(self.0, at.index(), attributes.as_mut_ptr());
                for attribute in attributes {
                    LLVMAddCallSiteAttribute(other.0, at.index(), attribute);
                }
            }
            if LLVMCanValueUseFastMathFlags(self.0) != 0 && LLVMCanValueUseFastMathFlags(other.0) != 0 {
                LLVMSetFastMathFlags(other.0, LLVMGetFastMathFlags(self.0));
            }
            llvm_sys::debuginfo::LLVMInstructionSetDebugLoc(
                other.0,
                llvm_sys::debuginfo::LLVMInstructionGetDebugLoc(self.0),
            );
        }
    }

    /// Drops what a call site claims about its callee (`memory(none)`, `convergent` and the like).
    pub(crate) fn clear_call_site_claims(self) {
        for name in
            ["memory", "convergent", "nosync", "nofree", "willreturn", "speculatable", "noinline", "noduplicate"]
        {
            // SAFETY: asked of calls only.
            unsafe { LLVMRemoveCallSiteEnumAttribute(self.0, At::Function.index(), attribute_kind(name)) }
        }
    }

    pub(crate) fn is_volatile(self) -> bool {
        // SAFETY: asked of loads, stores and atomics only.
        unsafe { LLVMGetVolatile(self.0) != 0 }
    }

    pub(crate) fn is_atomic(self) -> bool {
        // SAFETY: asked of instructions only.
        unsafe { LLVMIsAtomic(self.0) != 0 }
    }

    pub(crate) fn element_type(self) -> Type {
        // SAFETY: asked of GEPs only, instruction or constant.
        Type(unsafe { LLVMGetGEPSourceElementType(self.0) })
    }

    pub(crate) fn set_metadata(self, kind: &str, node: Metadata) {
        // SAFETY: live instruction; the node lives in the context.
        unsafe {
            let kind = LLVMGetMDKindIDInContext(context(), kind.as_ptr().cast(), kind.len() as c_uint);
            LLVMSetMetadata(self.0, kind, node.0);
        }
    }

    /// File (as clang was given it) and line of an instruction, then of the call that inlining put it in place of, and so on.
    pub(crate) fn source_locations(self) -> Vec<(String, u32)> {
        use llvm_sys::debuginfo::*;
        let mut found = Vec::new();
        // SAFETY: asked of instructions only; locations, scopes and files live as long as the context.
        unsafe {
            let mut location = LLVMInstructionGetDebugLoc(self.0);
            while !location.is_null() {
                let file = LLVMDIScopeGetFile(LLVMDILocationGetScope(location));
                if !file.is_null() {
                    let mut length = 0;
                    let name = LLVMDIFileGetFilename(file, &mut length);
                    found.push((text(name, length as usize), LLVMDILocationGetLine(location)));
                }
                location = LLVMDILocationGetInlinedAt(location);
            }
        }
        found
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: live handle.
        f.write_str(&take_message(unsafe { LLVMPrintValueToString(self.0) }))
    }
}

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

/// A constant array of pointers.
pub(crate) fn pointer_array(elements: &[Value]) -> Value {
    let mut elements: Vec<_> = elements.iter().map(|value| value.0).collect();
    // SAFETY: constants of pointer type.
    Value(unsafe { LLVMConstArray2(Type::pointer().0, elements.as_mut_ptr(), elements.len() as u64) })
}

/// A constant array of bytes.
pub(crate) fn bytes(data: &[u8]) -> Value {
    // SAFETY: pointer and length of a slice.
    Value(unsafe { LLVMConstStringInContext2(context(), data.as_ptr().cast(), data.len(), 1) })
}

/// Marks a load of memory that never changes while kernels run.
pub(crate) fn invariant_load(load: Value) {
    if let [node] = metadata("!0 = !{}", 1)[..] {
        load.set_metadata("invariant.load", node);
    }
}

/// Metadata nodes from their textual form: nodes `!0` to `!count-1`. (The C API cannot make distinct or cyclic nodes.)
pub(crate) fn metadata(nodes: &str, count: usize) -> Vec<Metadata> {
    let list = (0..count).map(|number| format!("!{number}")).collect::<Vec<_>>().join(", ");
    // The text is the compiler's own. The nodes outlive their module: they belong to the context.
    let module =
        Module::parse(format!("!uma = !{{{list}}}\n{nodes}\n").as_bytes(), "metadata").expect("valid metadata");
    module.named_metadata("uma")
}

/// Name of the intrinsic that this name belongs to starts with `llvm.`.
pub(crate) fn is_intrinsic(name: &str) -> bool {
    name.starts_with("llvm.")
}
