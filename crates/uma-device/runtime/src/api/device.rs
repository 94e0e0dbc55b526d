//! The device as a whole: there is one, number 0.

use super::{Context, get, put};
use crate::driver::{self, Driver, VERSION, check};
use crate::error::{CudaError, Result};
use crate::registry::registry;
use std::ffi::{c_int, c_uint};

/// Checks a device number.
pub fn check_number(device: c_int) -> Result {
    if device == 0 { Ok(()) } else { Err(CudaError::ErrorInvalidDevice) }
}

/// The driver with a context on a device that has not failed.
pub fn healthy(context: Context) -> Result<&'static Driver> {
    let driver = context.current()?;
    let mut device = 0;
    // SAFETY: the target is ours.
    check(unsafe { (driver.ctx_get_device)(&mut device) })?;
    Ok(driver)
}

/// `cudaGetDeviceCount`
pub unsafe fn get_device_count(context: Context, target: *mut c_int) -> Result {
    let driver = context.driver()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.device_get_count)(target) })
}

/// `cudaSetDevice`: it also starts the device, as since CUDA 12.
pub unsafe fn set_device(context: Context, device: c_int) -> Result {
    check_number(device)?;
    healthy(context).map(drop)
}

/// `cudaInitDevice`
pub unsafe fn init_device(context: Context, device: c_int, _device_flags: c_uint, _flags: c_uint) -> Result {
    // SAFETY: it takes no pointer.
    unsafe { set_device(context, device) }
}

/// `cudaGetDevice`
pub unsafe fn get_device(context: Context, target: *mut c_int) -> Result {
    context.driver()?;
    // SAFETY: see the parent module.
    unsafe { put(target, 0) }
}

/// `cudaSetValidDevices`
pub unsafe fn set_valid_devices(_: Context, devices: *const c_int, count: c_int) -> Result {
    for index in 0..usize::try_from(count).map_err(|_| CudaError::ErrorInvalidValue)? {
        // SAFETY: the program says how many there are.
        check_number(unsafe { get(devices.wrapping_add(index)) }?)?;
    }
    Ok(())
}

/// `cudaSetDeviceFlags`: the flags have the driver's numbers.
pub unsafe fn set_device_flags(context: Context, flags: c_uint) -> Result {
    let driver = context.driver()?;
    // SAFETY: it takes no pointer.
    check(unsafe { (driver.primary_set_flags)(0, flags) })
}

/// `cudaGetDeviceFlags`
pub unsafe fn get_device_flags(context: Context, target: *mut c_uint) -> Result {
    let driver = context.driver()?;
    let mut active = 0;
    // SAFETY: see the parent module.
    check(unsafe { (driver.primary_get_state)(0, target, &mut active) })
}

/// `cudaDeviceSynchronize`
pub unsafe fn synchronize(context: Context) -> Result {
    let driver = context.current()?;
    // SAFETY: it takes no pointer.
    check(unsafe { (driver.ctx_synchronize)() })
}

/// `cudaDeviceReset`: a new device process starts when one is needed again. It also ends a sticky error.
pub unsafe fn reset(_: Context) -> Result {
    super::LAST_ERROR.with(|last| last.set(0));
    let Some(driver) = driver::driver_if_open() else { return Ok(()) };
    let mut registry = registry();
    // SAFETY: it takes no pointer.
    check(unsafe { (driver.primary_reset)(0) })?;
    registry.forget_managed();
    driver::was_reset();
    Ok(())
}

/// `cudaDeviceSetLimit`: the limits have the driver's numbers.
pub unsafe fn set_limit(context: Context, limit: c_int, value: usize) -> Result {
    let driver = context.current()?;
    // SAFETY: it takes no pointer.
    check(unsafe { (driver.ctx_set_limit)(limit, value) })
}

/// `cudaDeviceGetLimit`
pub unsafe fn get_limit(context: Context, target: *mut usize, limit: c_int) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.ctx_get_limit)(target, limit) })
}

/// `cudaDeviceSetCacheConfig`
pub unsafe fn set_cache_config(context: Context, value: c_int) -> Result {
    let driver = context.current()?;
    // SAFETY: it takes no pointer.
    check(unsafe { (driver.ctx_set_cache_config)(value) })
}

/// `cudaDeviceGetCacheConfig`
pub unsafe fn get_cache_config(context: Context, target: *mut c_int) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.ctx_get_cache_config)(target) })
}

/// `cudaDeviceSetSharedMemConfig`
pub unsafe fn set_shared_mem_config(context: Context, value: c_int) -> Result {
    let driver = context.current()?;
    // SAFETY: it takes no pointer.
    check(unsafe { (driver.ctx_set_shared_mem_config)(value) })
}

/// `cudaDeviceGetSharedMemConfig`
pub unsafe fn get_shared_mem_config(context: Context, target: *mut c_int) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.ctx_get_shared_mem_config)(target) })
}

/// `cudaDeviceGetStreamPriorityRange`
pub unsafe fn get_stream_priority_range(context: Context, least: *mut c_int, greatest: *mut c_int) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.ctx_get_stream_priority_range)(least, greatest) })
}

/// `cudaDeviceCanAccessPeer`
pub unsafe fn can_access_peer(context: Context, target: *mut c_int, device: c_int, peer: c_int) -> Result {
    let driver = context.driver()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.device_can_access_peer)(target, device, peer) })
}

/// `cudaRuntimeGetVersion`
pub unsafe fn get_runtime_version(_: Context, target: *mut c_int) -> Result {
    // SAFETY: see the parent module.
    unsafe { put(target, VERSION) }
}

/// `cudaDriverGetVersion`
pub unsafe fn get_driver_version(context: Context, target: *mut c_int) -> Result {
    let driver = context.driver()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.driver_get_version)(target) })
}

/// `cudaProfilerStart`
pub unsafe fn profiler_start(context: Context) -> Result {
    let driver = context.driver()?;
    // SAFETY: it takes no pointer.
    check(unsafe { (driver.profiler_start)() })
}

/// `cudaProfilerStop`
pub unsafe fn profiler_stop(context: Context) -> Result {
    let driver = context.driver()?;
    // SAFETY: it takes no pointer.
    check(unsafe { (driver.profiler_stop)() })
}
