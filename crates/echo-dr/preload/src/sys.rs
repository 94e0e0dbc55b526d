//! The few system services that Echo uses without going through functions that it hooks.

use std::ffi::c_int;

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
