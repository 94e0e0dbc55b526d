//! What each call does. The functions here take the arguments as the program passed them: each is `unsafe` for one reason, namely that the
//! program's pointers are what CUDA's documentation of the call says (or null, which is an error and not a crash).

#![allow(clippy::missing_safety_doc, reason = "the reason above holds for all of them")]

pub mod attributes;
pub mod context;
pub mod copy;
pub mod device;
pub mod event;
pub mod hints;
pub mod kernel;
pub mod launch;
pub mod memory;
pub mod memset;
pub mod module;
pub mod occupancy;
pub mod pointer;
pub mod pool;
pub mod stream;

use crate::error::{CuError, Result};
use crate::host::{engine, hostcalls};
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call was made.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The null stream is the calling thread's own (the `_ptds` and `_ptsz` names).
    pub per_thread: bool,
}

/// What a call needs before it does anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// That `cuInit` was called.
    Init,
    /// That a context is current on the calling thread.
    Current,
}

/// Makes a call: nothing but a code leaves it.
pub fn call(per_thread: bool, needs: Needs, body: impl FnOnce(Context) -> Result) -> c_int {
    let ready = match needs {
        _ if engine::is_forked_child() => Err(CuError::NOT_INITIALIZED),
        _ if hostcalls::is_inside() => Err(CuError::NOT_PERMITTED),
        Needs::Nothing => Ok(()),
        Needs::Init => device::check_initialised(),
        Needs::Current => context::check_current(),
    };
    // The engine's lock tolerates a panic, and nothing else outlives it.
    let result = ready.and_then(|()| {
        catch_unwind(AssertUnwindSafe(|| body(Context { per_thread }))).unwrap_or(Err(CuError::UNKNOWN))
    });
    result.map_or_else(|error| error.0, |()| 0)
}

/// Gives a result to the program.
///
/// # Safety
/// `target` is null or can hold a `T`.
pub unsafe fn put<T>(target: *mut T, value: T) -> Result {
    if target.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    // SAFETY: the caller vouches for a target that is not null.
    unsafe { target.write(value) };
    Ok(())
}

/// Gives a result to the program if it wants it.
///
/// # Safety
/// As for [`put`].
pub unsafe fn put_if<T>(target: *mut T, value: T) -> Result {
    // SAFETY: the caller vouches for the target.
    if target.is_null() { Ok(()) } else { unsafe { put(target, value) } }
}

/// Reads what the program points to.
///
/// # Safety
/// `source` is null or points to a `T`.
pub unsafe fn get<T: Copy>(source: *const T) -> Result<T> {
    if source.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    // SAFETY: the caller vouches for a source that is not null.
    Ok(unsafe { source.read() })
}

/// Reads a name.
///
/// # Safety
/// `text` is null or a C string.
pub unsafe fn name<'a>(text: *const c_char) -> Result<&'a str> {
    if text.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    // SAFETY: the caller vouches for a text that is not null.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| CuError::NOT_FOUND)
}

/// Says once on stderr that a call is not there, and refuses it.
pub fn not_supported(name: &'static str) -> c_int {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};
    static SAID: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(name) {
        eprintln!("uma-device: {name} is not supported by the CPU device");
    }
    CuError::NOT_SUPPORTED.0
}
