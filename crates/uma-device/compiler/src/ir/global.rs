//! Functions, global variables, and their attributes.

use super::{At, Attribute, Block, Type, Value, attribute_kind, c_string};
use llvm_sys::LLVMLinkage;
use llvm_sys::core::*;
use std::ffi::c_uint;

impl Value {
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
}
