//! Allocation and registration.

use super::{Context, put, put_if};
use crate::command::Command;
use crate::error::{CuError, Result};
use crate::host::arena::{Allocation, Attach, Origin};
use crate::host::engine::{Engine, engine};
use crate::host::waits::Wait;
use crate::layout::PITCH_ALIGN;
use crate::sync_table::Memory;
use std::ffi::{c_uint, c_void};

/// `CUdeviceptr`
pub type DevicePtr = u64;

pub(super) const ATTACH_GLOBAL: c_uint = 1;
pub(super) const ATTACH_HOST: c_uint = 2;
pub(super) const ATTACH_SINGLE: c_uint = 4;

/// `CU_MEMHOSTALLOC_…` flags that exist: portable, device map, write-combined.
const HOST_ALLOC_FLAGS: c_uint = 1 | 2 | 4;
/// `CU_MEMHOSTREGISTER_…` flags that this device knows: portable, device map, read-only. I/O memory it has none.
const HOST_REGISTER_FLAGS: c_uint = 1 | 2 | 8;

fn allocate(bytes: usize, memory: Memory, origin: Origin) -> Result<Allocation> {
    if bytes == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let mut state = engine()?.lock();
    state.device()?;
    state.reclaim();
    let idle = state.coverage.is_idle();
    state.arena.allocate(bytes, memory, origin, idle)
}

/// Allocates device memory and gives its address to the program.
unsafe fn allocate_into(target: *mut DevicePtr, bytes: usize) -> Result {
    if target.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    let base = allocate(bytes, Memory::Device, Origin::Device)?.base;
    // SAFETY: the caller vouches for `target`.
    unsafe { put(target, base as DevicePtr) }
}

/// `cuMemAlloc`
pub unsafe fn alloc(_: Context, target: *mut DevicePtr, bytes: usize) -> Result {
    // SAFETY: see the parent module.
    unsafe { allocate_into(target, bytes) }
}

/// `cuMemAllocManaged`
pub unsafe fn alloc_managed(_: Context, target: *mut DevicePtr, bytes: usize, flags: c_uint) -> Result {
    if target.is_null() || bytes == 0 || !matches!(flags, ATTACH_GLOBAL | ATTACH_HOST) {
        return Err(CuError::INVALID_VALUE);
    }
    let mut state = engine()?.lock();
    state.device()?;
    state.reclaim();
    let host = flags == ATTACH_HOST;
    let idle = host || state.coverage.is_idle();
    let allocation = state.arena.allocate(bytes, Memory::Managed, Origin::Device, idle)?;
    if host {
        // Slot 0 stands for no stream in particular: it is open already.
        state.arena.update(allocation.base, |a| a.attach = Attach::Host(0));
    }
    // SAFETY: see the parent module.
    unsafe { put(target, allocation.base as DevicePtr) }
}

/// `cuMemAllocHost`
pub unsafe fn alloc_host(context: Context, target: *mut *mut c_void, bytes: usize) -> Result {
    // SAFETY: see the parent module.
    unsafe { host_alloc(context, target, bytes, 0) }
}

/// `cuMemHostAlloc`
pub unsafe fn host_alloc(_: Context, target: *mut *mut c_void, bytes: usize, flags: c_uint) -> Result {
    if target.is_null() || flags & !HOST_ALLOC_FLAGS != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let base = allocate(bytes, Memory::Pinned, Origin::Host)?.base;
    engine()?.lock().arena.update(base, |a| a.flags = flags);
    // SAFETY: see the parent module.
    unsafe { put(target, base as *mut c_void) }
}

/// `cuMemAllocPitch`
pub unsafe fn alloc_pitch(
    _: Context,
    target: *mut DevicePtr,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: c_uint,
) -> Result {
    if target.is_null() || pitch.is_null() || !matches!(element, 4 | 8 | 16) {
        return Err(CuError::INVALID_VALUE);
    }
    let row = width.checked_next_multiple_of(PITCH_ALIGN).ok_or(CuError::OUT_OF_MEMORY)?;
    let bytes = row.checked_mul(height).ok_or(CuError::OUT_OF_MEMORY)?;
    // SAFETY: see the parent module.
    unsafe {
        allocate_into(target, bytes)?;
        put(pitch, row)
    }
}

/// `cuMemAllocAsync`: the memory can be used from now on, which is earlier than promised.
pub unsafe fn alloc_async(context: Context, target: *mut DevicePtr, bytes: usize, stream: *mut c_void) -> Result {
    engine()?.lock().stream(stream as usize, context.per_thread)?;
    // SAFETY: see the parent module.
    unsafe { allocate_into(target, bytes) }
}

/// Frees after waiting for the device (`cuMemFree…` and `cuMemHostUnregister` are implicit waits).
fn free_now(base: usize, origin: Origin) -> Result {
    let engine = engine()?;
    let wait = {
        let mut state = engine.lock();
        state.device()?;
        let known = state.arena.find(base).is_some_and(|a| a.base == base && a.origin == origin);
        if !known {
            return Err(CuError::INVALID_VALUE);
        }
        Wait::for_all(&mut state)?
    };
    wait.finish(engine)?;
    release(engine, base)
}

fn release(engine: &Engine, base: usize) -> Result {
    let mut state = engine.lock();
    // Another thread may have freed it during the wait.
    let allocation = state.arena.forget(base).ok_or(CuError::INVALID_VALUE)?;
    state.arena.release(&allocation);
    Ok(())
}

/// `cuMemFree`
pub unsafe fn free(_: Context, address: DevicePtr) -> Result {
    if address == 0 {
        return Ok(());
    }
    free_now(address as usize, Origin::Device)
}

/// `cuMemFreeHost`
pub unsafe fn free_host(_: Context, address: *mut c_void) -> Result {
    if address.is_null() {
        return Ok(());
    }
    free_now(address as usize, Origin::Host)
}

/// `cuMemFreeAsync`: no later call may use the memory; it is free once the stream has come here.
pub unsafe fn free_async(context: Context, address: DevicePtr, stream: *mut c_void) -> Result {
    let mut state = engine()?.lock();
    let stream = state.stream(stream as usize, context.per_thread)?;
    if address == 0 {
        return Ok(());
    }
    let base = address as usize;
    if !state.arena.find(base).is_some_and(|a| a.base == base && a.origin == Origin::Device) {
        return Err(CuError::INVALID_VALUE);
    }
    let sequence = state.enqueue(stream, Command::Mark, None, false)?;
    let allocation = state.arena.forget(base).ok_or(CuError::INVALID_VALUE)?;
    state.release_after((stream.slot, sequence), allocation);
    state.reclaim();
    Ok(())
}

/// `cuMemHostRegister`
pub unsafe fn host_register(_: Context, address: *mut c_void, bytes: usize, flags: c_uint) -> Result {
    if flags & !HOST_REGISTER_FLAGS != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    engine()?.lock().register(address as usize, bytes, flags)
}

/// `cuMemHostUnregister`
pub unsafe fn host_unregister(_: Context, address: *mut c_void) -> Result {
    let engine = engine()?;
    let wait = Wait::for_all(&mut engine.lock())?;
    wait.finish(engine)?;
    engine.lock().unregister(address as usize)
}

/// `cuMemHostGetDevicePointer`: pinned memory has one address.
pub unsafe fn host_get_device_pointer(
    _: Context,
    target: *mut DevicePtr,
    address: *mut c_void,
    flags: c_uint,
) -> Result {
    let pinned = engine()?.lock().arena.find(address as usize).is_some_and(|a| a.memory == Memory::Pinned);
    if flags != 0 || !pinned {
        return Err(CuError::INVALID_VALUE);
    }
    // SAFETY: see the parent module.
    unsafe { put(target, address as DevicePtr) }
}

/// `cuMemHostGetFlags`
pub unsafe fn host_get_flags(_: Context, target: *mut c_uint, address: *mut c_void) -> Result {
    let state = engine()?.lock();
    let pinned = state.arena.find(address as usize).filter(|a| a.memory == Memory::Pinned);
    let flags = pinned.map(|a| a.flags).ok_or(CuError::INVALID_VALUE)?;
    // SAFETY: see the parent module.
    unsafe { put(target, flags) }
}

/// `cuMemGetInfo`
pub unsafe fn get_info(_: Context, free: *mut usize, total: *mut usize) -> Result {
    let mut state = engine()?.lock();
    state.device()?;
    state.reclaim();
    let capacity = state.arena.capacity();
    // SAFETY: see the parent module.
    unsafe {
        put(free, capacity.0)?;
        put(total, capacity.1)
    }
}

/// `cuMemGetAddressRange`
pub unsafe fn get_address_range(_: Context, base: *mut DevicePtr, bytes: *mut usize, address: DevicePtr) -> Result {
    let found = engine()?.lock().arena.find(address as usize).copied().ok_or(CuError::NOT_FOUND)?;
    // SAFETY: see the parent module.
    unsafe {
        put_if(base, found.base as DevicePtr)?;
        put_if(bytes, found.bytes)
    }
}
