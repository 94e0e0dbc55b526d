//! Allocation, registration and what memory is.

use super::{Context, put};
use crate::error::{CudaError, Result};
use crate::host::arena::{Allocation, Attach, Origin};
use crate::host::engine::{Engine, engine, settings};
use crate::host::waits::Wait;
use crate::layout::PITCH_ALIGN;
use crate::settings::Access;
use crate::sync_table::Memory;
use std::ffi::{c_int, c_uint, c_void};

const ATTACH_GLOBAL: c_uint = 1;
const ATTACH_HOST: c_uint = 2;
const ATTACH_SINGLE: c_uint = 4;

/// `cudaHostAlloc…` flags that exist: portable, mapped, write-combined.
const HOST_ALLOC_FLAGS: c_uint = 1 | 2 | 4;
/// `cudaHostRegister…` flags that this device knows: portable, mapped, read-only. I/O memory it has none.
const HOST_REGISTER_FLAGS: c_uint = 1 | 2 | 8;

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

/// `cudaMemLocation`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Location {
    kind: c_int,
    id: c_int,
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

fn allocate(bytes: usize, memory: Memory, origin: Origin) -> Result<Allocation> {
    let mut state = engine()?.lock();
    state.device()?;
    state.reclaim();
    let idle = state.coverage.is_idle();
    state.arena.allocate(bytes, memory, origin, idle)
}

/// Allocates and gives the address to the program; no bytes are the null pointer.
unsafe fn allocate_into(target: *mut *mut c_void, bytes: usize, memory: Memory, origin: Origin) -> Result {
    if target.is_null() {
        return Err(CudaError::ErrorInvalidValue);
    }
    let base = if bytes == 0 { 0 } else { allocate(bytes, memory, origin)?.base };
    // SAFETY: the caller vouches for `target`.
    unsafe { put(target, base as *mut c_void) }
}

/// `cudaMalloc`
pub unsafe fn malloc(_: Context, target: *mut *mut c_void, bytes: usize) -> Result {
    // SAFETY: see the module.
    unsafe { allocate_into(target, bytes, Memory::Device, Origin::Device) }
}

/// `cudaMallocManaged`
pub unsafe fn malloc_managed(_: Context, target: *mut *mut c_void, bytes: usize, flags: c_uint) -> Result {
    if target.is_null() || bytes == 0 || !matches!(flags, ATTACH_GLOBAL | ATTACH_HOST) {
        return Err(CudaError::ErrorInvalidValue);
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
    // SAFETY: see the module.
    unsafe { put(target, allocation.base as *mut c_void) }
}

/// `cudaMallocHost`
pub unsafe fn malloc_host(context: Context, target: *mut *mut c_void, bytes: usize) -> Result {
    // SAFETY: see the module.
    unsafe { host_alloc(context, target, bytes, 0) }
}

/// `cudaHostAlloc`
pub unsafe fn host_alloc(_: Context, target: *mut *mut c_void, bytes: usize, flags: c_uint) -> Result {
    if target.is_null() || flags & !HOST_ALLOC_FLAGS != 0 {
        return Err(CudaError::ErrorInvalidValue);
    }
    // SAFETY: see the module.
    unsafe { allocate_into(target, bytes, Memory::Pinned, Origin::Host)? };
    if bytes > 0 {
        // SAFETY: it was just written.
        let base = unsafe { target.read() } as usize;
        engine()?.lock().arena.update(base, |a| a.flags = flags);
    }
    Ok(())
}

/// `cudaMallocPitch`
pub unsafe fn malloc_pitch(
    _: Context,
    target: *mut *mut c_void,
    pitch: *mut usize,
    width: usize,
    height: usize,
) -> Result {
    if target.is_null() || pitch.is_null() {
        return Err(CudaError::ErrorInvalidValue);
    }
    let row = width.checked_next_multiple_of(PITCH_ALIGN).ok_or(CudaError::ErrorMemoryAllocation)?;
    let bytes = row.checked_mul(height).ok_or(CudaError::ErrorMemoryAllocation)?;
    // SAFETY: see the module.
    unsafe {
        allocate_into(target, bytes, Memory::Device, Origin::Device)?;
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
    // SAFETY: both targets are ours; for `target` see the module.
    unsafe {
        malloc_pitch(context, &mut ptr, &mut pitch, extent.width, rows)?;
        put(target, PitchedPtr { ptr, pitch, xsize: extent.width, ysize: extent.height })
    }
}

/// `cudaMallocAsync`: the memory can be used from now on, which is earlier than promised.
pub unsafe fn malloc_async(context: Context, target: *mut *mut c_void, bytes: usize, stream: *mut c_void) -> Result {
    engine()?.lock().stream(stream as usize, context.per_thread)?;
    // SAFETY: see the module.
    unsafe { allocate_into(target, bytes, Memory::Device, Origin::Device) }
}

/// Frees after waiting for the device (`cudaFree…` and `cudaHostUnregister` are implicit waits).
fn free_now(engine: &Engine, base: usize, origin: Origin) -> Result {
    let wait = {
        let mut state = engine.lock();
        state.device()?;
        let known = state.arena.find(base).is_some_and(|a| a.base == base && a.origin == origin);
        if !known {
            return Err(CudaError::ErrorInvalidValue);
        }
        Wait::for_all(&mut state)?
    };
    wait.finish(engine)?;
    let mut state = engine.lock();
    // Another thread may have freed it during the wait.
    let allocation = state.arena.forget(base).ok_or(CudaError::ErrorInvalidValue)?;
    state.arena.release(&allocation);
    Ok(())
}

/// `cudaFree`
pub unsafe fn free(_: Context, address: *mut c_void) -> Result {
    let engine = engine()?;
    if address.is_null() {
        // The usual way to start the device.
        return engine.lock().device().map(drop);
    }
    free_now(engine, address as usize, Origin::Device)
}

/// `cudaFreeHost`
pub unsafe fn free_host(_: Context, address: *mut c_void) -> Result {
    if address.is_null() {
        return Ok(());
    }
    free_now(engine()?, address as usize, Origin::Host)
}

/// `cudaFreeAsync`: no later call may use the memory; it is free once the stream has come here.
pub unsafe fn free_async(context: Context, address: *mut c_void, stream: *mut c_void) -> Result {
    let mut state = engine()?.lock();
    let stream = state.stream(stream as usize, context.per_thread)?;
    if address.is_null() {
        return Ok(());
    }
    let base = address as usize;
    if !state.arena.find(base).is_some_and(|a| a.base == base && a.origin == Origin::Device) {
        return Err(CudaError::ErrorInvalidValue);
    }
    let sequence = state.enqueue(stream, crate::command::Command::Mark, None, false)?;
    let allocation = state.arena.forget(base).ok_or(CudaError::ErrorInvalidValue)?;
    state.release_after((stream.slot, sequence), allocation);
    state.reclaim();
    Ok(())
}

/// `cudaHostRegister`
pub unsafe fn host_register(_: Context, address: *mut c_void, bytes: usize, flags: c_uint) -> Result {
    if flags & !HOST_REGISTER_FLAGS != 0 {
        return Err(CudaError::ErrorInvalidValue);
    }
    engine()?.lock().register(address as usize, bytes, flags)
}

/// `cudaHostUnregister`
pub unsafe fn host_unregister(_: Context, address: *mut c_void) -> Result {
    let engine = engine()?;
    let wait = Wait::for_all(&mut engine.lock())?;
    wait.finish(engine)?;
    engine.lock().unregister(address as usize)
}

/// `cudaHostGetDevicePointer`: pinned memory has one address.
pub unsafe fn host_get_device_pointer(
    _: Context,
    target: *mut *mut c_void,
    address: *mut c_void,
    flags: c_uint,
) -> Result {
    let pinned = engine()?.lock().arena.find(address as usize).is_some_and(|a| a.memory == Memory::Pinned);
    if flags != 0 || !pinned {
        return Err(CudaError::ErrorInvalidValue);
    }
    // SAFETY: see the module.
    unsafe { put(target, address) }
}

/// `cudaHostGetFlags`
pub unsafe fn host_get_flags(_: Context, target: *mut c_uint, address: *mut c_void) -> Result {
    let state = engine()?.lock();
    let pinned = state.arena.find(address as usize).filter(|a| a.memory == Memory::Pinned);
    let flags = pinned.map(|a| a.flags).ok_or(CudaError::ErrorInvalidValue)?;
    // SAFETY: see the module.
    unsafe { put(target, flags) }
}

/// `cudaMemGetInfo`
pub unsafe fn mem_get_info(_: Context, free: *mut usize, total: *mut usize) -> Result {
    let mut state = engine()?.lock();
    state.device()?;
    state.reclaim();
    let capacity = state.arena.capacity();
    // SAFETY: see the module.
    unsafe {
        put(free, capacity.0)?;
        put(total, capacity.1)
    }
}

/// `cudaPointerGetAttributes`
pub unsafe fn pointer_get_attributes(_: Context, target: *mut PointerAttributes, address: *const c_void) -> Result {
    let memory = engine()?.lock().arena.find(address as usize).map(|a| a.memory);
    let same = address.cast_mut();
    let none = std::ptr::null_mut();
    let (kind, device, device_pointer, host_pointer) = match memory {
        None | Some(Memory::Pageable) => (0, -2, none, none),
        Some(Memory::Pinned) => (1, 0, same, same),
        Some(Memory::Device) => (2, 0, same, none),
        Some(Memory::Managed) => (3, 0, same, same),
    };
    // SAFETY: see the module.
    unsafe { put(target, PointerAttributes { kind, device, device_pointer, host_pointer, reserved: [0; 8] }) }
}

/// Checks that a range is managed memory and that `location` is one that this device can favour.
fn check_managed(address: usize, bytes: usize, location: Location) -> Result {
    const DEVICE: c_int = 1;
    const HOST: c_int = 2;
    if engine()?.lock().arena.classify(address, bytes)? != Memory::Managed {
        return Err(CudaError::ErrorInvalidValue);
    }
    match location.kind {
        HOST => Ok(()),
        // As CUDA has it for devices without concurrent access.
        DEVICE if location.id != 0 || settings()?.access == Access::Exclusive => Err(CudaError::ErrorInvalidDevice),
        DEVICE => Ok(()),
        _ => Err(CudaError::ErrorInvalidValue),
    }
}

/// `cudaMemPrefetchAsync`: there is one DRAM, so nothing moves; it is work in stream order all the same.
pub unsafe fn mem_prefetch_async(
    context: Context,
    address: *const c_void,
    bytes: usize,
    location: Location,
    flags: c_uint,
    stream: *mut c_void,
) -> Result {
    if flags != 0 || bytes == 0 {
        return Err(CudaError::ErrorInvalidValue);
    }
    check_managed(address as usize, bytes, location)?;
    let mut state = engine()?.lock();
    let stream = state.stream(stream as usize, context.per_thread)?;
    state.enqueue(stream, crate::command::Command::Mark, None, true).map(drop)
}

/// `cudaMemAdvise`: checked, then without effect.
pub unsafe fn mem_advise(
    _: Context,
    address: *const c_void,
    bytes: usize,
    advice: c_int,
    location: Location,
) -> Result {
    let ignores_location = matches!(advice, 1 | 2 | 4);
    if !(1..=6).contains(&advice) || bytes == 0 {
        return Err(CudaError::ErrorInvalidValue);
    }
    let location = if ignores_location { Location { kind: 2, id: 0 } } else { location };
    check_managed(address as usize, bytes, location)
}

/// `cudaStreamAttachMemAsync`: takes effect in stream order, so the host waits for the stream before it relies on it.
pub unsafe fn stream_attach_mem_async(
    context: Context,
    stream: *mut c_void,
    address: *mut c_void,
    bytes: usize,
    flags: c_uint,
) -> Result {
    let mut state = engine()?.lock();
    let stream = state.stream(stream as usize, context.per_thread)?;
    let found = state.arena.find(address as usize).copied();
    let allocation = found.filter(|a| a.base == address as usize && a.memory == Memory::Managed);
    let allocation = allocation.ok_or(CudaError::ErrorInvalidValue)?;
    if bytes != 0 && bytes != allocation.bytes {
        return Err(CudaError::ErrorInvalidValue);
    }
    let attach = match flags {
        ATTACH_GLOBAL => Attach::Global,
        ATTACH_HOST => Attach::Host(stream.slot),
        ATTACH_SINGLE if stream.slot != crate::layout::LEGACY_STREAM => Attach::Stream(stream.slot),
        _ => return Err(CudaError::ErrorInvalidValue),
    };
    state.enqueue(stream, crate::command::Command::Mark, None, true)?;
    state.arena.update(allocation.base, |a| a.attach = attach);
    Ok(())
}
