//! Functions of CUDA that no table has, found by look-up: those that concern memory are given to the program behind a trampoline, which tells of each call.
//!
//! Runtimes look hundreds of functions up and call few of them, so it is the call that counts. A trampoline keeps all registers and jumps: it need
//! not know the function's type.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use echo_dr_format::functions::concerns_memory;

use crate::jump::jump_after;
use crate::thread::Token;
use crate::{say, session};

/// How many functions there can be. CUDA 13 has some 40 that concern memory and aren't in the table, versions of before 2010 included.
const ROOM: usize = 256;
/// Bytes of a trampoline.
const SIZE: usize = 16;

static REAL: [AtomicUsize; ROOM] = [const { AtomicUsize::new(0) }; ROOM];
/// Names, leaked: they are in events.
static NAMES: [AtomicPtr<String>; ROOM] = [const { AtomicPtr::new(std::ptr::null_mut()) }; ROOM];
static USED: Mutex<usize> = Mutex::new(0);

/// `ROOM` trampolines, each of which says where it is and goes to [`common`].
#[unsafe(naked)]
unsafe extern "C" fn trampolines() {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!(
        ".balign 16",
        ".rept 256",
        "lea r11, [rip]",
        "jmp {common}",
        ".balign 16",
        ".endr",
        common = sym common,
    );
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!(
        ".balign 16",
        ".rept 256",
        "adr x17, .",
        "b {common}",
        ".balign 16",
        ".endr",
        common = sym common,
    );
}

fn first() -> usize {
    (trampolines as *const () as usize).next_multiple_of(SIZE)
}

#[unsafe(naked)]
unsafe extern "C" fn common() {
    jump_after!(called, crate::table::NOT_SUPPORTED);
}

/// A trampoline's function is called; `place` is in the trampoline.
unsafe extern "C" fn called(place: usize) -> usize {
    let number = place.wrapping_sub(first()) / SIZE;
    let (Some(real), Some(name)) = (REAL.get(number), NAMES.get(number)) else { return 0 };
    // SAFETY: what is there was leaked.
    if let Some(name) = unsafe { name.load(Ordering::Acquire).as_ref() }
        && let Some(token) = Token::outermost()
        && let Some(session) = session::get()
    {
        session.unknown_called(&token, name);
    }
    real.load(Ordering::Acquire)
}

/// What the program is to get for a function that it has looked up and that isn't hooked.
pub(crate) fn wrapped(name: &str, found: usize) -> usize {
    if found == 0 || session::get().is_none() || !concerns_memory(name) {
        return found;
    }
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    let number = (0..*used).find(|&number| REAL[number].load(Ordering::Relaxed) == found);
    let number = number.unwrap_or_else(|| {
        let number = *used;
        if number < ROOM {
            NAMES[number].store(Box::into_raw(Box::new(name.to_owned())), Ordering::Release);
            REAL[number].store(found, Ordering::Release);
            *used += 1;
        }
        number
    });
    if number == ROOM {
        static SAY: say::Once = say::Once::new();
        SAY.say(&format!("{name} and others are functions that Echo does not know, and their calls are not seen"));
        return found;
    }
    first() + number * SIZE
}

/// The same for one that `dlsym` has found, if it is CUDA's: other libraries may have data of such names.
pub(crate) fn wrapped_symbol(name: &CStr, found: usize) -> usize {
    let Ok(name) = name.to_str() else { return found };
    if found == 0 || !concerns_memory(name) {
        return found;
    }
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is only compared, and the result is writable.
    if unsafe { libc::dladdr(found as *const c_void, &raw mut info) } == 0 || info.dli_fname.is_null() {
        return found;
    }
    // SAFETY: the loader gave the name of a loaded file.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes();
    let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    if file.starts_with(b"libcuda") { wrapped(name, found) } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trampolines_are_apart_and_say_where_they_are() {
        let code = |number: usize| {
            let start = (first() + number * SIZE) as *const u8;
            // SAFETY: the trampolines are code of this program, and readable.
            (0..SIZE).map(|at| unsafe { start.add(at).read() }).collect::<Vec<u8>>()
        };
        let begin = &code(0)[..4];
        for number in 1..ROOM {
            assert_eq!(&code(number)[..4], begin, "trampoline {number} does not begin as the first one does");
        }
    }
}
