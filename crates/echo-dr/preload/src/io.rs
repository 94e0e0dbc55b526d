//! System calls that read or write memory of the program, as the program makes them.
//!
//! A system call never raises SIGSEGV on a protected page, it fails with EFAULT. So in validation each function tells of its memory first; watched
//! pages there are opened and the touch counts. In all other modes these functions cost one load.

use std::ffi::{c_int, c_void};

use crate::lookup::Slot;
use crate::sites::Registers;
use crate::thread::Token;
use crate::{local, validate};

/// What a function does with the memory it is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Reads,
    Writes,
}
use Use::{Reads, Writes};

/// The program's memory is about to be given to the kernel.
#[inline]
fn touch(does: Use, address: *const c_void, bytes: usize) {
    if let Some(validator) = validate::get()
        && validator.is_near(address as usize, bytes)
    {
        touch_watched(validator, does, address as usize, bytes);
    }
}

#[cold]
#[inline(never)]
fn touch_watched(validator: &validate::Validator, does: Use, address: usize, bytes: usize) {
    // Inside another hooked call the site is not asked for: what counts is that the memory is opened.
    let site = match Token::outermost() {
        Some(token) => local::mine(&token).announced_site(&token, Registers::here()),
        None => echo_dr_format::site::Site(0),
    };
    validator.system_call(address, bytes, does == Writes, site);
}

/// # Safety
/// `vectors` are `count` valid vectors, or the kernel will refuse them.
unsafe fn touch_vectors(does: Use, vectors: *const libc::iovec, count: c_int) {
    if validate::get().is_none() || vectors.is_null() {
        return;
    }
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller's promise.
        let vector = unsafe { *vectors.add(at) };
        touch(does, vector.iov_base, vector.iov_len);
    }
}

/// # Safety
/// `message` is null or valid.
unsafe fn touch_message(does: Use, message: *const libc::msghdr) {
    // SAFETY: the caller's promise.
    if let Some(message) = unsafe { message.as_ref() } {
        // SAFETY: a valid message has valid vectors.
        unsafe { touch_vectors(does, message.msg_iov, c_int::try_from(message.msg_iovlen).unwrap_or(c_int::MAX)) };
    }
}

/// A system call that returned `result` could not use the memory that it was given, and pages may be closed in this run.
#[inline]
fn failed_on_memory(result: isize) -> bool {
    // SAFETY: errno's location is this thread's.
    result == -1 && validate::get().is_some() && unsafe { *libc::__errno_location() } == libc::EFAULT
}

macro_rules! touches {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty, $touch:expr;)*) => {$(
        /// Tells validation of the memory, then makes the real call.
        ///
        /// # Safety
        /// As for the function of this name in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $name($($arg: $type),*) -> $result {
            const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            static REAL: Slot = Slot::new(NAME, &[]);
            // No C library is without these; a call that can't be made fails as a system call does.
            let Some(address) = REAL.address() else { return -1_i8 as $result };
            // SAFETY: the address is that of the C library's function of this name, whose type this is.
            let real = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> $result>(address) };
            $touch;
            // SAFETY: the arguments are the program's.
            let result = unsafe { real($($arg),*) };
            if !failed_on_memory(result as isize) {
                return result;
            }
            // A window opened while the call was waiting. The kernel has taken nothing, so the call can be made again.
            $touch;
            // SAFETY: as above.
            unsafe { real($($arg),*) }
        }
    )*};
}

type Stream = *mut libc::FILE;
type Length = libc::socklen_t;

touches! {
    read(fd: c_int, buffer: *mut c_void, bytes: usize) -> isize, touch(Writes, buffer, bytes);
    pread(fd: c_int, buffer: *mut c_void, bytes: usize, offset: i64) -> isize, touch(Writes, buffer, bytes);
    pread64(fd: c_int, buffer: *mut c_void, bytes: usize, offset: i64) -> isize, touch(Writes, buffer, bytes);
    write(fd: c_int, buffer: *const c_void, bytes: usize) -> isize, touch(Reads, buffer, bytes);
    pwrite(fd: c_int, buffer: *const c_void, bytes: usize, offset: i64) -> isize, touch(Reads, buffer, bytes);
    pwrite64(fd: c_int, buffer: *const c_void, bytes: usize, offset: i64) -> isize, touch(Reads, buffer, bytes);
    // SAFETY: the program passes vectors.
    readv(fd: c_int, vectors: *const libc::iovec, count: c_int) -> isize, unsafe { touch_vectors(Writes, vectors, count) };
    // SAFETY: as above.
    writev(fd: c_int, vectors: *const libc::iovec, count: c_int) -> isize, unsafe { touch_vectors(Reads, vectors, count) };
    // SAFETY: as above.
    preadv(fd: c_int, vectors: *const libc::iovec, count: c_int, offset: i64) -> isize, unsafe { touch_vectors(Writes, vectors, count) };
    // SAFETY: as above.
    preadv64(fd: c_int, vectors: *const libc::iovec, count: c_int, offset: i64) -> isize, unsafe { touch_vectors(Writes, vectors, count) };
    // SAFETY: as above.
    pwritev(fd: c_int, vectors: *const libc::iovec, count: c_int, offset: i64) -> isize, unsafe { touch_vectors(Reads, vectors, count) };
    // SAFETY: as above.
    pwritev64(fd: c_int, vectors: *const libc::iovec, count: c_int, offset: i64) -> isize, unsafe { touch_vectors(Reads, vectors, count) };
    recv(fd: c_int, buffer: *mut c_void, bytes: usize, flags: c_int) -> isize, touch(Writes, buffer, bytes);
    recvfrom(fd: c_int, buffer: *mut c_void, bytes: usize, flags: c_int, from: *mut libc::sockaddr, length: *mut Length) -> isize,
        touch(Writes, buffer, bytes);
    // SAFETY: the program passes a message.
    recvmsg(fd: c_int, message: *mut libc::msghdr, flags: c_int) -> isize, unsafe { touch_message(Writes, message) };
    send(fd: c_int, buffer: *const c_void, bytes: usize, flags: c_int) -> isize, touch(Reads, buffer, bytes);
    sendto(fd: c_int, buffer: *const c_void, bytes: usize, flags: c_int, to: *const libc::sockaddr, length: Length) -> isize,
        touch(Reads, buffer, bytes);
    // SAFETY: the program passes a message.
    sendmsg(fd: c_int, message: *const libc::msghdr, flags: c_int) -> isize, unsafe { touch_message(Reads, message) };
    getrandom(buffer: *mut c_void, bytes: usize, flags: u32) -> isize, touch(Writes, buffer, bytes);
    fread(buffer: *mut c_void, size: usize, count: usize, stream: Stream) -> usize, touch(Writes, buffer, size.saturating_mul(count));
    fread_unlocked(buffer: *mut c_void, size: usize, count: usize, stream: Stream) -> usize, touch(Writes, buffer, size.saturating_mul(count));
    fwrite(buffer: *const c_void, size: usize, count: usize, stream: Stream) -> usize, touch(Reads, buffer, size.saturating_mul(count));
    fwrite_unlocked(buffer: *const c_void, size: usize, count: usize, stream: Stream) -> usize, touch(Reads, buffer, size.saturating_mul(count));
    // What programs that are built with checks of buffer sizes call.
    __read_chk(fd: c_int, buffer: *mut c_void, bytes: usize, limit: usize) -> isize, touch(Writes, buffer, bytes);
    __pread_chk(fd: c_int, buffer: *mut c_void, bytes: usize, offset: i64, limit: usize) -> isize, touch(Writes, buffer, bytes);
    __pread64_chk(fd: c_int, buffer: *mut c_void, bytes: usize, offset: i64, limit: usize) -> isize, touch(Writes, buffer, bytes);
    __recv_chk(fd: c_int, buffer: *mut c_void, bytes: usize, limit: usize, flags: c_int) -> isize, touch(Writes, buffer, bytes);
    __fread_chk(buffer: *mut c_void, limit: usize, size: usize, count: usize, stream: Stream) -> usize,
        touch(Writes, buffer, size.saturating_mul(count));
}
