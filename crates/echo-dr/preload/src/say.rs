//! Sentences to the user, on standard error, each at most once. Never from the path of an observed call.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys;

/// One sentence that is said at most once.
#[derive(Debug)]
pub(crate) struct Once(AtomicBool);

impl Once {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Says it, with the library's name before and a line's end after it.
    pub(crate) fn say(&self, text: &str) {
        if self.0.swap(true, Ordering::Relaxed) {
            return;
        }
        let line = format!("echo-dr: {text}\n");
        // SAFETY: the buffer is valid for its length. The kernel is called directly: write is hooked. What becomes of it doesn't matter.
        unsafe { sys::write(libc::STDERR_FILENO, line.as_bytes()) };
    }
}
