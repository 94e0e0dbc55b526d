//! LLVM IR as the rest of the compiler sees it: small copyable handles over LLVM's C API. `unsafe` is here and in
//! [`crate::codegen`], nowhere else in the compiler.
//!
//! There is one LLVM context a thread; it is never freed, so types, constants and metadata are always valid. A [`Value`] or
//! [`Block`] is valid until it is erased ([`Value::erase`], [`Value::delete_function`], [`Value::delete_global`]) or its module is
//! dropped; the passes keep no handle beyond that. "Live handle" in the SAFETY comments below means this rule.

mod builder;
mod global;
mod instruction;
mod module;
mod types;
mod value;

use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::ffi::{CStr, CString, c_char, c_uint};

pub(crate) use builder::Builder;
pub(crate) use llvm_sys::{LLVMIntPredicate as Predicate, LLVMOpcode as Opcode, LLVMTypeKind as TypeKind};
pub(crate) use module::Module;

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

/// The context of this thread, never freed. (Handles are no `Send`, so contexts of two threads never meet.)
fn context() -> LLVMContextRef {
    thread_local! {
        // SAFETY: creating a context has no precondition.
        static CONTEXT: LLVMContextRef = unsafe { LLVMContextCreate() };
    }
    CONTEXT.with(|context| *context)
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
