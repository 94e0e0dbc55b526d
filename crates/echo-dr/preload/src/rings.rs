//! Rings of `io_uring`, by which a program reads and writes without calls. Libraries that make them do so by the instruction itself, which no hook
//! sees; the kernel's list of the process's files has them, though.
//!
//! Nothing here allocates: it is asked while Echo's own locks may be held.

use std::ffi::CStr;

use crate::sys;

/// What a ring's descriptor refers to.
const RING: &[u8] = b"anon_inode:[io_uring]";
/// Of a directory's entry: where its length and its name are.
const LENGTH: usize = 16;
const NAME: usize = 19;

/// The process has a ring now. (Where `/proc` isn't mounted nothing is known, and nothing is said.)
pub(crate) fn is_there() -> bool {
    let flags = (libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) as usize;
    let path = c"/proc/self/fd".as_ptr() as usize;
    // SAFETY: the path ends in NUL.
    let folder = unsafe { sys::system_call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0]) };
    let Ok(folder) = usize::try_from(folder) else { return false };
    let mut entries = [0_u8; 4096];
    let found = loop {
        let arguments = [folder, entries.as_mut_ptr() as usize, entries.len(), 0, 0, 0];
        // SAFETY: the kernel writes into `entries`.
        let got = unsafe { sys::system_call(libc::SYS_getdents64, arguments) };
        match usize::try_from(got) {
            Ok(got) if got > 0 && any_ring(folder, &entries[..got.min(entries.len())]) => break true,
            Ok(got) if got > 0 => {}
            _ => break false,
        }
    };
    // SAFETY: the descriptor is this function's own.
    unsafe { sys::system_call(libc::SYS_close, [folder, 0, 0, 0, 0, 0]) };
    found
}

fn any_ring(folder: usize, mut entries: &[u8]) -> bool {
    while let Some(&[low, high]) = entries.get(LENGTH..LENGTH + 2) {
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let Some((entry, rest)) = entries.split_at_checked(length).filter(|_| length > NAME) else { return false };
        if CStr::from_bytes_until_nul(&entry[NAME..]).is_ok_and(|name| is_ring(folder, name)) {
            return true;
        }
        entries = rest;
    }
    false
}

fn is_ring(folder: usize, name: &CStr) -> bool {
    let mut target = [0_u8; RING.len() + 1];
    let arguments = [folder, name.as_ptr() as usize, target.as_mut_ptr() as usize, target.len(), 0, 0];
    // SAFETY: the name ends in NUL, and the kernel writes into `target`.
    let got = unsafe { sys::system_call(libc::SYS_readlinkat, arguments) };
    usize::try_from(got).is_ok_and(|got| target.get(..got) == Some(RING))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_there_from_its_making_to_its_end() {
        // More files than one piece of the list has.
        let files: Vec<_> = (0..300).map(|_| std::fs::File::open("/dev/null").expect("a file")).collect();
        assert!(!is_there());
        let mut parameters = [0_u8; 120];
        const SETUP: libc::c_long = 425;
        // SAFETY: the parameters are as long as the kernel's.
        let ring = unsafe { sys::system_call(SETUP, [1, parameters.as_mut_ptr() as usize, 0, 0, 0, 0]) };
        assert!(ring >= 0, "the kernel makes no rings here: error {ring}");
        assert!(is_there());
        // SAFETY: the descriptor is this test's own.
        unsafe { libc::close(ring as libc::c_int) };
        drop(files);
        assert!(!is_there());
    }
}
