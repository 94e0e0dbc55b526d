//! Copies: arguments become boxes of bytes, the rows of [`sync_table`](crate::sync_table) say the rest.

use super::memory::DevicePtr;
use super::{Context, get};
use crate::command::{Command, Place, Shape};
use crate::copies;
use crate::error::{CuError, Result};
use crate::host::arena::Origin;
use crate::host::engine::{Engine, engine};
use crate::host::streams::StreamRef;
use crate::host::waits::{Wait, host_turn};
use crate::settings::{Link, Schedule};
use crate::statistics;
use crate::sync_table::{Direction, End, Memory, Method, Returns, Side, completes_for_host, copy_rule};
use std::ffi::{c_uint, c_void};
use std::time::Instant;

/// `CUstream`
type Stream = *mut c_void;

/// One end of a `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct End2D {
    x: usize,
    y: usize,
    memory_type: c_uint,
    host: usize,
    device: DevicePtr,
    array: *mut c_void,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy2D {
    from: End2D,
    to: End2D,
    width: usize,
    height: usize,
}

/// One end of a `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct End3D {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    memory_type: c_uint,
    host: usize,
    device: DevicePtr,
    array: *mut c_void,
    reserved: *mut c_void,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy3D {
    from: End3D,
    to: End3D,
    width: usize,
    height: usize,
    depth: usize,
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
    /// What the call says of the ends.
    pub direction: Direction,
    /// `None`: the call is synchronous, in the null stream.
    pub stream: Option<usize>,
}

/// Makes a copy as its rule says.
pub fn run(context: Context, request: &Request) -> Result {
    let Request { to, from, shape, direction, .. } = *request;
    let engine = engine()?;
    let mut state = engine.lock();
    state.device()?;
    let stream = state.stream(request.stream.unwrap_or(0), context.per_thread)?;
    let bytes = shape.bytes().ok_or(CuError::INVALID_VALUE)?;
    if bytes == 0 {
        return Ok(());
    }
    let side = |place: Place| -> Result<Memory> {
        let extent = place.extent(&shape).ok_or(CuError::INVALID_VALUE)?;
        if place.address == 0 { Err(CuError::INVALID_VALUE) } else { state.arena.classify(place.address, extent) }
    };
    let (from_memory, to_memory) = (side(from)?, side(to)?);
    let (from_side, to_side) = direction.sides(from_memory, to_memory).ok_or(CuError::INVALID_VALUE)?;
    let rule = copy_rule(request.stream.is_some(), from_side, to_side).ok_or(CuError::INVALID_VALUE)?;
    if (from_side == Side::Device) != (to_side == Side::Device) {
        statistics::count_copy(bytes);
    }
    let complete = request.stream.is_none() && completes_for_host(direction, rule.method, from_memory, to_memory);
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
    let bytes = shape.bytes().ok_or(CuError::INVALID_VALUE)?;
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

fn line(
    context: Context,
    to: usize,
    from: usize,
    bytes: usize,
    direction: Direction,
    stream: Option<Stream>,
) -> Result {
    let (to, from, stream) = (Place::line(to), Place::line(from), stream.map(|stream| stream as usize));
    run(context, &Request { to, from, shape: Shape::line(bytes), direction, stream })
}

/// `cuMemcpy`
pub unsafe fn memcpy(context: Context, to: DevicePtr, from: DevicePtr, bytes: usize) -> Result {
    line(context, to as usize, from as usize, bytes, Direction::UNSAID, None)
}

/// `cuMemcpyAsync`
pub unsafe fn memcpy_async(context: Context, to: DevicePtr, from: DevicePtr, bytes: usize, stream: Stream) -> Result {
    line(context, to as usize, from as usize, bytes, Direction::UNSAID, Some(stream))
}

/// `cuMemcpyHtoD`
pub unsafe fn memcpy_htod(context: Context, to: DevicePtr, from: *const c_void, bytes: usize) -> Result {
    line(context, to as usize, from as usize, bytes, Direction::HOST_TO_DEVICE, None)
}

/// `cuMemcpyHtoDAsync`
pub unsafe fn memcpy_htod_async(
    context: Context,
    to: DevicePtr,
    from: *const c_void,
    bytes: usize,
    stream: Stream,
) -> Result {
    line(context, to as usize, from as usize, bytes, Direction::HOST_TO_DEVICE, Some(stream))
}

/// `cuMemcpyDtoH`
pub unsafe fn memcpy_dtoh(context: Context, to: *mut c_void, from: DevicePtr, bytes: usize) -> Result {
    line(context, to as usize, from as usize, bytes, Direction::DEVICE_TO_HOST, None)
}

/// `cuMemcpyDtoHAsync`
pub unsafe fn memcpy_dtoh_async(
    context: Context,
    to: *mut c_void,
    from: DevicePtr,
    bytes: usize,
    stream: Stream,
) -> Result {
    line(context, to as usize, from as usize, bytes, Direction::DEVICE_TO_HOST, Some(stream))
}

/// `cuMemcpyDtoD`
pub unsafe fn memcpy_dtod(context: Context, to: DevicePtr, from: DevicePtr, bytes: usize) -> Result {
    line(context, to as usize, from as usize, bytes, Direction::DEVICE_TO_DEVICE, None)
}

/// `cuMemcpyDtoDAsync`
pub unsafe fn memcpy_dtod_async(
    context: Context,
    to: DevicePtr,
    from: DevicePtr,
    bytes: usize,
    stream: Stream,
) -> Result {
    line(context, to as usize, from as usize, bytes, Direction::DEVICE_TO_DEVICE, Some(stream))
}

/// `cuMemcpyPeer`: there is one device, so both contexts are on it.
pub unsafe fn memcpy_peer(
    context: Context,
    to: DevicePtr,
    to_context: *mut c_void,
    from: DevicePtr,
    from_context: *mut c_void,
    bytes: usize,
) -> Result {
    super::context::check_handle(to_context)?;
    super::context::check_handle(from_context)?;
    // SAFETY: see the parent module.
    unsafe { memcpy_dtod(context, to, from, bytes) }
}

/// `cuMemcpyPeerAsync`
pub unsafe fn memcpy_peer_async(
    context: Context,
    to: DevicePtr,
    to_context: *mut c_void,
    from: DevicePtr,
    from_context: *mut c_void,
    bytes: usize,
    stream: Stream,
) -> Result {
    super::context::check_handle(to_context)?;
    super::context::check_handle(from_context)?;
    // SAFETY: see the parent module.
    unsafe { memcpy_dtod_async(context, to, from, bytes, stream) }
}

/// What `CU_MEMORYTYPE_…` says, and the address that goes with it. Arrays can't be made on this device.
fn end(memory_type: c_uint, host: usize, device: DevicePtr) -> Result<(End, usize)> {
    match memory_type {
        1 => Ok((End::Host, host)),
        2 => Ok((End::Device, device as usize)),
        4 => Ok((End::Unsaid, device as usize)),
        _ => Err(CuError::INVALID_VALUE),
    }
}

/// Where a box lies that begins `x` bytes, `y` rows and `z` slices after `address`.
fn place(address: usize, [x, y, z]: [usize; 3], pitch: usize, rows: usize, shape: &Shape) -> Result<Place> {
    if pitch < shape.width && shape.height.saturating_mul(shape.depth) > 1 {
        return Err(CuError::INVALID_VALUE);
    }
    let located = || {
        let slice = pitch.checked_mul(rows.max(shape.height))?;
        let offset = z.checked_mul(slice)?.checked_add(y.checked_mul(pitch)?)?.checked_add(x)?;
        Some(Place { address: address.checked_add(offset)?, pitch, slice })
    };
    located().ok_or(CuError::INVALID_VALUE)
}

unsafe fn run_2d(context: Context, copy: *const Copy2D, stream: Option<usize>) -> Result {
    // SAFETY: see the parent module.
    let Copy2D { from, to, width, height } = unsafe { get(copy) }?;
    let shape = Shape { width, height, depth: 1 };
    let located = |side: End2D| -> Result<(End, Place)> {
        let (end, address) = end(side.memory_type, side.host, side.device)?;
        // The box must lie in its rows.
        if height > 1 && side.x.saturating_add(width) > side.pitch {
            return Err(CuError::INVALID_VALUE);
        }
        Ok((end, place(address, [side.x, side.y, 0], side.pitch, 0, &shape)?))
    };
    let ((from_end, from), (to_end, to)) = (located(from)?, located(to)?);
    run(context, &Request { to, from, shape, direction: Direction { from: from_end, to: to_end }, stream })
}

/// `cuMemcpy2D`, `cuMemcpy2DUnaligned`: the CPU has no alignment to keep.
pub unsafe fn memcpy_2d(context: Context, copy: *const Copy2D) -> Result {
    // SAFETY: see the parent module.
    unsafe { run_2d(context, copy, None) }
}

/// `cuMemcpy2DAsync`
pub unsafe fn memcpy_2d_async(context: Context, copy: *const Copy2D, stream: Stream) -> Result {
    // SAFETY: see the parent module.
    unsafe { run_2d(context, copy, Some(stream as usize)) }
}

unsafe fn run_3d(context: Context, copy: *const Copy3D, stream: Option<usize>) -> Result {
    // SAFETY: see the parent module.
    let Copy3D { from, to, width, height, depth } = unsafe { get(copy) }?;
    let shape = Shape { width, height, depth };
    let located = |side: End3D| -> Result<(End, Place)> {
        let (end, address) = end(side.memory_type, side.host, side.device)?;
        if side.level != 0 || !side.reserved.is_null() {
            return Err(CuError::INVALID_VALUE);
        }
        Ok((end, place(address, [side.x, side.y, side.z], side.pitch, side.height, &shape)?))
    };
    let ((from_end, from), (to_end, to)) = (located(from)?, located(to)?);
    run(context, &Request { to, from, shape, direction: Direction { from: from_end, to: to_end }, stream })
}

/// `cuMemcpy3D`
pub unsafe fn memcpy_3d(context: Context, copy: *const Copy3D) -> Result {
    // SAFETY: see the parent module.
    unsafe { run_3d(context, copy, None) }
}

/// `cuMemcpy3DAsync`
pub unsafe fn memcpy_3d_async(context: Context, copy: *const Copy3D, stream: Stream) -> Result {
    // SAFETY: see the parent module.
    unsafe { run_3d(context, copy, Some(stream as usize)) }
}
