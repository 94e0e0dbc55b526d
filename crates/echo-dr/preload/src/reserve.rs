//! Echo's own memory: a heap apart from the program's, whose allocator may be what called, or be damaged by the program's faults.
//!
//! Where the system has no more, a program that copes with that must not be ended because Echo can't: what Echo is in the middle of gets its memory
//! from a reserve, and afterwards it observes and merges no more.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlmalloc::GlobalDlmalloc;

use crate::contain;

/// Room for what some twenty threads need to begin at once. Pages of it that are not used cost nothing.
const BYTES: usize = 4 << 20;
/// What the reserve is aligned to.
const ALIGN: usize = 64;

/// The heap.
pub(crate) struct Heap;

#[repr(C, align(64))]
struct Memory(UnsafeCell<[u8; BYTES]>);

// SAFETY: every byte is handed out at most once, by an atomic addition, so no two users share one.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory that is never used again, or null.
fn take(layout: Layout) -> *mut u8 {
    contain::give_up();
    if layout.align() > ALIGN || layout.size() > BYTES {
        return std::ptr::null_mut();
    }
    let whole = layout.size().next_multiple_of(ALIGN);
    let start = USED.fetch_add(whole, Ordering::Relaxed);
    if start > BYTES - whole.min(BYTES) {
        return std::ptr::null_mut();
    }
    // SAFETY: start + whole <= BYTES was just checked.
    unsafe { MEMORY.0.get().cast::<u8>().add(start) }
}

fn owns(block: *mut u8) -> bool {
    let start = MEMORY.0.get() as usize;
    (start..start + BYTES).contains(&(block as usize))
}

// SAFETY: blocks of the heap are the heap's to answer for; those of the reserve are aligned, large enough and nobody else's.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { GlobalDlmalloc.alloc(layout) };
        if block.is_null() { take(layout) } else { block }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { GlobalDlmalloc.alloc_zeroed(layout) };
        if block.is_null() { take(layout) } else { block }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !owns(block) {
            // SAFETY: the caller's promise, and the block is the heap's.
            unsafe { GlobalDlmalloc.dealloc(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !owns(block) {
            // SAFETY: the caller's promise, and the block is the heap's.
            let new = unsafe { GlobalDlmalloc.realloc(block, layout, bytes) };
            if !new.is_null() {
                return new;
            }
        }
        let Ok(wanted) = Layout::from_size_align(bytes, layout.align()) else { return std::ptr::null_mut() };
        // SAFETY: the layout is not empty, by the caller's promise; what is copied fits both blocks, and the new one is nobody else's.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(block, new, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_handed_out_once_and_ends() {
        let layout = Layout::from_size_align(1000, 16).expect("a layout");
        let (one, other) = (take(layout), take(layout));
        assert!(owns(one) && owns(other) && other as usize - one as usize >= 1000);
        assert_eq!(one as usize % 16, 0);
        // SAFETY: the block has 1000 bytes, and its neighbour stays as it was.
        unsafe {
            one.write_bytes(7, 1000);
            assert_eq!(other.read(), 0);
            let grown = Heap.realloc(one, layout, 5000);
            assert_eq!((grown.read(), grown.add(999).read()), (7, 7));
            Heap.dealloc(grown, Layout::from_size_align(5000, 16).expect("a layout"));
        }
        assert!(take(Layout::from_size_align(BYTES, 16).expect("a layout")).is_null());
        assert!(take(Layout::from_size_align(16, 4096).expect("a layout")).is_null());
    }
}
