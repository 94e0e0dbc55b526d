//! The few system services that Echo uses without going through functions that it hooks.

use std::ffi::{CStr, c_int, c_void};

/// Nanoseconds of the monotonic clock.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is this function's own.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Bytes of the kernel's signal set.
const SIGNAL_SET: usize = 8;

fn change_mask(how: c_int, new: &u64) -> u64 {
    let mut old = 0_u64;
    // SAFETY: both sets are 8 bytes, which is the kernel's size.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, std::ptr::from_ref(new), &raw mut old, SIGNAL_SET) };
    old
}

/// Runs `f` while no signal handler can run on this thread.
pub(crate) fn with_signals_blocked<T>(f: impl FnOnce() -> T) -> T {
    let old = change_mask(libc::SIG_SETMASK, &u64::MAX);
    let result = f();
    change_mask(libc::SIG_SETMASK, &old);
    result
}

/// Runs `f`; what it did to errno isn't seen by the program.
pub(crate) fn keeping_errno<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: errno's location is this thread's.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = *errno;
    let result = f();
    *errno = before;
    result
}

/// Starts a thread that nobody waits for; false where that can't be done.
///
/// Not one of the standard library's: that registers destructors, for which the C library allocates. A thread's first allocation makes an arena,
/// 64 MiB of addresses, and the program's next large block may come to lie right below it, where it would never lie without Echo. A block of
/// 32 MiB then began 4 KiB before a multiple of 2 MiB, as far from device memory as x86-64 processors copy slowest: up to five times.
pub(crate) fn start_thread(name: &CStr, stack: usize, run: extern "C" fn(*mut c_void) -> *mut c_void) -> bool {
    // SAFETY: the attributes are made and destroyed once; `run` has the type that is asked for; the name ends in NUL, and the thread lives on,
    // or its number isn't used again before this function ends.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_attr_init(&raw mut attributes) != 0 {
            return false;
        }
        libc::pthread_attr_setstacksize(&raw mut attributes, stack);
        libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut thread = 0;
        let started = libc::pthread_create(&raw mut thread, &raw const attributes, run, std::ptr::null_mut()) == 0;
        libc::pthread_attr_destroy(&raw mut attributes);
        if started {
            libc::pthread_setname_np(thread, name.as_ptr());
        }
        started
    }
}
