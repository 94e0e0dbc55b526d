//! The view of LLVM IR that the passes have: thin, checked wrappers over LLVM's C API.
//!
//! Why not inkwell's value types: an analysis meets every kind of value (constant expressions, metadata, target types), and those types
//! panic on what they do not know. Here a value is one copyable handle, and each query answers `None`, `false` or nothing where it does
//! not apply, so that no input can make a pass panic.
//!
//! | file | |
//! | --- | --- |
//! | `module.rs` | what a module holds; its verifier; adding a constant |
//! | `types.rs` | types, and their sizes in the module's data layout |
//! | `value.rs` | what any value has: kind, name, operands, uses |
//! | `constant.rs` | what constants say |
//! | `global.rs` | functions and global variables |
//! | `block.rs` | blocks, and how control flows between them |
//! | `instruction.rs` | what instructions say |
//! | `call.rs` | calls, and what attributes promise of them |
//! | `debug.rs` | places in the source and names of variables |
//!
//! Safety of the whole room: `'m` is the time for which a module is lent to the pass. A handle is made only from a [`Module`], from another
//! handle, or by an unsafe function that asks for the same; so what it points to is owned by a module that is valid, or by that module's
//! context. Each query checks the kind of value that the C function asks for. Handles of *erased* instructions dangle; only `rewrite`
//! erases, and it forgets a handle when it does.

use std::ffi::c_char;
use std::marker::PhantomData;

use inkwell::llvm_sys::prelude::*;

mod block;
mod call;
mod constant;
mod debug;
mod global;
mod instruction;
mod module;
mod types;
mod value;

pub use self::call::{ArgumentEffect, passes_pointer_on};
pub use self::debug::Location;
pub use self::value::Use;
pub use inkwell::llvm_sys::{
    LLVMIntPredicate as IntPredicate, LLVMLinkage as Linkage, LLVMOpcode as Opcode, LLVMTypeKind as TypeKind,
    LLVMValueKind as ValueKind,
};

/// A module.
#[derive(Clone, Copy)]
pub struct Module<'m> {
    raw: LLVMModuleRef,
    life: PhantomData<&'m ()>,
}

/// Any value: function, global, instruction, argument, constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value<'m> {
    raw: LLVMValueRef,
    life: PhantomData<&'m ()>,
}

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Block<'m> {
    raw: LLVMBasicBlockRef,
    life: PhantomData<&'m ()>,
}

/// A type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Type<'m> {
    raw: LLVMTypeRef,
    life: PhantomData<&'m ()>,
}

fn chain<T: Copy>(first: Option<T>, next: impl Fn(T) -> Option<T>) -> impl Iterator<Item = T> {
    std::iter::successors(first, move |item| next(*item))
}

/// Text that LLVM owns, copied.
///
/// # Safety
/// `start` is null, or points to `length` bytes.
unsafe fn text(start: *const c_char, length: usize) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(start.cast(), length) }).into_owned()
}

/// A C string that LLVM owns, copied; empty for null.
///
/// # Safety
/// `start` is null, or points to a C string.
unsafe fn c_text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { std::ffi::CStr::from_ptr(start) }.to_string_lossy().into_owned()
}
