//! Prefetch, advice and attachment of managed memory.

use super::Context;
use super::memory::{ATTACH_GLOBAL, ATTACH_HOST, ATTACH_SINGLE, DevicePtr};
use crate::command::Command;
use crate::error::{CuError, Result};
use crate::host::arena::Attach;
use crate::host::engine::{engine, settings};
use crate::settings::Access;
use crate::sync_table::Memory;
use std::ffi::{c_int, c_uint, c_void};

/// `CUmemLocation`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Location {
    kind: c_int,
    id: c_int,
}

const DEVICE: c_int = 1;
const HOST: c_int = 2;

/// `CU_DEVICE_CPU`: how calls before CUDA 12.2 say "the host".
const CPU: c_int = -1;

/// The location that a device number of the older calls means.
fn location(device: c_int) -> Location {
    if device == CPU { Location { kind: HOST, id: 0 } } else { Location { kind: DEVICE, id: device } }
}

/// Checks that a range is managed memory and that `location` is one that this device can favour.
fn check_managed(address: DevicePtr, bytes: usize, location: Location) -> Result {
    if engine()?.lock().arena.classify(address as usize, bytes)? != Memory::Managed {
        return Err(CuError::INVALID_VALUE);
    }
    match location.kind {
        HOST => Ok(()),
        // As CUDA has it for devices without concurrent access.
        DEVICE if location.id != 0 || settings()?.access == Access::Exclusive => Err(CuError::INVALID_DEVICE),
        DEVICE => Ok(()),
        _ => Err(CuError::INVALID_VALUE),
    }
}

/// `cuMemPrefetchAsync_v2`: there is one DRAM, so nothing moves; it is work in stream order all the same.
pub unsafe fn prefetch_async(
    context: Context,
    address: DevicePtr,
    bytes: usize,
    location: Location,
    flags: c_uint,
    stream: *mut c_void,
) -> Result {
    if flags != 0 || bytes == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    check_managed(address, bytes, location)?;
    let mut state = engine()?.lock();
    let stream = state.stream(stream as usize, context.per_thread)?;
    state.enqueue(stream, Command::Mark, None, true).map(drop)
}

/// `cuMemPrefetchAsync`
pub unsafe fn prefetch_async_to(
    context: Context,
    address: DevicePtr,
    bytes: usize,
    device: c_int,
    stream: *mut c_void,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { prefetch_async(context, address, bytes, location(device), 0, stream) }
}

/// `cuMemAdvise_v2`: checked, then without effect.
pub unsafe fn advise(_: Context, address: DevicePtr, bytes: usize, advice: c_int, location: Location) -> Result {
    let ignores_location = matches!(advice, 1 | 2 | 4);
    if !(1..=6).contains(&advice) || bytes == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let location = if ignores_location { Location { kind: HOST, id: 0 } } else { location };
    check_managed(address, bytes, location)
}

/// `cuMemAdvise`
pub unsafe fn advise_for(context: Context, address: DevicePtr, bytes: usize, advice: c_int, device: c_int) -> Result {
    // SAFETY: see the parent module.
    unsafe { advise(context, address, bytes, advice, location(device)) }
}

/// `cuStreamAttachMemAsync`: takes effect in stream order, so the host waits for the stream before it relies on it.
pub unsafe fn attach_async(
    context: Context,
    stream: *mut c_void,
    address: DevicePtr,
    bytes: usize,
    flags: c_uint,
) -> Result {
    let mut state = engine()?.lock();
    let stream = state.stream(stream as usize, context.per_thread)?;
    let found = state.arena.find(address as usize).copied();
    let allocation = found.filter(|a| a.base == address as usize && a.memory == Memory::Managed);
    let allocation = allocation.ok_or(CuError::INVALID_VALUE)?;
    if bytes != 0 && bytes != allocation.bytes {
        return Err(CuError::INVALID_VALUE);
    }
    let attach = match flags {
        ATTACH_GLOBAL => Attach::Global,
        ATTACH_HOST => Attach::Host(stream.slot),
        ATTACH_SINGLE if stream.slot != crate::layout::LEGACY_STREAM => Attach::Stream(stream.slot),
        _ => return Err(CuError::INVALID_VALUE),
    };
    state.enqueue(stream, Command::Mark, None, true)?;
    state.arena.update(allocation.base, |a| a.attach = attach);
    Ok(())
}
