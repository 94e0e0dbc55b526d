//! The stack of a thread: how far it may be read, and reading it.

use std::cell::Cell;
use std::ffi::c_void;
use std::ops::Range;

use crate::sys;

unsafe extern "C" {
    /// The stack pointer with which the process began (the loader's).
    static __libc_stack_end: *const c_void;
}

thread_local! {
    static IS_FIRST: Cell<bool> = const { Cell::new(false) };
    static BOUNDS: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// The calling thread runs on the process's first stack. Called once, by the constructor.
pub(crate) fn this_is_the_first_thread() {
    IS_FIRST.with(|first| first.set(true));
}

/// The part of the stack that frames from `sp` on lie in, or `None` if `sp` is on a stack that isn't this thread's own (a coroutine's, or
/// an alternate one for signals).
pub(crate) fn above(sp: usize) -> Option<Range<usize>> {
    let (low, high) = BOUNDS.with(|bounds| {
        if bounds.get().1 == 0 {
            bounds.set(find());
        }
        bounds.get()
    });
    (low..high).contains(&sp).then_some(sp..high)
}

/// Lowest and end address of this thread's stack.
fn find() -> (usize, usize) {
    if IS_FIRST.with(Cell::get) {
        // SAFETY: the loader sets it before any code of the process runs.
        let end = unsafe { __libc_stack_end } as usize;
        // The first stack grows, so its lowest address is what its limit allows; glibc's way to ask parses /proc/self/maps.
        return (end.saturating_sub(limit()), end);
    }
    // SAFETY: the attributes are filled by pthread_getattr_np and destroyed once.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return (0, 1);
        }
        let (mut start, mut bytes) = (std::ptr::null_mut(), 0);
        libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut bytes);
        libc::pthread_attr_destroy(&raw mut attributes);
        (start as usize, start as usize + bytes)
    }
}

fn limit() -> usize {
    /// Where the limit is "none": more than any program's first stack is.
    const UNLIMITED: usize = 1 << 30;
    // SAFETY: getrlimit fills the structure.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        match libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) {
            0 => (limit.rlim_cur as usize).min(UNLIMITED),
            _ => UNLIMITED,
        }
    }
}

/// The word at `address` of a stack whose bounds are `known`.
pub(crate) fn read(known: Option<&Range<usize>>, address: usize) -> Option<u64> {
    let end = address.checked_add(8)?;
    match known {
        Some(range) if range.start <= address && end <= range.end => {
            // SAFETY: the range is the live part of this thread's own stack.
            Some(unsafe { (address as *const u64).read_unaligned() })
        }
        Some(_) => None,
        None => read_carefully(address),
    }
}

/// Words of a stack, as they were read.
#[derive(Clone, Copy)]
pub(crate) struct Words<const N: usize> {
    words: [(usize, u64); N],
    len: usize,
    /// Every address noted is in `low..end`, and so are the 8 bytes at it.
    low: usize,
    end: usize,
}

impl<const N: usize> Words<N> {
    /// None.
    pub(crate) const NONE: Self = Self { words: [(0, 0); N], len: 0, low: usize::MAX, end: 0 };

    /// One more was read; false where there is no room for it.
    pub(crate) fn note(&mut self, address: usize, word: u64) -> bool {
        let (Some(entry), Some(end)) = (self.words.get_mut(self.len), address.checked_add(8)) else { return false };
        *entry = (address, word);
        self.len += 1;
        (self.low, self.end) = (self.low.min(address), self.end.max(end));
        true
    }

    /// Whether all of them are still there, in the live part `known` of this thread's stack. Not so of no words.
    #[inline]
    pub(crate) fn still_hold(&self, known: &Range<usize>) -> bool {
        self.len > 0
            && known.start <= self.low
            && self.end <= known.end
            && self.words[..self.len].iter().all(|&(address, word)| {
                // SAFETY: the 8 bytes are in `low..end`, which is in the live part of this thread's own stack.
                word == unsafe { (address as *const u64).read_unaligned() }
            })
    }
}

/// Through the kernel, which answers with an error where nothing is mapped.
fn read_carefully(address: usize) -> Option<u64> {
    let mut word = 0_u64;
    let ours = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: 8 };
    let theirs = libc::iovec { iov_base: address as *mut c_void, iov_len: 8 };
    let (ours, theirs) = (&raw const ours as usize, &raw const theirs as usize);
    // SAFETY: `ours` is a word of this frame; whatever `theirs` is, the kernel checks it.
    let read =
        unsafe { sys::system_call(libc::SYS_process_vm_readv, [libc::getpid() as usize, ours, 1, theirs, 1, 0]) };
    (read == 8).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_until_one_changes_and_on_their_own_stack_only() {
        let mut here = [7_u64, 8];
        let at = here.as_mut_ptr();
        let bounds = above(at as usize).expect("a local variable is on the stack");
        let mut words = Words::<2>::NONE;
        assert!(!words.still_hold(&bounds), "there are none");
        assert!(words.note(at as usize, 7) && words.note(at as usize + 8, 8) && !words.note(at as usize, 7));
        assert!(words.still_hold(&bounds));
        assert!(!words.still_hold(&(bounds.start + 1..bounds.end)), "the first is below");
        assert!(!words.still_hold(&(bounds.start..at as usize + 15)), "the second ends above");
        // SAFETY: the array is this function's own.
        unsafe { at.add(1).write_volatile(9) };
        assert!(!words.still_hold(&bounds));
    }

    #[test]
    fn a_thread_knows_its_own_stack_only() {
        let here = 0_u64;
        let sp = &raw const here as usize;
        let bounds = above(sp).expect("a local variable is on the stack");
        assert_eq!(read(Some(&bounds), sp), Some(0));
        assert_eq!(read(Some(&bounds), bounds.end), None);
        let elsewhere = Box::new(7_u64);
        let address = &raw const *elsewhere as usize;
        assert!(above(address).is_none());
        assert_eq!(read(None, address), Some(7));
        assert_eq!(read(None, 8), None, "page zero is not mapped");
    }
}
