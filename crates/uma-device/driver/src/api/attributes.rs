//! What the device says of itself: one table for `cuDeviceGetAttribute`.

use crate::host::launching::{MAX_BLOCK, MAX_GRID};
use crate::host::registry::DEFAULT_SHARED;
use crate::settings::{Access, Link, Settings};
use std::ffi::c_int;

/// Compute capability times ten: that of the device code which the kernel compiler starts from.
pub const COMPUTE_CAPABILITY: c_int = 90;
/// Threads that a multiprocessor holds.
pub const THREADS_PER_PROCESSOR: usize = 2048;
/// Blocks that a multiprocessor holds.
pub const BLOCKS_PER_PROCESSOR: usize = 32;
/// Bytes of shared memory of a multiprocessor.
pub const SHARED_PER_PROCESSOR: usize = 228 << 10;

/// Largest `CU_DEVICE_ATTRIBUTE_…` of CUDA 13.0.
pub const LAST: c_int = 147;

/// Cores that kernels run on.
fn cores() -> c_int {
    std::thread::available_parallelism().map_or(1, |count| count.get() as c_int)
}

/// `CU_DEVICE_ATTRIBUTE_…`: number and value. What is not here and below [`LAST`] is something that this device has none of: 0.
pub fn attribute(number: c_int, settings: &Settings) -> c_int {
    let flag = c_int::from;
    match number {
        1 => uma_exec::MAX_BLOCK_THREADS as c_int,
        2..=4 => MAX_BLOCK[number as usize - 2] as c_int,
        5..=7 => MAX_GRID[number as usize - 5] as c_int,
        // Shared memory of a block, by default and at most.
        8 => DEFAULT_SHARED as c_int,
        97 => uma_exec::MAX_SHARED_BYTES as c_int,
        9 => 64 << 10,
        10 => uma_abi::WARP_SIZE as c_int,
        11 => c_int::MAX,
        // Registers of a block and of a multiprocessor: the CPU has no such limit, programs divide by it.
        12 | 82 => 64 << 10,
        // Clock rates in kHz, bus width: a nominal value, programs divide by these, too.
        13 | 36 => 1_000_000,
        37 => 64,
        14 | 30 => 512,
        51 => 32,
        // Copies overlap with host work, not with kernels.
        15 | 40 => 1,
        16 => cores(),
        18 => flag(settings.link == Link::Uma),
        // Mapped host memory, concurrent kernels in the sense that several may be queued, unified addresses.
        19 | 31 | 41 => 1,
        38 => 1 << 20,
        39 => THREADS_PER_PROCESSOR as c_int,
        75 => COMPUTE_CAPABILITY / 10,
        76 => COMPUTE_CAPABILITY % 10,
        // Stream priorities, caches.
        78..=80 => 1,
        81 => SHARED_PER_PROCESSOR as c_int,
        83 => 1,
        86 => flag(settings.link == Link::Uma),
        87 => 2,
        88 => 0,
        89 => flag(settings.access == Access::Concurrent),
        91 => 1,
        // Registered memory, also read-only; memory pools.
        99 | 113 | 115 => 1,
        106 => BLOCKS_PER_PROCESSOR as c_int,
        131 | 134 => -1,
        _ => 0,
    }
}
