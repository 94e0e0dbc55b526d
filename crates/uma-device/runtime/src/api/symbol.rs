//! Device globals by the program's name for them.

use super::copy::line;
use super::{Context, put};
use crate::driver::Handle;
use crate::error::{CudaError, Result};
use crate::registry::registry;
use std::ffi::{c_int, c_void};

/// `cudaGetSymbolAddress`
pub unsafe fn get_symbol_address(context: Context, target: *mut *mut c_void, symbol: *const c_void) -> Result {
    context.current()?;
    let (address, _) = registry().symbol(symbol as usize)?;
    // SAFETY: see the parent module.
    unsafe { put(target, address as *mut c_void) }
}

/// `cudaGetSymbolSize`
pub unsafe fn get_symbol_size(context: Context, target: *mut usize, symbol: *const c_void) -> Result {
    context.current()?;
    let (_, bytes) = registry().symbol(symbol as usize)?;
    // SAFETY: see the parent module.
    unsafe { put(target, bytes) }
}

/// The part of a symbol that a copy names.
fn part(context: Context, symbol: *const c_void, bytes: usize, offset: usize) -> Result<*mut c_void> {
    context.current()?;
    let (address, size) = registry().symbol(symbol as usize)?;
    match offset.checked_add(bytes) {
        Some(end) if end <= size => Ok((address + offset as u64) as *mut c_void),
        _ => Err(CudaError::ErrorInvalidValue),
    }
}

unsafe fn to_symbol(
    context: Context,
    symbol: *const c_void,
    from: *const c_void,
    (bytes, offset): (usize, usize),
    kind: c_int,
    stream: Option<Handle>,
) -> Result {
    // Into device memory: from the host, from the device, or as the address says.
    if !matches!(kind, 1 | 3 | 4) {
        return Err(CudaError::ErrorInvalidMemcpyDirection);
    }
    let to = part(context, symbol, bytes, offset)?;
    // SAFETY: see the parent module.
    unsafe { line(context, to, from, bytes, kind, stream) }
}

unsafe fn from_symbol(
    context: Context,
    to: *mut c_void,
    symbol: *const c_void,
    (bytes, offset): (usize, usize),
    kind: c_int,
    stream: Option<Handle>,
) -> Result {
    if !matches!(kind, 2..=4) {
        return Err(CudaError::ErrorInvalidMemcpyDirection);
    }
    let from = part(context, symbol, bytes, offset)?;
    // SAFETY: see the parent module.
    unsafe { line(context, to, from, bytes, kind, stream) }
}

/// `cudaMemcpyToSymbol`
pub unsafe fn memcpy_to_symbol(
    context: Context,
    symbol: *const c_void,
    from: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { to_symbol(context, symbol, from, (bytes, offset), kind, None) }
}

/// `cudaMemcpyToSymbolAsync`
pub unsafe fn memcpy_to_symbol_async(
    context: Context,
    symbol: *const c_void,
    from: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
    stream: Handle,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { to_symbol(context, symbol, from, (bytes, offset), kind, Some(stream)) }
}

/// `cudaMemcpyFromSymbol`
pub unsafe fn memcpy_from_symbol(
    context: Context,
    to: *mut c_void,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { from_symbol(context, to, symbol, (bytes, offset), kind, None) }
}

/// `cudaMemcpyFromSymbolAsync`
pub unsafe fn memcpy_from_symbol_async(
    context: Context,
    to: *mut c_void,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
    stream: Handle,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { from_symbol(context, to, symbol, (bytes, offset), kind, Some(stream)) }
}
