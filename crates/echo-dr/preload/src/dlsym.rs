//! `dlsym` and `dlvsym` as the program calls them: a program that looks up a CUDA function gets Echo's.
//!
//! That is how statically linked CUDA runtimes reach the driver: `dlsym(libcuda, "cuGetProcAddress_v2")`, then every other function through
//! it. Names are matched exactly, and only where the real look-up finds something: a program that asks whether a function exists gets the
//! true answer.
//!
//! The real `dlsym` judges `RTLD_NEXT` and `RTLD_DEFAULT` by its return address. So the hook is assembly that leaves by a jump: the real one
//! sees the program as its caller. The filter is asked first; what it declines goes on unchanged, error text included.

use std::ffi::{CStr, c_char, c_void};

use crate::lookup;
use crate::{table, unknown};
use echo_dr_format::functions::concerns_memory;

#[cfg(target_arch = "x86_64")]
/// # Safety
/// As for `dlsym`.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "push rdi",
        "call {filter}",
        "pop rdi",
        "test rax, rax",
        "jne 2f",
        "mov rsi, rdx",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "je 2f",
        "jmp rax",
        "2:",
        "ret",
        filter = sym filter,
        real = sym lookup::REAL_DLSYM,
    )
}

#[cfg(target_arch = "aarch64")]
/// # Safety
/// As for `dlsym`.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "str x0, [sp, #16]",
        "bl {filter}",
        "mov x16, x0",
        "ldr x0, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbnz x16, 2f",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "cbz x16, 2f",
        "br x16",
        "2:",
        "mov x0, x16",
        "ret",
        filter = sym filter,
        real = sym lookup::REAL_DLSYM,
    )
}

#[cfg(target_arch = "x86_64")]
/// # Safety
/// As for `dlvsym`.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlvsym(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
) -> *mut c_void {
    std::arch::naked_asm!(
        "push rdi",
        "push rdx",
        "sub rsp, 8",
        "call {filter}",
        "mov rsi, rdx",
        "add rsp, 8",
        "pop rdx",
        "pop rdi",
        "test rax, rax",
        "jne 2f",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "je 2f",
        "jmp rax",
        "2:",
        "ret",
        filter = sym filter_version,
        real = sym lookup::REAL_DLVSYM,
    )
}

#[cfg(target_arch = "aarch64")]
/// # Safety
/// As for `dlvsym`.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlvsym(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
) -> *mut c_void {
    std::arch::naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x2, [sp, #16]",
        "bl {filter}",
        "mov x16, x0",
        "ldp x0, x2, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbnz x16, 2f",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "cbz x16, 2f",
        "br x16",
        "2:",
        "mov x0, x16",
        "ret",
        filter = sym filter_version,
        real = sym lookup::REAL_DLVSYM,
    )
}

/// What the assembly does next; in two registers on both architectures.
#[repr(C)]
struct Answer {
    /// Echo's function; null: the real `dlsym` is asked.
    function: *mut c_void,
    /// For what it is asked.
    name: *const c_char,
}

unsafe extern "C" fn filter(handle: *mut c_void, name: *const c_char) -> Answer {
    let real = lookup::real_dlsym();
    // SAFETY: handle and name are the program's.
    answer(handle, name, || real.map_or(0, |real| unsafe { real(handle, name) } as usize))
}

unsafe extern "C" fn filter_version(handle: *mut c_void, name: *const c_char, version: *const c_char) -> Answer {
    let real = lookup::real_dlvsym();
    // SAFETY: handle, name and version are the program's.
    answer(handle, name, || real.map_or(0, |real| unsafe { real(handle, name, version) } as usize))
}

fn answer(handle: *mut c_void, name: *const c_char, real: impl FnOnce() -> usize) -> Answer {
    let real_answer = Answer { function: std::ptr::null_mut(), name };
    // What follows an interposer is that interposer's business.
    if handle == libc::RTLD_NEXT || name.is_null() {
        return real_answer;
    }
    // SAFETY: the program passes a string to dlsym.
    let text = unsafe { CStr::from_ptr(name) };
    let Some(hook) = table::by_name(text) else {
        if !concerns_memory(text.to_str().unwrap_or_default()) {
            return real_answer;
        }
        // Nothing was found: the real one is asked again, for its error text.
        return Answer { function: unknown::wrapped_symbol(text, real()) as *mut c_void, name };
    };
    let found = real();
    if found == 0 {
        return real_answer;
    }
    if found != (hook.shim)() {
        hook.slot.offer(found);
    }
    if hook.slot.address().is_none() {
        // Found is this library's function and there is no other: to the program it doesn't exist.
        return Answer { name: c"(a CUDA function that no loaded library has)".as_ptr(), ..real_answer };
    }
    Answer { function: (hook.shim)() as *mut c_void, name }
}
