//! Occupancy: how many blocks a "multiprocessor" (a core) would hold. A core runs one block at a time; the numbers are those of the limits that
//! the device reports, so that programs size their grids as on a GPU.

use super::attributes::{BLOCKS_PER_PROCESSOR, SHARED_PER_PROCESSOR, THREADS_PER_PROCESSOR};
use super::kernel::kernel;
use super::{Context, put};
use crate::error::{CuError, Result};
use std::ffi::{c_int, c_uint, c_void};

/// Shared memory is handed out in units of this.
const SHARED_UNIT: usize = 128;

fn blocks(threads: usize, shared: usize) -> usize {
    let by_threads = THREADS_PER_PROCESSOR / threads;
    let by_shared = SHARED_PER_PROCESSOR.checked_div(shared.next_multiple_of(SHARED_UNIT)).unwrap_or(usize::MAX);
    by_threads.min(by_shared).min(BLOCKS_PER_PROCESSOR)
}

/// `cuOccupancyMaxActiveBlocksPerMultiprocessor`
pub unsafe fn max_active_blocks(
    context: Context,
    target: *mut c_int,
    function: *mut c_void,
    threads: c_int,
    dynamic_shared: usize,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { max_active_blocks_with_flags(context, target, function, threads, dynamic_shared, 0) }
}

/// `cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`
pub unsafe fn max_active_blocks_with_flags(
    _: Context,
    target: *mut c_int,
    function: *mut c_void,
    threads: c_int,
    dynamic_shared: usize,
    flags: c_uint,
) -> Result {
    let kernel = kernel(function)?;
    let threads = usize::try_from(threads).ok().filter(|n| *n > 0).ok_or(CuError::INVALID_VALUE)?;
    if flags & !1 != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let shared = dynamic_shared.saturating_add(kernel.info.static_shared as usize);
    let fits = threads <= kernel.info.max_threads as usize && dynamic_shared <= kernel.dynamic_limit() as usize;
    let count = if fits { blocks(threads, shared) } else { 0 };
    // SAFETY: see the parent module.
    unsafe { put(target, count as c_int) }
}

/// `cuOccupancyAvailableDynamicSMemPerBlock`
pub unsafe fn available_dynamic_shared(
    _: Context,
    target: *mut usize,
    function: *mut c_void,
    count: c_int,
    threads: c_int,
) -> Result {
    let kernel = kernel(function)?;
    let positive = |n: c_int| usize::try_from(n).ok().filter(|n| *n > 0).ok_or(CuError::INVALID_VALUE);
    let (count, threads) = (positive(count)?, positive(threads)?);
    if count > blocks(threads, 0) {
        return Err(CuError::INVALID_VALUE);
    }
    let each = SHARED_PER_PROCESSOR / count / SHARED_UNIT * SHARED_UNIT;
    let free = each.saturating_sub(kernel.info.static_shared as usize).min(kernel.dynamic_limit() as usize);
    // SAFETY: see the parent module.
    unsafe { put(target, free) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_binds() {
        assert_eq!(blocks(1024, 0), 2);
        assert_eq!(blocks(32, 0), BLOCKS_PER_PROCESSOR);
        assert_eq!(blocks(128, 64 << 10), 3);
        assert_eq!(blocks(128, 1), 16);
    }
}
