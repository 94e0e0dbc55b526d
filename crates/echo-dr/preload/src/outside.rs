//! Calls after which memory of the program is touched by something that can't be watched, or its pages are no longer what they were.
//!
//! Asynchronous input and output goes on in the kernel, or in threads of the C library whose calls aren't hooked; a pipe refers to pages until it is
//! read; a stream's buffer is used by every call on that stream; a ring gets its work without any call. In validation the memory is out of sight
//! from then on: its pair is left alone. Pages change in profiling too.
//!
//! The mapping calls are made by system call, not through the C library: an allocator may need them while nothing can be looked up.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};

use crate::lend::{everything, for_good, pages_change};
use crate::lookup::Slot;
use crate::sys;

/// The real function's address by its name in the C library, or in one of some libraries.
macro_rules! real {
    ($name:ident in $libraries:expr) => {{
        const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        };
        static REAL: Slot = Slot::new(NAME, $libraries);
        REAL.address()
    }};
}

macro_rules! gives {
    ($($name:ident in $libraries:tt ($($arg:ident: $type:ty),*) -> $result:ty, $before:expr $(, then $after:path)?;)*) => {$(
        /// Tells of the memory, and makes the real call.
        ///
        /// # Safety
        /// As for the function of this name.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
            let Some(address) = real!($name in &$libraries) else { return (-libc::ENOSYS) as $result };
            // SAFETY: what the program passes is what the function asks for.
            #[allow(unused_unsafe, reason = "some rows follow the program's pointers")]
            unsafe { $before };
            // SAFETY: the address is that of the function of this name, whose type this is; the arguments are the program's.
            let result = unsafe {
                std::mem::transmute::<usize, unsafe extern "C-unwind" fn($($type),*) -> $result>(address)($($arg),*)
            };
            $($after(result);)?
            result
        }
    )*};
}

type Stream = *mut libc::FILE;

/// # Safety
/// `block` is null or a control block.
unsafe fn request(block: *const libc::aiocb) {
    // SAFETY: the caller's promise.
    if let Some(block) = unsafe { block.as_ref() } {
        for_good(block.aio_buf, block.aio_nbytes);
    }
}

/// # Safety
/// `blocks` has `count` control blocks, or nulls.
unsafe fn requests(blocks: *const *mut libc::aiocb, count: c_int) {
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller's promise.
        unsafe { request(*blocks.add(at)) };
    }
}

/// The kernel's request (`struct iocb`), as far as it names memory.
#[repr(C)]
struct KernelRequest {
    data_key_flags: [u64; 2],
    operation: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
}

/// Gives away what requests to the kernel name.
///
/// # Safety
/// `requests` has `count` valid requests.
pub(crate) unsafe fn kernel_requests(requests: *const *const c_void, count: c_long) {
    /// Requests whose memory is in vectors.
    const VECTORED: [u16; 2] = [7, 8];
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller's promise.
        let Some(request) = (unsafe { (*requests.add(at)).cast::<KernelRequest>().as_ref() }) else { continue };
        let (buffer, bytes) = (request.buffer as usize, request.bytes as usize);
        if VECTORED.contains(&request.operation) {
            // SAFETY: as above.
            unsafe { vectors(buffer as *const libc::iovec, bytes) };
        } else {
            for_good(buffer as *const c_void, bytes);
        }
    }
}

/// # Safety
/// `vectors` is null or has `count` of them.
pub(crate) unsafe fn vectors(vectors: *const libc::iovec, count: usize) {
    if vectors.is_null() {
        return;
    }
    for at in 0..count {
        // SAFETY: the caller's promise.
        let vector = unsafe { *vectors.add(at) };
        for_good(vector.iov_base, vector.iov_len);
    }
}

/// A ring was made: whatever it is told to read or write from now on, nobody sees.
fn ring_made(result: c_int) {
    if result >= 0 {
        everything();
    }
}

gives! {
    aio_read in [] (block: *mut libc::aiocb) -> c_int, request(block);
    aio_read64 in [] (block: *mut libc::aiocb) -> c_int, request(block);
    aio_write in [] (block: *mut libc::aiocb) -> c_int, request(block);
    aio_write64 in [] (block: *mut libc::aiocb) -> c_int, request(block);
    lio_listio in [] (mode: c_int, blocks: *const *mut libc::aiocb, count: c_int, event: *mut libc::sigevent) -> c_int,
        requests(blocks, count);
    lio_listio64 in [] (mode: c_int, blocks: *const *mut libc::aiocb, count: c_int, event: *mut libc::sigevent) -> c_int,
        requests(blocks, count);
    io_submit in ["libaio.so"] (context: usize, count: c_long, requests: *const *const c_void) -> c_int,
        kernel_requests(requests, count);
    io_uring_queue_init in ["liburing.so"] (entries: c_uint, ring: *mut c_void, flags: c_uint) -> c_int, (), then ring_made;
    io_uring_queue_init_params in ["liburing.so"] (entries: c_uint, ring: *mut c_void, parameters: *mut c_void) -> c_int,
        (), then ring_made;
    io_uring_queue_init_mem in ["liburing.so"]
        (entries: c_uint, ring: *mut c_void, parameters: *mut c_void, buffer: *mut c_void, bytes: usize) -> c_int, (), then ring_made;
    vmsplice in [] (fd: c_int, pieces: *const libc::iovec, count: usize, flags: c_uint) -> isize, vectors(pieces, count);
    setvbuf in [] (stream: Stream, buffer: *mut c_char, mode: c_int, bytes: usize) -> c_int, for_good(buffer.cast(), bytes);
}

/// Gives a stream its buffer.
///
/// # Safety
/// As for the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn setbuf(stream: Stream, buffer: *mut c_char) {
    // SAFETY: the caller's promise.
    unsafe { setbuffer(stream, buffer, libc::BUFSIZ as usize) };
}

/// Gives a stream its buffer.
///
/// # Safety
/// As for the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn setbuffer(stream: Stream, buffer: *mut c_char, bytes: usize) {
    let mode = if buffer.is_null() { libc::_IONBF } else { libc::_IOFBF };
    // SAFETY: the caller's promise; both functions are defined by this one.
    unsafe { setvbuf(stream, buffer, mode, bytes) };
}

/// Advice on pages that changes neither what is in them nor whether they can be used.
const HARMLESS_ADVICE: [c_int; 8] = [
    libc::MADV_NORMAL,
    libc::MADV_RANDOM,
    libc::MADV_SEQUENTIAL,
    libc::MADV_WILLNEED,
    libc::MADV_HUGEPAGE,
    libc::MADV_NOHUGEPAGE,
    libc::MADV_DONTDUMP,
    libc::MADV_DODUMP,
];

/// What a mapping call, of any kind, does to pages that are there.
pub(crate) fn mapping_call(number: c_long, arguments: [usize; 6]) {
    let [start, bytes, third, flags, ..] = arguments;
    let changes = match number {
        libc::SYS_mmap => flags as c_int & libc::MAP_FIXED != 0,
        libc::SYS_madvise => !HARMLESS_ADVICE.contains(&(third as c_int)),
        libc::SYS_mprotect | libc::SYS_pkey_mprotect | libc::SYS_mlock | libc::SYS_mlock2 | libc::SYS_mbind => true,
        _ => false,
    };
    if changes {
        pages_change(start as *const c_void, bytes);
    }
}

macro_rules! maps {
    ($($name:ident = $number:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {$(
        /// Tells of pages that change, and makes the system call.
        ///
        /// # Safety
        /// As for the function of this name in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $name($($arg: $type),*) -> $result {
            let mut arguments = [0_usize; 6];
            let given = [$($arg as usize),*];
            arguments[..given.len()].copy_from_slice(&given);
            mapping_call(libc::$number, arguments);
            // SAFETY: the arguments are the program's.
            sys::answer(unsafe { sys::system_call(libc::$number, arguments) }) as $result
        }
    )*};
}

maps! {
    mmap = SYS_mmap(start: *mut c_void, bytes: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    mmap64 = SYS_mmap(start: *mut c_void, bytes: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    mprotect = SYS_mprotect(start: *mut c_void, bytes: usize, protection: c_int) -> c_int;
    madvise = SYS_madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    mlock = SYS_mlock(start: *const c_void, bytes: usize) -> c_int;
    mlock2 = SYS_mlock2(start: *const c_void, bytes: usize, flags: c_uint) -> c_int;
}

/// `ioctl`: its number says how much memory it is given, though not what else that memory points to.
///
/// # Safety
/// As for the C library's; the third argument is read as a register, given or not.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: usize) -> c_int {
    // SAFETY: the arguments are the program's.
    sys::answer(unsafe { ioctl_call([fd as usize, request as usize, argument, 0, 0, 0]) }) as c_int
}

/// The system call.
///
/// # Safety
/// The arguments are the program's.
pub(crate) unsafe fn ioctl_call(arguments: [usize; 6]) -> isize {
    use crate::lend::{Loans, Use};
    /// Where the number has the size, and its bits.
    const SIZE: (u32, usize) = (16, 0x3fff);
    /// Numbers from before they had one (of terminals and sockets) are given no more than this.
    const LEAST: usize = 64;
    // SAFETY: the caller's promise.
    let call = || unsafe { sys::system_call(libc::SYS_ioctl, arguments) };
    let [_, request, argument, ..] = arguments;
    let mut loans = Loans::begin();
    loans.add(Use::Writes, argument as *const c_void, (request >> SIZE.0 & SIZE.1).max(LEAST));
    let mut result = call();
    if result == -(libc::EFAULT as isize) && crate::lend::closed_memory() {
        // What the memory points to was closed, or the program is wrong. The driver may keep what it gets, so no pair can be watched any more.
        everything();
        result = call();
    }
    loans.end();
    result
}
