//! Events.

use super::Context;
use crate::driver::Handle;
use crate::driver::check;
use crate::error::Result;
use std::ffi::c_uint;

/// `cudaEventCreate`
pub unsafe fn create(context: Context, target: *mut Handle) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.event_create)(target, 0) })
}

/// `cudaEventCreateWithFlags`
pub unsafe fn create_with_flags(context: Context, target: *mut Handle, flags: c_uint) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.event_create)(target, flags) })
}

/// `cudaEventDestroy`
pub unsafe fn destroy(context: Context, event: Handle) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.event_destroy)(event) })
}

/// `cudaEventRecord`
pub unsafe fn record(context: Context, event: Handle, stream: Handle) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { driver.event_record.of(context.per_thread)(event, stream) })
}

/// `cudaEventRecordWithFlags`
pub unsafe fn record_with_flags(context: Context, event: Handle, stream: Handle, flags: c_uint) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { driver.event_record_with_flags.of(context.per_thread)(event, stream, flags) })
}

/// `cudaEventSynchronize`
pub unsafe fn synchronize(context: Context, event: Handle) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.event_synchronize)(event) })
}

/// `cudaEventQuery`
pub unsafe fn query(context: Context, event: Handle) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.event_query)(event) })
}

/// `cudaEventElapsedTime`, in milliseconds
pub unsafe fn elapsed_time(context: Context, target: *mut f32, start: Handle, end: Handle) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.event_elapsed_time)(target, start, end) })
}
