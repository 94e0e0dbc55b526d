//! Memory for the program before the real malloc is known.
//!
//! Looking up malloc can itself call calloc (glibc's dlsym before 2.34 does, for its error text). Those few blocks come from here. They
//! are never reused, and `free` and `realloc` recognise them by their address.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::tracked;

/// glibc asks for one block of about 200 bytes; other C libraries have been seen to ask for a few kilobytes.
const BYTES: usize = 64 * 1024;
/// What malloc guarantees on both architectures.
const ALIGN: usize = 16;

#[repr(C, align(16))]
struct Memory(UnsafeCell<[u8; BYTES]>);

// SAFETY: every byte is handed out at most once, by an atomic addition, so no two users share one.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// `bytes` zeroed bytes, or null when the arena is full.
pub(crate) fn allocate(bytes: usize) -> *mut c_void {
    // The size stands before the block, for realloc.
    let Some(whole) = bytes.checked_next_multiple_of(ALIGN).and_then(|bytes| bytes.checked_add(ALIGN)) else {
        return std::ptr::null_mut();
    };
    if whole > BYTES {
        return std::ptr::null_mut();
    }
    let start = USED.fetch_add(whole, Ordering::Relaxed);
    if start == 0 {
        tracked::always_look(MEMORY.0.get() as usize, BYTES);
    }
    if start > BYTES - whole {
        return std::ptr::null_mut();
    }
    // SAFETY: start + whole <= BYTES was just checked, and start is a multiple of 16 as every whole is.
    unsafe {
        let block = MEMORY.0.get().cast::<u8>().add(start);
        block.cast::<usize>().write(bytes);
        block.add(ALIGN).cast()
    }
}

/// Whether `address` is in the arena.
pub(crate) fn owns(address: usize) -> bool {
    let start = MEMORY.0.get() as usize;
    (start..start + BYTES).contains(&address)
}

/// The size that was asked for.
///
/// # Safety
/// `block` came from [`allocate`].
pub(crate) unsafe fn size(block: *mut c_void) -> usize {
    // SAFETY: allocate wrote the size 16 bytes before the block.
    unsafe { block.cast::<u8>().sub(ALIGN).cast::<usize>().read() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_apart_zeroed_and_remember_their_size() {
        let blocks: Vec<_> = (1..40).map(|bytes| (bytes, allocate(bytes))).collect();
        for &(bytes, block) in &blocks {
            assert!(!block.is_null() && owns(block as usize));
            assert_eq!(block as usize % ALIGN, 0);
            // SAFETY: block has `bytes` bytes of its own.
            unsafe {
                assert_eq!(size(block), bytes);
                for at in 0..bytes {
                    assert_eq!(block.cast::<u8>().add(at).read(), 0, "handed out twice or not zeroed");
                    block.cast::<u8>().add(at).write(1);
                }
            }
        }
        let start = MEMORY.0.get() as usize;
        assert!(!owns(start + BYTES) && !owns(start - 1));
    }

    #[test]
    fn too_much_is_refused() {
        assert!(allocate(BYTES).is_null());
        assert!(allocate(usize::MAX).is_null());
    }
}
