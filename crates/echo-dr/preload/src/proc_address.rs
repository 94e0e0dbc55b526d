//! `cuGetProcAddress` as the program calls it: the functions it gives are Echo's.
//!
//! CUDA runtimes, static and shared, take every driver function from here by its base name, a version and a stream variant. The name and
//! the version say which type the function has; one whose type isn't in the table is given as one that isn't known (`unknown.rs`).

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::table::{HOOKS, Hook, Layer, hooks};

/// Flag: functions whose default stream is the thread's own.
const PER_THREAD_DEFAULT_STREAM: u64 = 2;
/// `CUDA_ERROR_NOT_FOUND`.
const NOT_FOUND: c_int = 500;

/// # Safety
/// As for `cuGetProcAddress` of CUDA 11.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[allow(non_snake_case, reason = "the function's name")]
pub(crate) unsafe extern "C" fn cuGetProcAddress(
    symbol: *const c_char,
    out: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> c_int {
    type Real = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64) -> c_int;
    let Some(address) = hooks::cuGetProcAddress.slot.address() else { return NOT_FOUND };
    // SAFETY: the slot holds the real function, whose type this is; the arguments are the program's.
    let result = unsafe { std::mem::transmute::<usize, Real>(address)(symbol, out, version, flags) };
    if result == 0 {
        // SAFETY: the real function took the same arguments and succeeded.
        unsafe { wrap(symbol, out, version, flags) };
    }
    result
}

/// # Safety
/// As for `cuGetProcAddress` of CUDA 12 and later.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[allow(non_snake_case, reason = "the function's name")]
pub(crate) unsafe extern "C" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    out: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> c_int {
    type Real = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> c_int;
    let Some(address) = hooks::cuGetProcAddress_v2.slot.address() else { return NOT_FOUND };
    // SAFETY: the slot holds the real function, whose type this is; the arguments are the program's.
    let result = unsafe { std::mem::transmute::<usize, Real>(address)(symbol, out, version, flags, status) };
    if result == 0 {
        // SAFETY: the real function took the same arguments and succeeded.
        unsafe { wrap(symbol, out, version, flags) };
    }
    result
}

/// Puts Echo's function where the real one was found.
///
/// # Safety
/// `cuGetProcAddress` has succeeded with these arguments.
unsafe fn wrap(symbol: *const c_char, out: *mut *mut c_void, version: c_int, flags: u64) {
    if symbol.is_null() || out.is_null() {
        return;
    }
    // SAFETY: the symbol is a string and out was written by the real function.
    let (symbol, found) = unsafe { (CStr::from_ptr(symbol), *out as usize) };
    if found == 0 {
        return;
    }
    let Ok(symbol) = symbol.to_str() else { return };
    let Some(hook) = hook_of(symbol, version, flags & PER_THREAD_DEFAULT_STREAM != 0) else {
        // SAFETY: as above.
        unsafe { *out = crate::unknown::wrapped(symbol, found) as *mut c_void };
        return;
    };
    let shim = (hook.shim)();
    if found != shim {
        hook.slot.offer(found);
    }
    // SAFETY: as above.
    unsafe { *out = shim as *mut c_void };
}

/// The hook for a base name: the stream variant where the function has one.
fn hook_of(symbol: &str, version: c_int, per_thread: bool) -> Option<&'static Hook> {
    if symbol == "cuGetProcAddress" {
        return Some(if version >= 12000 { &hooks::cuGetProcAddress_v2 } else { &hooks::cuGetProcAddress });
    }
    let fits = |hook: &&&'static Hook| {
        hook.layer == Layer::Driver && hook.versions.contains(&version) && hook.base() == symbol
    };
    let of_variant = |wanted| HOOKS.iter().filter(fits).find(|hook| hook.per_thread == wanted).copied();
    if per_thread { of_variant(true).or_else(|| of_variant(false)) } else { of_variant(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(symbol: &str, version: c_int, per_thread: bool) -> Option<&'static str> {
        hook_of(symbol, version, per_thread).map(|hook| hook.name)
    }

    #[test]
    fn a_base_name_gives_the_type_of_its_version() {
        assert_eq!(name("cuMemAlloc", 12000, false), Some("cuMemAlloc_v2"));
        assert_eq!(name("cuMemAlloc", 3010, false), None, "its sizes have 32 bits");
        assert_eq!(name("cuCtxSynchronize", 12080, false), Some("cuCtxSynchronize"));
        assert_eq!(name("cuCtxSynchronize", 13000, false), Some("cuCtxSynchronize_v2"));
        assert_eq!(name("cuGetProcAddress", 11030, false), Some("cuGetProcAddress"));
        assert_eq!(name("cuGetProcAddress", 13000, true), Some("cuGetProcAddress_v2"));
    }

    #[test]
    fn the_stream_variant_is_taken_where_there_is_one() {
        assert_eq!(name("cuMemcpyHtoD", 13000, true), Some("cuMemcpyHtoD_v2_ptds"));
        assert_eq!(name("cuMemcpyHtoD", 13000, false), Some("cuMemcpyHtoD_v2"));
        assert_eq!(name("cuMemAlloc", 13000, true), Some("cuMemAlloc_v2"));
        assert_eq!(name("cuMemcpyHto", 13000, true), None, "names are matched whole");
    }

    #[test]
    fn no_two_hooks_answer_for_one_function() {
        for hook in HOOKS.iter().filter(|hook| hook.layer == Layer::Driver) {
            let same = |other: &&&Hook| {
                other.layer == Layer::Driver && other.base() == hook.base() && other.per_thread == hook.per_thread
            };
            for other in HOOKS.iter().filter(same).filter(|other| other.name != hook.name) {
                let apart = hook.versions.end <= other.versions.start || other.versions.end <= hook.versions.start;
                assert!(apart || hook.base() == "cuGetProcAddress", "{} and {}", hook.name, other.name);
            }
        }
    }
}
