//! Memory pools: there is one, the default pool; its attributes can be set and read and have no effect.

use super::{Context, put};
use crate::error::{CuError, Result};
use crate::host::engine::engine;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// The handle of the default pool.
const DEFAULT_POOL: usize = 0x5000_0001;

/// `CU_MEMPOOL_ATTR_REUSE…` (1, 2, 3; int) and the release threshold (4; 64 bits), as the program set them.
static SETTINGS: [AtomicU64; 4] = [AtomicU64::new(1), AtomicU64::new(1), AtomicU64::new(1), AtomicU64::new(0)];

fn check(pool: *mut c_void) -> Result {
    if pool as usize == DEFAULT_POOL { Ok(()) } else { Err(CuError::INVALID_VALUE) }
}

/// `cuDeviceGetDefaultMemPool`, `cuDeviceGetMemPool`
pub unsafe fn device_get(_: Context, target: *mut *mut c_void, device: c_int) -> Result {
    super::device::check(device)?;
    // SAFETY: see the parent module.
    unsafe { put(target, DEFAULT_POOL as *mut c_void) }
}

/// `cuDeviceSetMemPool`
pub unsafe fn device_set(_: Context, device: c_int, pool: *mut c_void) -> Result {
    super::device::check(device)?;
    check(pool)
}

/// `cuMemAllocFromPoolAsync`
pub unsafe fn alloc_from(
    context: Context,
    target: *mut super::memory::DevicePtr,
    bytes: usize,
    pool: *mut c_void,
    stream: *mut c_void,
) -> Result {
    check(pool)?;
    // SAFETY: see the parent module.
    unsafe { super::memory::alloc_async(context, target, bytes, stream) }
}

/// `cuMemPoolTrimTo`
pub unsafe fn trim_to(_: Context, pool: *mut c_void, _keep: usize) -> Result {
    check(pool)?;
    engine()?.lock().reclaim();
    Ok(())
}

/// `cuMemPoolSetAttribute`
pub unsafe fn set_attribute(_: Context, pool: *mut c_void, attribute: c_int, value: *const c_void) -> Result {
    check(pool)?;
    let value = match attribute {
        // SAFETY: CUDA says that these are ints; for the rest see the parent module.
        1..=3 => u64::from(unsafe { super::get(value.cast::<c_int>()) }? != 0),
        // SAFETY: CUDA says that this is 64 bits wide.
        4 => unsafe { super::get(value.cast::<u64>()) }?,
        // The high-water marks can be reset to zero; there are none.
        6 | 8 => return Ok(()),
        _ => return Err(CuError::INVALID_VALUE),
    };
    SETTINGS[attribute as usize - 1].store(value, Ordering::Relaxed);
    Ok(())
}

/// `cuMemPoolGetAttribute`
pub unsafe fn get_attribute(_: Context, pool: *mut c_void, attribute: c_int, value: *mut c_void) -> Result {
    check(pool)?;
    match attribute {
        1..=3 => {
            let setting = SETTINGS[attribute as usize - 1].load(Ordering::Relaxed);
            // SAFETY: CUDA says that these are ints; for the rest see the parent module.
            unsafe { put(value.cast::<c_int>(), setting as c_int) }
        }
        // SAFETY: CUDA says that this is 64 bits wide.
        4 => unsafe { put(value.cast::<u64>(), SETTINGS[3].load(Ordering::Relaxed)) },
        5..=8 => {
            let mut state = engine()?.lock();
            state.reclaim();
            let (free, total) = state.arena.capacity();
            // SAFETY: as above.
            unsafe { put(value.cast::<u64>(), (total - free) as u64) }
        }
        _ => Err(CuError::INVALID_VALUE),
    }
}
