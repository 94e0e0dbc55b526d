//! The plugin's entry and what the shim calls: the only functions that LLVM enters Echo through.
//!
//! No panic leaves this file: a fault inside a pass becomes an error of the compilation.

use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use inkwell::llvm_sys::prelude::LLVMModuleRef;

use super::diagnostics;
use super::{pipeline, prepare};
use crate::effects::derive;
use crate::ir::Module;
use crate::options::Options;

/// The LLVM major that this plugin is built for.
const BUILT_FOR: &str = env!("ECHO_SR_LLVM_MAJOR");

/// The same as a number in the plugin's symbol table, so that the command `echo-sr` can read it without loading LLVM.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static echo_sr_llvm_major: u32 = match u32::from_str_radix(BUILT_FOR, 10) {
    Ok(major) => major,
    Err(_) => panic!("ECHO_SR_LLVM_MAJOR is no number"),
};

/// The environment variable that holds options where the pass is not named with some of its own.
pub const OPTIONS_VARIABLE: &str = "ECHO_SR_OPTIONS";

const PLUGIN_NAME: &CStr = c"echo-sr";
const PLUGIN_VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("the version holds a NUL"),
};

/// The passes; shim.cpp has the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PassKind {
    /// `echo-sr-effects`
    Effects = 0,
    /// `echo-sr-prepare`
    Prepare = 1,
    /// `echo-sr`
    Merge = 2,
}

impl PassKind {
    const ALL: [Self; 3] = [Self::Effects, Self::Prepare, Self::Merge];

    /// Its name in `opt -passes=`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Effects => "echo-sr-effects",
            Self::Prepare => "echo-sr-prepare",
            Self::Merge => "echo-sr",
        }
    }
}

unsafe extern "C" {
    fn echo_sr_shim_fill_info(out: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    fn echo_sr_shim_refuse_info(out: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The plugin's entry. In C++ it returns a `PassPluginLibraryInfo` by value, whose fields depend on the LLVM version, so Rust must not
/// mirror it: the caller's hidden result pointer is handed on to `fill_info`, which has C++ fill it.
///
/// # Safety
/// To be called by LLVM's plugin loader alone.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn llvmGetPassPluginInfo() {
    // x86-64: the result pointer is the first argument, and is returned: exactly fill_info's signature.
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("jmp {}", sym fill_info);
    // AArch64: the result pointer is in x8; nothing has to be returned.
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!("mov x0, x8", "b {}", sym fill_info);
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "the plugin's entry is written for x86-64 and AArch64; add this machine's way of returning a struct to entry.rs"
);

/// Fills the loader's `PassPluginLibraryInfo`, or, in another LLVM than the one that the plugin is built for, says so and fills in a
/// version that the loader refuses.
unsafe extern "C" fn fill_info(out: *mut c_void) -> *mut c_void {
    let (name, version) = (PLUGIN_NAME.as_ptr(), PLUGIN_VERSION.as_ptr());
    match running_llvm() {
        Some(major) if major.to_string() != BUILT_FOR => {
            eprintln!(
                "echo-sr: this plugin is built for LLVM {BUILT_FOR}, but LLVM {major} loads it. Use the clang or opt of LLVM \
                 {BUILT_FOR}, or build the plugin with: cargo build --no-default-features --features llvm{major}"
            );
            // SAFETY: `out` is the loader's result, which has at least the fields that every LLVM's struct has.
            unsafe { echo_sr_shim_refuse_info(out, name, version) }
        }
        // SAFETY: `out` is the result of a loader of the LLVM whose headers the shim was compiled with. (An LLVM that does not say its
        // version has no C API either, and then fails on the first pass name that it is asked for; its loader checks the API version.)
        _ => unsafe { echo_sr_shim_fill_info(out, name, version) },
    }
}

/// The major version of the LLVM in this process; `None` where it does not say.
fn running_llvm() -> Option<u32> {
    // SAFETY: dlsym with a null handle (RTLD_DEFAULT) searches the libraries that are loaded; the name is a C string.
    let symbol = unsafe { dlsym(std::ptr::null_mut(), c"LLVMGetVersion".as_ptr()) };
    if symbol.is_null() {
        return None;
    }
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: LLVM's C API declares LLVMGetVersion so, since LLVM 16.
    unsafe {
        let get_version: extern "C" fn(*mut u32, *mut u32, *mut u32) = std::mem::transmute(symbol);
        get_version(&raw mut major, &raw mut minor, &raw mut patch);
    }
    Some(major)
}

/// The kind of the pass that is called so, or -1.
///
/// # Safety
/// `name` points to `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn echo_sr_pass_kind(name: *const c_char, length: usize) -> i32 {
    // SAFETY: the caller's promise.
    let name = unsafe { bytes(name, length) };
    let kind = PassKind::ALL.into_iter().find(|kind| kind.name().as_bytes() == name);
    kind.map_or(-1, |kind| kind as i32)
}

/// Runs a pass; true if it changed the module.
///
/// # Safety
/// `module` is valid and not used by anyone else during the call; `parameters` is null or points to `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn echo_sr_run_pass(
    module: LLVMModuleRef,
    kind: u32,
    level: i32,
    parameters: *const c_char,
    length: usize,
) -> bool {
    // SAFETY: the caller's promises.
    let (module, parameters) = unsafe {
        (Module::new(module), (!parameters.is_null()).then(|| String::from_utf8_lossy(bytes(parameters, length))))
    };
    let Some(kind) = PassKind::ALL.into_iter().find(|known| *known as u32 == kind) else { return false };
    match catch_unwind(AssertUnwindSafe(|| run(module, kind, level, parameters.as_deref()))) {
        Ok(changed) => changed,
        Err(panic) => {
            diagnostics::error(
                module,
                &format!(
                    "{}: internal error: {}. Please report it with the input; ECHO_SR_OPTIONS=off compiles without Echo.",
                    kind.name(),
                    panic_text(panic.as_ref())
                ),
            );
            true
        }
    }
}

fn run(module: Module<'_>, kind: PassKind, level: i32, parameters: Option<&str>) -> bool {
    let named = parameters.filter(|text| !text.is_empty()).map(str::to_owned);
    let text = named.or_else(|| std::env::var(OPTIONS_VARIABLE).ok()).unwrap_or_default();
    let options = match Options::parse(&text) {
        Ok(options) => options,
        Err(error) => {
            // Several passes see one module; the user reads it once.
            if module.mark("echo-sr.options-refused") {
                diagnostics::error(module, &format!("echo-sr: {error}"));
            }
            return false;
        }
    };
    if options.off {
        return false;
    }
    match kind {
        PassKind::Effects => derive::record_effects(module),
        PassKind::Prepare => level != 0 && prepare::run(module),
        PassKind::Merge => pipeline::run(module, level, &options),
    }
}

/// # Safety
/// `data` is null or points to `length` bytes.
unsafe fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("panic without text")
}
