//! Requests of the malloc family that are not forwarded at once: blocks of at least θ_min, and blocks that Echo knows.
//!
//! Order against the real call: an allocation is told after it, a free before it, since its address may be another block's a moment later.

use std::ffi::{c_int, c_void};

use echo_dr_engine::calls::ReallocDecision;

use crate::malloc::real;
use crate::session::{self, Session};
use crate::thread::Token;
use crate::tracked::{self, Block, Origin};
use crate::{arena, pages, sys};

/// A block that the program wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Its size.
    pub(crate) bytes: usize,
    /// Alignment that was asked for; 1 if none.
    pub(crate) align: usize,
    /// It must be zero.
    pub(crate) zeroed: bool,
    /// The function's name.
    pub(crate) api: &'static str,
}

fn allocate(wanted: Wanted, real: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let Some(token) = Token::outermost() else { return real() };
    match session::get() {
        Some(Session::Record(record)) => record.host_alloc(&token, wanted, real),
        Some(Session::Merge(merge)) => merge.host_alloc(&token, wanted, real),
        None => real(),
    }
}

pub(crate) fn malloc(bytes: usize) -> *mut c_void {
    // SAFETY: malloc takes any size.
    allocate(Wanted { bytes, align: 1, zeroed: false, api: "malloc" }, || unsafe { real::malloc(bytes) })
}

pub(crate) fn calloc(count: usize, bytes: usize, whole: usize) -> *mut c_void {
    // SAFETY: calloc takes any sizes.
    allocate(Wanted { bytes: whole, align: 1, zeroed: true, api: "calloc" }, || unsafe { real::calloc(count, bytes) })
}

pub(crate) fn aligned(align: usize, bytes: usize, real: impl FnOnce() -> *mut c_void) -> *mut c_void {
    // What isn't a power of two is the real function's to judge.
    if !align.is_power_of_two() {
        return real();
    }
    allocate(Wanted { bytes, align, zeroed: false, api: "aligned_alloc" }, real)
}

/// # Safety
/// As for `posix_memalign`.
pub(crate) unsafe fn posix_memalign(out: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    let mut code = 0;
    let mut real = || {
        let mut block = std::ptr::null_mut();
        // SAFETY: block is this function's own.
        code = unsafe { real::posix_memalign(&raw mut block, align, bytes) };
        if code == 0 { block } else { std::ptr::null_mut() }
    };
    let block = if align.is_power_of_two() && align >= size_of::<usize>() {
        allocate(Wanted { bytes, align, zeroed: false, api: "posix_memalign" }, &mut real)
    } else {
        real()
    };
    if code == 0 {
        // SAFETY: the caller's promise.
        unsafe { *out = block };
    }
    code
}

/// # Safety
/// As for `free`.
pub(crate) unsafe fn free(block: *mut c_void) {
    let address = block as usize;
    if arena::owns(address) {
        return;
    }
    let Some(known) = tracked::remove(address) else {
        // SAFETY: the caller's promise.
        return unsafe { real::free(block) };
    };
    let token = Token::outermost();
    if let (Some(Session::Record(record)), Some(token)) = (session::get(), &token) {
        sys::keeping_errno(|| record.host_free(token, address, known));
    }
    match known.origin {
        // SAFETY: the caller's promise; the block is the program's allocator's.
        Origin::Program => unsafe { real::free(block) },
        Origin::Pages => sys::keeping_errno(|| pages::release(address)),
        Origin::Merged => sys::keeping_errno(|| {
            if let Some(Session::Merge(merge)) = session::get() {
                merge.host_free(token.as_ref(), address);
            }
        }),
    }
}

/// # Safety
/// As for `realloc`.
pub(crate) unsafe fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    let address = block as usize;
    if block.is_null() {
        return malloc(bytes);
    }
    if arena::owns(address) {
        // SAFETY: the block is the arena's; what is copied fits both.
        return unsafe { moved(block, arena::size(block), bytes) };
    }
    match tracked::find(address) {
        // SAFETY: the caller's promise.
        None => unsafe { resized(None, block, bytes) },
        Some(Block { origin: Origin::Program, .. }) => {
            let known = tracked::remove(address);
            // SAFETY: the caller's promise.
            unsafe { resized(known, block, bytes) }
        }
        Some(known) => {
            if let (Origin::Merged, Some(Session::Merge(merge))) = (known.origin, session::get())
                && merge.realloc(address) == ReallocDecision::Forward
            {
                // p's host half was freed meanwhile by another thread: nothing of this address is the program's any more.
                return std::ptr::null_mut();
            }
            // SAFETY: the block has `known.bytes` bytes.
            unsafe { moved(block, known.bytes, bytes) }
        }
    }
}

/// A block in new memory of the program's allocator, with what the old one held.
///
/// # Safety
/// `block` has `old_bytes` bytes and is not used afterwards, unless null is returned.
unsafe fn moved(block: *mut c_void, old_bytes: usize, bytes: usize) -> *mut c_void {
    if bytes == 0 {
        // SAFETY: the caller's promise.
        unsafe { free(block) };
        return std::ptr::null_mut();
    }
    // SAFETY: malloc takes any size.
    let new = unsafe { real::malloc(bytes) };
    if new.is_null() {
        return new;
    }
    if let Some(Session::Record(record)) = session::get() {
        record.open(block as usize);
    }
    // SAFETY: both blocks have that many bytes, and the new one is nobody else's.
    unsafe { std::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), old_bytes.min(bytes)) };
    // SAFETY: the caller's promise.
    unsafe { free(block) };
    new
}

/// The real realloc of a block of the program's allocator, known before (and no longer in the map) or not.
///
/// # Safety
/// As for `realloc`.
unsafe fn resized(known: Option<Block>, block: *mut c_void, bytes: usize) -> *mut c_void {
    let Some(token) = Token::outermost() else {
        // SAFETY: the caller's promise.
        return unsafe { real::realloc(block, bytes) };
    };
    // SAFETY: the caller's promise.
    let new = unsafe { real::realloc(block, bytes) };
    if let Some(Session::Record(record)) = session::get() {
        sys::keeping_errno(|| match (new.is_null(), known) {
            (false, known) => record.host_resized(&token, known.map(|_| block as usize), new as usize, bytes),
            // It failed, and the old block stays.
            (true, Some(known)) if bytes > 0 => tracked::insert(block as usize, known),
            (true, Some(known)) => record.host_free(&token, block as usize, known),
            (true, None) => {}
        });
    }
    new
}

/// # Safety
/// As for `malloc_usable_size`.
pub(crate) unsafe fn usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    if arena::owns(block as usize) {
        // SAFETY: the block is the arena's.
        return unsafe { arena::size(block) };
    }
    match tracked::find(block as usize) {
        Some(known) if known.origin != Origin::Program => known.bytes,
        // SAFETY: the caller's promise; the block is the program's allocator's.
        _ => unsafe { real::malloc_usable_size(block) },
    }
}
