//! Contexts. There is one device and one address space; a context is a name for it that threads hold. So every context reaches all memory,
//! streams and modules, and destroying a context that `cuCtxCreate` made frees nothing; resetting the primary context frees everything.

use super::device::check;
use super::{Context, put, put_if};
use crate::error::{CuError, Result};
use crate::host::engine::{engine, engine_if_made};
use crate::host::registry::registry;
use crate::host::waits::Wait;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `CUcontext`
type Handle = *mut c_void;

/// Handle of the primary context; those that programs create follow it.
const PRIMARY: usize = 0x3_0000_0010;

/// `CU_CTX_SCHED_…`, map host, local memory, coredumps, memory operations.
const FLAGS: c_uint = 0xFF;
/// `CU_CTX_MAP_HOST`, which is always on.
const MAP_HOST: c_uint = 8;

/// Created contexts and their flags.
static CREATED: Mutex<BTreeMap<usize, c_uint>> = Mutex::new(BTreeMap::new());
static MADE: AtomicUsize = AtomicUsize::new(0);
static PRIMARY_FLAGS: AtomicU32 = AtomicU32::new(0);
/// How often the primary context is retained.
static PRIMARY_USERS: AtomicU32 = AtomicU32::new(0);

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

thread_local! {
    /// The current context; 0: none.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    /// Contexts below it.
    static BELOW: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

fn created() -> MutexGuard<'static, BTreeMap<usize, c_uint>> {
    CREATED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks that a context is current on this thread.
pub fn check_current() -> Result {
    if CURRENT.with(Cell::get) != 0 { Ok(()) } else { Err(none_current()) }
}

/// Why no context is current.
#[cold]
fn none_current() -> CuError {
    super::device::check_initialised().err().unwrap_or(CuError::INVALID_CONTEXT)
}

/// Checks a context's handle.
fn known(handle: Handle) -> Result<usize> {
    let handle = handle as usize;
    if handle == PRIMARY || created().contains_key(&handle) { Ok(handle) } else { Err(CuError::INVALID_CONTEXT) }
}

/// Checks that a handle names a context.
pub fn check_handle(handle: Handle) -> Result {
    known(handle).map(drop)
}

fn check_flags(flags: c_uint) -> Result {
    if flags & !FLAGS == 0 && matches!(flags & 7, 0 | 1 | 2 | 4) { Ok(()) } else { Err(CuError::INVALID_VALUE) }
}

/// The error that ended the device process, which every later call reports until a reset.
fn sticky() -> Result {
    let fault = engine_if_made().and_then(|engine| engine.lock().device_if_started()).and_then(|link| link.fault());
    fault.map_or(Ok(()), Err)
}

/// `cuDevicePrimaryCtxRetain`: it starts the device.
pub unsafe fn primary_retain(_: Context, target: *mut Handle, device: c_int) -> Result {
    check(device)?;
    engine()?.lock().device()?;
    PRIMARY_USERS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: see the parent module.
    unsafe { put(target, PRIMARY as Handle) }
}

/// `cuDevicePrimaryCtxRelease`: the last release resets the device.
pub unsafe fn primary_release(context: Context, device: c_int) -> Result {
    check(device)?;
    let release = |users: u32| users.checked_sub(1);
    match PRIMARY_USERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, release) {
        // SAFETY: it takes no pointer.
        Ok(1) => unsafe { primary_reset(context, device) },
        Ok(_) => Ok(()),
        Err(_) => Err(CuError::INVALID_CONTEXT),
    }
}

/// `cuDevicePrimaryCtxReset`: a new device process starts when one is needed again. It also ends a sticky error.
pub unsafe fn primary_reset(_: Context, device: c_int) -> Result {
    check(device)?;
    let Some(engine) = engine_if_made() else { return Ok(()) };
    let mut registry = registry();
    let mut state = engine.lock();
    state.reset()?;
    for module in registry.modules() {
        module.globals = None;
    }
    Ok(())
}

/// `cuDevicePrimaryCtxSetFlags`
pub unsafe fn primary_set_flags(_: Context, device: c_int, flags: c_uint) -> Result {
    check(device)?;
    check_flags(flags)?;
    PRIMARY_FLAGS.store(flags, Ordering::Relaxed);
    Ok(())
}

/// `cuDevicePrimaryCtxGetState`
pub unsafe fn primary_get_state(_: Context, device: c_int, flags: *mut c_uint, active: *mut c_int) -> Result {
    check(device)?;
    let started = engine_if_made().is_some_and(|engine| engine.lock().device_if_started().is_some());
    // SAFETY: see the parent module.
    unsafe {
        put(flags, PRIMARY_FLAGS.load(Ordering::Relaxed) | MAP_HOST)?;
        put(active, c_int::from(started))
    }
}

/// Makes a context and pushes it.
unsafe fn make(target: *mut Handle, flags: c_uint, device: c_int) -> Result {
    check(device)?;
    check_flags(flags)?;
    if target.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    engine()?.lock().device()?;
    let handle = PRIMARY + (MADE.fetch_add(1, Ordering::Relaxed) + 1) * 0x10;
    created().insert(handle, flags);
    push(handle);
    // SAFETY: see the parent module.
    unsafe { put(target, handle as Handle) }
}

/// `cuCtxCreate_v2`
pub unsafe fn create(_: Context, target: *mut Handle, flags: c_uint, device: c_int) -> Result {
    // SAFETY: see the parent module.
    unsafe { make(target, flags, device) }
}

/// `cuCtxCreate_v4`: parameters ask for what this device has none of.
pub unsafe fn create_with(
    _: Context,
    target: *mut Handle,
    parameters: *const c_void,
    flags: c_uint,
    device: c_int,
) -> Result {
    if !parameters.is_null() {
        return Err(CuError::NOT_SUPPORTED);
    }
    // SAFETY: see the parent module.
    unsafe { make(target, flags, device) }
}

/// `cuCtxDestroy`
pub unsafe fn destroy(_: Context, context: Handle) -> Result {
    let handle = context as usize;
    created().remove(&handle).ok_or(CuError::INVALID_CONTEXT)?;
    if CURRENT.with(Cell::get) == handle {
        pop();
    }
    Ok(())
}

fn push(handle: usize) {
    let before = CURRENT.with(|current| current.replace(handle));
    BELOW.with(|below| below.borrow_mut().push(before));
}

fn pop() -> usize {
    let below = BELOW.with(|below| below.borrow_mut().pop()).unwrap_or(0);
    CURRENT.with(|current| current.replace(below))
}

/// `cuCtxPushCurrent`
pub unsafe fn push_current(_: Context, context: Handle) -> Result {
    push(known(context)?);
    Ok(())
}

/// `cuCtxPopCurrent`
pub unsafe fn pop_current(_: Context, target: *mut Handle) -> Result {
    let handle = pop();
    // SAFETY: see the parent module.
    unsafe { put_if(target, handle as Handle) }
}

/// `cuCtxSetCurrent`
pub unsafe fn set_current(_: Context, context: Handle) -> Result {
    let handle = if context.is_null() { 0 } else { known(context)? };
    CURRENT.with(|current| current.set(handle));
    Ok(())
}

/// `cuCtxGetCurrent`
pub unsafe fn get_current(_: Context, target: *mut Handle) -> Result {
    // SAFETY: see the parent module.
    unsafe { put(target, CURRENT.with(Cell::get) as Handle) }
}

/// `cuCtxGetDevice`
pub unsafe fn get_device(_: Context, target: *mut c_int) -> Result {
    sticky()?;
    // SAFETY: see the parent module.
    unsafe { put(target, 0) }
}

/// `cuCtxGetId`: the null context is the current one.
pub unsafe fn get_id(_: Context, context: Handle, target: *mut u64) -> Result {
    let handle = if context.is_null() { CURRENT.with(Cell::get) } else { known(context)? };
    if handle == 0 {
        return Err(CuError::INVALID_CONTEXT);
    }
    // SAFETY: see the parent module.
    unsafe { put(target, handle as u64) }
}

/// `cuCtxGetApiVersion`
pub unsafe fn get_api_version(_: Context, context: Handle, target: *mut c_uint) -> Result {
    known(context)?;
    // SAFETY: see the parent module. 3020 is the version of all contexts since CUDA 3.2.
    unsafe { put(target, 3020) }
}

/// `cuCtxGetFlags`
pub unsafe fn get_flags(_: Context, target: *mut c_uint) -> Result {
    let own = created().get(&CURRENT.with(Cell::get)).copied();
    // SAFETY: see the parent module.
    unsafe { put(target, own.unwrap_or_else(|| PRIMARY_FLAGS.load(Ordering::Relaxed)) | MAP_HOST) }
}

/// `cuCtxSynchronize`: all work that is queued, whatever context it came from.
pub unsafe fn synchronize(_: Context) -> Result {
    let engine = engine()?;
    let wait = {
        let mut state = engine.lock();
        state.device()?;
        Wait::for_all(&mut state)?
    };
    wait.finish(engine)
}

/// `cuCtxSynchronize_v2`
pub unsafe fn synchronize_of(context: Context, handle: Handle) -> Result {
    check_handle(handle)?;
    // SAFETY: it takes no pointer.
    unsafe { synchronize(context) }
}

/// `cuCtxGetDevice_v2`
pub unsafe fn get_device_of(context: Context, target: *mut c_int, handle: Handle) -> Result {
    check_handle(handle)?;
    // SAFETY: see the parent module.
    unsafe { get_device(context, target) }
}

/// `cuCtxSetLimit`
pub unsafe fn set_limit(_: Context, limit: c_int, value: usize) -> Result {
    let slot = usize::try_from(limit).ok().and_then(|limit| LIMITS.get(limit));
    slot.ok_or(CuError::UNSUPPORTED_LIMIT)?.store(value, Ordering::Relaxed);
    Ok(())
}

/// `cuCtxGetLimit`
pub unsafe fn get_limit(_: Context, target: *mut usize, limit: c_int) -> Result {
    let slot = usize::try_from(limit).ok().and_then(|limit| LIMITS.get(limit));
    let value = slot.ok_or(CuError::UNSUPPORTED_LIMIT)?.load(Ordering::Relaxed);
    // SAFETY: see the parent module.
    unsafe { put(target, value) }
}

/// `cuCtxSetCacheConfig`, `cuCtxSetSharedMemConfig`: hints that the CPU has no use for.
pub unsafe fn set_hint(_: Context, value: c_int) -> Result {
    if (0..=3).contains(&value) { Ok(()) } else { Err(CuError::INVALID_VALUE) }
}

/// `cuCtxGetCacheConfig`, `cuCtxGetSharedMemConfig`: no preference.
pub unsafe fn get_hint(_: Context, target: *mut c_int) -> Result {
    // SAFETY: see the parent module.
    unsafe { put(target, 0) }
}

/// `cuCtxGetStreamPriorityRange`
pub unsafe fn get_stream_priority_range(_: Context, least: *mut c_int, greatest: *mut c_int) -> Result {
    // SAFETY: see the parent module.
    unsafe {
        put_if(least, 0)?;
        put_if(greatest, super::stream::GREATEST_PRIORITY)
    }
}

/// `cuProfilerStart`, `cuProfilerStop`: there is no profiler.
pub unsafe fn profiler(_: Context) -> Result {
    Ok(())
}

/// The current context, for calls that tell the program what belongs to which.
pub fn current() -> Handle {
    CURRENT.with(Cell::get) as Handle
}
