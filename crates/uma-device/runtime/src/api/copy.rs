//! Copies and memsets: arguments become boxes of bytes, the rows of [`sync_table`](crate::sync_table) say the rest.

use super::memory::{Extent, PitchedPtr};
use super::{Context, get};
use crate::command::{Command, Place, Shape};
use crate::copies;
use crate::error::{CudaError, Result};
use crate::host::arena::Origin;
use crate::host::engine::{Engine, engine};
use crate::host::streams::StreamRef;
use crate::host::waits::{Wait, host_turn};
use crate::settings::{Link, Schedule};
use crate::statistics;
use crate::sync_table::{CopyKind, Memory, Method, Returns, Side, completes_for_host, copy_rule, memset_returns};
use std::ffi::{c_int, c_void};
use std::time::Instant;

/// `cudaMemcpy3DParms`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy3D {
    src_array: *mut c_void,
    src_pos: Extent,
    src_ptr: PitchedPtr,
    dst_array: *mut c_void,
    dst_pos: Extent,
    dst_ptr: PitchedPtr,
    extent: Extent,
    kind: c_int,
}

/// A copy with all that its rule depends on.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Target.
    pub to: Place,
    /// Source.
    pub from: Place,
    /// What.
    pub shape: Shape,
    /// `cudaMemcpyKind`
    pub kind: c_int,
    /// `None`: the call is synchronous, in the null stream.
    pub stream: Option<usize>,
}

/// Makes a copy as its rule says.
pub fn run(context: Context, request: &Request) -> Result {
    let kind = CopyKind::from_number(request.kind).ok_or(CudaError::ErrorInvalidMemcpyDirection)?;
    let Request { to, from, shape, .. } = *request;
    let engine = engine()?;
    let mut state = engine.lock();
    state.device()?;
    let stream = state.stream(request.stream.unwrap_or(0), context.per_thread)?;
    let bytes = shape.bytes().ok_or(CudaError::ErrorInvalidValue)?;
    if bytes == 0 {
        return Ok(());
    }
    let side = |place: Place| -> Result<Memory> {
        let extent = place.extent(&shape).ok_or(CudaError::ErrorInvalidValue)?;
        if place.address == 0 { Err(CudaError::ErrorInvalidValue) } else { state.arena.classify(place.address, extent) }
    };
    let (from_memory, to_memory) = (side(from)?, side(to)?);
    let (from_side, to_side) = kind.sides(from_memory, to_memory).ok_or(CudaError::ErrorInvalidValue)?;
    let rule = copy_rule(request.stream.is_some(), from_side, to_side).ok_or(CudaError::ErrorInvalidValue)?;
    if (from_side == Side::Device) != (to_side == Side::Device) {
        statistics::count_copy(bytes);
    }
    let complete = request.stream.is_none() && completes_for_host(kind, rule.method, from_memory, to_memory);
    match rule.method {
        Method::Device => {
            let sequence = state.enqueue(stream, Command::Copy { to, from, shape }, None, true)?;
            if rule.returns == Returns::Queued && !complete {
                return Ok(());
            }
            let clock = state.coverage.snapshot(stream.slot);
            let wait = Wait::for_point(&mut state, (stream.slot, sequence), clock)?;
            drop(state);
            wait.finish(engine)
        }
        Method::HostTurn => {
            drop(state);
            turn(engine, stream, to, from, shape)
        }
        // The last step may be over when the call returns: then it is no more than the host's turn.
        Method::WaitThenStage if complete || engine.settings.schedule == Schedule::Eager => {
            drop(state);
            turn(engine, stream, to, from, shape)
        }
        Method::WaitThenStage => {
            let wait = Wait::for_stream(&mut state, stream.slot)?;
            drop(state);
            wait.finish(engine)?;
            stage(engine, stream, to, from, shape, false)
        }
        Method::Stage => {
            drop(state);
            stage(engine, stream, to, from, shape, true)
        }
    }
}

/// Copies on the host when the stream has come here.
fn turn(engine: &Engine, stream: StreamRef, to: Place, from: Place, shape: Shape) -> Result {
    let reach = |place: Place| Place { address: engine.regions.reach(place.address), ..place };
    let bytes = shape.bytes().unwrap_or(0);
    host_turn(engine, stream, bytes, || {
        let start = Instant::now();
        // SAFETY: boxes in the arena were checked and are reached by the library's own mapping; host memory is the program's to vouch for.
        unsafe { copies::copy(reach(to), reach(from), shape) };
        if engine.settings.link == Link::Discrete {
            copies::throttle(start, bytes);
        }
    })
}

/// Puts the source aside now and queues the rest. `works`: whether it counts as work that closes managed memory.
fn stage(engine: &Engine, stream: StreamRef, to: Place, from: Place, shape: Shape, works: bool) -> Result {
    let bytes = shape.bytes().ok_or(CudaError::ErrorInvalidValue)?;
    let staged = {
        let mut state = engine.lock();
        state.reclaim();
        let staged = state.arena.allocate(bytes, Memory::Pinned, Origin::Staging, false);
        if let Ok(staged) = &staged {
            state.arena.forget(staged.base);
        }
        staged
    };
    let Ok(staged) = staged else {
        // No memory to stage in: a copy that is complete at return keeps every promise, too.
        return turn(engine, stream, to, from, shape);
    };
    let slice = shape.width * shape.height;
    let dense = |address| Place { address, pitch: shape.width, slice };
    // SAFETY: the source is the program's to vouch for; the block is ours and holds `bytes`.
    unsafe { copies::copy(dense(engine.regions.reach(staged.base)), from, shape) };
    let mut state = engine.lock();
    match state.enqueue(stream, Command::Copy { to, from: dense(staged.base), shape }, None, works) {
        Ok(sequence) => {
            state.release_after((stream.slot, sequence), staged);
            Ok(())
        }
        Err(error) => {
            state.arena.release(&staged);
            Err(error)
        }
    }
}

/// `cudaMemcpy`
pub unsafe fn memcpy(context: Context, to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int) -> Result {
    let (to, from) = (Place::line(to as usize), Place::line(from as usize));
    run(context, &Request { to, from, shape: Shape::line(bytes), kind, stream: None })
}

/// `cudaMemcpyAsync`
pub unsafe fn memcpy_async(
    context: Context,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
    stream: *mut c_void,
) -> Result {
    let (to, from) = (Place::line(to as usize), Place::line(from as usize));
    run(context, &Request { to, from, shape: Shape::line(bytes), kind, stream: Some(stream as usize) })
}

/// `cudaMemcpyPeer`: there is one device.
pub unsafe fn memcpy_peer(
    context: Context,
    to: *mut c_void,
    to_device: c_int,
    from: *const c_void,
    from_device: c_int,
    bytes: usize,
) -> Result {
    super::device::check(to_device)?;
    super::device::check(from_device)?;
    // SAFETY: see the parent module. 3: device to device.
    unsafe { memcpy(context, to, from, bytes, 3) }
}

/// `cudaMemcpyPeerAsync`
pub unsafe fn memcpy_peer_async(
    context: Context,
    to: *mut c_void,
    to_device: c_int,
    from: *const c_void,
    from_device: c_int,
    bytes: usize,
    stream: *mut c_void,
) -> Result {
    super::device::check(to_device)?;
    super::device::check(from_device)?;
    // SAFETY: see the parent module. 3: device to device.
    unsafe { memcpy_async(context, to, from, bytes, 3, stream) }
}

fn box_2d(address: usize, pitch: usize, shape: &Shape) -> Result<Place> {
    if shape.width > pitch { Err(CudaError::ErrorInvalidPitchValue) } else { Ok(Place { address, pitch, slice: 0 }) }
}

#[expect(clippy::too_many_arguments, reason = "the arguments are CUDA's")]
fn run_2d(
    context: Context,
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    stream: Option<usize>,
) -> Result {
    let shape = Shape { width, height, depth: 1 };
    let to = box_2d(to as usize, to_pitch, &shape)?;
    let from = box_2d(from as usize, from_pitch, &shape)?;
    run(context, &Request { to, from, shape, kind, stream })
}

/// `cudaMemcpy2D`
#[expect(clippy::too_many_arguments, reason = "the arguments are CUDA's")]
pub unsafe fn memcpy_2d(
    context: Context,
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> Result {
    run_2d(context, to, to_pitch, from, from_pitch, width, height, kind, None)
}

/// `cudaMemcpy2DAsync`
#[expect(clippy::too_many_arguments, reason = "the arguments are CUDA's")]
pub unsafe fn memcpy_2d_async(
    context: Context,
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    stream: *mut c_void,
) -> Result {
    run_2d(context, to, to_pitch, from, from_pitch, width, height, kind, Some(stream as usize))
}

fn place_3d(base: &PitchedPtr, at: &Extent, shape: &Shape) -> Result<Place> {
    if base.pitch < shape.width && shape.height * shape.depth > 1 {
        return Err(CudaError::ErrorInvalidPitchValue);
    }
    let slice = base.pitch.checked_mul(base.ysize.max(shape.height)).ok_or(CudaError::ErrorInvalidValue)?;
    let offset = || at.depth.checked_mul(slice)?.checked_add(at.height.checked_mul(base.pitch)?)?.checked_add(at.width);
    let address = offset().and_then(|offset| (base.ptr as usize).checked_add(offset));
    Ok(Place { address: address.ok_or(CudaError::ErrorInvalidValue)?, pitch: base.pitch, slice })
}

unsafe fn run_3d(context: Context, request: *const Copy3D, stream: Option<usize>) -> Result {
    // SAFETY: see the parent module.
    let request = unsafe { get(request) }?;
    if !request.src_array.is_null() || !request.dst_array.is_null() {
        // Arrays can't be made on this device, so this is no array.
        return Err(CudaError::ErrorInvalidValue);
    }
    let shape = Shape { width: request.extent.width, height: request.extent.height, depth: request.extent.depth };
    let to = place_3d(&request.dst_ptr, &request.dst_pos, &shape)?;
    let from = place_3d(&request.src_ptr, &request.src_pos, &shape)?;
    run(context, &Request { to, from, shape, kind: request.kind, stream })
}

/// `cudaMemcpy3D`
pub unsafe fn memcpy_3d(context: Context, request: *const Copy3D) -> Result {
    // SAFETY: see the parent module.
    unsafe { run_3d(context, request, None) }
}

/// `cudaMemcpy3DAsync`
pub unsafe fn memcpy_3d_async(context: Context, request: *const Copy3D, stream: *mut c_void) -> Result {
    // SAFETY: see the parent module.
    unsafe { run_3d(context, request, Some(stream as usize)) }
}

fn set(context: Context, to: Place, value: c_int, shape: Shape, stream: Option<usize>) -> Result {
    let engine = engine()?;
    let mut state = engine.lock();
    state.device()?;
    let asynchronous = stream.is_some();
    let stream = state.stream(stream.unwrap_or(0), context.per_thread)?;
    let extent = to.extent(&shape).ok_or(CudaError::ErrorInvalidValue)?;
    if extent == 0 {
        return Ok(());
    }
    let memory = state.arena.classify(to.address, extent)?;
    if memory == Memory::Pageable {
        return Err(CudaError::ErrorInvalidValue);
    }
    let sequence = state.enqueue(stream, Command::Fill { to, value: value as u8, shape }, None, true)?;
    if memset_returns(asynchronous, memory) == Returns::Queued {
        return Ok(());
    }
    let clock = state.coverage.snapshot(stream.slot);
    let wait = Wait::for_point(&mut state, (stream.slot, sequence), clock)?;
    drop(state);
    wait.finish(engine)
}

/// `cudaMemset`
pub unsafe fn memset(context: Context, to: *mut c_void, value: c_int, bytes: usize) -> Result {
    set(context, Place::line(to as usize), value, Shape::line(bytes), None)
}

/// `cudaMemsetAsync`
pub unsafe fn memset_async(
    context: Context,
    to: *mut c_void,
    value: c_int,
    bytes: usize,
    stream: *mut c_void,
) -> Result {
    set(context, Place::line(to as usize), value, Shape::line(bytes), Some(stream as usize))
}

/// `cudaMemset2D`
pub unsafe fn memset_2d(
    context: Context,
    to: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
) -> Result {
    let shape = Shape { width, height, depth: 1 };
    set(context, box_2d(to as usize, pitch, &shape)?, value, shape, None)
}

/// `cudaMemset2DAsync`
pub unsafe fn memset_2d_async(
    context: Context,
    to: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    stream: *mut c_void,
) -> Result {
    let shape = Shape { width, height, depth: 1 };
    set(context, box_2d(to as usize, pitch, &shape)?, value, shape, Some(stream as usize))
}

fn set_3d(context: Context, to: &PitchedPtr, value: c_int, extent: Extent, stream: Option<usize>) -> Result {
    let shape = Shape { width: extent.width, height: extent.height, depth: extent.depth };
    let to = place_3d(to, &Extent { width: 0, height: 0, depth: 0 }, &shape)?;
    set(context, to, value, shape, stream)
}

/// `cudaMemset3D`
pub unsafe fn memset_3d(context: Context, to: PitchedPtr, value: c_int, extent: Extent) -> Result {
    set_3d(context, &to, value, extent, None)
}

/// `cudaMemset3DAsync`
pub unsafe fn memset_3d_async(
    context: Context,
    to: PitchedPtr,
    value: c_int,
    extent: Extent,
    stream: *mut c_void,
) -> Result {
    set_3d(context, &to, value, extent, Some(stream as usize))
}
