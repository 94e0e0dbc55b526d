//! Errors, warnings and remarks, given to the compiler that runs the pass, so that they look and count like its own.

use std::ffi::c_char;

use inkwell::llvm_sys::prelude::{LLVMModuleRef, LLVMValueRef};

use crate::ir::{Module, Value};

unsafe extern "C" {
    fn echo_sr_shim_diagnose(module: LLVMModuleRef, severity: u32, text: *const c_char, length: usize);
    fn echo_sr_shim_remark(
        function: LLVMValueRef,
        at: LLVMValueRef,
        kind: u32,
        name: *const c_char,
        name_length: usize,
        pieces: *const Piece,
        count: usize,
    );
}

/// A piece of a remark, as shim.cpp declares it.
#[repr(C)]
struct Piece {
    key: *const c_char,
    key_length: usize,
    text: *const c_char,
    length: usize,
}

/// Which of LLVM's remarks: `-Rpass`, `-Rpass-missed`, `-Rpass-analysis`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemarkKind {
    /// Something was done.
    Passed,
    /// Something was not done.
    Missed,
    /// Something was found out.
    Analysis,
}

/// The compilation ends with this error (exit status not 0); the pass itself returns normally.
pub fn error(module: Module<'_>, text: &str) {
    diagnose(module, 0, text);
}

/// A warning (`-Wbackend-plugin` in clang).
pub fn warning(module: Module<'_>, text: &str) {
    diagnose(module, 1, text);
}

fn diagnose(module: Module<'_>, severity: u32, text: &str) {
    // SAFETY: the module is valid for its lifetime; the shim reads `length` bytes of the text and keeps none.
    unsafe { echo_sr_shim_diagnose(module.raw(), severity, text.as_ptr().cast(), text.len()) }
}

/// A remark of the pass `echo-sr` on a function, at the place of an instruction of it or of a copy of it; `name` is its stable name in
/// `-fsave-optimization-record`, where each piece of the text stands under its key. Nothing happens where `at` is no instruction or the
/// function has no body.
pub fn remark(function: Value<'_>, at: Value<'_>, kind: RemarkKind, name: &str, pieces: &[(&str, &str)]) {
    if !at.is_instruction() || !function.is_function() || function.is_declaration() {
        return;
    }
    let kind = match kind {
        RemarkKind::Passed => 0,
        RemarkKind::Missed => 1,
        RemarkKind::Analysis => 2,
    };
    let pieces: Vec<Piece> = pieces
        .iter()
        .map(|(key, text)| Piece {
            key: key.as_ptr().cast(),
            key_length: key.len(),
            text: text.as_ptr().cast(),
            length: text.len(),
        })
        .collect();
    // SAFETY: `function` is a defined function and `at` an instruction of a valid module; the shim reads the given bytes of the name and of each piece, which live until
    // the end of this function, and keeps none.
    unsafe {
        let (name, name_length) = (name.as_ptr().cast(), name.len());
        echo_sr_shim_remark(function.raw(), at.raw(), kind, name, name_length, pieces.as_ptr(), pieces.len());
    }
}
