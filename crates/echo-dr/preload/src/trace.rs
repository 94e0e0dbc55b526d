//! The trace file: who may write it, and writing lines to it.
//!
//! The file belongs to the first process of a run that opens it: it is locked while that process lives, and a process that finds it locked
//! (started by the first one, say) writes to `FILE.<pid>`. Writes go to the kernel directly: the C library's are hooked.
//!
//! A program may close any descriptor, this one too, and its own file may then have the number. So before each write the descriptor is asked
//! what it is; if it is no longer the trace, that is opened again by its name.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_int};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::sys;

/// An open trace.
#[derive(Debug)]
pub(crate) struct TraceFile {
    fd: Cell<c_int>,
    /// Device and number of the file.
    identity: (u64, u64),
    name: CString,
}

/// Device, number and size of an open file.
pub(crate) fn about(fd: c_int) -> io::Result<((u64, u64), u64)> {
    // SAFETY: all zero is a valid structure, which fstat fills; a descriptor that isn't open is an error.
    unsafe {
        let mut about: libc::stat = std::mem::zeroed();
        if libc::fstat(fd, &raw mut about) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(((about.st_dev as u64, about.st_ino as u64), about.st_size.unsigned_abs()))
    }
}

/// How large a file of this process may become: a write beyond sends SIGXFSZ, which ends a program that did not write it.
fn size_limit() -> u64 {
    // SAFETY: getrlimit fills the structure.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0 { limit.rlim_cur } else { u64::MAX }
    }
}

/// The name for the process `pid` that can't have the file itself.
pub(crate) fn name_for(path: &Path, pid: u32) -> CString {
    let mut name = path.as_os_str().as_bytes().to_vec();
    name.extend(format!(".{pid}").bytes());
    // A path with a NUL inside is no file's: opening the empty name fails, and says so.
    CString::new(name).unwrap_or_default()
}

impl TraceFile {
    /// Opens the run's file, emptied; `None` where another process has it.
    pub(crate) fn claim(path: &Path) -> io::Result<Option<Self>> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        let fd = open(&name, libc::O_CREAT)?;
        // SAFETY: fd was just opened.
        if unsafe { libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            // SAFETY: fd is this function's own.
            unsafe { libc::close(fd) };
            return Ok(None);
        }
        Self::emptied(fd, name).map(Some)
    }

    /// Opens a file of this process's own, emptied. Safe in a signal handler, so `name` is never freed here.
    pub(crate) fn create(name: CString) -> io::Result<Self> {
        match open(&name, libc::O_CREAT) {
            Ok(fd) => Self::emptied(fd, name),
            Err(error) => {
                std::mem::forget(name);
                Err(error)
            }
        }
    }

    fn emptied(fd: c_int, name: CString) -> io::Result<Self> {
        // SAFETY: fd was just opened.
        unsafe { libc::ftruncate(fd, 0) };
        // fstat of a descriptor that was just opened works; else no write is made.
        let identity = about(fd).map_or((0, 0), |(identity, _)| identity);
        Ok(Self { fd: Cell::new(fd), identity, name })
    }

    /// Closes the descriptor of this process.
    pub(crate) fn close(self) {
        if self.size().is_some() {
            // SAFETY: the descriptor is this value's own.
            unsafe { libc::close(self.fd.get()) };
        }
    }

    /// Size of the file, if the descriptor is still that file's.
    fn size(&self) -> Option<u64> {
        about(self.fd.get()).ok().filter(|&(identity, _)| identity == self.identity).map(|(_, bytes)| bytes)
    }

    /// Opens the file again whose descriptor the program has closed. The number is the program's now, and stays untouched.
    fn again(&self) -> Option<u64> {
        let fd = open(&self.name, 0).ok()?;
        // SAFETY: fd was just opened. With the old descriptor the lock went too, and another process may have the file by now.
        let locked = unsafe { libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) } == 0;
        match about(fd) {
            Ok((identity, bytes)) if locked && identity == self.identity => {
                self.fd.set(fd);
                Some(bytes)
            }
            _ => {
                // SAFETY: fd was just opened here.
                unsafe { libc::close(fd) };
                None
            }
        }
    }

    /// Writes all of `bytes`; false where the file takes no more.
    pub(crate) fn write(&self, mut bytes: &[u8]) -> bool {
        match self.size().or_else(|| self.again()) {
            Some(size) if size.saturating_add(bytes.len() as u64) <= size_limit() => {}
            // What `last_os_error` says of it.
            found => {
                // SAFETY: errno's location is this thread's.
                unsafe { *libc::__errno_location() = if found.is_some() { libc::EFBIG } else { libc::EBADF } };
                return false;
            }
        }
        while !bytes.is_empty() {
            // SAFETY: the buffer is valid for its length.
            let written = unsafe { sys::write(self.fd.get(), bytes) };
            match usize::try_from(written) {
                Ok(written) if written > 0 => bytes = &bytes[written.min(bytes.len())..],
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
        true
    }
}

fn open(path: &CStr, more: c_int) -> io::Result<c_int> {
    let flags = more | libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the path ends in NUL.
    let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(away_from_standard_numbers(fd))
}

/// Programs close, reuse and compare small descriptor numbers (a shell's redirections, say), so the trace gets a large one, as far as the limit
/// on numbers allows; never a standard one, to which the program writes.
fn away_from_standard_numbers(fd: c_int) -> c_int {
    const LARGE: [c_int; 4] = [900, 200, 50, 3];
    for number in LARGE {
        // SAFETY: fd is open; a copy on another number is made and the first closed.
        unsafe {
            let copy = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, number);
            if copy >= 0 {
                libc::close(fd);
                return copy;
            }
        }
    }
    fd
}
