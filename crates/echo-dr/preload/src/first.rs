//! Is this the process that the command started? The library is in all its children too, and those must say nothing: a program reads what its
//! children write to standard error, and finds their counters in the place of its own.
//!
//! The command sets `ECHO_DR_FIRST` to zeroes. The first process that sees them writes its number over them, in place; its children inherit that,
//! and it itself finds it again if it becomes another program. Without the variable every process is a first one: somebody has set the
//! library up by hand.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, Ordering};

/// The variable up to its value.
const NAME: &[u8] = b"ECHO_DR_FIRST=";
/// Digits of the value.
const DIGITS: usize = 10;

static IS_FIRST: AtomicBool = AtomicBool::new(true);

unsafe extern "C" {
    static environ: *const *mut c_char;
}

/// This process speaks, and leaves counters.
pub(crate) fn is_first() -> bool {
    IS_FIRST.load(Ordering::Relaxed)
}

/// This process is a child of the one that was.
pub(crate) fn is_child() {
    IS_FIRST.store(false, Ordering::Relaxed);
}

/// Finds out. The constructor does, before the program has a second thread.
pub(crate) fn find_out() {
    // SAFETY: the constructor runs before any other code that could change the environment.
    let Some(value) = (unsafe { value() }) else { return };
    // SAFETY: `value` says that the digits are there, in the environment's own memory, which processes may write.
    let digits = unsafe { std::slice::from_raw_parts_mut(value, DIGITS) };
    IS_FIRST.store(claim(digits, std::process::id()), Ordering::Relaxed);
}

/// The first of a run takes the place; true for it.
fn claim(digits: &mut [u8], process: u32) -> bool {
    let mine = format!("{process:0DIGITS$}");
    if digits.iter().all(|&digit| digit == b'0') {
        digits.copy_from_slice(mine.as_bytes());
    }
    digits == mine.as_bytes()
}

/// Where the value is, if it has as many digits as it must.
///
/// # Safety
/// Nobody changes the environment meanwhile.
unsafe fn value() -> Option<*mut u8> {
    // SAFETY: the list ends in a null pointer and holds strings that end in NUL.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            if text.strip_prefix(NAME).is_some_and(|value| value.len() == DIGITS) {
                return Some((*entry).cast::<u8>().add(NAME.len()));
            }
            entry = entry.add(1);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_process_takes_the_place_and_keeps_it() {
        let mut digits = *b"0000000000";
        assert!(claim(&mut digits, 4_294_967_295));
        assert_eq!(&digits, b"4294967295");
        assert!(!claim(&mut digits, 7), "a child");
        assert!(claim(&mut digits, 4_294_967_295), "the first one again, as another program");
    }
}
