//! System calls that read or write memory of the program and are done when they return, as functions of the C library.
//!
//! Rows of a table: the function, and what memory it has while it runs (`lend.rs`). What works on after its call is in `outside.rs`; the C library's
//! `syscall`, by which programs make any of them, in `syscall.rs`.
//!
//! The hooks may be unwound through: most of these functions are cancellation points. So their frames have nothing that must be dropped.

use std::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};

use crate::lend::Loans;
use crate::lend::Use::{Reads, Writes};
use crate::lookup::Slot;

macro_rules! touches {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty, |$loans:ident| $lend:expr;)*) => {$(
        /// Lends the memory, then makes the real call.
        ///
        /// # Safety
        /// As for the function of this name in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            static REAL: Slot = Slot::new(NAME, &[]);
            // No C library is without these; a call that can't be made fails as a system call does.
            let Some(address) = REAL.address() else { return -1_i8 as $result };
            // SAFETY: the address is that of the C library's function of this name, whose type this is.
            let real = unsafe { std::mem::transmute::<usize, unsafe extern "C-unwind" fn($($type),*) -> $result>(address) };
            let mut loans = Loans::begin();
            let $loans = &mut loans;
            // SAFETY: the program passes what the kernel asks for, or the kernel will refuse it.
            #[allow(unused_unsafe, reason = "rows with vectors and messages follow the program's pointers")]
            unsafe { $lend };
            // SAFETY: the arguments are the program's.
            let result = unsafe { real($($arg),*) };
            loans.end();
            result
        }
    )*};
}

type Buffer = *mut c_void;
type Data = *const c_void;
type Vectors = *const libc::iovec;
type Stream = *mut libc::FILE;
type Length = libc::socklen_t;
type Address = *mut libc::sockaddr;

/// Where the kernel may write the length of an address that it is given room for, and that room.
unsafe fn room(length: *const Length) -> usize {
    // SAFETY: null, or the program's length.
    unsafe { length.as_ref() }.map_or(0, |&length| length as usize)
}

fn count(number: c_int) -> usize {
    usize::try_from(number).unwrap_or(0)
}

touches! {
    read(fd: c_int, buffer: Buffer, bytes: usize) -> isize, |to| to.add(Writes, buffer, bytes);
    pread(fd: c_int, buffer: Buffer, bytes: usize, offset: i64) -> isize, |to| to.add(Writes, buffer, bytes);
    pread64(fd: c_int, buffer: Buffer, bytes: usize, offset: i64) -> isize, |to| to.add(Writes, buffer, bytes);
    write(fd: c_int, buffer: Data, bytes: usize) -> isize, |to| to.add(Reads, buffer, bytes);
    pwrite(fd: c_int, buffer: Data, bytes: usize, offset: i64) -> isize, |to| to.add(Reads, buffer, bytes);
    pwrite64(fd: c_int, buffer: Data, bytes: usize, offset: i64) -> isize, |to| to.add(Reads, buffer, bytes);
    readv(fd: c_int, vectors: Vectors, number: c_int) -> isize, |to| to.vectors(Writes, vectors, count(number));
    writev(fd: c_int, vectors: Vectors, number: c_int) -> isize, |to| to.vectors(Reads, vectors, count(number));
    preadv(fd: c_int, vectors: Vectors, number: c_int, offset: i64) -> isize, |to| to.vectors(Writes, vectors, count(number));
    preadv64(fd: c_int, vectors: Vectors, number: c_int, offset: i64) -> isize, |to| to.vectors(Writes, vectors, count(number));
    preadv2(fd: c_int, vectors: Vectors, number: c_int, offset: i64, flags: c_int) -> isize,
        |to| to.vectors(Writes, vectors, count(number));
    preadv64v2(fd: c_int, vectors: Vectors, number: c_int, offset: i64, flags: c_int) -> isize,
        |to| to.vectors(Writes, vectors, count(number));
    pwritev(fd: c_int, vectors: Vectors, number: c_int, offset: i64) -> isize, |to| to.vectors(Reads, vectors, count(number));
    pwritev64(fd: c_int, vectors: Vectors, number: c_int, offset: i64) -> isize, |to| to.vectors(Reads, vectors, count(number));
    pwritev2(fd: c_int, vectors: Vectors, number: c_int, offset: i64, flags: c_int) -> isize,
        |to| to.vectors(Reads, vectors, count(number));
    pwritev64v2(fd: c_int, vectors: Vectors, number: c_int, offset: i64, flags: c_int) -> isize,
        |to| to.vectors(Reads, vectors, count(number));

    recv(fd: c_int, buffer: Buffer, bytes: usize, flags: c_int) -> isize, |to| to.add(Writes, buffer, bytes);
    recvfrom(fd: c_int, buffer: Buffer, bytes: usize, flags: c_int, from: Address, length: *mut Length) -> isize,
        |to| { to.add(Writes, buffer, bytes); to.add(Writes, from.cast(), room(length)) };
    recvmsg(fd: c_int, message: *mut libc::msghdr, flags: c_int) -> isize, |to| to.message(Writes, message);
    recvmmsg(fd: c_int, messages: *mut libc::mmsghdr, number: u32, flags: c_int, time: *mut libc::timespec) -> c_int,
        |to| to.messages(Writes, messages, number as usize);
    send(fd: c_int, buffer: Data, bytes: usize, flags: c_int) -> isize, |to| to.add(Reads, buffer, bytes);
    sendto(fd: c_int, buffer: Data, bytes: usize, flags: c_int, to_address: *const libc::sockaddr, length: Length) -> isize,
        |to| to.add(Reads, buffer, bytes);
    sendmsg(fd: c_int, message: *const libc::msghdr, flags: c_int) -> isize, |to| to.message(Reads, message);
    sendmmsg(fd: c_int, messages: *mut libc::mmsghdr, number: u32, flags: c_int) -> c_int,
        |to| to.messages(Reads, messages, number as usize);

    getrandom(buffer: Buffer, bytes: usize, flags: u32) -> isize, |to| to.add(Writes, buffer, bytes);
    getentropy(buffer: Buffer, bytes: usize) -> c_int, |to| to.add(Writes, buffer, bytes);
    getdents64(fd: c_int, buffer: Buffer, bytes: usize) -> isize, |to| to.add(Writes, buffer, bytes);
    readlink(path: *const c_char, buffer: *mut c_char, bytes: usize) -> isize, |to| to.add(Writes, buffer.cast(), bytes);
    readlinkat(folder: c_int, path: *const c_char, buffer: *mut c_char, bytes: usize) -> isize, |to| to.add(Writes, buffer.cast(), bytes);
    msgrcv(queue: c_int, message: Buffer, bytes: usize, kind: c_long, flags: c_int) -> isize,
        |to| to.add(Writes, message, bytes.saturating_add(size_of::<c_long>()));
    msgsnd(queue: c_int, message: Data, bytes: usize, flags: c_int) -> c_int,
        |to| to.add(Reads, message, bytes.saturating_add(size_of::<c_long>()));
    process_vm_readv(process: c_int, mine: Vectors, mine_count: c_ulong, theirs: Vectors, theirs_count: c_ulong, flags: c_ulong) -> isize,
        |to| to.both(process, (mine, mine_count as usize), (theirs, theirs_count as usize), Writes);
    process_vm_writev(process: c_int, mine: Vectors, mine_count: c_ulong, theirs: Vectors, theirs_count: c_ulong, flags: c_ulong) -> isize,
        |to| to.both(process, (mine, mine_count as usize), (theirs, theirs_count as usize), Reads);

    fread(buffer: Buffer, size: usize, number: usize, stream: Stream) -> usize, |to| to.add(Writes, buffer, size.saturating_mul(number));
    fread_unlocked(buffer: Buffer, size: usize, number: usize, stream: Stream) -> usize,
        |to| to.add(Writes, buffer, size.saturating_mul(number));
    fwrite(buffer: Data, size: usize, number: usize, stream: Stream) -> usize, |to| to.add(Reads, buffer, size.saturating_mul(number));
    fwrite_unlocked(buffer: Data, size: usize, number: usize, stream: Stream) -> usize,
        |to| to.add(Reads, buffer, size.saturating_mul(number));

    // What programs that are built with checks of buffer sizes call.
    __read_chk(fd: c_int, buffer: Buffer, bytes: usize, limit: usize) -> isize, |to| to.add(Writes, buffer, bytes);
    __pread_chk(fd: c_int, buffer: Buffer, bytes: usize, offset: i64, limit: usize) -> isize, |to| to.add(Writes, buffer, bytes);
    __pread64_chk(fd: c_int, buffer: Buffer, bytes: usize, offset: i64, limit: usize) -> isize, |to| to.add(Writes, buffer, bytes);
    __recv_chk(fd: c_int, buffer: Buffer, bytes: usize, limit: usize, flags: c_int) -> isize, |to| to.add(Writes, buffer, bytes);
    __recvfrom_chk(fd: c_int, buffer: Buffer, bytes: usize, limit: usize, flags: c_int, from: Address, length: *mut Length) -> isize,
        |to| { to.add(Writes, buffer, bytes); to.add(Writes, from.cast(), room(length)) };
    __readlink_chk(path: *const c_char, buffer: *mut c_char, bytes: usize, limit: usize) -> isize,
        |to| to.add(Writes, buffer.cast(), bytes);
    __readlinkat_chk(folder: c_int, path: *const c_char, buffer: *mut c_char, bytes: usize, limit: usize) -> isize,
        |to| to.add(Writes, buffer.cast(), bytes);
    __fread_chk(buffer: Buffer, limit: usize, size: usize, number: usize, stream: Stream) -> usize,
        |to| to.add(Writes, buffer, size.saturating_mul(number));
    __fread_unlocked_chk(buffer: Buffer, limit: usize, size: usize, number: usize, stream: Stream) -> usize,
        |to| to.add(Writes, buffer, size.saturating_mul(number));
}
