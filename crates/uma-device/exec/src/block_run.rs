//! Runs kernels of [`ThreadMode::Block`](uma_abi::ThreadMode): one call a block.
//!
//! The calls run on one coroutine, not because they wait (they never do) but so that a trap can leave the kernel: it yields and is not
//! resumed.

use crate::fault::{KernelFault, Place};
use crate::launch::{Chunk, Scratch};
use crate::services::{Lane, Request};
use corosensei::{Coroutine, CoroutineResult};

/// # Safety
/// As [`crate::launch::Running::work`].
pub(crate) unsafe fn run(chunk: &Chunk<'_>, scratch: &mut Scratch) -> Result<(), KernelFault> {
    let kernel = &chunk.running.launch.kernel;
    let stack = scratch.stack(kernel)?;
    let mut lane = Lane::new();
    let lane_pointer = &raw mut lane;
    let mut context = chunk.context(lane_pointer.cast());
    let context_pointer = &raw mut context;
    // SAFETY: the closure borrows locals of this frame; the coroutine ends or is reset before the frame does.
    let mut coroutine = unsafe {
        Coroutine::with_stack_unchecked(stack, |yielder, ()| {
            (*lane_pointer).yielder = yielder;
            for block in chunk.first..chunk.end {
                (*context_pointer).block_idx = chunk.block_index(block);
                (kernel.entry)(chunk.running.args.as_ptr(), context_pointer);
            }
        })
    };
    let outcome = coroutine.resume(());
    let result = match outcome {
        CoroutineResult::Return(()) => Ok(()),
        CoroutineResult::Yield(()) => {
            // SAFETY: the frames of the kernel hold no Rust value; those of the service and the closure hold none that needs a drop.
            unsafe { coroutine.force_reset() };
            let name = kernel.info().name.clone();
            let place = Place { block: context.block_idx, thread: None };
            Err(match lane.request {
                Request::Trap { message: Some(message) } => KernelFault::Assert { kernel: name, message, place },
                Request::Trap { message: None } => KernelFault::Trap { kernel: name, place },
                request => KernelFault::Deadlock {
                    kernel: name,
                    place,
                    waits: format!("the kernel was compiled as one that never waits, but asks for {request:?}"),
                },
            })
        }
    };
    scratch.stacks.push(coroutine.into_stack());
    result
}
