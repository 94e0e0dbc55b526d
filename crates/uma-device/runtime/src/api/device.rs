//! The device as a whole: there is one, number 0.

use super::{Context, get, put};
use crate::error::{CudaError, Result};
use crate::host::engine::{engine, engine_if_made, settings};
use crate::host::registry::registry;
use crate::host::waits::Wait;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The CUDA version whose functions this library has.
const VERSION: c_int = 13_000;

/// `cudaDeviceSchedule…`, map host, local memory, memory operations.
const FLAGS: c_uint = 0xFF;
/// `cudaDeviceMapHost`, which is always on.
const MAP_HOST: c_uint = 8;

static DEVICE_FLAGS: AtomicU32 = AtomicU32::new(0);

/// `cudaLimit…` by number, as the program set them. The CPU needs none of them.
static LIMITS: [AtomicUsize; 7] = [
    AtomicUsize::new(1 << 10),
    AtomicUsize::new(1 << 20),
    AtomicUsize::new(8 << 20),
    AtomicUsize::new(0),
    AtomicUsize::new(0),
    AtomicUsize::new(64),
    AtomicUsize::new(0),
];

/// Checks a device number.
pub fn check(device: c_int) -> Result {
    if device == 0 { Ok(()) } else { Err(CudaError::ErrorInvalidDevice) }
}

/// `cudaGetDeviceCount`
pub unsafe fn get_device_count(_: Context, target: *mut c_int) -> Result {
    settings()?;
    // SAFETY: see the parent module.
    unsafe { put(target, 1) }
}

/// `cudaSetDevice`: it also starts the device, as since CUDA 12.
pub unsafe fn set_device(_: Context, device: c_int) -> Result {
    check(device)?;
    engine()?.lock().device().map(drop)
}

/// `cudaInitDevice`
pub unsafe fn init_device(context: Context, device: c_int, _device_flags: c_uint, _flags: c_uint) -> Result {
    // SAFETY: it takes no pointer.
    unsafe { set_device(context, device) }
}

/// `cudaGetDevice`
pub unsafe fn get_device(_: Context, target: *mut c_int) -> Result {
    settings()?;
    // SAFETY: see the parent module.
    unsafe { put(target, 0) }
}

/// `cudaSetValidDevices`
pub unsafe fn set_valid_devices(_: Context, devices: *const c_int, count: c_int) -> Result {
    for index in 0..usize::try_from(count).map_err(|_| CudaError::ErrorInvalidValue)? {
        // SAFETY: the program says how many there are.
        check(unsafe { get(devices.wrapping_add(index)) }?)?;
    }
    Ok(())
}

/// `cudaSetDeviceFlags`
pub unsafe fn set_device_flags(_: Context, flags: c_uint) -> Result {
    let schedule = flags & 7;
    if flags & !FLAGS != 0 || !matches!(schedule, 0 | 1 | 2 | 4) {
        return Err(CudaError::ErrorInvalidValue);
    }
    DEVICE_FLAGS.store(flags, Ordering::Relaxed);
    Ok(())
}

/// `cudaGetDeviceFlags`
pub unsafe fn get_device_flags(_: Context, target: *mut c_uint) -> Result {
    // SAFETY: see the parent module.
    unsafe { put(target, DEVICE_FLAGS.load(Ordering::Relaxed) | MAP_HOST) }
}

/// `cudaDeviceSynchronize`
pub unsafe fn synchronize(_: Context) -> Result {
    let engine = engine()?;
    let wait = {
        let mut state = engine.lock();
        state.device()?;
        Wait::for_all(&mut state)?
    };
    wait.finish(engine)
}

/// `cudaDeviceReset`: a new device process starts when one is needed again. It also ends a sticky error.
pub unsafe fn reset(_: Context) -> Result {
    super::LAST_ERROR.with(|last| last.set(0));
    let Some(engine) = engine_if_made() else { return Ok(()) };
    let mut registry = registry();
    let mut state = engine.lock();
    state.reset()?;
    for module in registry.modules() {
        module.globals = None;
    }
    Ok(())
}

/// `cudaDeviceSetLimit`
pub unsafe fn set_limit(_: Context, limit: c_int, value: usize) -> Result {
    let slot = usize::try_from(limit).ok().and_then(|limit| LIMITS.get(limit));
    slot.ok_or(CudaError::ErrorUnsupportedLimit)?.store(value, Ordering::Relaxed);
    Ok(())
}

/// `cudaDeviceGetLimit`
pub unsafe fn get_limit(_: Context, target: *mut usize, limit: c_int) -> Result {
    let slot = usize::try_from(limit).ok().and_then(|limit| LIMITS.get(limit));
    let value = slot.ok_or(CudaError::ErrorUnsupportedLimit)?.load(Ordering::Relaxed);
    // SAFETY: see the parent module.
    unsafe { put(target, value) }
}

/// `cudaDeviceSetCacheConfig`, `cudaDeviceSetSharedMemConfig`: hints that the CPU has no use for.
pub unsafe fn set_hint(_: Context, value: c_int) -> Result {
    if (0..=3).contains(&value) { Ok(()) } else { Err(CudaError::ErrorInvalidValue) }
}

/// `cudaDeviceGetCacheConfig`, `cudaDeviceGetSharedMemConfig`: no preference.
pub unsafe fn get_hint(_: Context, target: *mut c_int) -> Result {
    // SAFETY: see the parent module.
    unsafe { put(target, 0) }
}

/// `cudaDeviceGetStreamPriorityRange`
pub unsafe fn get_stream_priority_range(_: Context, least: *mut c_int, greatest: *mut c_int) -> Result {
    // Both may be null.
    for (target, value) in [(least, 0), (greatest, super::stream::GREATEST_PRIORITY)] {
        if !target.is_null() {
            // SAFETY: see the parent module.
            unsafe { put(target, value) }?;
        }
    }
    Ok(())
}

/// `cudaDeviceCanAccessPeer`: there is no peer.
pub unsafe fn can_access_peer(_: Context, target: *mut c_int, device: c_int, peer: c_int) -> Result {
    check(device)?;
    check(peer)?;
    // SAFETY: see the parent module.
    unsafe { put(target, 0) }
}

/// `cudaRuntimeGetVersion`, `cudaDriverGetVersion`
pub unsafe fn get_version(_: Context, target: *mut c_int) -> Result {
    // SAFETY: see the parent module.
    unsafe { put(target, VERSION) }
}

/// `cudaProfilerStart`, `cudaProfilerStop`: there is no profiler.
pub unsafe fn profiler(_: Context) -> Result {
    Ok(())
}
