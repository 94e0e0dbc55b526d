//! Runs kernels of [`ThreadMode::Thread`](uma_abi::ThreadMode): one coroutine a thread.
//!
//! All threads of a block run on one thread of the pool, warp by warp, each until it waits. When every thread of the block waits at the
//! barrier (or has exited: exited threads count as arrived) the barrier opens; when none can run and some wait for anything else, the
//! block is dead-locked, which is a fault and never a hang.

use crate::fault::{KernelFault, Place};
use crate::launch::{Chunk, Scratch};
use crate::services::{Lane, Request, WarpRequest};
use crate::stack::ThreadStack;
use crate::warp::{self, LaneState};
use corosensei::Coroutine;
use uma_abi::{ThreadContext, WARP_SIZE};

/// One thread of the block.
struct Thread {
    context: ThreadContext,
    lane: Lane,
    /// `None`: the thread has exited.
    coroutine: Option<Coroutine<(), (), (), ThreadStack>>,
}

/// # Safety
/// As [`crate::launch::Running::work`].
pub(crate) unsafe fn run(chunk: &Chunk<'_>, scratch: &mut Scratch) -> Result<(), KernelFault> {
    let mut threads = threads_of(chunk);
    for block in chunk.first..chunk.end {
        // SAFETY: the caller vouches for the kernel.
        let result = unsafe { start(chunk, scratch, &mut threads, chunk.block_index(block)) }
            .and_then(|()| run_block(&mut threads, scratch));
        if let Err(fault) = result {
            abandon(&mut threads, scratch);
            return Err(fault.into_kernel_fault(chunk, &threads));
        }
    }
    Ok(())
}

/// A fault before it knows its kernel and place.
enum Fault {
    Trap { thread: usize, message: Option<String> },
    NotInMask { thread: usize, mask: u32 },
    Deadlock { thread: usize, waits: String },
    Ready(KernelFault),
}

impl Fault {
    fn into_kernel_fault(self, chunk: &Chunk<'_>, threads: &[Thread]) -> KernelFault {
        let kernel = chunk.running.launch.kernel.info().name.clone();
        let place = |thread: usize| {
            let context = &threads[thread].context;
            Place { block: context.block_idx, thread: Some(context.thread_idx) }
        };
        match self {
            Fault::Trap { thread, message: Some(message) } => {
                KernelFault::Assert { kernel, message, place: place(thread) }
            }
            Fault::Trap { thread, message: None } => KernelFault::Trap { kernel, place: place(thread) },
            Fault::NotInMask { thread, mask } => KernelFault::LaneNotInMask { kernel, mask, place: place(thread) },
            Fault::Deadlock { thread, waits } => KernelFault::Deadlock { kernel, place: place(thread), waits },
            Fault::Ready(fault) => fault,
        }
    }
}

/// The threads of a block, in the order of their linear index, none started.
fn threads_of(chunk: &Chunk<'_>) -> Vec<Thread> {
    let [bx, by, bz] = chunk.running.launch.block;
    let mut threads = Vec::with_capacity((bx * by * bz) as usize);
    for linear in 0..bx * by * bz {
        let mut context = chunk.context(std::ptr::null_mut());
        context.thread_idx = [linear % bx, linear / bx % by, linear / bx / by];
        context.linear_thread = linear;
        threads.push(Thread { context, lane: Lane::new(), coroutine: None });
    }
    // The vector does not grow from here on: the addresses stay.
    for thread in &mut threads {
        thread.context.runner = (&raw mut thread.lane).cast();
    }
    threads
}

/// Gives each thread a coroutine for the block.
///
/// # Safety
/// As [`crate::launch::Running::work`]; `threads` is neither moved nor dropped before all coroutines ended or were reset.
unsafe fn start(
    chunk: &Chunk<'_>,
    scratch: &mut Scratch,
    threads: &mut [Thread],
    block: [u32; 3],
) -> Result<(), Fault> {
    let kernel = &chunk.running.launch.kernel;
    let (entry, args) = (kernel.entry, chunk.running.args.as_ptr());
    for thread in threads {
        thread.context.block_idx = block;
        thread.lane.request = Request::None;
        let (lane, context) = (&raw mut thread.lane, &raw mut thread.context);
        let stack = scratch.stack(kernel).map_err(Fault::Ready)?;
        thread.coroutine = Some(Coroutine::with_stack(stack, move |yielder, ()| {
            // SAFETY: the caller keeps the thread in place while the coroutine lives, and vouches for the kernel.
            unsafe {
                (*lane).yielder = yielder;
                entry(args, context);
            }
        }));
    }
    Ok(())
}

/// Runs all started threads to their ends.
fn run_block(threads: &mut [Thread], scratch: &mut Scratch) -> Result<(), Fault> {
    loop {
        for (number, warp) in threads.chunks_mut(WARP_SIZE as usize).enumerate() {
            run_warp(warp, number * WARP_SIZE as usize, scratch)?;
        }
        // Now every live thread waits.
        let mut live = threads.iter().filter(|thread| thread.coroutine.is_some()).peekable();
        if live.peek().is_none() {
            return Ok(());
        }
        if !live.all(|thread| matches!(thread.lane.request, Request::Barrier { .. })) {
            return Err(deadlock(threads));
        }
        open_barrier(threads);
    }
}

/// Runs the threads of a warp until each has exited or waits for another warp.
fn run_warp(warp: &mut [Thread], first: usize, scratch: &mut Scratch) -> Result<(), Fault> {
    loop {
        let mut waits_for_warp = false;
        for (lane, thread) in warp.iter_mut().enumerate() {
            let Some(coroutine) = &mut thread.coroutine else { continue };
            if thread.lane.request == Request::None && coroutine.resume(()).as_return().is_some() {
                scratch.stacks.extend(thread.coroutine.take().map(Coroutine::into_stack));
                continue;
            }
            match &mut thread.lane.request {
                Request::Trap { message } => return Err(Fault::Trap { thread: first + lane, message: message.take() }),
                Request::Warp(_) => waits_for_warp = true,
                Request::Barrier { .. } | Request::None => {}
            }
        }
        if !waits_for_warp {
            return Ok(());
        }
        let mut lanes = [LaneState::Exited; WARP_SIZE as usize];
        for (state, thread) in lanes.iter_mut().zip(&*warp) {
            *state = match &thread.lane.request {
                _ if thread.coroutine.is_none() => LaneState::Exited,
                Request::Warp(request) => LaneState::Waits(*request),
                _ => LaneState::Elsewhere,
            };
        }
        let released =
            warp::resolve(&lanes).map_err(|error| Fault::NotInMask { thread: first + error.lane, mask: error.mask })?;
        if released.lanes == 0 {
            return Ok(());
        }
        for (lane, thread) in warp.iter_mut().enumerate().filter(|(lane, _)| released.lanes & (1 << lane) != 0) {
            thread.lane.response = released.answers[lane];
            thread.lane.request = Request::None;
        }
    }
}

/// Lets the threads that wait at the barrier go on: all live ones do.
fn open_barrier(threads: &mut [Thread]) {
    let (mut arrived, mut votes) = (0u32, 0u32);
    for thread in threads.iter().filter(|thread| thread.coroutine.is_some()) {
        if let Request::Barrier { predicate, .. } = thread.lane.request {
            arrived += 1;
            votes += u32::from(predicate);
        }
    }
    for thread in threads.iter_mut().filter(|thread| thread.coroutine.is_some()) {
        if let Request::Barrier { op, .. } = thread.lane.request {
            thread.lane.response = u64::from(match op {
                1 => votes,
                2 => u32::from(votes == arrived),
                3 => u32::from(votes > 0),
                _ => 0,
            });
            thread.lane.request = Request::None;
        }
    }
}

/// Says who waits for what.
fn deadlock(threads: &[Thread]) -> Fault {
    let mut first = None;
    let mut counts = [("__syncthreads", 0), ("a shuffle", 0), ("a vote", 0), ("__syncwarp", 0), ("__activemask", 0)];
    for (index, thread) in threads.iter().enumerate().filter(|(_, thread)| thread.coroutine.is_some()) {
        let kind = match thread.lane.request {
            Request::Warp(WarpRequest::Shuffle { .. }) => 1,
            Request::Warp(WarpRequest::Ballot { .. }) => 2,
            Request::Warp(WarpRequest::Sync { .. }) => 3,
            Request::Warp(WarpRequest::ActiveMask { .. }) => 4,
            _ => 0,
        };
        counts[kind].1 += 1;
        if kind != 0 {
            first.get_or_insert(index);
        }
    }
    let waits =
        counts.iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("{count} threads wait at {what}"));
    Fault::Deadlock { thread: first.unwrap_or(0), waits: waits.collect::<Vec<_>>().join(", ") }
}

/// Ends all threads where they are and takes their stacks back.
fn abandon(threads: &mut [Thread], scratch: &mut Scratch) {
    for thread in threads {
        if let Some(mut coroutine) = thread.coroutine.take() {
            // SAFETY: the frames of a kernel hold no Rust value, those of the services none that needs a drop.
            unsafe { coroutine.force_reset() };
            scratch.stacks.push(coroutine.into_stack());
        }
    }
}
