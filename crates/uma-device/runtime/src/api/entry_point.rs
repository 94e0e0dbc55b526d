//! The driver's functions, for programs that ask the runtime for them.

use super::Context;
use crate::driver::{VERSION, check};
use crate::error::Result;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// `cudaGetDriverEntryPointByVersion`: the runtime's flags and results have the driver's numbers. Without a flag the kind of the call decides.
pub unsafe fn get_by_version(
    context: Context,
    symbol: *const c_char,
    target: *mut *mut c_void,
    version: c_uint,
    flags: u64,
    status: *mut c_int,
) -> Result {
    const LEGACY: u64 = 1;
    const PER_THREAD: u64 = 2;
    let kind = if context.per_thread { PER_THREAD } else { LEGACY };
    let flags = if flags == 0 { kind } else { flags };
    let driver = context.driver()?;
    let version = c_int::try_from(version).unwrap_or(c_int::MAX);
    // SAFETY: see the parent module.
    check(unsafe { (driver.get_proc_address)(symbol, target, version, flags, status) })
}

/// `cudaGetDriverEntryPoint`: as of this library's version.
pub unsafe fn get(
    context: Context,
    symbol: *const c_char,
    target: *mut *mut c_void,
    flags: u64,
    status: *mut c_int,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { get_by_version(context, symbol, target, VERSION as c_uint, flags, status) }
}
