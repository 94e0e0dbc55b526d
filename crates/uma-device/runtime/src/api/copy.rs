//! Copies. `cudaMemcpyKind` says which of the driver's functions makes one.

use super::memory::{Extent, PitchedPtr};
use super::{Context, get};
use crate::driver::{Copy2D, Copy3D as DriverCopy3D, DevicePtr, End2D, End3D, Handle, check};
use crate::error::{CudaError, Result};
use std::ffi::{c_int, c_uint, c_void};

/// `cudaMemcpy3DParms`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy3D {
    src_array: *mut c_void,
    src_pos: Extent,
    src_ptr: PitchedPtr,
    dst_array: *mut c_void,
    dst_pos: Extent,
    dst_ptr: PitchedPtr,
    extent: Extent,
    kind: c_int,
}

/// `cudaMemcpyHostToHost`, `HostToDevice`, `DeviceToHost`, `DeviceToDevice`, `Default`
const HOST_TO_HOST: c_int = 0;
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;
const DEVICE_TO_DEVICE: c_int = 3;
const DEFAULT: c_int = 4;

/// `CU_MEMORYTYPE_…` of source and target.
fn memory_types(kind: c_int) -> Result<(c_uint, c_uint)> {
    const HOST: c_uint = 1;
    const DEVICE: c_uint = 2;
    const UNIFIED: c_uint = 4;
    match kind {
        HOST_TO_HOST => Ok((HOST, HOST)),
        HOST_TO_DEVICE => Ok((HOST, DEVICE)),
        DEVICE_TO_HOST => Ok((DEVICE, HOST)),
        DEVICE_TO_DEVICE => Ok((DEVICE, DEVICE)),
        DEFAULT => Ok((UNIFIED, UNIFIED)),
        _ => Err(CudaError::ErrorInvalidMemcpyDirection),
    }
}

/// Copies a line. `stream`: `None` if the call is synchronous.
///
/// # Safety
/// As the parent module says.
pub(super) unsafe fn line(
    context: Context,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
    stream: Option<Handle>,
) -> Result {
    let driver = context.current()?;
    let own = context.per_thread;
    let (to_device, from_device) = (to as DevicePtr, from as DevicePtr);
    // SAFETY: see the parent module.
    check(unsafe {
        match (kind, stream) {
            (HOST_TO_DEVICE, None) => driver.memcpy_htod.of(own)(to_device, from, bytes),
            (HOST_TO_DEVICE, Some(stream)) => driver.memcpy_htod_async.of(own)(to_device, from, bytes, stream),
            (DEVICE_TO_HOST, None) => driver.memcpy_dtoh.of(own)(to, from_device, bytes),
            (DEVICE_TO_HOST, Some(stream)) => driver.memcpy_dtoh_async.of(own)(to, from_device, bytes, stream),
            (DEVICE_TO_DEVICE, None) => driver.memcpy_dtod.of(own)(to_device, from_device, bytes),
            (DEVICE_TO_DEVICE, Some(stream)) => driver.memcpy_dtod_async.of(own)(to_device, from_device, bytes, stream),
            (DEFAULT, None) => driver.memcpy.of(own)(to_device, from_device, bytes),
            (DEFAULT, Some(stream)) => driver.memcpy_async.of(own)(to_device, from_device, bytes, stream),
            // The driver has no function of one line from host to host.
            _ => return rows(context, (to, bytes), (from, bytes), (bytes, 1), kind, stream),
        }
    })
}

/// Copies rows; each end is an address and a pitch.
unsafe fn rows(
    context: Context,
    (to, to_pitch): (*mut c_void, usize),
    (from, from_pitch): (*const c_void, usize),
    (width, height): (usize, usize),
    kind: c_int,
    stream: Option<Handle>,
) -> Result {
    let (from_type, to_type) = memory_types(kind)?;
    if width > to_pitch || width > from_pitch {
        return Err(CudaError::ErrorInvalidPitchValue);
    }
    let end = |address: usize, memory_type, pitch| End2D {
        x: 0,
        y: 0,
        memory_type,
        host: address,
        device: address as DevicePtr,
        array: std::ptr::null_mut(),
        pitch,
    };
    let from = end(from as usize, from_type, from_pitch);
    let copy = Copy2D { from, to: end(to as usize, to_type, to_pitch), width, height };
    let driver = context.current()?;
    // SAFETY: see the parent module; the description is ours.
    check(unsafe {
        match stream {
            None => driver.memcpy_2d.of(context.per_thread)(&copy),
            Some(stream) => driver.memcpy_2d_async.of(context.per_thread)(&copy, stream),
        }
    })
}

/// `cudaMemcpy`
pub unsafe fn memcpy(context: Context, to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int) -> Result {
    // SAFETY: see the parent module.
    unsafe { line(context, to, from, bytes, kind, None) }
}

/// `cudaMemcpyAsync`
pub unsafe fn memcpy_async(
    context: Context,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
    stream: Handle,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { line(context, to, from, bytes, kind, Some(stream)) }
}

/// The context of a device, for copies between devices: there is one.
fn context_of(context: Context, device: c_int) -> Result<Handle> {
    super::device::check_number(device)?;
    let driver = context.current()?;
    let mut current = std::ptr::null_mut();
    // SAFETY: the target is ours.
    check(unsafe { (driver.ctx_get_current)(&mut current) })?;
    Ok(current)
}

/// `cudaMemcpyPeer`
pub unsafe fn memcpy_peer(
    context: Context,
    to: *mut c_void,
    to_device: c_int,
    from: *const c_void,
    from_device: c_int,
    bytes: usize,
) -> Result {
    let (to_context, from_context) = (context_of(context, to_device)?, context_of(context, from_device)?);
    let copy = context.current()?.memcpy_peer.of(context.per_thread);
    // SAFETY: see the parent module.
    check(unsafe { copy(to as DevicePtr, to_context, from as DevicePtr, from_context, bytes) })
}

/// `cudaMemcpyPeerAsync`
pub unsafe fn memcpy_peer_async(
    context: Context,
    to: *mut c_void,
    to_device: c_int,
    from: *const c_void,
    from_device: c_int,
    bytes: usize,
    stream: Handle,
) -> Result {
    let (to_context, from_context) = (context_of(context, to_device)?, context_of(context, from_device)?);
    let copy = context.current()?.memcpy_peer_async.of(context.per_thread);
    // SAFETY: see the parent module.
    check(unsafe { copy(to as DevicePtr, to_context, from as DevicePtr, from_context, bytes, stream) })
}

/// `cudaMemcpy2D`
#[expect(clippy::too_many_arguments, reason = "the arguments are CUDA's")]
pub unsafe fn memcpy_2d(
    context: Context,
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { rows(context, (to, to_pitch), (from, from_pitch), (width, height), kind, None) }
}

/// `cudaMemcpy2DAsync`
#[expect(clippy::too_many_arguments, reason = "the arguments are CUDA's")]
pub unsafe fn memcpy_2d_async(
    context: Context,
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    stream: Handle,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { rows(context, (to, to_pitch), (from, from_pitch), (width, height), kind, Some(stream)) }
}

unsafe fn run_3d(context: Context, request: *const Copy3D, stream: Option<Handle>) -> Result {
    // SAFETY: see the parent module.
    let request = unsafe { get(request) }?;
    if !request.src_array.is_null() || !request.dst_array.is_null() {
        // Arrays can't be made on this device, so this is no array.
        return Err(CudaError::ErrorInvalidValue);
    }
    let (from_type, to_type) = memory_types(request.kind)?;
    let Extent { width, height, depth } = request.extent;
    let one_row = height.saturating_mul(depth) <= 1;
    let end = |base: PitchedPtr, at: Extent, memory_type| {
        if base.pitch < width && !one_row {
            return Err(CudaError::ErrorInvalidPitchValue);
        }
        Ok(End3D {
            x: at.width,
            y: at.height,
            z: at.depth,
            level: 0,
            memory_type,
            host: base.ptr as usize,
            device: base.ptr as DevicePtr,
            array: std::ptr::null_mut(),
            reserved: std::ptr::null_mut(),
            pitch: base.pitch,
            height: base.ysize,
        })
    };
    let to = end(request.dst_ptr, request.dst_pos, to_type)?;
    let copy = DriverCopy3D { from: end(request.src_ptr, request.src_pos, from_type)?, to, width, height, depth };
    let driver = context.current()?;
    // SAFETY: see the parent module; the description is ours.
    check(unsafe {
        match stream {
            None => driver.memcpy_3d.of(context.per_thread)(&copy),
            Some(stream) => driver.memcpy_3d_async.of(context.per_thread)(&copy, stream),
        }
    })
}

/// `cudaMemcpy3D`
pub unsafe fn memcpy_3d(context: Context, request: *const Copy3D) -> Result {
    // SAFETY: see the parent module.
    unsafe { run_3d(context, request, None) }
}

/// `cudaMemcpy3DAsync`
pub unsafe fn memcpy_3d_async(context: Context, request: *const Copy3D, stream: Handle) -> Result {
    // SAFETY: see the parent module.
    unsafe { run_3d(context, request, Some(stream)) }
}
