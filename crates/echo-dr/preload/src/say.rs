//! Sentences to the user, on standard error, each at most once, by the first process of a run. Never from the path of an observed call.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::first;

/// One sentence that is said at most once.
#[derive(Debug)]
pub(crate) struct Once(AtomicBool);

impl Once {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Says it, with the library's name before and a line's end after it.
    pub(crate) fn say(&self, text: &str) {
        if self.0.swap(true, Ordering::Relaxed) || !first::is_first() {
            return;
        }
        let line = format!("echo-dr: {text}\n");
        // SAFETY: the buffer is valid for its length. The kernel is called directly: write is hooked. What becomes of it doesn't matter.
        unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO as c_int, line.as_ptr(), line.len()) };
    }
}
