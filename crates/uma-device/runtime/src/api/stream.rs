//! Streams.

use super::Context;
use crate::driver::check;
use crate::driver::{Handle, HostFn, StreamCallback};
use crate::error::Result;
use std::ffi::{c_int, c_uint, c_void};

/// `cudaStreamCreate`
pub unsafe fn create(context: Context, target: *mut Handle) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.stream_create)(target, 0) })
}

/// `cudaStreamCreateWithFlags`
pub unsafe fn create_with_flags(context: Context, target: *mut Handle, flags: c_uint) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.stream_create)(target, flags) })
}

/// `cudaStreamCreateWithPriority`
pub unsafe fn create_with_priority(context: Context, target: *mut Handle, flags: c_uint, priority: c_int) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.stream_create_with_priority)(target, flags, priority) })
}

/// `cudaStreamDestroy`
pub unsafe fn destroy(context: Context, stream: Handle) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.stream_destroy)(stream) })
}

/// `cudaStreamGetFlags`
pub unsafe fn get_flags(context: Context, stream: Handle, target: *mut c_uint) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { driver.stream_get_flags.of(context.per_thread)(stream, target) })
}

/// `cudaStreamGetPriority`
pub unsafe fn get_priority(context: Context, stream: Handle, target: *mut c_int) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { driver.stream_get_priority.of(context.per_thread)(stream, target) })
}

/// `cudaStreamGetId`
pub unsafe fn get_id(context: Context, stream: Handle, target: *mut u64) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { driver.stream_get_id.of(context.per_thread)(stream, target) })
}

/// `cudaStreamGetDevice`
pub unsafe fn get_device(context: Context, stream: Handle, target: *mut c_int) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { driver.stream_get_device.of(context.per_thread)(stream, target) })
}

/// `cudaStreamIsCapturing`
pub unsafe fn is_capturing(context: Context, stream: Handle, target: *mut c_int) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { driver.stream_is_capturing.of(context.per_thread)(stream, target) })
}

/// `cudaStreamSynchronize`
pub unsafe fn synchronize(context: Context, stream: Handle) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { driver.stream_synchronize.of(context.per_thread)(stream) })
}

/// `cudaStreamQuery`
pub unsafe fn query(context: Context, stream: Handle) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { driver.stream_query.of(context.per_thread)(stream) })
}

/// `cudaStreamWaitEvent`
pub unsafe fn wait_event(context: Context, stream: Handle, event: Handle, flags: c_uint) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { driver.stream_wait_event.of(context.per_thread)(stream, event, flags) })
}

/// `cudaLaunchHostFunc`
pub unsafe fn launch_host_func(context: Context, stream: Handle, function: HostFn, data: *mut c_void) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { driver.launch_host_func.of(context.per_thread)(stream, function, data) })
}

/// `cudaStreamAddCallback`
pub unsafe fn add_callback(
    context: Context,
    stream: Handle,
    function: StreamCallback,
    data: *mut c_void,
    flags: c_uint,
) -> Result {
    let driver = context.current()?;
    // SAFETY: see the parent module.
    check(unsafe { driver.stream_add_callback.of(context.per_thread)(stream, function, data, flags) })
}
