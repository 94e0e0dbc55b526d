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
    unsafe {
        let (new, old) = (std::ptr::from_ref(new) as usize, &raw mut old as usize);
        system_call(libc::SYS_rt_sigprocmask, [how as usize, new, old, SIGNAL_SET, 0, 0]);
    }
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
/// 64 MiB of addresses, and the program's next large block may come to lie right below it, where it would not lie without Echo. A block of
/// 32 MiB that began 4 KiB before a multiple of 2 MiB was downloaded to five times as slowly as elsewhere (figure1 on the CPU device, x86-64).
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

/// A system call without the C library's `syscall`, which is one of the hooks. The result is the kernel's: errors are negative.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn system_call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel's convention; what the call does to memory is the caller's promise.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("svc 0", in("x8") number as isize, inlateout("x0") a as isize => result, in("x1") b, in("x2") c,
            in("x3") d, in("x4") e, in("x5") f, options(nostack));
    }
    result
}

/// Writes to a file; errno is set if that fails.
///
/// # Safety
/// The descriptor is open, or the call fails.
pub(crate) unsafe fn write(fd: c_int, bytes: &[u8]) -> isize {
    // SAFETY: the kernel reads `bytes`.
    answer(unsafe { system_call(libc::SYS_write, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) })
}

/// The result of a system call as the C library gives it.
pub(crate) fn answer(result: isize) -> isize {
    /// The kernel's errors are from here to -1.
    const FIRST_ERROR: isize = -4095;
    if (FIRST_ERROR..0).contains(&result) {
        // SAFETY: errno's location is this thread's.
        unsafe { *libc::__errno_location() = result.unsigned_abs() as c_int };
        return -1;
    }
    result
}
