//! Digests of buffers for validation: of host memory that is closed to the program at the time, and of device memory.

use std::fs::File;
use std::hash::Hasher as _;
use std::os::fd::AsRawFd as _;

use rustc_hash::FxHasher;

use crate::device::Real;
use crate::sys;

/// Bytes that are read at once: a piece fits the second-level cache.
const PIECE: usize = 1 << 18;

/// A digest of host memory. The program must not see it opened, so it is read through the process's memory file, which no page protection
/// keeps from reading.
pub(crate) fn digest(address: usize, bytes: usize) -> u64 {
    let Ok(memory) = File::open("/proc/self/mem") else { return 0 };
    let mut read = |piece: &mut [u8], offset: usize| read_exact_at(&memory, piece, address + offset);
    digest_of(bytes, &mut read).unwrap_or(0)
}

/// The system call itself: `pread64` and `syscall` are hooks, and the engine, which wants this digest, holds its lock.
fn read_exact_at(file: &File, mut piece: &mut [u8], mut at: usize) -> bool {
    while !piece.is_empty() {
        let arguments = [file.as_raw_fd() as usize, piece.as_mut_ptr() as usize, piece.len(), at, 0, 0];
        // SAFETY: `piece` is memory that may be written, as long as its length says.
        let got = unsafe { sys::system_call(libc::SYS_pread64, arguments) };
        match usize::try_from(got) {
            Ok(got) if got > 0 => {
                piece = &mut piece[got..];
                at += got;
            }
            _ => return false,
        }
    }
    true
}

/// The same digest of device memory, once the device has done everything.
pub(crate) fn device_digest(real: Real, address: usize, bytes: usize) -> Option<u64> {
    if real.wait_device() != 0 {
        return None;
    }
    let mut read = |piece: &mut [u8], offset: usize| real.read(piece, address + offset);
    digest_of(bytes, &mut read)
}

fn digest_of(bytes: usize, read: &mut impl FnMut(&mut [u8], usize) -> bool) -> Option<u64> {
    let mut piece = vec![0; PIECE.min(bytes)];
    let mut hash = FxHasher::default();
    let mut offset = 0;
    while offset < bytes {
        let take = PIECE.min(bytes - offset);
        if !read(&mut piece[..take], offset) {
            return None;
        }
        hash.write(&piece[..take]);
        offset += take;
    }
    Some(hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages;

    #[test]
    fn closed_memory_has_the_digest_that_it_had_open() {
        let bytes = 3 * PIECE + 17;
        let block = pages::allocate(bytes, 1).expect("memory");
        // SAFETY: the block is this test's own.
        unsafe { (block as *mut u8).add(PIECE).write(9) };
        let open = digest(block, bytes);
        let whole = bytes.next_multiple_of(pages::size());
        // SAFETY: as above.
        unsafe {
            assert_eq!(libc::mprotect(block as *mut libc::c_void, whole, libc::PROT_NONE), 0);
            assert_eq!(digest(block, bytes), open);
            assert_eq!(libc::mprotect(block as *mut libc::c_void, whole, libc::PROT_READ | libc::PROT_WRITE), 0);
            (block as *mut u8).add(bytes - 1).write(1);
        }
        assert_ne!(digest(block, bytes), open);
        pages::release(block);
    }
}
