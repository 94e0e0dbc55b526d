//! What compiled programs call before `main`: they register their images, kernels and globals. The device is not started for it.

use crate::registry::registry;
use std::ffi::{CStr, CString, c_char, c_void};

/// What a program holds as the handle of its image: a box with the image's number.
type Handle = *mut *mut c_void;

/// The number that a handle stands for.
///
/// # Safety
/// `handle` is null or came from [`register_fat_binary`].
unsafe fn number(handle: Handle) -> Option<u32> {
    // SAFETY: the caller vouches for the handle, which is a leaked box of a number.
    unsafe { handle.cast::<u32>().as_ref() }.copied()
}

/// # Safety
/// `name` is null or a C string.
unsafe fn text(name: *const c_char) -> Option<CString> {
    // SAFETY: the caller vouches for the string.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_owned())
}

/// `__cudaRegisterFatBinary`
///
/// # Safety
/// `wrapper` is what a compiler emits for this call.
pub unsafe fn register_fat_binary(wrapper: *const c_void) -> Handle {
    let number = registry().add_module(wrapper);
    Box::into_raw(Box::new(number)).cast()
}

/// `__cudaUnregisterFatBinary`
///
/// # Safety
/// `handle` came from [`register_fat_binary`] and is not used again.
pub unsafe fn unregister_fat_binary(handle: Handle) {
    // SAFETY: the caller vouches for the handle.
    if let Some(number) = unsafe { number(handle) } {
        registry().remove_module(number);
        // SAFETY: the box was leaked for the program, which does not use it again.
        drop(unsafe { Box::from_raw(handle.cast::<u32>()) });
    }
}

/// `__cudaRegisterFunction`
///
/// # Safety
/// The arguments are what a compiler emits for this call.
pub unsafe fn register_function(handle: Handle, address: *const c_void, name: *const c_char) {
    // SAFETY: the caller vouches for both.
    if let (Some(module), Some(name)) = unsafe { (number(handle), text(name)) } {
        registry().add_function(module, address as usize, name);
    }
}

/// `__cudaRegisterVar`
///
/// # Safety
/// The arguments are what a compiler emits for this call.
pub unsafe fn register_var(handle: Handle, address: *const c_void, name: *const c_char) {
    // SAFETY: the caller vouches for both.
    if let (Some(module), Some(name)) = unsafe { (number(handle), text(name)) } {
        registry().add_variable(module, address as usize, name);
    }
}

/// `__cudaRegisterManagedVar`: `pointer` is the program's pointer to the variable; programs name the variable by the pointer's value.
///
/// # Safety
/// The arguments are what a compiler emits for this call.
pub unsafe fn register_managed_var(handle: Handle, pointer: *mut *mut c_void, name: *const c_char) {
    // SAFETY: the caller vouches for both.
    if let (Some(module), Some(name)) = unsafe { (number(handle), text(name)) } {
        registry().add_managed(module, pointer as usize, name);
    }
}

/// `__cudaInitModule`: managed variables have memory from here on.
///
/// # Safety
/// `handle` came from [`register_fat_binary`].
pub unsafe fn init_module(handle: Handle) -> c_char {
    // SAFETY: the caller vouches for the handle.
    let Some(number) = (unsafe { number(handle) }) else { return 0 };
    c_char::from(super::call(false, |_| registry().load(number)) == 0)
}
