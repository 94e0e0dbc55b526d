//! What each call does, as nodes of the event program.
//!
//! Every followed pointer among a call's arguments is dealt with here: it is part of the call's meaning, or an access that a model or the
//! callee's attributes promise, or a use that declines.

use super::Lowering;
use super::allocations::space;
use super::context::{GpuWork, call_facts};
use super::intrinsics::{Intrinsic, intrinsic};
use super::launches::placed;
use super::pointers::Pointer;
use crate::analysis::program::{
    Access, AccessKind, Allocator, BlemishKind, Copy, Event, ObjectId, Place, Range, Space, UseKind, WaitScope, Work,
    WorkKind,
};
use crate::analysis::symbolic::Sym;
use crate::calls::cuda::{CopyKind, Meaning, Row, Size, StreamArg};
use crate::calls::models::{Action, Model, Param};
use crate::calls::{Callee, classify};
use crate::ir::Value;
use crate::mutants::{Mutant, off};

/// Directions of a copy, as in `cudaMemcpyKind` of driver_types.h.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    HostToHost = 0,
    HostToDevice = 1,
    DeviceToHost = 2,
    DeviceToDevice = 3,
}

impl<'m> Lowering<'_, 'm> {
    /// What a call does.
    pub(super) fn call(&mut self, call: Value<'m>) -> Vec<Event> {
        let Some(callee) = call.called_function() else { return self.indirect_call(call) };
        let name = callee.name();
        if name.starts_with("llvm.") {
            return self.intrinsic(call, &name);
        }
        if !callee.is_declaration() {
            return if self.context.is_stub_call(call) {
                vec![self.stub_launch(call, callee)]
            } else {
                self.internal_call(call, callee)
            };
        }
        match classify(&name) {
            Callee::Cuda { row, per_thread } => self.cuda_call(call, row, per_thread),
            Callee::UnmodelledCuda => {
                self.blemish(call, BlemishKind::UnmodelledCudaCall(name.clone()), vec![]);
                self.unknown_call(call, name)
            }
            Callee::Modelled(model) => self.modelled_call(call, model, name),
            Callee::Unknown => self.unknown_call(call, name),
        }
    }

    /// The followed pointers among a call's arguments, except those in `handled`.
    pub(super) fn pointer_arguments(&self, call: Value<'m>, handled: &[u8]) -> Vec<(u32, Pointer)> {
        (0..call.argument_count())
            .filter(|index| !handled.iter().any(|handled| u32::from(*handled) == *index))
            .filter_map(|index| Some((index, self.pointers.get(call.argument(index)?)?.clone())))
            .collect()
    }

    /// Pointers that a call is given and that its meaning does not explain.
    pub(super) fn unexplained(&mut self, call: Value<'m>, handled: &[u8], name: &str) {
        for (_, pointer) in self.pointer_arguments(call, handled) {
            let kind = match name {
                "cudaHostRegister" | "cudaHostUnregister" => UseKind::Registered(name.to_owned()),
                "cudaPointerGetAttributes" | "cudaHostGetFlags" => UseKind::Observed(name.to_owned()),
                _ => UseKind::PassedTo(name.to_owned()),
            };
            self.record_use(call, pointer.object, kind);
        }
    }

    fn indirect_call(&mut self, call: Value<'m>) -> Vec<Event> {
        let assembly = call.called().is_some_and(Value::is_inline_asm);
        let name = if assembly { "inline assembly" } else { "a call through a pointer" };
        for (_, pointer) in self.pointer_arguments(call, &[]) {
            let kind = if assembly { UseKind::InlineAsm } else { UseKind::PassedTo(name.to_owned()) };
            self.record_use(call, pointer.object, kind);
        }
        if call_facts(call).summary.work != GpuWork::None || assembly {
            vec![Event::Opaque { launches: !assembly, name: name.to_owned() }]
        } else {
            Vec::new()
        }
    }

    fn unknown_call(&mut self, call: Value<'m>, name: String) -> Vec<Event> {
        self.unexplained(call, &[], &name);
        vec![Event::Opaque { launches: call_facts(call).summary.work != GpuWork::None, name }]
    }

    fn intrinsic(&mut self, call: Value<'m>, name: &str) -> Vec<Event> {
        let mut accesses = Vec::new();
        match intrinsic(name) {
            Intrinsic::Harmless | Intrinsic::PassesOn { .. } => {}
            what @ (Intrinsic::Copy | Intrinsic::Set) => {
                let length = call.argument(2).map(|length| self.atoms.length(length));
                let volatile = call.argument(3).is_none_or(|flag| !flag.is_null());
                for (index, pointer) in self.pointer_arguments(call, &[]) {
                    if volatile {
                        self.record_use(call, pointer.object, UseKind::VolatileOrAtomic);
                    }
                    let read = what == Intrinsic::Copy && index == 1;
                    let kind = if read { AccessKind::Read } else { AccessKind::Write };
                    accesses.push(self.host_access(call, &pointer, kind, length.clone(), true));
                }
                accesses.sort_by_key(|access| access.kind == AccessKind::Write);
            }
            what @ (Intrinsic::MaskedLoad | Intrinsic::MaskedStore) => {
                let kind = if what == Intrinsic::MaskedStore { AccessKind::Write } else { AccessKind::Read };
                for (_, pointer) in self.pointer_arguments(call, &[]) {
                    accesses.push(self.host_access(call, &pointer, kind, None, false));
                }
            }
            Intrinsic::Other => self.unexplained(call, &[], name),
        }
        host(accesses)
    }

    pub(super) fn host_access(
        &self,
        call: Value<'m>,
        pointer: &Pointer,
        kind: AccessKind,
        length: Option<Sym>,
        exactly: bool,
    ) -> Access {
        let range = self.range(pointer, length, call);
        let must = exactly && range != Range::Unknown && !pointer.maybe_null;
        Access { object: pointer.object, kind, range, must }
    }

    /// A function of this module that was not inlined.
    fn internal_call(&mut self, call: Value<'m>, callee: Value<'m>) -> Vec<Event> {
        let name = callee.name();
        let summary = if callee.is_interposable() { call_facts(call).summary } else { self.context.summary(callee) };
        for obstacle in summary.blemishes {
            self.blemish(call, obstacle.into(), vec![]);
        }
        let mut accesses = Vec::new();
        for (index, pointer) in self.pointer_arguments(call, &[]) {
            let effect = self.context.argument_effect(call, callee, index);
            if effect.keeps {
                self.record_use(call, pointer.object, UseKind::PassedTo(name.clone()));
                continue;
            }
            for (touches, kind) in [(effect.reads, AccessKind::Read), (effect.writes, AccessKind::Write)] {
                if touches {
                    accesses.push(self.host_access(call, &pointer, kind, None, false));
                }
            }
        }
        match summary.work {
            GpuWork::None => host(accesses),
            GpuWork::Known => {
                let work = self.other_work(call, &name);
                among(accesses, work)
            }
            GpuWork::Unknown => among(accesses, Event::Opaque { launches: true, name }),
        }
    }

    fn modelled_call(&mut self, call: Value<'m>, model: &Model, name: String) -> Vec<Event> {
        for obstacle in call_facts(call).summary.blemishes {
            self.blemish(call, obstacle.into(), vec![]);
        }
        match model.action {
            Action::Allocate { .. } => return self.allocation(call),
            Action::Free(pointer) => return self.free(call, pointer, &name, None, None),
            Action::Reallocate(pointer) => {
                if let Some(pointer) = call.argument(u32::from(pointer)).and_then(|value| self.pointers.get(value)) {
                    self.record_use(call, pointer.object, UseKind::Reallocated);
                }
                return Vec::new();
            }
            Action::None => {}
        }
        if let Some(library) = model.library {
            return self.library_call(call, model, library, name);
        }
        let mut accesses = Vec::new();
        for (index, pointer) in self.pointer_arguments(call, &[]) {
            match model.param(index as usize) {
                Some(param) if param.observes => self.record_use(call, pointer.object, UseKind::Observed(name.clone())),
                Some(param) if param.keeps && off(Mutant::CallsKeep) => {}
                Some(param) if !param.keeps && (param.reads || param.writes) => {
                    accesses.extend(self.modelled_access(call, &pointer, param));
                }
                _ => self.record_use(call, pointer.object, UseKind::PassedTo(name.clone())),
            }
        }
        accesses.sort_by_key(|access| access.kind == AccessKind::Write);
        if model.callback { among(accesses, Event::Opaque { launches: true, name }) } else { host(accesses) }
    }

    fn modelled_access(&mut self, call: Value<'m>, pointer: &Pointer, param: &Param) -> Vec<Access> {
        let length = param.length.as_ref().and_then(|product| {
            product.iter().try_fold(Sym::constant(1), |length, index| {
                length.mul(&self.atoms.length(call.argument(u32::from(*index))?))
            })
        });
        let mut accesses = Vec::new();
        for (touches, kind) in [(param.reads, AccessKind::Read), (param.writes, AccessKind::Write)] {
            if touches {
                accesses.push(self.host_access(call, pointer, kind, length.clone(), param.exactly));
            }
        }
        accesses
    }

    fn allocation(&mut self, call: Value<'m>) -> Vec<Event> {
        self.objects.get(&call).map(|object| Event::Alloc(*object)).into_iter().collect()
    }

    fn free(
        &mut self,
        call: Value<'m>,
        argument: u8,
        name: &str,
        waits: Option<WaitScope>,
        stream: Option<(StreamArg, bool)>,
    ) -> Vec<Event> {
        self.unexplained(call, &[argument], name);
        let Some(pointer) = call.argument(u32::from(argument)).and_then(|value| self.pointers.get(value)).cloned()
        else {
            // Freeing something else, or null, touches nothing of ours; whether it waits is not relied on.
            return Vec::new();
        };
        let object = pointer.object;
        let allocator = self.allocations[object.0 as usize].allocator;
        let releases = releases(name, allocator) || off(Mutant::CallsRelease);
        if pointer.offset != Some(Sym::default()) || !releases {
            self.record_use(call, object, UseKind::PassedTo(name.to_owned()));
            return Vec::new();
        }
        let stream = stream.map(|(stream, per_thread)| self.stream_of(call, stream, per_thread));
        vec![Event::Free { object, waits, stream, may_be_null: pointer.maybe_null }]
    }

    fn cuda_call(&mut self, call: Value<'m>, row: &'static Row, per_thread: bool) -> Vec<Event> {
        let name = row.name;
        let (event, handled): (Option<Event>, Vec<u8>) = match placed(row.meaning, call) {
            Meaning::Allocate { .. } | Meaning::MallocPitch { .. } => (self.allocation(call).pop(), vec![]),
            Meaning::Free { pointer, waits, stream } => {
                let waits = waits.then_some(WaitScope::Device);
                return self.free(call, pointer, name, waits, stream.map(|stream| (stream, per_thread)));
            }
            Meaning::Copy { dst, src, bytes, kind, stream, asynchronous } => {
                (Some(self.copy(call, dst, src, bytes, kind, (stream, per_thread), asynchronous)), vec![dst, src])
            }
            Meaning::SymbolCopy { pointer, bytes, kind, stream, asynchronous } => {
                (Some(self.symbol_copy(call, pointer, bytes, kind, (stream, per_thread), asynchronous)), vec![pointer])
            }
            Meaning::Memset { dst, bytes, stream } => {
                let stream = self.stream_of(call, stream, per_thread);
                let mut work = Work {
                    name: name.to_owned(),
                    kind: WorkKind::Memset,
                    accesses: vec![],
                    touches_captured: false,
                    captures: vec![],
                };
                if let Some(pointer) = call.argument(u32::from(dst)).and_then(|value| self.pointers.get(value)).cloned()
                {
                    let length =
                        bytes.and_then(|bytes| call.argument(u32::from(bytes))).map(|bytes| self.atoms.length(bytes));
                    if pointer.maybe_null {
                        self.blemish(call, BlemishKind::AmbiguousSlot, vec![pointer.object]);
                    }
                    work.accesses.push(self.host_access(call, &pointer, AccessKind::Write, length, true));
                }
                (Some(Event::Enqueue { stream, work }), vec![dst])
            }
            Meaning::Launch { function, args, stream, .. } => {
                (Some(self.launch(call, function, args, stream, per_thread)), vec![])
            }
            Meaning::WaitDevice => (Some(Event::Wait(WaitScope::Device)), vec![]),
            Meaning::WaitStream { stream } => {
                let stream = self.stream_of(call, StreamArg::Arg(stream), per_thread);
                (Some(Event::Wait(WaitScope::Stream(stream))), vec![])
            }
            Meaning::WaitEvent { event } => {
                let event = call.argument(u32::from(event)).map(|handle| self.cuda_event(handle, call));
                (event.map(|event| Event::Wait(WaitScope::Event(event))), vec![])
            }
            Meaning::Record { event, stream } => {
                let stream = self.stream_of(call, stream, per_thread);
                let event = call.argument(u32::from(event)).map(|handle| self.cuda_event(handle, call));
                (event.map(|event| Event::Record { event, stream }), vec![])
            }
            Meaning::StreamWait { stream, event } => {
                let stream = self.stream_of(call, StreamArg::Arg(stream), per_thread);
                let event = call.argument(u32::from(event)).map(|handle| self.cuda_event(handle, call));
                (event.map(|event| Event::StreamWait { stream, event }), vec![])
            }
            Meaning::OtherWork => (Some(self.other_work(call, name)), vec![]),
            Meaning::DeviceReset => {
                self.blemish(call, BlemishKind::DeviceReset, vec![]);
                (None, vec![])
            }
            Meaning::StreamCapture => {
                self.blemish(call, BlemishKind::StreamCapture, vec![]);
                (None, vec![])
            }
            Meaning::PushConfiguration { .. }
            | Meaning::PopConfiguration { .. }
            | Meaning::CreateStream { .. }
            | Meaning::CreateEvent { .. }
            | Meaning::SelectDevice { .. }
            | Meaning::Harmless
            | Meaning::Keeps => (None, vec![]),
        };
        self.unexplained(call, &handled, name);
        event.into_iter().collect()
    }

    #[expect(clippy::too_many_arguments, reason = "one row of the table, taken apart")]
    fn copy(
        &mut self,
        call: Value<'m>,
        dst: u8,
        src: u8,
        bytes: Size,
        kind: CopyKind,
        stream: (StreamArg, bool),
        asynchronous: bool,
    ) -> Event {
        let length = self.size(call, bytes);
        let kind = match kind {
            CopyKind::Arg(kind) => call.argument(u32::from(kind)).and_then(Value::constant_uint),
            CopyKind::ToSymbol | CopyKind::FromSymbol => None,
        };
        let (to, to_space) = self.place(call, dst, length.clone());
        let (from, from_space) = self.place(call, src, length);
        let direction = direction(kind, from_space, to_space);
        if direction.is_none() && !off(Mutant::CallsDirection) {
            let objects: Vec<_> = [&to, &from].into_iter().filter_map(|place| place.object).collect();
            if !objects.is_empty() {
                self.blemish(call, BlemishKind::CopyDirection, objects);
            }
        }
        let stream = self.stream_of(call, stream.0, stream.1);
        let (waits_before, waits_after, host_source_consumed) = self.copy_waits(direction, from.object, asynchronous);
        Event::Copy(Copy { dst: to, src: from, stream, waits_before, waits_after, host_source_consumed })
    }

    /// How many bytes from the pointers on a copy moves; `None` where there are gaps between its rows, or may be.
    fn size(&mut self, call: Value<'m>, size: Size) -> Option<Sym> {
        let mut bytes = |argument: u8| call.argument(u32::from(argument)).map(|bytes| self.atoms.length(bytes));
        match size {
            Size::Arg(argument) => bytes(argument),
            Size::Rows { dst_pitch, src_pitch, width, height } => {
                let (width, height) = (bytes(width)?, bytes(height)?);
                for pitch in [dst_pitch, src_pitch].into_iter().flatten() {
                    bytes(pitch).filter(|pitch| *pitch == width)?;
                }
                width.mul(&height)
            }
        }
    }

    /// GPU work on memory that is not named here, on a stream that is not known.
    fn other_work(&mut self, call: Value<'m>, name: &str) -> Event {
        let stream = self.unknown_stream(call);
        let kind = WorkKind::Library;
        let work = Work { name: name.to_owned(), kind, accesses: vec![], touches_captured: true, captures: vec![] };
        Event::Enqueue { stream, work }
    }

    /// "API synchronization behavior", as (waits before, waits after, host source read on return).
    fn copy_waits(
        &self,
        direction: Option<Direction>,
        source: Option<ObjectId>,
        asynchronous: bool,
    ) -> (bool, bool, bool) {
        match direction {
            _ if asynchronous && !off(Mutant::CallsAsynchronous) => (false, false, false),
            None | Some(Direction::DeviceToDevice) => (false, false, false),
            // From page-locked memory the call is synchronous; from pageable memory it returns once the data is staged. Memory that is not
            // known may be either.
            Some(Direction::HostToDevice) => {
                let pinned =
                    source.is_some_and(|object| self.allocations[object.0 as usize].allocator == Allocator::PinnedHost);
                (true, pinned || off(Mutant::CallsStagedUpload), true)
            }
            Some(Direction::DeviceToHost | Direction::HostToHost) => (true, true, true),
        }
    }

    fn symbol_copy(
        &mut self,
        call: Value<'m>,
        pointer: u8,
        bytes: Size,
        kind: CopyKind,
        stream: (StreamArg, bool),
        asynchronous: bool,
    ) -> Event {
        let length = self.size(call, bytes);
        let (place, space) = self.place(call, pointer, length);
        let symbol = Place { object: None, range: Range::Unknown };
        let to_symbol = kind == CopyKind::ToSymbol;
        let direction = match (to_symbol, space) {
            (_, Some(Space::Device)) => Direction::DeviceToDevice,
            (true, _) => Direction::HostToDevice,
            (false, _) => Direction::DeviceToHost,
        };
        let (waits_before, waits_after, host_source_consumed) =
            self.copy_waits(Some(direction), place.object, asynchronous);
        let (dst, src) = if to_symbol { (symbol, place) } else { (place, symbol) };
        let stream = self.stream_of(call, stream.0, stream.1);
        Event::Copy(Copy { dst, src, stream, waits_before, waits_after, host_source_consumed })
    }

    fn place(&mut self, call: Value<'m>, argument: u8, length: Option<Sym>) -> (Place, Option<Space>) {
        let Some(pointer) = call.argument(u32::from(argument)).and_then(|value| self.pointers.get(value)).cloned()
        else {
            return (Place { object: None, range: Range::Unknown }, None);
        };
        if pointer.maybe_null {
            // A copy from or to null is an error that the program can see, or copies nothing.
            self.blemish(call, BlemishKind::AmbiguousSlot, vec![pointer.object]);
        }
        let range = self.range(&pointer, length, call);
        let space = space(self.allocations[pointer.object.0 as usize].allocator);
        (Place { object: Some(pointer.object), range }, Some(space))
    }
}

/// A call that touches buffers and may start GPU work, in an order that is not known: its work may be running when it touches them, and
/// behind the call.
fn among(accesses: Vec<Access>, work: Event) -> Vec<Event> {
    if accesses.is_empty() { vec![work] } else { vec![work.clone(), Event::Host(accesses), work] }
}

fn host(accesses: Vec<Access>) -> Vec<Event> {
    if accesses.is_empty() { Vec::new() } else { vec![Event::Host(accesses)] }
}

/// The direction of a copy: what it says (`kind`), if that fits what is known of the two sides; `cudaMemcpyDefault` goes by both sides.
fn direction(kind: Option<u64>, from: Option<Space>, to: Option<Space>) -> Option<Direction> {
    const DEFAULT: u64 = 4;
    let all = [Direction::HostToHost, Direction::HostToDevice, Direction::DeviceToHost, Direction::DeviceToDevice];
    let fits = |direction: Direction| {
        let (source, target) = match direction {
            Direction::HostToHost => (Space::Host, Space::Host),
            Direction::HostToDevice => (Space::Host, Space::Device),
            Direction::DeviceToHost => (Space::Device, Space::Host),
            Direction::DeviceToDevice => (Space::Device, Space::Device),
        };
        let side = |known: Option<Space>, needed| known.is_none_or(|known| known == needed || known == Space::Both);
        side(from, source) && side(to, target)
    };
    match kind? {
        DEFAULT => {
            let (from, to) = (from.filter(|space| *space != Space::Both)?, to.filter(|space| *space != Space::Both)?);
            let (from, to) = (from == Space::Device, to == Space::Device);
            all.into_iter().find(|direction| *direction as u64 == u64::from(from) * 2 + u64::from(to))
        }
        kind => all.into_iter().find(|direction| *direction as u64 == kind).filter(|direction| fits(*direction)),
    }
}

/// Does the function release what the allocator made? (A mismatch is an error or undefined.)
fn releases(function: &str, allocator: Allocator) -> bool {
    match allocator {
        Allocator::Malloc | Allocator::Calloc | Allocator::AlignedAlloc => matches!(function, "free" | "cfree"),
        Allocator::OperatorNew => function.starts_with("_Zd"),
        Allocator::PinnedHost => function == "cudaFreeHost",
        Allocator::CudaMalloc | Allocator::CudaMallocManaged => function == "cudaFree",
        Allocator::CudaMallocAsync => matches!(function, "cudaFree" | "cudaFreeAsync"),
        Allocator::Foreign => false,
    }
}
