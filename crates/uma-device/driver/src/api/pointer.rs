//! What can be asked about an address.

use super::memory::DevicePtr;
use super::{Context, context, get, put};
use crate::error::{CuError, Result};
use crate::host::arena::Allocation;
use crate::host::engine::engine;
use crate::sync_table::Memory;
use std::ffi::{c_int, c_uint, c_void};

/// `CU_MEMORYTYPE_HOST`, `CU_MEMORYTYPE_DEVICE`
const HOST: c_uint = 1;
const DEVICE: c_uint = 2;

/// Gives one attribute of memory that CUDA knows to the program. The numbers are those of `CUpointer_attribute`.
unsafe fn put_known(data: *mut c_void, attribute: c_int, allocation: &Allocation, address: DevicePtr) -> Result {
    let on_host = allocation.memory != Memory::Device;
    // SAFETY: CUDA says how wide each attribute is; for the rest see the parent module.
    unsafe {
        match attribute {
            1 => put(data.cast::<*mut c_void>(), context::current()),
            // Managed memory counts as the device's.
            2 => put(data.cast::<c_uint>(), if allocation.memory == Memory::Pinned { HOST } else { DEVICE }),
            3 => put(data.cast::<DevicePtr>(), address),
            4 if on_host => put(data.cast::<DevicePtr>(), address),
            4 => Err(CuError::INVALID_VALUE),
            // Allocations have no number of their own, but no two live ones start at one address.
            7 | 20 => put(data.cast::<u64>(), allocation.base as u64),
            8 => put(data.cast::<c_uint>(), c_uint::from(allocation.memory == Memory::Managed)),
            9 => put(data.cast::<c_int>(), 0),
            6 | 10 | 15 | 21 => put(data.cast::<c_uint>(), 0),
            11 | 19 => put(data.cast::<DevicePtr>(), allocation.base as DevicePtr),
            12 | 18 => put(data.cast::<usize>(), allocation.bytes),
            13 => put(data.cast::<c_uint>(), 1),
            14 => put(data.cast::<u64>(), 0),
            // Read and write.
            16 => put(data.cast::<c_int>(), 3),
            17 => put(data.cast::<*mut c_void>(), std::ptr::null_mut()),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
}

/// The same for an address that CUDA does not know: what `cuPointerGetAttributes` says instead of an error.
unsafe fn put_unknown(data: *mut c_void, attribute: c_int) -> Result {
    const NO_DEVICE: c_int = -2;
    // SAFETY: as above.
    unsafe {
        match attribute {
            1 | 3 | 4 | 7 | 11 | 12 | 14 | 17..=20 => put(data.cast::<u64>(), 0),
            9 => put(data.cast::<c_int>(), NO_DEVICE),
            2 | 6 | 8 | 10 | 13 | 15 | 16 | 21 => put(data.cast::<c_uint>(), 0),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
}

fn find(address: DevicePtr) -> Result<Option<Allocation>> {
    Ok(engine()?.lock().arena.find(address as usize).copied())
}

/// `cuPointerGetAttribute`
pub unsafe fn get_attribute(_: Context, data: *mut c_void, attribute: c_int, address: DevicePtr) -> Result {
    let allocation = find(address)?.ok_or(CuError::INVALID_VALUE)?;
    // SAFETY: see the parent module.
    unsafe { put_known(data, attribute, &allocation, address) }
}

/// `cuPointerGetAttributes`
pub unsafe fn get_attributes(
    _: Context,
    count: c_uint,
    attributes: *const c_int,
    data: *const *mut c_void,
    address: DevicePtr,
) -> Result {
    let allocation = find(address)?;
    for index in 0..count as usize {
        // SAFETY: the program says how many there are.
        let (attribute, data) = unsafe { (get(attributes.wrapping_add(index))?, get(data.wrapping_add(index))?) };
        // SAFETY: see the parent module.
        unsafe {
            match &allocation {
                // The host has no address for device memory: null, and no error here.
                Some(known) if attribute == 4 && known.memory == Memory::Device => put_unknown(data, 4)?,
                Some(known) => put_known(data, attribute, known, address)?,
                None => put_unknown(data, attribute)?,
            }
        }
    }
    Ok(())
}
