//! Loads compiled kernels and runs them on the cores of this machine.
//!
//! A [`Module`] is a loaded image; a [`Kernel`] comes from it. A [`Pool`] owns the worker threads and runs one [`Launch`] at a time,
//! spread over the blocks of the grid. Kernels whose threads never wait for each other run a block a call
//! ([`ThreadMode::Block`](uma_abi::ThreadMode)); the others run each thread on a coroutine that yields where the kernel waits.
//!
//! What is not here: streams, memory, and what happens when a kernel touches memory that it must not (the process that hosts the pool
//! handles the signal).
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use uma_exec::{Launch, Module, Pool};
//! // SAFETY: the image comes from uma-clang++.
//! let module = unsafe { Module::load(&std::fs::read("saxpy.img")?)? };
//! let pool = Pool::new(2, |text: &[u8]| print!("{}", String::from_utf8_lossy(text)))?;
//! let kernel = module.kernel("_Z5saxpyfPKfPfi").ok_or("no such kernel")?;
//! let params = [0u8; 28]; // packed as KernelInfo::param_offsets says
//! // SAFETY: the parameters fit the kernel, its pointers are valid.
//! unsafe { pool.launch(&Launch { kernel, params: &params, grid: [1, 1, 1], block: [32, 1, 1], dynamic_shared: 0 })? };
//! # Ok(())
//! # }
//! ```

mod block_run;
mod fault;
mod image;
mod launch;
mod module;
mod pool;
mod printf;
mod services;
mod stack;
mod thread_run;
mod warp;

pub use fault::{KernelFault, Place};
pub use image::{ImageError, read_metadata};
pub use launch::{Launch, MAX_BLOCK_THREADS, MAX_SHARED_BYTES};
pub use module::{Kernel, Module};
pub use pool::Pool;
