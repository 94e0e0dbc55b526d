//! Streams and CUDA events: which one a handle names.

use std::collections::HashMap;

use super::Lowering;
use super::allocations::POINTER_BYTES;
use super::slots::{Cell, Definition};
use crate::analysis::program::{CudaEvent, CudaEventId, Program, Stream, StreamId};
use crate::calls::cuda::{Meaning, StreamArg};
use crate::calls::{Callee, classify};
use crate::ir::{Opcode, Value};
use crate::mutants::{Mutant, off};

/// `cudaStreamLegacy` and `cudaStreamPerThread` of driver_types.h.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;
/// `cudaStreamNonBlocking` of driver_types.h.
const NON_BLOCKING: u64 = 1;

/// How the program names a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum StreamHandle<'m> {
    /// The legacy default stream.
    Legacy,
    /// The per-thread default stream.
    PerThread,
    /// What this call created.
    Created(Value<'m>),
    /// An argument of the function: the same stream wherever it is used, but of which kind is not known.
    Argument(Value<'m>),
    /// The handle at one place; another place may name another stream.
    At(Value<'m>),
}

/// The streams and events of a function, as they are met.
#[derive(Default)]
pub(super) struct Handles<'m> {
    streams: Vec<Stream>,
    stream_ids: HashMap<StreamHandle<'m>, StreamId>,
    events: Vec<CudaEvent>,
    event_ids: HashMap<Value<'m>, CudaEventId>,
}

impl<'m> Handles<'m> {
    /// Gives the program its tables.
    pub(super) fn give(self, program: &mut Program) {
        program.streams = self.streams;
        program.cuda_events = self.events;
    }

    fn stream(&mut self, handle: StreamHandle<'m>, stream: Stream) -> StreamId {
        *self.stream_ids.entry(handle).or_insert_with(|| {
            self.streams.push(stream);
            StreamId(u32::try_from(self.streams.len() - 1).unwrap_or(u32::MAX))
        })
    }
}

impl<'m> Lowering<'_, 'm> {
    /// The stream that a call runs on.
    pub(super) fn stream_of(&mut self, call: Value<'m>, argument: StreamArg, per_thread: bool) -> StreamId {
        match argument {
            StreamArg::Default => self.default_stream(per_thread),
            StreamArg::Arg(index) => match call.argument(u32::from(index)) {
                Some(handle) => self.stream(handle, per_thread, call),
                None => self.unknown_stream(call),
            },
        }
    }

    pub(super) fn default_stream(&mut self, per_thread: bool) -> StreamId {
        if per_thread {
            self.handles.stream(StreamHandle::PerThread, Stream::PerThreadDefault)
        } else {
            self.handles.stream(StreamHandle::Legacy, Stream::LegacyDefault)
        }
    }

    /// A stream of which nothing is known, met at `place`.
    pub(super) fn unknown_stream(&mut self, place: Value<'m>) -> StreamId {
        self.handles.stream(StreamHandle::At(place), Stream::Unknown)
    }

    /// The stream that a handle names, in a call at `place`.
    pub(super) fn stream(&mut self, handle: Value<'m>, per_thread: bool, place: Value<'m>) -> StreamId {
        if handle.is_null() {
            return self.default_stream(per_thread);
        }
        if handle.opcode() == Some(Opcode::LLVMIntToPtr) && handle.is_constant() {
            match handle.operand(0).and_then(Value::constant_uint) {
                Some(LEGACY) => return self.default_stream(false),
                Some(PER_THREAD) => return self.default_stream(true),
                _ => {}
            }
        }
        if handle.is_argument() {
            return self.handles.stream(StreamHandle::Argument(handle), Stream::Unknown);
        }
        // A call in a loop creates many streams.
        let created =
            self.created(handle).filter(|(create, _)| !self.flow.repeats(*create) || off(Mutant::LowerStreamOfRound));
        let Some((create, _)) = created else { return self.unknown_stream(place) };
        match meaning(create) {
            Some(Meaning::CreateStream { flags, .. }) => {
                let kind = match flags.map(|flags| create.argument(u32::from(flags)).and_then(Value::constant_uint)) {
                    None | Some(Some(0)) => Stream::Blocking,
                    Some(Some(NON_BLOCKING)) => Stream::NonBlocking,
                    Some(_) => Stream::Unknown,
                };
                self.handles.stream(StreamHandle::Created(create), kind)
            }
            _ => self.unknown_stream(place),
        }
    }

    /// The CUDA event that a handle names. Events that are not known to be one and the same get an id of their own, not unique.
    pub(super) fn cuda_event(&mut self, handle: Value<'m>, place: Value<'m>) -> CudaEventId {
        let created = self.created(handle).filter(|(create, cell)| {
            !self.flow.repeats(*create)
                && matches!(meaning(*create), Some(Meaning::CreateEvent { .. }))
                && !self.slots.leaks(*cell, POINTER_BYTES)
                && (self.slots.loads(cell.alloca).all(stays_in_cuda_calls) || off(Mutant::LowerEventShared))
        });
        let (key, unique) = created.map_or((place, false), |(create, _)| (create, true));
        *self.handles.event_ids.entry(key).or_insert_with(|| {
            self.handles.events.push(CudaEvent { unique });
            CudaEventId(u32::try_from(self.handles.events.len() - 1).unwrap_or(u32::MAX))
        })
    }

    /// The one call that made what the handle names, and the slot that holds it.
    fn created(&self, handle: Value<'m>) -> Option<(Value<'m>, Cell<'m>)> {
        if handle.opcode() != Some(Opcode::LLVMLoad) {
            return None;
        }
        let cell = self.slots.cell(self.module, handle.operand(0)?)?;
        let [Definition::Call(create)] = self.slots.reaching(cell, POINTER_BYTES, handle, self.flow)[..] else {
            return None;
        };
        Some((create, cell))
    }
}

/// What a call of the CUDA runtime means.
fn meaning(call: Value<'_>) -> Option<Meaning> {
    let callee = call.called_function().filter(|callee| callee.is_declaration())?;
    match classify(&callee.name()) {
        Callee::Cuda { row, .. } => Some(row.meaning),
        _ => None,
    }
}

/// Is a handle only given to calls that the table knows? Nobody else can then record the event.
fn stays_in_cuda_calls(handle: Value<'_>) -> bool {
    handle.uses().iter().all(|usage| {
        (usage.user.opcode() == Some(Opcode::LLVMICmp))
            || (meaning(usage.user).is_some() && usage.operand < usage.user.argument_count())
    })
}
