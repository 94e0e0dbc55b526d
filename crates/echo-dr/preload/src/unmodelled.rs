//! Functions of CUDA that are known by name, and that touch memory in ways of which nobody has told the analysis: batches of structures, nodes of graphs
//! that may be copies.
//!
//! A call is told as one of a function that isn't known, and made as it is: no pair that is alive at it is merged.

use crate::jump::jump_after;
use crate::session;
use crate::table::{Hook, NOT_SUPPORTED, hooks};
use crate::thread::Token;

/// Before the call.
fn prepare(hook: &'static Hook) -> usize {
    let Some(address) = hook.slot.address() else { return 0 };
    if let Some(token) = Token::outermost()
        && let Some(session) = session::get()
    {
        hook.count();
        session.unknown_called(&token, hook.name);
    }
    address
}

macro_rules! unmodelled {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As for the CUDA function of this name.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        #[allow(non_snake_case, reason = "as the function is")]
        pub(crate) unsafe extern "C" fn $name() -> std::ffi::c_int {
            unsafe extern "C" fn prepared(_: usize) -> usize {
                prepare(&hooks::$name)
            }
            jump_after!(prepared, NOT_SUPPORTED);
        }
    )*};
}

// The names that the table has under `unmodelled`.
unmodelled! {
    cudaGraphAddNode cudaGraphNodeSetParams cudaGraphExecNodeSetParams
    cudaMemcpy3DBatchAsync cudaMemcpy3DBatchAsync_ptsz cudaMemPrefetchBatchAsync cudaMemPrefetchBatchAsync_ptsz
    cudaMemDiscardBatchAsync cudaMemDiscardBatchAsync_ptsz cudaMemDiscardAndPrefetchBatchAsync cudaMemDiscardAndPrefetchBatchAsync_ptsz
    cudaLaunchCooperativeKernelMultiDevice
    cuGraphAddNode cuGraphAddNode_v2 cuGraphNodeSetParams cuGraphExecNodeSetParams
    cuMemcpy3DBatchAsync cuMemcpy3DBatchAsync_ptsz cuMemcpy3DBatchAsync_v2 cuMemcpy3DBatchAsync_v2_ptsz
    cuMemPrefetchBatchAsync cuMemPrefetchBatchAsync_ptsz cuMemDiscardBatchAsync cuMemDiscardBatchAsync_ptsz
    cuMemDiscardAndPrefetchBatchAsync cuMemDiscardAndPrefetchBatchAsync_ptsz cuMemBatchDecompressAsync cuMemBatchDecompressAsync_ptsz
    cuLaunchCooperativeKernelMultiDevice
}
