//! A kernel that does what a GPU would not allow ends the device process; the last thing that the process does is to say why.

use crate::control::{Control, KERNEL_NAME_BYTES, futex_wake};
use crate::error::CuError;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Name of the running kernel, which is part of its module and so stays; null: none runs.
static KERNEL: AtomicPtr<String> = AtomicPtr::new(std::ptr::null_mut());

static CONTROL: AtomicPtr<Control> = AtomicPtr::new(std::ptr::null_mut());

/// Reports faults of this process in `control` from now on.
pub(super) fn report_in(control: &'static Control) -> std::io::Result<()> {
    CONTROL.store(std::ptr::from_ref(control).cast_mut(), Ordering::Release);
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT] {
        // SAFETY: all-zero is a valid sigaction.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_signal as *const () as usize;
        // Kernel threads overflow their stacks too; the standard library gives each thread another stack for signals.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler only uses what is allowed in one; `action` lives for the call.
        if unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Says which kernel runs from now on. `name` must stay where it is until the next call.
pub(super) fn set_kernel(name: Option<&String>) {
    KERNEL.store(name.map_or(std::ptr::null_mut(), |name| std::ptr::from_ref(name).cast_mut()), Ordering::Release);
}

/// Notes why the process ends, tells the program, ends.
pub(super) fn end(control: &Control, error: CuError, address: u64) -> ! {
    control.fault_address.store(address, Ordering::Relaxed);
    // SAFETY: the name of a running kernel stays where it is while it runs, see `set_kernel`.
    if let Some(name) = unsafe { KERNEL.load(Ordering::Acquire).as_ref() } {
        // The last byte stays 0.
        for (slot, byte) in control.fault_kernel[..KERNEL_NAME_BYTES - 1].iter().zip(name.bytes()) {
            slot.store(byte, Ordering::Relaxed);
        }
    }
    // The first of several threads is the one that is reported.
    let _ = control.fault.compare_exchange(0, error.0 as u32, Ordering::AcqRel, Ordering::Relaxed);
    control.progress.fetch_add(1, Ordering::SeqCst);
    futex_wake(&control.progress, i32::MAX);
    // SAFETY: _exit has no preconditions and may be called in a signal handler.
    unsafe { libc::_exit(1) }
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let error = match signal {
        libc::SIGSEGV | libc::SIGBUS => CuError::ILLEGAL_ADDRESS,
        libc::SIGABRT => CuError::UNKNOWN,
        _ => CuError::LAUNCH_FAILED,
    };
    // SAFETY: the system passes a valid siginfo; for these signals it holds an address.
    let address = unsafe { (*info).si_addr() } as u64;
    let control = CONTROL.load(Ordering::Acquire);
    // SAFETY: a pointer that was stored is one to a block that stays mapped.
    match unsafe { control.as_ref() } {
        Some(control) => end(control, error, address),
        // SAFETY: _exit may be called in a signal handler.
        None => unsafe { libc::_exit(2) },
    }
}
