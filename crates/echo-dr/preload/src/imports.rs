//! What the program's files import of CUDA and no hook has: a function that the loader binds is called past the library.
//!
//! Looked for when CUDA is first used and when the program ends, since libraries may be opened in between.

use std::ffi::{CStr, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use echo_dr_format::event::Call;
use echo_dr_format::functions::concerns_memory;

use crate::record::Record;
use crate::thread::Token;
use crate::{elf, lookup, table};

/// Names that were told; leaked, since they are in events.
static TOLD: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Tells of imported functions that concern memory and aren't hooked.
pub(crate) fn tell(token: &Token, record: &Record) {
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    for name in unknown() {
        if !told.contains(&name.as_str()) {
            let name: &'static str = name.leak();
            told.push(name);
            record.event(token, name, Call::Unknown { unseen: true });
        }
    }
}

/// Such names, as far as some library defines them: a weak reference to one that none has can't be called.
fn unknown() -> Vec<String> {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, names: *mut c_void) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid entry, and the pointer below, which outlives the walk.
        let (info, names) = unsafe { (&*info, &mut *names.cast::<Vec<String>>()) };
        // CUDA's own libraries import from each other; their calls are inside calls of theirs.
        if lookup::is_named(info, &["libcuda"]) {
            return 0;
        }
        // SAFETY: the walk's lock keeps the object loaded.
        unsafe {
            elf::headers(info).undefined(|name| {
                if let Ok(text) = name.to_str()
                    && concerns_memory(text)
                    && table::by_name(name).is_none()
                {
                    names.push(text.to_owned());
                }
            });
        }
        0
    }
    let mut names: Vec<String> = Vec::new();
    // SAFETY: visit has the type asked for and the names outlive the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut names).cast()) };
    names.retain(|name| is_defined(name));
    names
}

fn is_defined(name: &str) -> bool {
    let (Ok(name), Some(dlsym)) = (std::ffi::CString::new(name), lookup::real_dlsym()) else { return false };
    let name: &CStr = &name;
    // SAFETY: the name ends in NUL.
    unsafe { !dlsym(libc::RTLD_DEFAULT, name.as_ptr()).is_null() }
}
