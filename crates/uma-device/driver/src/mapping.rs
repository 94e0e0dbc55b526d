//! Memory files and mappings of them: the only place that calls `mmap` and `mprotect`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Bytes of a page of this machine.
pub fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// What may be done with a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nothing: every access is a SIGSEGV.
    None,
    /// Reads and writes.
    ReadWrite,
}

impl Protection {
    fn bits(self) -> libc::c_int {
        match self {
            Protection::None => libc::PROT_NONE,
            Protection::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        }
    }
}

/// A file that lives in memory alone; it is closed on exec and leaves no trace in any file system.
pub fn memory_file(name: &std::ffi::CStr, bytes: usize) -> io::Result<OwnedFd> {
    // SAFETY: `name` is a C string; the call has no other precondition.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just returned to us and belongs to no one else.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    resize(&fd, bytes)?;
    Ok(fd)
}

fn resize(file: &OwnedFd, bytes: usize) -> io::Result<()> {
    let bytes = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: ftruncate takes any descriptor and reports errors.
    match unsafe { libc::ftruncate(file.as_raw_fd(), bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Bytes of a memory file.
pub fn file_bytes(file: RawFd) -> io::Result<usize> {
    // SAFETY: all-zero is a valid stat.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: fstat takes any descriptor and reports errors; `stat` is writable.
    match unsafe { libc::fstat(file, &mut stat) } {
        0 => usize::try_from(stat.st_size).map_err(io::Error::other),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives the pages of `offset..offset + bytes` back to the system; they read as zeroes afterwards.
pub fn punch_hole(file: RawFd, offset: usize, bytes: usize) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: fallocate takes any descriptor and range and reports errors.
    match unsafe { libc::fallocate(file, mode, offset as libc::off_t, bytes as libc::off_t) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Where a mapping goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The system chooses.
    Anywhere,
    /// This address, which must be free.
    Free(usize),
    /// This address; what is mapped there is replaced.
    ///
    /// The caller vouches that it owns these pages.
    Replace(usize),
}

/// A shared mapping of a part of a file; it is unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    address: usize,
    bytes: usize,
}

impl Mapping {
    /// Maps `bytes` of `file` from `offset`. A taken address is [`io::ErrorKind::AlreadyExists`].
    pub fn new(file: RawFd, offset: usize, bytes: usize, place: Place, protection: Protection) -> io::Result<Mapping> {
        let (address, flags) = match place {
            Place::Anywhere => (0, 0),
            Place::Free(address) => (address, libc::MAP_FIXED_NOREPLACE),
            Place::Replace(address) => (address, libc::MAP_FIXED),
        };
        let flags = flags | libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: with `Anywhere` and `Free` nothing that is mapped changes; with `Replace` the caller vouches for the pages.
        let got = unsafe {
            libc::mmap(address as *mut libc::c_void, bytes, protection.bits(), flags, file, offset as libc::off_t)
        };
        if got == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = Mapping { address: got as usize, bytes };
        if place != Place::Anywhere && mapping.address != address {
            // A kernel older than 4.17 takes the address of `Free` as a hint.
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        Ok(mapping)
    }

    /// First address.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps the pages mapped for ever.
    pub fn leak(self) {
        std::mem::forget(self);
    }

    /// Keeps these pages out of core dumps (they are large and sparse).
    pub fn leave_out_of_dumps(&self) {
        // SAFETY: the range is a mapping of ours; the advice changes no contents.
        unsafe { libc::madvise(self.address as *mut libc::c_void, self.bytes, libc::MADV_DONTDUMP) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and is not used after this: whoever hands out addresses in it outlives its users.
        unsafe { libc::munmap(self.address as *mut libc::c_void, self.bytes) };
    }
}

/// Changes what may be done with `bytes` at `address`, whole pages of a mapping of ours.
pub fn protect(address: usize, bytes: usize, protection: Protection) -> io::Result<()> {
    // SAFETY: the range lies in a mapping of ours, by contract; a wrong one is reported by the system.
    match unsafe { libc::mprotect(address as *mut libc::c_void, bytes, protection.bits()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts private pages with a copy of `bytes` from `source` at `target`, in one step; what is mapped at `target` is replaced.
///
/// The caller vouches for both ranges: `source` is readable, `target` is whole pages that it mapped itself.
pub fn move_private_copy(source: usize, target: usize, bytes: usize) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the system chooses a free address.
    let fresh = unsafe { libc::mmap(std::ptr::null_mut(), bytes, Protection::ReadWrite.bits(), flags, -1, 0) };
    if fresh == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fresh` is that many writable bytes of ours; the caller vouches for `source`.
    unsafe { std::ptr::copy_nonoverlapping(source as *const u8, fresh.cast::<u8>(), bytes) };
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: `fresh` is ours; the caller vouches for the pages at `target`.
    let moved = unsafe { libc::mremap(fresh, bytes, bytes, flags, target as *mut libc::c_void) };
    if moved == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        // SAFETY: `fresh` is still ours.
        unsafe { libc::munmap(fresh, bytes) };
        return Err(error);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_show_the_same_bytes() {
        let page = page_size();
        let file = memory_file(c"test", 4 * page).unwrap();
        let all = Mapping::new(file.as_raw_fd(), 0, 4 * page, Place::Anywhere, Protection::ReadWrite).unwrap();
        let part = Mapping::new(file.as_raw_fd(), page, page, Place::Anywhere, Protection::ReadWrite).unwrap();
        // SAFETY: both addresses lie in the mappings above.
        unsafe {
            ((all.address() + page + 5) as *mut u8).write(77);
            assert_eq!(((part.address() + 5) as *const u8).read(), 77);
        }
        punch_hole(file.as_raw_fd(), page, page).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { ((part.address() + 5) as *const u8).read() }, 0);
    }

    #[test]
    fn taken_address_is_an_error() {
        let page = page_size();
        let file = memory_file(c"test", page).unwrap();
        let first = Mapping::new(file.as_raw_fd(), 0, page, Place::Anywhere, Protection::None).unwrap();
        let second = Mapping::new(file.as_raw_fd(), 0, page, Place::Free(first.address()), Protection::None);
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
