//! The malloc family as the program calls it.
//!
//! The fast path decides nothing and costs what a bare forwarding interposer costs: one compare, then a tail call through a pointer that
//! starts as the look-up itself, so there is no test for "not resolved yet". Whether a freed block is one that Echo knows is first a
//! compare with the lowest such address. Everything else is in `heap.rs`.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{heap, tracked};

/// θ_min, in bytes; a request below it is forwarded. No request reaches the initial value, so before the library is ready all are.
pub(crate) static THRESHOLD: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The smallest θ_min. The loader enlarges a thread's table of thread-local storage (16 bytes an object) by malloc, and from glibc 2.39 on it may do so
/// inside an access of this library's own: such a request must take the fast path, which has no thread-local storage.
pub(crate) const LEAST: usize = 4096;

#[inline(always)]
fn is_small(bytes: usize) -> bool {
    bytes < THRESHOLD.load(Ordering::Relaxed)
}

/// The real functions of the family. Each is a pointer that starts as a function that looks the real one up; where that can't be done
/// (a look-up is what called), `otherwise` serves the call.
pub(crate) mod real {
    use std::ffi::{CStr, c_int, c_void};
    use std::sync::atomic::{AtomicPtr, Ordering};

    use crate::{arena, lookup};

    macro_rules! real {
        ($($name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?, otherwise $otherwise:expr;)*) => {$(
            /// Calls the real function.
            ///
            /// # Safety
            /// As for the function of this name in the C library.
            #[inline(always)]
            pub(crate) unsafe fn $name($($arg: $type),*) $(-> $result)? {
                type Real = unsafe extern "C" fn($($type),*) $(-> $result)?;
                static REAL: AtomicPtr<()> = AtomicPtr::new(first as *const () as *mut ());
                #[cold]
                unsafe extern "C" fn first($($arg: $type),*) $(-> $result)? {
                    const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => c"",
                    };
                    let Some(address) = lookup::next(NAME) else { return $otherwise };
                    REAL.store(address as *mut (), Ordering::Relaxed);
                    // SAFETY: the address is that of the C library's function of this name, whose type this is.
                    let real = unsafe { std::mem::transmute::<usize, Real>(address) };
                    // SAFETY: the caller's promise.
                    unsafe { real($($arg),*) }
                }
                // SAFETY: REAL only ever holds `first` and the real function, and both have this type.
                let real = unsafe { std::mem::transmute::<*mut (), Real>(REAL.load(Ordering::Relaxed)) };
                // SAFETY: the caller's promise.
                unsafe { real($($arg),*) }
            }
        )*};
    }

    /// For what no look-up needs: the program is told that there is no memory.
    const NONE: *mut c_void = std::ptr::null_mut();

    real! {
        malloc(bytes: usize) -> *mut c_void, otherwise arena::allocate(bytes);
        calloc(count: usize, bytes: usize) -> *mut c_void, otherwise count.checked_mul(bytes).map_or(NONE, arena::allocate);
        realloc(block: *mut c_void, bytes: usize) -> *mut c_void, otherwise if block.is_null() { arena::allocate(bytes) } else { NONE };
        reallocarray(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void, otherwise NONE;
        free(block: *mut c_void), otherwise { let _ = block; };
        aligned_alloc(align: usize, bytes: usize) -> *mut c_void, otherwise { let _ = (align, bytes); NONE };
        posix_memalign(out: *mut *mut c_void, align: usize, bytes: usize) -> c_int, otherwise { let _ = (out, align, bytes); libc::ENOMEM };
        memalign(align: usize, bytes: usize) -> *mut c_void, otherwise { let _ = (align, bytes); NONE };
        valloc(bytes: usize) -> *mut c_void, otherwise { let _ = bytes; NONE };
        pvalloc(bytes: usize) -> *mut c_void, otherwise { let _ = bytes; NONE };
        malloc_usable_size(block: *mut c_void) -> usize, otherwise { let _ = block; 0 };
    }
}

/// # Safety
/// As for `malloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    if is_small(bytes) {
        // SAFETY: the caller's promise.
        return unsafe { real::malloc(bytes) };
    }
    heap::malloc(bytes)
}

/// # Safety
/// As for `calloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        Some(whole) if !is_small(whole) => heap::calloc(count, bytes, whole),
        // SAFETY: the caller's promise. An overflow is the real function's to refuse.
        _ => unsafe { real::calloc(count, bytes) },
    }
}

/// # Safety
/// As for `realloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    if is_small(bytes) && !tracked::may_be(block as usize) {
        // SAFETY: the caller's promise.
        return unsafe { real::realloc(block, bytes) };
    }
    // SAFETY: the caller's promise.
    unsafe { heap::realloc(block, bytes) }
}

/// # Safety
/// As for `reallocarray`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        Some(whole) if !is_small(whole) || tracked::may_be(block as usize) => {
            // SAFETY: the caller's promise.
            unsafe { heap::realloc(block, whole) }
        }
        // SAFETY: the caller's promise. An overflow is the real function's to refuse.
        _ => unsafe { real::reallocarray(block, count, bytes) },
    }
}

/// # Safety
/// As for `free`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    if !tracked::may_be(block as usize) {
        // SAFETY: the caller's promise.
        return unsafe { real::free(block) };
    }
    // SAFETY: the caller's promise.
    unsafe { heap::free(block) }
}

/// # Safety
/// As for `aligned_alloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    if is_small(bytes) {
        // SAFETY: the caller's promise.
        return unsafe { real::aligned_alloc(align, bytes) };
    }
    // SAFETY: the caller's promise.
    heap::aligned(align, bytes, || unsafe { real::aligned_alloc(align, bytes) })
}

/// # Safety
/// As for `posix_memalign`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    if is_small(bytes) {
        // SAFETY: the caller's promise.
        return unsafe { real::posix_memalign(out, align, bytes) };
    }
    // SAFETY: the caller's promise.
    unsafe { heap::posix_memalign(out, align, bytes) }
}

/// # Safety
/// As for `memalign`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    if is_small(bytes) {
        // SAFETY: the caller's promise.
        return unsafe { real::memalign(align, bytes) };
    }
    // SAFETY: the caller's promise.
    heap::aligned(align, bytes, || unsafe { real::memalign(align, bytes) })
}

/// # Safety
/// As for `valloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn valloc(bytes: usize) -> *mut c_void {
    if is_small(bytes) {
        // SAFETY: the caller's promise.
        return unsafe { real::valloc(bytes) };
    }
    // SAFETY: the caller's promise.
    heap::aligned(crate::pages::size(), bytes, || unsafe { real::valloc(bytes) })
}

/// # Safety
/// As for `pvalloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    if is_small(bytes) {
        // SAFETY: the caller's promise.
        return unsafe { real::pvalloc(bytes) };
    }
    // SAFETY: the caller's promise.
    heap::aligned(crate::pages::size(), bytes, || unsafe { real::pvalloc(bytes) })
}

/// # Safety
/// As for `malloc_usable_size`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if !tracked::may_be(block as usize) {
        // SAFETY: the caller's promise.
        return unsafe { real::malloc_usable_size(block) };
    }
    // SAFETY: the caller's promise.
    unsafe { heap::usable_size(block) }
}
