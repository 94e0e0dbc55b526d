//! Memsets.

use super::Context;
use super::memory::{Extent, PitchedPtr};
use crate::driver::{DevicePtr, Handle, check};
use crate::error::{CudaError, Result};
use std::ffi::{c_int, c_void};

/// `cudaMemset`
pub unsafe fn memset(context: Context, to: *mut c_void, value: c_int, bytes: usize) -> Result {
    let set = context.current()?.memset_d8.of(context.per_thread);
    // SAFETY: it takes an address, which it checks.
    check(unsafe { set(to as DevicePtr, value as u8, bytes) })
}

/// `cudaMemsetAsync`
pub unsafe fn memset_async(context: Context, to: *mut c_void, value: c_int, bytes: usize, stream: Handle) -> Result {
    let set = context.current()?.memset_d8_async.of(context.per_thread);
    // SAFETY: it takes an address, which it checks.
    check(unsafe { set(to as DevicePtr, value as u8, bytes, stream) })
}

fn rows(
    context: Context,
    (to, pitch): (*mut c_void, usize),
    value: c_int,
    (width, height): (usize, usize),
    stream: Option<Handle>,
) -> Result {
    let driver = context.current()?;
    let (to, value) = (to as DevicePtr, value as u8);
    // SAFETY: they take an address, which they check.
    check(unsafe {
        match stream {
            None => driver.memset_d2d8.of(context.per_thread)(to, pitch, value, width, height),
            Some(stream) => driver.memset_d2d8_async.of(context.per_thread)(to, pitch, value, width, height, stream),
        }
    })
}

/// `cudaMemset2D`
pub unsafe fn memset_2d(
    context: Context,
    to: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
) -> Result {
    if width > pitch {
        return Err(CudaError::ErrorInvalidPitchValue);
    }
    rows(context, (to, pitch), value, (width, height), None)
}

/// `cudaMemset2DAsync`
pub unsafe fn memset_2d_async(
    context: Context,
    to: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    stream: Handle,
) -> Result {
    if width > pitch {
        return Err(CudaError::ErrorInvalidPitchValue);
    }
    rows(context, (to, pitch), value, (width, height), Some(stream))
}

/// The driver has memsets of rows only: one for all slices where they have no gap, else one a slice.
fn slices(context: Context, to: PitchedPtr, value: c_int, extent: Extent, stream: Option<Handle>) -> Result {
    let Extent { width, height, depth } = extent;
    let count = height.checked_mul(depth).ok_or(CudaError::ErrorInvalidValue)?;
    if to.pitch < width && count > 1 {
        return Err(CudaError::ErrorInvalidPitchValue);
    }
    if depth <= 1 || to.ysize <= height {
        return rows(context, (to.ptr, to.pitch), value, (width, count), stream);
    }
    let slice = to.pitch.checked_mul(to.ysize).ok_or(CudaError::ErrorInvalidValue)?;
    // The last one first: if it fits, all do.
    (0..depth).rev().try_for_each(|z| {
        let offset = z.checked_mul(slice).ok_or(CudaError::ErrorInvalidValue)?;
        rows(context, (to.ptr.wrapping_byte_add(offset), to.pitch), value, (width, height), stream)
    })
}

/// `cudaMemset3D`
pub unsafe fn memset_3d(context: Context, to: PitchedPtr, value: c_int, extent: Extent) -> Result {
    slices(context, to, value, extent, None)
}

/// `cudaMemset3DAsync`
pub unsafe fn memset_3d_async(
    context: Context,
    to: PitchedPtr,
    value: c_int,
    extent: Extent,
    stream: Handle,
) -> Result {
    slices(context, to, value, extent, Some(stream))
}
