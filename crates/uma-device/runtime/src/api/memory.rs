//! Allocation, registration and what memory is.

use super::{Context, put};
use crate::driver::{DevicePtr, Handle, Location, check};
use crate::error::{CudaError, Result};
use std::ffi::{c_int, c_uint, c_void};

/// A box of bytes (`cudaExtent`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Bytes of a row, where no array is involved.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Slices.
    pub depth: usize,
}

/// `cudaPitchedPtr`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PitchedPtr {
    /// First byte.
    pub ptr: *mut c_void,
    /// Bytes from a row to the next.
    pub pitch: usize,
    /// Bytes of a row that are used.
    pub xsize: usize,
    /// Rows of a slice.
    pub ysize: usize,
}

/// `cudaPointerAttributes`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PointerAttributes {
    kind: c_int,
    device: c_int,
    device_pointer: *mut c_void,
    host_pointer: *mut c_void,
    reserved: [i64; 8],
}

/// Has `allocate` allocate and gives the address to the program; no bytes are the null pointer, for which the driver is not asked.
///
/// # Safety
/// `target` is null or can hold a pointer.
pub(super) unsafe fn allocated(
    target: *mut *mut c_void,
    bytes: usize,
    allocate: impl FnOnce(*mut DevicePtr) -> c_int,
) -> Result {
    if target.is_null() {
        return Err(CudaError::ErrorInvalidValue);
    }
    let mut address = 0;
    if bytes > 0 {
        check(allocate(&mut address))?;
    }
    // SAFETY: the caller vouches for `target`.
    unsafe { put(target, address as *mut c_void) }
}

/// `cudaMalloc`
pub unsafe fn malloc(context: Context, target: *mut *mut c_void, bytes: usize) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    unsafe { allocated(target, bytes, |address| (driver.mem_alloc)(address, bytes)) }
}

/// `cudaMallocManaged`
pub unsafe fn malloc_managed(context: Context, target: *mut *mut c_void, bytes: usize, flags: c_uint) -> Result {
    if bytes == 0 {
        return Err(CudaError::ErrorInvalidValue);
    }
    let driver = context.current()?;
    // SAFETY: see the parent module.
    unsafe { allocated(target, bytes, |address| (driver.mem_alloc_managed)(address, bytes, flags)) }
}

/// `cudaMallocHost`
pub unsafe fn malloc_host(context: Context, target: *mut *mut c_void, bytes: usize) -> Result {
    // SAFETY: see the parent module.
    unsafe { host_alloc(context, target, bytes, 0) }
}

/// `cudaHostAlloc`
pub unsafe fn host_alloc(context: Context, target: *mut *mut c_void, bytes: usize, flags: c_uint) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    unsafe { allocated(target, bytes, |address| (driver.mem_host_alloc)(address.cast(), bytes, flags)) }
}

/// `cudaMallocPitch`
pub unsafe fn malloc_pitch(
    context: Context,
    target: *mut *mut c_void,
    pitch: *mut usize,
    width: usize,
    height: usize,
) -> Result {
    /// Bytes of the smallest element that the driver arranges rows for.
    const ELEMENT: c_uint = 4;
    if target.is_null() || pitch.is_null() {
        return Err(CudaError::ErrorInvalidValue);
    }
    let driver = context.current()?;
    let mut row = width;
    // SAFETY: see the parent module; the pitch is ours.
    unsafe {
        allocated(target, width.min(height), |address| {
            (driver.mem_alloc_pitch)(address, &mut row, width, height, ELEMENT)
        })?;
        put(pitch, row)
    }
}

/// `cudaMalloc3D`
pub unsafe fn malloc_3d(context: Context, target: *mut PitchedPtr, extent: Extent) -> Result {
    let rows = extent.height.checked_mul(extent.depth).ok_or(CudaError::ErrorMemoryAllocation)?;
    let (mut ptr, mut pitch) = (std::ptr::null_mut(), 0);
    if target.is_null() {
        return Err(CudaError::ErrorInvalidValue);
    }
    // SAFETY: both targets are ours; for `target` see the parent module.
    unsafe {
        malloc_pitch(context, &mut ptr, &mut pitch, extent.width, rows)?;
        put(target, PitchedPtr { ptr, pitch, xsize: extent.width, ysize: extent.height })
    }
}

/// `cudaMallocAsync`
pub unsafe fn malloc_async(context: Context, target: *mut *mut c_void, bytes: usize, stream: Handle) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    unsafe { allocated(target, bytes, |address| driver.mem_alloc_async.of(context.per_thread)(address, bytes, stream)) }
}

/// `cudaFree`: of the null pointer, it is the usual way to start the device.
pub unsafe fn free(context: Context, address: *mut c_void) -> Result {
    if address.is_null() {
        return super::device::healthy(context).map(drop);
    }
    let driver = context.current()?;
    // SAFETY: it takes an address, which it checks.
    check(unsafe { (driver.mem_free)(address as DevicePtr) })
}

/// `cudaFreeHost`
pub unsafe fn free_host(context: Context, address: *mut c_void) -> Result {
    if address.is_null() {
        return Ok(());
    }
    let driver = context.current()?;
    // SAFETY: it takes an address, which it checks.
    check(unsafe { (driver.mem_free_host)(address) })
}

/// `cudaFreeAsync`
pub unsafe fn free_async(context: Context, address: *mut c_void, stream: Handle) -> Result {
    let driver = context.current()?;
    // SAFETY: it takes an address, which it checks.
    check(unsafe { driver.mem_free_async.of(context.per_thread)(address as DevicePtr, stream) })
}

/// `cudaHostRegister`
pub unsafe fn host_register(context: Context, address: *mut c_void, bytes: usize, flags: c_uint) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.mem_host_register)(address, bytes, flags) })
}

/// `cudaHostUnregister`
pub unsafe fn host_unregister(context: Context, address: *mut c_void) -> Result {
    let driver = context.current()?;
    // SAFETY: it takes an address, which it checks.
    check(unsafe { (driver.mem_host_unregister)(address) })
}

/// `cudaHostGetDevicePointer`
pub unsafe fn host_get_device_pointer(
    context: Context,
    target: *mut *mut c_void,
    address: *mut c_void,
    flags: c_uint,
) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module. A device pointer is as wide as a pointer.
    check(unsafe { (driver.mem_host_get_device_pointer)(target.cast(), address, flags) })
}

/// `cudaHostGetFlags`
pub unsafe fn host_get_flags(context: Context, target: *mut c_uint, address: *mut c_void) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.mem_host_get_flags)(target, address) })
}

/// `cudaMemGetInfo`
pub unsafe fn mem_get_info(context: Context, free: *mut usize, total: *mut usize) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.mem_get_info)(free, total) })
}

/// `cudaPointerGetAttributes`
pub unsafe fn pointer_get_attributes(
    context: Context,
    target: *mut PointerAttributes,
    address: *const c_void,
) -> Result {
    /// `CU_POINTER_ATTRIBUTE_…`: memory type, is managed, device ordinal, device pointer, host pointer.
    const ASKED: [c_int; 5] = [2, 8, 9, 3, 4];
    let driver = context.current()?;
    let (mut memory_type, mut is_managed, mut device): (c_uint, c_uint, c_int) = (0, 0, 0);
    let (mut device_pointer, mut host_pointer): (DevicePtr, DevicePtr) = (0, 0);
    let data: [*mut c_void; 5] = [
        (&raw mut memory_type).cast(),
        (&raw mut is_managed).cast(),
        (&raw mut device).cast(),
        (&raw mut device_pointer).cast(),
        (&raw mut host_pointer).cast(),
    ];
    // SAFETY: all targets are ours, each of the width that CUDA says.
    check(unsafe {
        (driver.pointer_get_attributes)(ASKED.len() as c_uint, ASKED.as_ptr(), data.as_ptr(), address as DevicePtr)
    })?;
    // `cudaMemoryType…`: unregistered, host, device, managed.
    let kind = if is_managed != 0 { 3 } else { memory_type as c_int };
    let attributes = PointerAttributes {
        kind,
        device,
        device_pointer: device_pointer as *mut c_void,
        host_pointer: host_pointer as *mut c_void,
        reserved: [0; 8],
    };
    // SAFETY: see the parent module.
    unsafe { put(target, attributes) }
}

/// `cudaMemPrefetchAsync`
pub unsafe fn mem_prefetch_async(
    context: Context,
    address: *const c_void,
    bytes: usize,
    location: Location,
    flags: c_uint,
    stream: Handle,
) -> Result {
    let driver = context.current()?;
    let prefetch = driver.mem_prefetch_async.of(context.per_thread);
    // SAFETY: it takes an address, which it checks.
    check(unsafe { prefetch(address as DevicePtr, bytes, location, flags, stream) })
}

/// `cudaMemAdvise`
pub unsafe fn mem_advise(
    context: Context,
    address: *const c_void,
    bytes: usize,
    advice: c_int,
    location: Location,
) -> Result {
    let driver = context.current()?;
    // SAFETY: it takes an address, which it checks.
    check(unsafe { (driver.mem_advise)(address as DevicePtr, bytes, advice, location) })
}

/// `cudaStreamAttachMemAsync`
pub unsafe fn stream_attach_mem_async(
    context: Context,
    stream: Handle,
    address: *mut c_void,
    bytes: usize,
    flags: c_uint,
) -> Result {
    let driver = context.current()?;
    let attach = driver.stream_attach_mem_async.of(context.per_thread);
    // SAFETY: it takes an address, which it checks.
    check(unsafe { attach(stream, address as DevicePtr, bytes, flags) })
}
