//! Occupancy: how many blocks a "multiprocessor" (a core) would hold. A core runs one block at a time; the numbers are those of the limits that
//! the device reports, so that programs size their grids as on a GPU.

use super::attributes::{BLOCKS_PER_PROCESSOR, SHARED_PER_PROCESSOR, THREADS_PER_PROCESSOR, attribute};
use super::kernel::kernel;
use super::{Context, put};
use crate::error::{CuError, Result};
use crate::host::engine::settings;
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

/// `CUoccupancyB2DSize`: bytes of dynamic shared memory for a block of so many threads.
pub type SharedOf = Option<unsafe extern "C" fn(c_int) -> usize>;

/// `cuOccupancyMaxPotentialBlockSize`
pub unsafe fn max_potential_block_size(
    context: Context,
    grid: *mut c_int,
    threads: *mut c_int,
    function: *mut c_void,
    shared_of: SharedOf,
    dynamic_shared: usize,
    limit: c_int,
) -> Result {
    // SAFETY: see the parent module.
    unsafe {
        max_potential_block_size_with_flags(context, grid, threads, function, shared_of, dynamic_shared, limit, 0)
    }
}

/// `cuOccupancyMaxPotentialBlockSizeWithFlags`: the largest block of those with which a multiprocessor holds most threads.
#[expect(clippy::too_many_arguments, reason = "the arguments are CUDA's")]
pub unsafe fn max_potential_block_size_with_flags(
    _: Context,
    grid: *mut c_int,
    threads: *mut c_int,
    function: *mut c_void,
    shared_of: SharedOf,
    dynamic_shared: usize,
    limit: c_int,
    flags: c_uint,
) -> Result {
    /// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`
    const PROCESSORS: c_int = 16;
    let kernel = kernel(function)?;
    let limit = usize::try_from(limit).map_err(|_| CuError::INVALID_VALUE)?;
    if grid.is_null() || threads.is_null() || flags & !1 != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let most = kernel.info.max_threads as usize;
    let most = if limit == 0 { most } else { limit.min(most) };
    // Whole warps, and the limit itself.
    let warp = uma_abi::WARP_SIZE as usize;
    let sizes = (warp..most).step_by(warp).chain([most]);
    let best = sizes.filter_map(|size| {
        // SAFETY: the program gave the function for this.
        let dynamic = shared_of.map_or(dynamic_shared, |shared_of| unsafe { shared_of(size as c_int) });
        let fits = dynamic <= kernel.dynamic_limit() as usize;
        let count = blocks(size, dynamic.saturating_add(kernel.info.static_shared as usize));
        (fits && count > 0).then_some((count * size, size, count))
    });
    let (_, size, count) = best.max().unwrap_or_default();
    let processors = attribute(PROCESSORS, &settings()?);
    // SAFETY: see the parent module.
    unsafe {
        put(grid, count as c_int * processors)?;
        put(threads, size as c_int)
    }
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
