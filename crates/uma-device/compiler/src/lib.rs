//! uma-clang++: compiles CUDA device code for the CPU device.
//!
//! ```text
//! driver        splits the command line; for each .cu file
//!   device_half   clang++ --cuda-device-only            .cu      → nvptx64 bitcode
//!   retarget      the CPU's meaning of what is CUDA's   bitcode  → host bitcode (or refused, by file:line and name)
//!   thread_loop   kernel body → kernel entry            (loop over the threads of a block, or one thread)
//!   codegen       LLVM's O3 for this CPU                bitcode  → object
//!   image         link, metadata, header                object   → image
//!   host_half     clang++ --cuda-host-only, which embeds the image
//! ```
//!
//! What the device cannot run is refused at compile time; nothing is guessed.
//!
//! # What a program must not count on
//! CUDA leaves these open, and the CPU differs from a GPU in them:
//! - Threads of a warp are in step only where the program says so (`__syncwarp`, `*_sync`); old code that reads shared memory which
//!   another lane wrote without either gets old values.
//! - A thread that waits in a loop for another thread of its block (without a barrier), or for a block that has not started, may wait
//!   for ever: threads of a block take turns at barriers and warp operations only.
//! - Denormal numbers are kept, also with `-fcuda-flush-denormals-to-zero`; `__fast` functions are the exact ones; `clock` counts
//!   nanoseconds.

mod codegen;
mod device_half;
mod driver;
mod host_half;
mod image;
mod ir;
mod retarget;
mod thread_loop;
mod toolchain;

pub use driver::run;
