//! Sentences to the user, on what standard error was when the program began, each at most once, by the first process of a run. Never from the path of an observed call.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{first, sys, trace};

/// What standard error was at the start; `None` if it was closed. A program may close it, and the number is another file's then.
static STANDARD_ERROR: OnceLock<Option<(u64, u64)>> = OnceLock::new();

fn standard_error() -> Option<(u64, u64)> {
    trace::about(libc::STDERR_FILENO).ok().map(|(identity, _)| identity)
}

/// Remembers what standard error is. The constructor does.
pub(crate) fn find_out() {
    STANDARD_ERROR.get_or_init(standard_error);
}

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
        let now = standard_error();
        if now.is_none() || STANDARD_ERROR.get().is_some_and(|&first| first != now) {
            return;
        }
        let line = format!("echo-dr: {text}\n");
        // SAFETY: the buffer is valid for its length. The kernel is called directly: write is hooked. What becomes of it doesn't matter.
        unsafe { sys::write(libc::STDERR_FILENO, line.as_bytes()) };
    }
}
