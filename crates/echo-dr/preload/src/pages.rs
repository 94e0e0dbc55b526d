//! Host blocks on pages of their own, so that protecting one concerns nothing else. They are memory of the host alone: CUDA does not know them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The pages of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    base: usize,
    bytes: usize,
    /// It stands for page-locked memory.
    locked: bool,
}

/// The pages of each block, by the block's address.
type Mappings = Option<HashMap<usize, Mapping>>;

static MAPPED: Mutex<Mappings> = Mutex::new(None);

/// The machine's page size.
pub(crate) fn size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    match SIZE.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: asks for a number.
            let size = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
            SIZE.store(size, Ordering::Relaxed);
            size
        }
        size => size,
    }
}

/// The lock, for the time of a fork.
pub(crate) fn hold() -> MutexGuard<'static, Mappings> {
    lock()
}

fn lock() -> MutexGuard<'static, Mappings> {
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A zeroed block of `bytes` bytes that shares no page with anything; `None` where there is no memory.
pub(crate) fn allocate(bytes: usize, align: usize) -> Option<usize> {
    map(bytes, align, false)
}

/// The same in the place of page-locked memory.
pub(crate) fn allocate_locked(bytes: usize) -> Option<usize> {
    map(bytes, 1, true)
}

/// The block stands for page-locked memory.
pub(crate) fn is_locked(address: usize) -> bool {
    lock().as_ref().and_then(|mapped| mapped.get(&address)).is_some_and(|mapping| mapping.locked)
}

fn map(bytes: usize, align: usize, locked: bool) -> Option<usize> {
    let page = size();
    let whole = bytes.max(1).checked_next_multiple_of(page)?;
    // More than a page's alignment is found inside a larger mapping.
    let slack = if align > page { align } else { 0 };
    let mapped = whole.checked_add(slack)?;
    // SAFETY: a new private mapping; nothing else is touched.
    let base = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), mapped, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if base == libc::MAP_FAILED {
        return None;
    }
    let base = base as usize;
    let address = if slack == 0 { base } else { base.next_multiple_of(align) };
    lock().get_or_insert_default().insert(address, Mapping { base, bytes: mapped, locked });
    Some(address)
}

/// Gives the pages of a block back.
pub(crate) fn release(address: usize) {
    let mapped = lock().as_mut().and_then(|mapped| mapped.remove(&address));
    if let Some(Mapping { base, bytes, .. }) = mapped {
        // SAFETY: the mapping was made by `allocate` for this block, which the program has freed.
        unsafe { libc::munmap(base as *mut libc::c_void, bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_pages_of_their_own_and_their_alignment() {
        for align in [1, 64, size(), 16 * size()] {
            let [one, other] = [(); 2].map(|()| allocate(size() + 1, align).expect("memory"));
            assert_eq!((one % size(), one % align, other % align), (0, 0, 0));
            assert!(one.abs_diff(other) >= 2 * size());
            // SAFETY: the blocks are size() + 1 bytes and this test's own.
            unsafe {
                assert_eq!((one as *const u8).add(size()).read(), 0);
                (one as *mut u8).add(size()).write(1);
            }
            assert!(!is_locked(one));
            release(one);
            release(other);
        }
        let locked = allocate_locked(10).expect("memory");
        assert!(is_locked(locked) && locked.is_multiple_of(size()));
        release(locked);
        assert!(!is_locked(locked));
        assert_eq!(allocate(usize::MAX, 1), None);
        assert_eq!(allocate(1 << 60, 1), None);
    }
}
