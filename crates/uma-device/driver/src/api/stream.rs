//! Streams.

use super::{Context, put};
use crate::command::Command;
use crate::error::{CuError, Result};
use crate::host::engine::engine;
use crate::host::hostcalls::HostFunction;
use crate::host::state::After;
use crate::host::streams::{NONBLOCKING, StreamInfo};
use crate::host::waits::{self, Wait};
use std::ffi::{c_int, c_uint, c_void};

/// Most urgent priority; the least urgent is 0. The device runs one command at a time and heeds neither.
pub const GREATEST_PRIORITY: c_int = -5;

/// `cuStreamCreate`
pub unsafe fn create(context: Context, target: *mut *mut c_void, flags: c_uint) -> Result {
    // SAFETY: see the parent module.
    unsafe { create_with_priority(context, target, flags, 0) }
}

/// `cuStreamCreateWithPriority`: a priority out of range becomes the nearest in range.
pub unsafe fn create_with_priority(_: Context, target: *mut *mut c_void, flags: c_uint, priority: c_int) -> Result {
    if target.is_null() || flags & !NONBLOCKING != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let handle = engine()?.lock().create_stream(flags, priority.clamp(GREATEST_PRIORITY, 0))?;
    // SAFETY: see the parent module.
    unsafe { put(target, handle as *mut c_void) }
}

/// `cuStreamDestroy`: queued work still runs.
pub unsafe fn destroy(_: Context, stream: *mut c_void) -> Result {
    engine()?.lock().streams.destroy(stream as usize).map(drop)
}

fn info(context: Context, stream: *mut c_void) -> Result<StreamInfo> {
    let mut state = engine()?.lock();
    let stream = state.stream(stream as usize, context.per_thread)?;
    state.streams.info(stream.slot)
}

/// `cuStreamGetFlags`
pub unsafe fn get_flags(context: Context, stream: *mut c_void, target: *mut c_uint) -> Result {
    let flags = info(context, stream)?.flags;
    // SAFETY: see the parent module.
    unsafe { put(target, flags) }
}

/// `cuStreamGetPriority`
pub unsafe fn get_priority(context: Context, stream: *mut c_void, target: *mut c_int) -> Result {
    let priority = info(context, stream)?.priority;
    // SAFETY: see the parent module.
    unsafe { put(target, priority) }
}

/// `cuStreamGetId`
pub unsafe fn get_id(context: Context, stream: *mut c_void, target: *mut u64) -> Result {
    let id = info(context, stream)?.id;
    // SAFETY: see the parent module.
    unsafe { put(target, id) }
}

/// `cuStreamGetDevice`
pub unsafe fn get_device(context: Context, stream: *mut c_void, target: *mut c_int) -> Result {
    info(context, stream)?;
    // SAFETY: see the parent module.
    unsafe { put(target, 0) }
}

/// `cuStreamGetCtx`
pub unsafe fn get_context(context: Context, stream: *mut c_void, target: *mut *mut c_void) -> Result {
    info(context, stream)?;
    // SAFETY: see the parent module.
    unsafe { put(target, super::context::current()) }
}

/// `cuStreamIsCapturing`: never, since capture is not supported.
pub unsafe fn is_capturing(context: Context, stream: *mut c_void, target: *mut c_int) -> Result {
    info(context, stream)?;
    // SAFETY: see the parent module.
    unsafe { put(target, 0) }
}

/// `cuStreamSynchronize`
pub unsafe fn synchronize(context: Context, stream: *mut c_void) -> Result {
    let engine = engine()?;
    let wait = {
        let mut state = engine.lock();
        state.device()?;
        let stream = state.stream(stream as usize, context.per_thread)?;
        Wait::for_stream(&mut state, stream.slot)?
    };
    wait.finish(engine)
}

/// `cuStreamQuery`
pub unsafe fn query(context: Context, stream: *mut c_void) -> Result {
    let engine = engine()?;
    let (point, clock) = {
        let mut state = engine.lock();
        state.device()?;
        let stream = state.stream(stream as usize, context.per_thread)?;
        ((stream.slot, state.streams.last(stream.slot)), state.coverage.snapshot(stream.slot))
    };
    waits::query(engine, point, &clock)
}

/// `cuStreamWaitEvent`: an event that was never recorded is no reason to wait.
pub unsafe fn wait_event(context: Context, stream: *mut c_void, event: *mut c_void, flags: c_uint) -> Result {
    if flags & !1 != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let mut state = engine()?.lock();
    let stream = state.stream(stream as usize, context.per_thread)?;
    let Some(recorded) = state.events.get(event as usize)?.recorded.clone() else { return Ok(()) };
    let (slot, sequence) = recorded.point;
    let after = After { point: recorded.point, clock: recorded.clock };
    state.enqueue(stream, Command::Wait { slot, sequence }, Some(&after), false).map(drop)
}

fn host_call(context: Context, handle: *mut c_void, function: HostFunction) -> Result {
    let mut state = engine()?.lock();
    let link = state.device()?;
    let stream = state.stream(handle as usize, context.per_thread)?;
    state.hostcalls.start_thread(&link).map_err(|_| CuError::OPERATING_SYSTEM)?;
    // It may touch managed memory only if nothing else runs, which the host must see to; it is no work of the device.
    let sequence = state.enqueue(stream, Command::HostCall, None, false)?;
    state.hostcalls.add(stream.slot, sequence, function);
    Ok(())
}

/// `cuLaunchHostFunc`
pub unsafe fn launch_host_func(
    context: Context,
    stream: *mut c_void,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> Result {
    let function = function.ok_or(CuError::INVALID_VALUE)?;
    host_call(context, stream, HostFunction::Plain { function, data: data as usize })
}

/// `cuStreamAddCallback`
pub unsafe fn add_callback(
    context: Context,
    stream: *mut c_void,
    function: Option<unsafe extern "C" fn(*mut c_void, c_int, *mut c_void)>,
    data: *mut c_void,
    flags: c_uint,
) -> Result {
    let function = function.filter(|_| flags == 0).ok_or(CuError::INVALID_VALUE)?;
    host_call(context, stream, HostFunction::Callback { function, stream: stream as usize, data: data as usize })
}
