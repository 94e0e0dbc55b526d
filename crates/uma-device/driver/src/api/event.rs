//! Events.

use super::{Context, put};
use crate::command::Command;
use crate::error::{CuError, Result};
use crate::host::engine::engine;
use crate::host::events::{DISABLE_TIMING, Recorded};
use crate::host::waits::{self, Wait};
use std::ffi::{c_uint, c_void};
use std::sync::atomic::Ordering;

/// Flags that exist: blocking sync, disable timing. Interprocess events this device has none.
const FLAGS: c_uint = 1 | DISABLE_TIMING;

/// `cuEventCreate`
pub unsafe fn create(_: Context, target: *mut *mut c_void, flags: c_uint) -> Result {
    if target.is_null() || flags & !FLAGS != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let mut state = engine()?.lock();
    let link = state.device()?;
    let handle = state.events.create(flags, |(slot, sequence)| link.control.is_complete(slot, sequence))?;
    // SAFETY: see the parent module.
    unsafe { put(target, handle as *mut c_void) }
}

/// `cuEventDestroy`
pub unsafe fn destroy(_: Context, event: *mut c_void) -> Result {
    engine()?.lock().events.destroy(event as usize)
}

/// `cuEventRecord`
pub unsafe fn record(context: Context, event: *mut c_void, stream: *mut c_void) -> Result {
    // SAFETY: see the parent module.
    unsafe { record_with_flags(context, event, stream, 0) }
}

/// `cuEventRecordWithFlags`
pub unsafe fn record_with_flags(context: Context, event: *mut c_void, stream: *mut c_void, flags: c_uint) -> Result {
    if flags & !1 != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let mut state = engine()?.lock();
    let stream = state.stream(stream as usize, context.per_thread)?;
    let slot = state.events.get(event as usize)?.slot;
    let sequence = state.enqueue(stream, Command::Record { event: slot }, None, false)?;
    let clock = state.coverage.snapshot(stream.slot);
    state.events.record(event as usize, Recorded { point: (stream.slot, sequence), clock });
    Ok(())
}

/// `cuEventSynchronize`
pub unsafe fn synchronize(_: Context, event: *mut c_void) -> Result {
    let engine = engine()?;
    let wait = {
        let mut state = engine.lock();
        state.device()?;
        let Some(recorded) = state.events.get(event as usize)?.recorded.clone() else { return Ok(()) };
        Wait::for_point(&mut state, recorded.point, recorded.clock)?
    };
    wait.finish(engine)
}

/// `cuEventQuery`
pub unsafe fn query(_: Context, event: *mut c_void) -> Result {
    let engine = engine()?;
    let recorded = {
        let mut state = engine.lock();
        state.device()?;
        state.events.get(event as usize)?.recorded.clone()
    };
    match recorded {
        Some(recorded) => waits::query(engine, recorded.point, &recorded.clock),
        None => Ok(()),
    }
}

/// `cuEventElapsedTime`, in milliseconds
pub unsafe fn elapsed_time(_: Context, target: *mut f32, start: *mut c_void, end: *mut c_void) -> Result {
    let mut state = engine()?.lock();
    let link = state.device()?;
    let time = |handle: *mut c_void| -> Result<u64> {
        let event = state.events.get(handle as usize)?;
        let recorded = event.recorded.as_ref().filter(|_| event.flags & DISABLE_TIMING == 0);
        let (slot, sequence) = recorded.ok_or(CuError::INVALID_HANDLE)?.point;
        if !link.control.is_complete(slot, sequence) {
            return Err(CuError::NOT_READY);
        }
        Ok(link.control.event_time[event.slot as usize].load(Ordering::Acquire))
    };
    let (start, end) = (time(start)?, time(end)?);
    let nanoseconds = end.wrapping_sub(start) as i64;
    // SAFETY: see the parent module.
    unsafe { put(target, (nanoseconds as f64 / 1e6) as f32) }
}
