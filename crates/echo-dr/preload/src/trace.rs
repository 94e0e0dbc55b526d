//! The trace file: who may write it, and writing lines to it.
//!
//! The file belongs to the first process of a run that opens it: it is locked while that process lives, and a process that finds it locked
//! (started by the first one, say) writes to `FILE.<pid>`. Writes go to the kernel directly: the C library's are hooked.

use std::ffi::{CStr, CString, c_int};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::sys;

/// An open trace.
#[derive(Debug)]
pub(crate) struct TraceFile {
    fd: c_int,
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
        let fd = open(&CString::new(path.as_os_str().as_bytes())?)?;
        // SAFETY: fd was just opened.
        if unsafe { libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            // SAFETY: fd is this function's own.
            unsafe { libc::close(fd) };
            return Ok(None);
        }
        // SAFETY: as above.
        unsafe { libc::ftruncate(fd, 0) };
        Ok(Some(Self { fd }))
    }

    /// Opens a file of this process's own, emptied. Safe in a signal handler.
    pub(crate) fn create(path: &CStr) -> io::Result<Self> {
        let fd = open(path)?;
        // SAFETY: fd was just opened.
        unsafe { libc::ftruncate(fd, 0) };
        Ok(Self { fd })
    }

    /// Closes the descriptor of this process.
    pub(crate) fn close(self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.fd) };
    }

    /// Writes all of `bytes`; false where the file takes no more.
    pub(crate) fn write(&self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            // SAFETY: the buffer is valid for its length.
            let written = unsafe { sys::write(self.fd, bytes) };
            match usize::try_from(written) {
                Ok(written) if written > 0 => bytes = &bytes[written.min(bytes.len())..],
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
        true
    }
}

fn open(path: &CStr) -> io::Result<c_int> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the path ends in NUL.
    let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(away_from_standard_numbers(fd))
}

/// Programs close, reuse and compare small descriptor numbers (a shell's redirections, say), so the trace gets a large one.
fn away_from_standard_numbers(fd: c_int) -> c_int {
    const LARGE: c_int = 900;
    // SAFETY: fd is open; a copy on another number is made and the first closed.
    unsafe {
        let copy = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, LARGE);
        if copy < 0 {
            return fd;
        }
        libc::close(fd);
        copy
    }
}
