//! Debug information: places in the source and names of variables.

use std::ffi::{c_char, c_void};

use inkwell::llvm_sys::debuginfo::*;
use inkwell::llvm_sys::prelude::LLVMValueRef;

use super::{Value, text};

unsafe extern "C" {
    fn echo_sr_shim_debug_variables(
        at: LLVMValueRef,
        visit: unsafe extern "C" fn(*mut c_void, LLVMValueRef, bool, *const c_char, usize, usize),
        data: *mut c_void,
    );
}

/// A place that debug information names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// As the compiler was given it.
    pub file: String,
    /// The folder that `file` is relative to.
    pub directory: String,
    /// 1-based.
    pub line: u32,
    /// 1-based.
    pub column: u32,
}

/// A variable of the source that a debug record names.
pub struct Variable<'m> {
    /// What the record binds to it.
    pub value: Value<'m>,
    /// `value` is the variable's address; else it is what the variable holds.
    pub is_address: bool,
    /// Its name.
    pub name: String,
    /// How many calls deep its function is inlined.
    pub depth: usize,
}

impl<'m> Value<'m> {
    /// Where an instruction stands, innermost place first, then the places that it was inlined into.
    #[must_use]
    pub fn locations(self) -> Vec<Location> {
        let mut places = Vec::new();
        if !self.is_instruction() {
            return places;
        }
        // SAFETY: asked only of instructions; metadata is owned by the context and has the kind that LLVM's verifier asks of it.
        unsafe {
            let mut location = LLVMInstructionGetDebugLoc(self.raw);
            while !location.is_null() {
                let file = LLVMDIScopeGetFile(LLVMDILocationGetScope(location));
                if !file.is_null() {
                    let (mut name_length, mut directory_length) = (0, 0);
                    let name = LLVMDIFileGetFilename(file, &raw mut name_length);
                    let directory = LLVMDIFileGetDirectory(file, &raw mut directory_length);
                    places.push(Location {
                        file: text(name, name_length as usize),
                        directory: text(directory, directory_length as usize),
                        line: LLVMDILocationGetLine(location),
                        column: LLVMDILocationGetColumn(location),
                    });
                }
                location = LLVMDILocationGetInlinedAt(location);
            }
        }
        places
    }

    /// Variables that debug records next to an instruction bind.
    #[must_use]
    pub fn debug_variables(self) -> Vec<Variable<'m>> {
        unsafe extern "C" fn visit(
            variables: *mut c_void,
            value: LLVMValueRef,
            is_address: bool,
            name: *const c_char,
            length: usize,
            depth: usize,
        ) {
            // SAFETY: `variables` is what is handed over below; the shim gives a value and `length` bytes of its name.
            unsafe {
                let variables = &mut *variables.cast::<Vec<Variable<'_>>>();
                let name = text(name, length);
                variables.extend(Value::wrap(value).map(|value| Variable { value, is_address, name, depth }));
            }
        }
        let mut variables: Vec<Variable<'m>> = Vec::new();
        if self.is_instruction() {
            // SAFETY: asked only of instructions; `visit` is called during this call only, and does not panic.
            unsafe { echo_sr_shim_debug_variables(self.raw, visit, (&raw mut variables).cast()) };
        }
        variables
    }
}
