//! One launch: what is asked for, the checks before it runs, and the blocks that are still to run.

use crate::block_run;
use crate::fault::KernelFault;
use crate::module::Kernel;
use crate::stack::ThreadStack;
use crate::thread_run;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use uma_abi::{Services, ThreadContext, ThreadMode};

/// Threads of a block at most.
pub const MAX_BLOCK_THREADS: u32 = 1024;
/// Bytes of static and dynamic shared memory of a block at most (as on sm_90).
pub const MAX_SHARED_BYTES: u32 = 227 * 1024;

const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Chunks that each thread of the pool gets on average: enough to even out blocks of unlike cost, few enough to be cheap.
const CHUNKS_PER_THREAD: u64 = 32;

/// What a launch asks for.
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: Kernel,
    /// Its parameters, packed as [`KernelInfo::param_offsets`](uma_abi::KernelInfo::param_offsets) says.
    pub params: &'a [u8],
    /// gridDim
    pub grid: [u32; 3],
    /// blockDim
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
}

/// A launch that passed the checks, shared by the threads that run it.
pub(crate) struct Running<'a> {
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) services: *const Services,
    /// One pointer a parameter.
    pub(crate) args: Vec<*const u8>,
    pub(crate) blocks: u64,
    /// Blocks that a thread takes at a time once several threads share the work.
    pub(crate) chunk: u64,
    next: AtomicU64,
    fault: OnceLock<KernelFault>,
}

// SAFETY: `args` point into `launch.params`, which kernels only read; `services` points to data that never changes while a launch runs.
unsafe impl Sync for Running<'_> {}

/// What a thread of the pool keeps between launches.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Shared memory of a block, 128-byte aligned.
    shared: Vec<SharedLine>,
    pub(crate) stacks: Vec<ThreadStack>,
    /// Stacks made so far.
    made: usize,
}

#[derive(Clone, Copy)]
#[repr(align(128))]
struct SharedLine(#[expect(dead_code, reason = "only its bytes are used, by kernels")] [u8; 128]);

impl Scratch {
    fn shared(&mut self, bytes: usize) -> *mut u8 {
        let lines = bytes.div_ceil(128).max(1);
        if self.shared.len() < lines {
            self.shared.resize(lines, SharedLine([0; 128]));
        }
        self.shared.as_mut_ptr().cast()
    }

    /// A stack from the pool, or a new one.
    pub(crate) fn stack(&mut self, kernel: &Kernel) -> Result<ThreadStack, KernelFault> {
        if let Some(stack) = self.stacks.pop() {
            return Ok(stack);
        }
        self.made += 1;
        ThreadStack::new(self.made)
            .map_err(|error| KernelFault::NoStack { kernel: kernel.info().name.clone(), problem: error.to_string() })
    }
}

impl<'a> Running<'a> {
    pub(crate) fn new(launch: &'a Launch<'a>, services: *const Services, threads: usize) -> Result<Self, KernelFault> {
        check(launch)?;
        let blocks = launch.grid.iter().map(|&n| u64::from(n)).product::<u64>();
        Ok(Running {
            launch,
            services,
            args: launch.kernel.info().param_offsets().map(|offset| launch.params[offset..].as_ptr()).collect(),
            blocks,
            chunk: (blocks / (threads as u64 * CHUNKS_PER_THREAD)).max(1),
            next: AtomicU64::new(0),
            fault: OnceLock::new(),
        })
    }

    /// Runs blocks, `size` at a time, until none is left, a block faulted, or `go_on` (asked after each time) says no.
    ///
    /// # Safety
    /// The kernel's parameters are of the right types, and what it does with them is allowed.
    pub(crate) unsafe fn work(&self, scratch: &mut Scratch, size: u64, mut go_on: impl FnMut() -> bool) {
        let info = self.launch.kernel.info();
        let shared = scratch.shared((info.static_shared + self.launch.dynamic_shared) as usize);
        while self.fault.get().is_none() {
            let first = self.next.fetch_add(size, Relaxed);
            if first >= self.blocks {
                return;
            }
            let chunk = Chunk { running: self, first, end: (first + size).min(self.blocks), shared };
            // SAFETY: the caller vouches for the kernel.
            let result = unsafe {
                match info.mode {
                    ThreadMode::Block => block_run::run(&chunk, scratch),
                    ThreadMode::Thread => thread_run::run(&chunk, scratch),
                }
            };
            if let Err(fault) = result {
                // The first fault is the one that is reported.
                let _ = self.fault.set(fault);
                return;
            }
            if !go_on() {
                return;
            }
        }
    }

    pub(crate) fn work_left(&self) -> bool {
        self.next.load(Relaxed) < self.blocks && self.fault.get().is_none()
    }

    pub(crate) fn result(self) -> Result<(), KernelFault> {
        self.fault.into_inner().map_or(Ok(()), Err)
    }
}

/// Consecutive blocks of a running launch.
pub(crate) struct Chunk<'a> {
    pub(crate) running: &'a Running<'a>,
    pub(crate) first: u64,
    pub(crate) end: u64,
    shared: *mut u8,
}

impl Chunk<'_> {
    /// blockIdx of a linear block number.
    pub(crate) fn block_index(&self, linear: u64) -> [u32; 3] {
        let [x, y, _] = self.running.launch.grid.map(u64::from);
        [(linear % x) as u32, (linear / x % y) as u32, (linear / x / y) as u32]
    }

    /// A context for the first thread of no block yet.
    pub(crate) fn context(&self, runner: *mut core::ffi::c_void) -> ThreadContext {
        ThreadContext {
            grid_dim: self.running.launch.grid,
            block_dim: self.running.launch.block,
            block_idx: [0; 3],
            thread_idx: [0; 3],
            shared: self.shared,
            dynamic: self.shared.wrapping_add(self.running.launch.kernel.info().static_shared as usize),
            dynamic_shared: self.running.launch.dynamic_shared,
            linear_thread: 0,
            services: self.running.services,
            runner,
        }
    }
}

/// The limits that a GPU checks at launch.
fn check(launch: &Launch<'_>) -> Result<(), KernelFault> {
    let info = launch.kernel.info();
    let refuse = |problem: String| Err(KernelFault::Configuration { kernel: info.name.clone(), problem });
    let (grid, block) = (launch.grid, launch.block);
    if (0..3).any(|d| grid[d] == 0 || grid[d] > MAX_GRID[d]) {
        return refuse(format!("grid {grid:?} is not within 1 and {MAX_GRID:?}"));
    }
    if (0..3).any(|d| block[d] == 0 || block[d] > MAX_BLOCK[d]) {
        return refuse(format!("block {block:?} is not within 1 and {MAX_BLOCK:?}"));
    }
    let (threads, limit) = (block.iter().product::<u32>(), info.max_threads.min(MAX_BLOCK_THREADS));
    if threads > limit {
        return refuse(format!("block {block:?} has {threads} threads, more than {limit}"));
    }
    let shared = u64::from(info.static_shared) + u64::from(launch.dynamic_shared);
    if shared > u64::from(MAX_SHARED_BYTES) {
        return refuse(format!("{shared} bytes of shared memory are more than {MAX_SHARED_BYTES}"));
    }
    if launch.params.len() < info.packed_len() {
        let (found, needed) = (launch.params.len(), info.packed_len());
        return refuse(format!("{found} bytes of parameters, {needed} are needed"));
    }
    Ok(())
}
