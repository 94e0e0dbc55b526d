//! The C library's `syscall`, by which programs and libraries make system calls that have no function, or avoid it.
//!
//! Outside of validation, and for calls that are given no memory, it is what the C library's own is: the registers moved by one and the instruction, in
//! no frame of its own, since `clone` and its like return twice. A system call that a program makes by the instruction itself is seen by nobody.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lend::Loans;
use crate::lend::Use::{Reads, Writes};
use crate::{exit, lend, outside, sys};

/// System calls are looked at: a session records. Read by the assembly.
static WATCHING: AtomicBool = AtomicBool::new(false);

/// From now on system calls are looked at.
pub(crate) fn watch() {
    WATCHING.store(true, Ordering::Release);
}

#[cfg(target_arch = "x86_64")]
/// # Safety
/// As for the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) unsafe extern "C-unwind" fn syscall() -> c_long {
    std::arch::naked_asm!(
        "cmp byte ptr [rip + {watching}], 0",
        "jne 2f",
        "1:",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, qword ptr [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 3f",
        "ret",
        "2:",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 8",
        "call {has_memory}",
        "add rsp, 8",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "test al, al",
        "je 1b",
        "jmp {lent}",
        "3:",
        "mov rdi, rax",
        "jmp {fail}",
        watching = sym WATCHING,
        has_memory = sym has_memory,
        lent = sym lent,
        fail = sym fail,
    )
}

#[cfg(target_arch = "aarch64")]
/// # Safety
/// As for the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) unsafe extern "C-unwind" fn syscall() -> c_long {
    std::arch::naked_asm!(
        "adrp x16, {watching}",
        "ldrb w16, [x16, :lo12:{watching}]",
        "cbnz w16, 2f",
        "1:",
        "mov x8, x0",
        "mov x0, x1",
        "mov x1, x2",
        "mov x2, x3",
        "mov x3, x4",
        "mov x4, x5",
        "mov x5, x6",
        "svc 0",
        "cmn x0, #4095",
        "b.cs 3f",
        "ret",
        "2:",
        "stp x29, x30, [sp, #-80]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "str x6, [sp, #64]",
        "bl {has_memory}",
        "mov w16, w0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldr x6, [sp, #64]",
        "ldp x29, x30, [sp], #80",
        "and w16, w16, #0xff",
        "cbz w16, 1b",
        "b {lent}",
        "3:",
        "b {fail}",
        watching = sym WATCHING,
        has_memory = sym has_memory,
        lent = sym lent,
        fail = sym fail,
    )
}

/// Sets errno.
unsafe extern "C" fn fail(result: isize) -> c_long {
    sys::answer(result) as c_long
}

/// Numbers that are the same on all architectures, and that the bindings of the C library may not have.
const IO_URING_SETUP: c_long = 425;

/// This call is given memory of the program, or changes or leaves it.
unsafe extern "C" fn has_memory(number: c_long) -> bool {
    matches!(
        number,
        libc::SYS_read
            | libc::SYS_pread64
            | libc::SYS_readv
            | libc::SYS_preadv
            | libc::SYS_preadv2
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_recvmmsg
            | libc::SYS_getrandom
            | libc::SYS_getdents64
            | libc::SYS_readlinkat
            | libc::SYS_write
            | libc::SYS_pwrite64
            | libc::SYS_writev
            | libc::SYS_pwritev
            | libc::SYS_pwritev2
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg
            | libc::SYS_process_vm_readv
            | libc::SYS_process_vm_writev
            | libc::SYS_ioctl
            | libc::SYS_vmsplice
            | libc::SYS_io_submit
            | IO_URING_SETUP
            | libc::SYS_mmap
            | libc::SYS_mprotect
            | libc::SYS_pkey_mprotect
            | libc::SYS_madvise
            | libc::SYS_mlock
            | libc::SYS_mlock2
            | libc::SYS_mbind
            | libc::SYS_exit_group
            | libc::SYS_execve
            | libc::SYS_execveat
    )
}

/// Such a call.
unsafe extern "C-unwind" fn lent(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long {
    let arguments = [a, b, c, d, e, f];
    let mut loans = Loans::begin();
    let (buffer, vectors) = (b as *const c_void, b as *const libc::iovec);
    // SAFETY: the program passes what the kernel asks for, or the kernel will refuse it.
    unsafe {
        match number {
            libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom | libc::SYS_getdents64 => {
                loans.add(Writes, buffer, c)
            }
            libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => loans.add(Reads, buffer, c),
            libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 => loans.vectors(Writes, vectors, c),
            libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => loans.vectors(Reads, vectors, c),
            libc::SYS_recvmsg => loans.message(Writes, b as *const libc::msghdr),
            libc::SYS_sendmsg => loans.message(Reads, b as *const libc::msghdr),
            libc::SYS_recvmmsg => loans.messages(Writes, b as *const libc::mmsghdr, c),
            libc::SYS_sendmmsg => loans.messages(Reads, b as *const libc::mmsghdr, c),
            libc::SYS_getrandom => loans.add(Writes, a as *const c_void, b),
            libc::SYS_readlinkat => loans.add(Writes, c as *const c_void, d),
            libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => {
                let does = if number == libc::SYS_process_vm_readv { Writes } else { Reads };
                loans.both(a as c_int, (vectors, c), (d as *const libc::iovec, e), does);
            }
            libc::SYS_ioctl => return sys::answer(outside::ioctl_call(arguments)) as c_long,
            libc::SYS_exit_group => exit::finish(),
            libc::SYS_execve | libc::SYS_execveat => exit::leave_for_another_program(),
            libc::SYS_vmsplice => outside::vectors(vectors, c),
            libc::SYS_io_submit => outside::kernel_requests(c as *const *const c_void, b as c_long),
            number => outside::mapping_call(number, arguments),
        }
    }
    // SAFETY: the arguments are the program's.
    let result = unsafe { sys::system_call(number, arguments) };
    loans.end();
    if number == IO_URING_SETUP && result >= 0 {
        lend::everything();
    }
    sys::answer(result) as c_long
}
