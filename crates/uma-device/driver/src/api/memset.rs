//! Memsets of 8, 16 and 32 bits, of lines and boxes.

use super::Context;
use super::memory::DevicePtr;
use crate::command::{Command, Element, Place, Shape};
use crate::error::{CuError, Result};
use crate::host::engine::engine;
use crate::host::waits::Wait;
use crate::sync_table::{Memory, Returns, memset_returns};
use std::ffi::c_void;

/// `CUstream`
type Stream = *mut c_void;

fn set(context: Context, to: Place, value: Element, shape: Shape, stream: Option<Stream>) -> Result {
    if !to.address.is_multiple_of(value.bytes as usize) {
        return Err(CuError::INVALID_VALUE);
    }
    let engine = engine()?;
    let mut state = engine.lock();
    state.device()?;
    let asynchronous = stream.is_some();
    let stream = state.stream(stream.map_or(0, |stream| stream as usize), context.per_thread)?;
    let extent = to.extent(&shape).ok_or(CuError::INVALID_VALUE)?;
    if extent == 0 {
        return Ok(());
    }
    let memory = state.arena.classify(to.address, extent)?;
    if memory == Memory::Pageable {
        return Err(CuError::INVALID_VALUE);
    }
    let sequence = state.enqueue(stream, Command::Fill { to, value, shape }, None, true)?;
    if memset_returns(asynchronous, memory) == Returns::Queued {
        return Ok(());
    }
    let clock = state.coverage.snapshot(stream.slot);
    let wait = Wait::for_point(&mut state, (stream.slot, sequence), clock)?;
    drop(state);
    wait.finish(engine)
}

fn line(context: Context, to: DevicePtr, value: Element, count: usize, stream: Option<Stream>) -> Result {
    let bytes = count.checked_mul(value.bytes as usize).ok_or(CuError::INVALID_VALUE)?;
    set(context, Place::line(to as usize), value, Shape::line(bytes), stream)
}

fn rows(
    context: Context,
    (to, pitch): (DevicePtr, usize),
    value: Element,
    (width, height): (usize, usize),
    stream: Option<Stream>,
) -> Result {
    let width = width.checked_mul(value.bytes as usize).ok_or(CuError::INVALID_VALUE)?;
    if height > 1 && (pitch < width || !pitch.is_multiple_of(value.bytes as usize)) {
        return Err(CuError::INVALID_VALUE);
    }
    let to = Place { address: to as usize, pitch, slice: 0 };
    set(context, to, value, Shape { width, height, depth: 1 }, stream)
}

macro_rules! memsets {
    ($($bytes:literal $type:ty: $one:ident $one_async:ident $two:ident $two_async:ident;)*) => {
        $(
            #[doc = concat!("`cuMemsetD…` with elements of ", $bytes, " bytes")]
            pub unsafe fn $one(context: Context, to: DevicePtr, value: $type, count: usize) -> Result {
                line(context, to, Element { bits: value.into(), bytes: $bytes }, count, None)
            }

            #[doc = concat!("`cuMemsetD…Async` with elements of ", $bytes, " bytes")]
            pub unsafe fn $one_async(
                context: Context,
                to: DevicePtr,
                value: $type,
                count: usize,
                stream: Stream,
            ) -> Result {
                line(context, to, Element { bits: value.into(), bytes: $bytes }, count, Some(stream))
            }

            #[doc = concat!("`cuMemsetD2D…` with elements of ", $bytes, " bytes")]
            pub unsafe fn $two(
                context: Context,
                to: DevicePtr,
                pitch: usize,
                value: $type,
                width: usize,
                height: usize,
            ) -> Result {
                rows(context, (to, pitch), Element { bits: value.into(), bytes: $bytes }, (width, height), None)
            }

            #[doc = concat!("`cuMemsetD2D…Async` with elements of ", $bytes, " bytes")]
            pub unsafe fn $two_async(
                context: Context,
                to: DevicePtr,
                pitch: usize,
                value: $type,
                width: usize,
                height: usize,
                stream: Stream,
            ) -> Result {
                rows(context, (to, pitch), Element { bits: value.into(), bytes: $bytes }, (width, height), Some(stream))
            }
        )*
    };
}

memsets! {
    1 u8: d8 d8_async d2d8 d2d8_async;
    2 u16: d16 d16_async d2d16 d2d16_async;
    4 u32: d32 d32_async d2d32 d2d32_async;
}
