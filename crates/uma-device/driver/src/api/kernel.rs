//! What can be asked about kernels, and the little that can be set.

use super::attributes::COMPUTE_CAPABILITY;
use super::{Context, device, put, put_if};
use crate::error::{CuError, Result};
use crate::host::registry::{KernelEntry, registry};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// `CUfunction`, `CUkernel`
type Function = *mut c_void;

/// `CU_FUNC_ATTRIBUTE_…` that can be set.
const MAX_DYNAMIC_SHARED: c_int = 8;
const CARVEOUT: c_int = 9;

pub(super) fn kernel(function: Function) -> Result<Arc<KernelEntry>> {
    registry().kernel(function as usize)
}

/// The numbers are those of `CUfunction_attribute`.
fn attribute(kernel: &KernelEntry, number: c_int) -> Result<c_int> {
    Ok(match number {
        0 => kernel.info.max_threads as c_int,
        1 => kernel.info.static_shared as c_int,
        // Constant and local memory, cache mode, clusters: none.
        2 | 3 | 7 | 10..=15 => 0,
        // The CPU has no such limit; programs divide by it.
        4 => 32,
        5 | 6 => COMPUTE_CAPABILITY,
        MAX_DYNAMIC_SHARED => kernel.dynamic_limit() as c_int,
        CARVEOUT => -1,
        _ => return Err(CuError::INVALID_VALUE),
    })
}

/// `cuFuncGetAttribute`
pub unsafe fn get_attribute(_: Context, target: *mut c_int, number: c_int, function: Function) -> Result {
    let value = attribute(&*kernel(function)?, number)?;
    // SAFETY: see the parent module.
    unsafe { put(target, value) }
}

/// `cuKernelGetAttribute`
pub unsafe fn kernel_get_attribute(
    context: Context,
    target: *mut c_int,
    number: c_int,
    function: Function,
    on: c_int,
) -> Result {
    device::check(on)?;
    // SAFETY: see the parent module.
    unsafe { get_attribute(context, target, number, function) }
}

/// `cuFuncSetAttribute`
pub unsafe fn set_attribute(_: Context, function: Function, number: c_int, value: c_int) -> Result {
    let kernel = kernel(function)?;
    match number {
        MAX_DYNAMIC_SHARED => {
            let most = uma_exec::MAX_SHARED_BYTES.saturating_sub(kernel.info.static_shared);
            let value = u32::try_from(value).ok().filter(|value| *value <= most).ok_or(CuError::INVALID_VALUE)?;
            kernel.dynamic_limit.store(value, Ordering::Relaxed);
            Ok(())
        }
        CARVEOUT if (-1..=100).contains(&value) => Ok(()),
        10..=15 => Err(CuError::NOT_SUPPORTED),
        _ => Err(CuError::INVALID_VALUE),
    }
}

/// `cuKernelSetAttribute`
pub unsafe fn kernel_set_attribute(
    context: Context,
    number: c_int,
    value: c_int,
    function: Function,
    on: c_int,
) -> Result {
    device::check(on)?;
    // SAFETY: see the parent module.
    unsafe { set_attribute(context, function, number, value) }
}

/// `cuFuncSetCacheConfig`, `cuFuncSetSharedMemConfig`: hints that the CPU has no use for.
pub unsafe fn set_hint(_: Context, function: Function, value: c_int) -> Result {
    kernel(function)?;
    if (0..=3).contains(&value) { Ok(()) } else { Err(CuError::INVALID_VALUE) }
}

/// `cuKernelSetCacheConfig`
pub unsafe fn kernel_set_hint(context: Context, function: Function, value: c_int, on: c_int) -> Result {
    device::check(on)?;
    // SAFETY: see the parent module.
    unsafe { set_hint(context, function, value) }
}

/// `cuFuncGetName`, `cuKernelGetName`
pub unsafe fn get_name(_: Context, target: *mut *const c_char, function: Function) -> Result {
    let kernel = kernel(function)?;
    // SAFETY: see the parent module. The name lives as long as the module is loaded.
    unsafe { put(target, kernel.name.as_ptr()) }
}

/// `cuFuncGetParamInfo`, `cuKernelGetParamInfo`
pub unsafe fn get_param_info(
    _: Context,
    function: Function,
    index: usize,
    offset: *mut usize,
    bytes: *mut usize,
) -> Result {
    let kernel = kernel(function)?;
    let parameter = kernel.parameters.get(index).ok_or(CuError::INVALID_VALUE)?;
    // SAFETY: see the parent module.
    unsafe {
        put(offset, parameter.0)?;
        put_if(bytes, parameter.1)
    }
}

/// `cuFuncGetModule`, `cuKernelGetLibrary`
pub unsafe fn get_module(_: Context, target: *mut *mut c_void, function: Function) -> Result {
    let mut registry = registry();
    let number = registry.kernel(function as usize)?.module;
    let handle = registry.module(number)?.handle;
    // SAFETY: see the parent module.
    unsafe { put(target, handle as *mut c_void) }
}

/// `cuKernelGetFunction`: the same thing.
pub unsafe fn get_function(_: Context, target: *mut Function, function: Function) -> Result {
    kernel(function)?;
    // SAFETY: see the parent module.
    unsafe { put(target, function) }
}

/// `cuFuncIsLoaded`: always (1), as far as a program can tell.
pub unsafe fn is_loaded(_: Context, target: *mut c_int, function: Function) -> Result {
    kernel(function)?;
    // SAFETY: see the parent module.
    unsafe { put(target, 1) }
}

/// `cuFuncLoad`
pub unsafe fn load(_: Context, function: Function) -> Result {
    kernel(function).map(drop)
}
