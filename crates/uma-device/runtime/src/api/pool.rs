//! Memory pools: there is one, the default pool.

use super::Context;
use crate::driver::check;
use crate::driver::{DevicePtr, Handle};
use crate::error::Result;
use std::ffi::{c_int, c_void};

/// `cudaDeviceGetDefaultMemPool`
pub unsafe fn device_get_default(context: Context, target: *mut Handle, device: c_int) -> Result {
    let driver = context.driver()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.device_get_default_mem_pool)(target, device) })
}

/// `cudaDeviceGetMemPool`
pub unsafe fn device_get(context: Context, target: *mut Handle, device: c_int) -> Result {
    let driver = context.driver()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.device_get_mem_pool)(target, device) })
}

/// `cudaDeviceSetMemPool`
pub unsafe fn device_set(context: Context, device: c_int, pool: Handle) -> Result {
    let driver = context.driver()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.device_set_mem_pool)(device, pool) })
}

/// `cudaMemPoolTrimTo`
pub unsafe fn trim_to(context: Context, pool: Handle, keep: usize) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.mem_pool_trim_to)(pool, keep) })
}

/// `cudaMemPoolSetAttribute`: the attributes have the driver's numbers.
pub unsafe fn set_attribute(context: Context, pool: Handle, attribute: c_int, value: *const c_void) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.mem_pool_set_attribute)(pool, attribute, value) })
}

/// `cudaMemPoolGetAttribute`
pub unsafe fn get_attribute(context: Context, pool: Handle, attribute: c_int, value: *mut c_void) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.mem_pool_get_attribute)(pool, attribute, value) })
}

/// `cudaMallocFromPoolAsync`: no bytes are the null pointer.
pub unsafe fn malloc_from(
    context: Context,
    target: *mut *mut c_void,
    bytes: usize,
    pool: Handle,
    stream: Handle,
) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    unsafe {
        super::memory::allocated(target, bytes, |address: *mut DevicePtr| {
            driver.mem_alloc_from_pool_async.of(context.per_thread)(address, bytes, pool, stream)
        })
    }
}
