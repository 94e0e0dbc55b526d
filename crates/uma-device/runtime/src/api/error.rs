//! The calls that report errors. They make none themselves.

use super::LAST_ERROR;
use crate::driver::{self, check};
use crate::error::{self, CudaError};
use std::ffi::{c_char, c_int};

/// The error that ended the device process, seen by every call from then on.
fn sticky() -> Option<CudaError> {
    let driver = driver::current_if_used()?;
    let mut device = 0;
    // SAFETY: the target is ours.
    check(unsafe { (driver.ctx_get_device)(&mut device) }).err().filter(|error| error.is_sticky())
}

/// `cudaGetLastError`
pub fn get_last_error() -> c_int {
    let last = LAST_ERROR.with(|last| last.replace(0));
    sticky().map_or(last, |error| error.0)
}

/// `cudaPeekAtLastError`
pub fn peek_at_last_error() -> c_int {
    sticky().map_or_else(|| LAST_ERROR.with(std::cell::Cell::get), |error| error.0)
}

/// `cudaGetErrorName`
pub fn get_error_name(code: c_int) -> *const c_char {
    error::name(code).as_ptr()
}

/// `cudaGetErrorString`
pub fn get_error_string(code: c_int) -> *const c_char {
    error::text(code).as_ptr()
}
