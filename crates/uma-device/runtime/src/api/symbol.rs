//! Device globals by the program's name for them.

use super::copy::{Request, run};
use super::{Context, put};
use crate::command::{Place, Shape};
use crate::error::{CudaError, Result};
use crate::host::engine::engine;
use crate::host::launching::loaded_symbol;
use std::ffi::{c_int, c_void};

/// `cudaGetSymbolAddress`
pub unsafe fn get_symbol_address(_: Context, target: *mut *mut c_void, symbol: *const c_void) -> Result {
    let symbol = loaded_symbol(engine()?, symbol as usize)?;
    // SAFETY: see the parent module.
    unsafe { put(target, symbol.address as *mut c_void) }
}

/// `cudaGetSymbolSize`
pub unsafe fn get_symbol_size(_: Context, target: *mut usize, symbol: *const c_void) -> Result {
    let symbol = loaded_symbol(engine()?, symbol as usize)?;
    // SAFETY: see the parent module.
    unsafe { put(target, symbol.bytes) }
}

/// The part of a symbol that a copy names.
fn part(symbol: *const c_void, bytes: usize, offset: usize) -> Result<Place> {
    let symbol = loaded_symbol(engine()?, symbol as usize)?;
    match offset.checked_add(bytes) {
        Some(end) if end <= symbol.bytes => Ok(Place::line(symbol.address + offset)),
        _ => Err(CudaError::ErrorInvalidValue),
    }
}

fn to_symbol(
    context: Context,
    symbol: *const c_void,
    from: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
    stream: Option<usize>,
) -> Result {
    // Into device memory: from the host, from the device, or as the address says.
    if !matches!(kind, 1 | 3 | 4) {
        return Err(CudaError::ErrorInvalidMemcpyDirection);
    }
    let to = part(symbol, bytes, offset)?;
    run(context, &Request { to, from: Place::line(from as usize), shape: Shape::line(bytes), kind, stream })
}

fn from_symbol(
    context: Context,
    to: *mut c_void,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
    stream: Option<usize>,
) -> Result {
    if !matches!(kind, 2..=4) {
        return Err(CudaError::ErrorInvalidMemcpyDirection);
    }
    let from = part(symbol, bytes, offset)?;
    run(context, &Request { to: Place::line(to as usize), from, shape: Shape::line(bytes), kind, stream })
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
    to_symbol(context, symbol, from, bytes, offset, kind, None)
}

/// `cudaMemcpyToSymbolAsync`
pub unsafe fn memcpy_to_symbol_async(
    context: Context,
    symbol: *const c_void,
    from: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
    stream: *mut c_void,
) -> Result {
    to_symbol(context, symbol, from, bytes, offset, kind, Some(stream as usize))
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
    from_symbol(context, to, symbol, bytes, offset, kind, None)
}

/// `cudaMemcpyFromSymbolAsync`
pub unsafe fn memcpy_from_symbol_async(
    context: Context,
    to: *mut c_void,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
    stream: *mut c_void,
) -> Result {
    from_symbol(context, to, symbol, bytes, offset, kind, Some(stream as usize))
}
