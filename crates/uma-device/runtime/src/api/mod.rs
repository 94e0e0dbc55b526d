//! What each call does. The functions here take the arguments as the program passed them: each is `unsafe` for one reason, namely that the
//! program's pointers are what CUDA's documentation of the call says (or null, which is an error and not a crash). They are passed on to the
//! driver, whose functions ask for no more.

#![allow(clippy::missing_safety_doc, reason = "the reason above holds for all of them")]

pub mod copy;
pub mod device;
pub mod entry_point;
pub mod error;
pub mod event;
pub mod launch;
pub mod memory;
pub mod memset;
pub mod occupancy;
pub mod pool;
pub mod properties;
pub mod registration;
pub mod stream;
pub mod symbol;

use crate::driver::{self, Driver};
use crate::error::{CudaError, Result};
use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call was made.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The null stream is the calling thread's own (the `_ptds` and `_ptsz` names).
    pub per_thread: bool,
}

impl Context {
    /// The driver, for calls that need no context.
    pub fn driver(self) -> Result<&'static Driver> {
        driver::driver()
    }

    /// The driver, with a context that is current on this thread.
    pub fn current(self) -> Result<&'static Driver> {
        driver::current()
    }
}

thread_local! {
    /// What `cudaGetLastError` returns; 0: none.
    static LAST_ERROR: Cell<i32> = const { Cell::new(0) };
}

/// Makes a call: nothing but a code leaves it, and an error is remembered for `cudaGetLastError`.
pub fn call(per_thread: bool, body: impl Fn(Context) -> Result) -> c_int {
    let attempt = || {
        // Nothing outlives a panic but the registry, whose lock tolerates it.
        catch_unwind(AssertUnwindSafe(|| body(Context { per_thread }))).unwrap_or(Err(CudaError::ErrorUnknown))
    };
    let mut result = attempt();
    if result == Err(CudaError::ErrorDeviceUninitialized) {
        // The program has taken the context from this thread; the runtime takes the primary one again.
        driver::detach();
        result = attempt();
    }
    remember(result)
}

/// The code of a result, remembered if it is an error.
pub fn remember(result: Result) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            LAST_ERROR.with(|last| last.set(error.0));
            error.0
        }
    }
}

/// Gives a result to the program.
///
/// # Safety
/// `target` is null or can hold a `T`.
pub unsafe fn put<T>(target: *mut T, value: T) -> Result {
    if target.is_null() {
        return Err(CudaError::ErrorInvalidValue);
    }
    // SAFETY: the caller vouches for a target that is not null.
    unsafe { target.write(value) };
    Ok(())
}

/// Reads what the program points to.
///
/// # Safety
/// `source` is null or points to a `T`.
pub unsafe fn get<T: Copy>(source: *const T) -> Result<T> {
    if source.is_null() {
        return Err(CudaError::ErrorInvalidValue);
    }
    // SAFETY: the caller vouches for a source that is not null.
    Ok(unsafe { source.read() })
}

/// Says once on stderr that a call is not there, and refuses it.
pub fn not_supported(name: &'static str) -> c_int {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};
    static SAID: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(name) {
        eprintln!("uma-device: {name} is not supported by the CPU device");
    }
    remember(Err(CudaError::ErrorNotSupported))
}
