//! The fault handler's part in validation: is the address a watched one, which access was it, and where in the program.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard};

use echo_dr_format::finding::Access;
use echo_dr_format::site::Site;

use crate::sites::{Registers, Walker};
use crate::{recorder, validate};

/// The handler's own walker: the thread's may be in use. Made before the first page is closed.
static WALKER: Mutex<Option<Walker>> = Mutex::new(None);

/// How often the handler tries to get the walker: another thread's fault is done in microseconds.
const TRIES: u32 = 1_000_000;

/// Makes what the handler needs.
pub(crate) fn prepare() {
    if let Ok(mut walker) = WALKER.lock() {
        *walker = Some(Walker::new());
    }
}

/// The walker's lock, for the time of a fork.
pub(crate) fn hold() -> Option<MutexGuard<'static, Option<Walker>>> {
    WALKER.lock().ok()
}

/// Handles a fault if it is one of validation's; false if it is the program's own.
///
/// # Safety
/// Called by a SIGSEGV handler with what the kernel passed to it.
pub(crate) unsafe fn claims(info: &libc::siginfo_t, context: *mut c_void) -> bool {
    /// The mapping exists and doesn't permit the access; anything else is never ours.
    const SEGV_ACCERR: i32 = 2;
    let Some(validator) = validate::get().filter(|_| info.si_code == SEGV_ACCERR) else { return false };
    // SAFETY: a SIGSEGV has an address.
    let address = unsafe { info.si_addr() } as usize;
    if !validator.is_near(address) {
        return false;
    }
    // SAFETY: the kernel passes the context of the fault.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    validator.fault(address, access(context), site(registers(context)))
}

/// Where the access was; announced to the trace. The fault came from the program's code, so no lock of Echo's is held by this thread.
fn site(registers: Registers) -> Site {
    for _ in 0..TRIES {
        if let Ok(mut walker) = WALKER.try_lock() {
            let Some(walker) = walker.as_mut() else { break };
            let (site, frames) = walker.walk(registers);
            recorder::announce(site, frames.addresses(), walker.modules());
            return site;
        }
        std::hint::spin_loop();
    }
    Site(0)
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> Registers {
    let register = |number: i32| context.uc_mcontext.gregs[number as usize] as usize;
    Registers { pc: register(libc::REG_RIP), sp: register(libc::REG_RSP), fp: register(libc::REG_RBP) }
}

#[cfg(target_arch = "x86_64")]
fn access(context: &libc::ucontext_t) -> Access {
    /// Of the page fault's error code: the access was a store.
    const WRITE: i64 = 2;
    match context.uc_mcontext.gregs[libc::REG_ERR as usize] & WRITE {
        0 => Access::Read,
        _ => Access::Write,
    }
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> Registers {
    let machine = &context.uc_mcontext;
    Registers {
        pc: machine.pc as usize,
        sp: machine.sp as usize,
        fp: machine.regs[29] as usize,
        lr: machine.regs[30] as usize,
    }
}

#[cfg(target_arch = "aarch64")]
fn access(context: &libc::ucontext_t) -> Access {
    /// Mark of the record that has the exception's syndrome.
    const ESR_MAGIC: u32 = 0x4553_5201;
    /// Of the syndrome: the access was a store.
    const WRITE: u64 = 1 << 6;
    /// Bytes that the kernel has for records after the registers.
    const RECORDS: usize = 4096;
    let machine = &raw const context.uc_mcontext;
    // The records begin at the next multiple of 16 after the last register, `pstate`.
    let start = machine as usize + std::mem::offset_of!(libc::mcontext_t, pstate) + size_of::<u64>();
    let start = start.next_multiple_of(16);
    let mut at = start;
    while at + 16 <= start + RECORDS {
        // SAFETY: the kernel's context has RECORDS bytes from `start` on.
        let [magic, bytes] = unsafe { *(at as *const [u32; 2]) };
        if magic == ESR_MAGIC {
            // SAFETY: the record is 16 bytes.
            let syndrome = unsafe { *((at + 8) as *const u64) };
            return if syndrome & WRITE == 0 { Access::Read } else { Access::Write };
        }
        if magic == 0 || bytes < 8 {
            break;
        }
        at += bytes as usize;
    }
    Access::Unknown
}
