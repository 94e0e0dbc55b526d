//! Occupancy: how many blocks a multiprocessor would hold.

use super::Context;
use super::launch::kernel;
use crate::driver::check;
use crate::error::Result;
use std::ffi::{c_int, c_uint, c_void};

/// `cudaOccupancyMaxActiveBlocksPerMultiprocessor`
pub unsafe fn max_active_blocks(
    context: Context,
    target: *mut c_int,
    function: *const c_void,
    threads: c_int,
    dynamic_shared: usize,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { max_active_blocks_with_flags(context, target, function, threads, dynamic_shared, 0) }
}

/// `cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`
pub unsafe fn max_active_blocks_with_flags(
    context: Context,
    target: *mut c_int,
    function: *const c_void,
    threads: c_int,
    dynamic_shared: usize,
    flags: c_uint,
) -> Result {
    let driver = context.current()?;
    let kernel = kernel(function)?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.occupancy_max_active_blocks)(target, kernel, threads, dynamic_shared, flags) })
}

/// `cudaOccupancyAvailableDynamicSMemPerBlock`
pub unsafe fn available_dynamic_shared(
    context: Context,
    target: *mut usize,
    function: *const c_void,
    count: c_int,
    threads: c_int,
) -> Result {
    let driver = context.current()?;
    let kernel = kernel(function)?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.occupancy_available_dynamic_shared)(target, kernel, count, threads) })
}
