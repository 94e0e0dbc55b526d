//! Kernel launches: which kernel, with which pointers, on which stream.
//!
//! `k<<<g, b, m, s>>>(d, n)` is a call of `__cudaPushCallConfiguration`, then of a host stub with the kernel's arguments. The stub takes
//! the configuration back, puts the addresses of its arguments into an array, and calls `cudaLaunchKernel`. It may have been inlined.
//!
//! Grid and block are structures of three numbers. On x86-64 each is passed as two integers (which is what the rows of `calls` count), on
//! AArch64 as one array of two.

use super::allocations::{Delivery, POINTER_BYTES};
use super::flow::{Flow, Marks};
use super::grids::Configuration;
use super::pointers::Pointer;
use super::slots::{Cell, Definition};
use super::{Context, Lowering, sites};
use crate::analysis::program::{Access, AccessKind, Event, ObjectId, Range, Site, StreamId, UseKind, Work, WorkKind};
use crate::analysis::symbolic::Sym;
use crate::calls::cuda::Meaning;
use crate::calls::{Callee, classify};
use crate::effects::{KernelEffects, ParamEffect};
use crate::ir::{Block, Opcode, Value};
use crate::mutants::{Mutant, off};

/// One argument of a launch.
#[derive(Default)]
pub(super) struct KernelArgument<'m> {
    /// The followed pointers that it may be; one, unless ways meet.
    pointers: Vec<Pointer>,
    /// Its value, where that is certain.
    pub value: Option<Value<'m>>,
}

impl<'m> Lowering<'_, 'm> {
    /// `cudaLaunchKernel(function, …, args, …, stream)`.
    pub(super) fn launch(
        &mut self,
        call: Value<'m>,
        function: u8,
        args: u8,
        stream: Option<u8>,
        per_thread: bool,
    ) -> Event {
        let stub = call.argument(u32::from(function)).filter(|stub| stub.is_function());
        let name = stub.map_or_else(|| "a kernel chosen at run time".to_owned(), |stub| self.context.kernel_name(stub));
        let stream = match stream.and_then(|stream| call.argument(u32::from(stream))) {
            Some(handle) => self.launch_stream(handle, per_thread, call),
            None => self.unknown_stream(call),
        };
        let array = call.argument(u32::from(args)).and_then(|array| self.slots.cell(self.module, array));
        let arguments = array.map(|array| self.array_arguments(array, call));
        if let (Some(None), false) = (&arguments, off(Mutant::LowerArgumentsEscape)) {
            self.arguments_escape(call);
        }
        let arguments = arguments.flatten();
        let record = stub.and_then(|stub| self.context.kernel_effects(stub)).filter(|_| arguments.is_some());
        let configuration = self.configuration(call);
        self.kernel(call, name, stream, &arguments.unwrap_or_default(), record, configuration)
    }

    /// A call of a stub that was not inlined.
    pub(super) fn stub_launch(&mut self, call: Value<'m>, stub: Value<'m>) -> Event {
        let name = self.context.kernel_name(stub);
        let stream = self.configured_stream(call, launches_per_thread(stub));
        let count = call.argument_count();
        // A structure may have been spread over several arguments, or passed as a hidden copy: the positions then say nothing.
        let spread = (0..count).any(|index| call.argument_effect(index).copied);
        let record = self.context.kernel_effects(stub).filter(|_| !spread);
        let arguments: Vec<_> = (0..count)
            .map(|index| {
                let value = call.argument(index);
                let pointer = value.and_then(|value| self.pointers.get(value)).cloned();
                KernelArgument { pointers: pointer.into_iter().collect(), value }
            })
            .collect();
        // A stub launches with what it takes back.
        let configuration = self.pushed_before(call).and_then(pushed);
        self.kernel(call, name, stream, &arguments, record, configuration)
    }

    /// `record`: what the kernel does, if that is known. It is believed where it has the parameters that the launch has arguments.
    fn kernel(
        &mut self,
        call: Value<'m>,
        name: String,
        stream: StreamId,
        arguments: &[KernelArgument<'m>],
        record: Option<&KernelEffects>,
        configuration: Option<Configuration<'m>>,
    ) -> Event {
        let record = record.filter(|record| record.params.len() == arguments.len());
        let touches_captured = record.map_or(!off(Mutant::LowerNoRecordCaptures), |record| record.touches_other_memory);
        let mut work = Work { name, kind: WorkKind::Launch, accesses: vec![], touches_captured, captures: vec![] };
        for (argument, index) in arguments.iter().zip(0..) {
            for pointer in &argument.pointers {
                // A pointer where the record says that there is none is one of a structure's.
                let unknown = if off(Mutant::LowerUnknownEffect) { ParamEffect::NOTHING } else { ParamEffect::UNKNOWN };
                let effect = record.and_then(|record| record.params[index]).unwrap_or(unknown);
                let certain = argument.value.is_some();
                let written = effect
                    .writes_all
                    .filter(|_| certain)
                    .and_then(|claim| self.written_length(&claim, arguments, configuration));
                self.kernel_argument(call, pointer, effect, written, &mut work);
            }
        }
        Event::Enqueue { stream, work }
    }

    /// `written`: how many bytes from the pointer on the launch is certain to write.
    fn kernel_argument(
        &mut self,
        call: Value<'m>,
        pointer: &Pointer,
        effect: ParamEffect,
        written: Option<Sym>,
        work: &mut Work,
    ) {
        let object = pointer.object;
        let mut access = |kind, range, must| work.accesses.push(Access { object, kind, range, must });
        if effect.reads {
            access(AccessKind::Read, Range::Unknown, false);
        }
        if effect.writes {
            let range = self.range(pointer, written, call);
            let must = range != Range::Unknown && !pointer.maybe_null;
            access(AccessKind::Write, if must { range } else { Range::Unknown }, must);
        }
        if effect.captures && !work.captures.contains(&object) {
            work.captures.push(object);
        }
    }

    /// The arguments that an array of their addresses names; `None` if it is not understood.
    fn array_arguments(&self, array: Cell<'m>, launch: Value<'m>) -> Option<Vec<KernelArgument<'m>>> {
        if array.offset != 0 || !self.slots.is_argument_array(array.alloca) {
            return None;
        }
        let mut arguments = Vec::new();
        for (offset, index) in self.slots.stored_offsets(array.alloca).into_iter().zip(0..) {
            if offset != index * POINTER_BYTES {
                return None;
            }
            let element = Cell { offset, ..array };
            let [Definition::Store(store)] = self.slots.reaching(element, POINTER_BYTES, launch, self.flow)[..] else {
                return None;
            };
            // An argument in memory that is no slot: a pointer there has escaped already.
            let argument = match self.slots.cell(self.module, store.operand(0)?) {
                Some(cell) => self.argument_in(cell, launch),
                None => KernelArgument::default(),
            };
            arguments.push(argument);
        }
        Some(arguments)
    }

    /// What an argument's slot may hold at the launch.
    fn argument_in(&self, cell: Cell<'m>, launch: Value<'m>) -> KernelArgument<'m> {
        let length = self.slots.width_at(cell).unwrap_or(POINTER_BYTES);
        let definitions = self.slots.reaching(cell, length, launch, self.flow);
        let mut argument = KernelArgument::default();
        for definition in &definitions {
            match definition {
                Definition::Store(store) => {
                    let Some(value) = store.operand(0) else { continue };
                    argument.pointers.extend(self.pointers.get(value).cloned());
                    argument.value = (definitions.len() == 1).then_some(value);
                }
                Definition::Call(call) => {
                    argument.pointers.extend(self.objects.get(call).map(|object| Pointer {
                        object: *object,
                        offset: Some(Sym::default()),
                        maybe_null: definitions.len() > 1,
                    }));
                }
                // Bytes from elsewhere: a followed pointer among them has been recorded as stored.
                Definition::Nothing | Definition::Zero(_) | Definition::Unknown(_) => {}
            }
        }
        argument
    }

    /// It is not clear what a launch is given: every pointer that is in an argument's slot escapes.
    fn arguments_escape(&mut self, launch: Value<'m>) {
        let mut escaped: Vec<ObjectId> = self
            .allocations
            .iter()
            .zip(0..)
            .filter(|(allocation, _)| {
                matches!(allocation.delivery, Delivery::Slot(cell) if self.slots.is_argument(cell.alloca))
            })
            .map(|(_, id)| ObjectId(id))
            .collect();
        for (value, pointer) in self.pointers.values() {
            let stored = value.uses().iter().any(|usage| {
                usage.user.opcode() == Some(Opcode::LLVMStore)
                    && usage.operand == 0
                    && usage
                        .user
                        .operand(1)
                        .and_then(|address| self.slots.cell(self.module, address))
                        .is_some_and(|cell| self.slots.is_argument(cell.alloca))
            });
            if stored {
                escaped.push(pointer.object);
            }
        }
        escaped.sort_unstable();
        escaped.dedup();
        for object in escaped {
            self.record_use(launch, object, UseKind::Stored);
        }
    }

    /// The stream operand of `cudaLaunchKernel` inside an inlined stub is loaded from the variable that `__cudaPopCallConfiguration` wrote.
    fn launch_stream(&mut self, handle: Value<'m>, per_thread: bool, launch: Value<'m>) -> StreamId {
        match self.popped_at(handle) {
            Some(pop) => self.configured_stream(pop, per_thread),
            None => self.stream(handle, per_thread, launch),
        }
    }

    /// The call of `__cudaPopCallConfiguration` that a stream operand comes from.
    fn popped_at(&self, handle: Value<'m>) -> Option<Value<'m>> {
        let address = handle.operand(0).filter(|_| handle.opcode() == Some(Opcode::LLVMLoad))?;
        let cell = self.slots.cell(self.module, address)?;
        match self.slots.reaching(cell, POINTER_BYTES, handle, self.flow)[..] {
            [Definition::Call(pop)] if is_pop(pop) => Some(pop),
            _ => None,
        }
    }

    /// The configuration of `cudaLaunchKernel(function, grid, …, block, …)`: its own operands, or, inside an inlined stub, which loads them
    /// from the variables that `__cudaPopCallConfiguration` wrote, what was pushed.
    fn configuration(&self, launch: Value<'m>) -> Option<Configuration<'m>> {
        let Callee::Cuda { row, .. } = classify(&launch.called_function()?.name()) else { return None };
        let Meaning::Launch { configured: Some((grid, block)), .. } = placed(row.meaning, launch) else { return None };
        let (grid, block) =
            (first_half(launch.argument(u32::from(grid))?)?, first_half(launch.argument(u32::from(block))?)?);
        match (self.taken_back(grid, 0), self.taken_back(block, 1)) {
            (Some(pop), Some(same)) if pop == same => pushed(self.pushed_before(pop)?),
            _ => Some(Configuration { grid, block }),
        }
    }

    /// The call of `__cudaPopCallConfiguration` whose argument of that index points to what the value was loaded from.
    fn taken_back(&self, value: Value<'m>, argument: u32) -> Option<Value<'m>> {
        let address = value.operand(0).filter(|_| value.opcode() == Some(Opcode::LLVMLoad))?;
        let cell = self.slots.cell(self.module, address)?;
        match self.slots.reaching(cell, POINTER_BYTES, value, self.flow)[..] {
            [Definition::Unknown(pop)] if is_pop(pop) => {
                let written = self.slots.cell(self.module, pop.argument(argument)?)?;
                (written == cell).then_some(pop)
            }
            _ => None,
        }
    }

    /// The stream of the `<<<…>>>` that is in force at a stub's call, or where the inlined stub takes it back.
    fn configured_stream(&mut self, at: Value<'m>, per_thread: bool) -> StreamId {
        if let Some(push) = self.pushed_before(at)
            && let Some(Meaning::PushConfiguration { stream, .. }) = configuration(push)
            && let Some(handle) = push.argument(u32::from(stream))
        {
            return self.stream(handle, per_thread, push);
        }
        self.unknown_stream(at)
    }

    /// The one `<<<…>>>` that is in force at a place.
    fn pushed_before(&self, at: Value<'m>) -> Option<Value<'m>> {
        let push =
            |call: Value<'m>| matches!(configuration(call), Some(Meaning::PushConfiguration { .. })).then_some(call);
        match self.flow.backwards(at, &self.configurations, |call| Some(push(call)), None)[..] {
            [found] => found,
            [found, ..] if off(Mutant::LowerOneConfiguration) => found,
            _ => None,
        }
    }

    /// Where a user sees an instruction: a launch stands where its `<<<…>>>` is, not in the stub that was inlined there.
    pub(super) fn site(&self, instruction: Value<'m>) -> Site {
        let configured = match instruction.called_function().map(|callee| classify(&callee.name())) {
            Some(Callee::Cuda { row, .. }) => match placed(row.meaning, instruction) {
                Meaning::Launch { stream: Some(stream), .. } => instruction
                    .argument(u32::from(stream))
                    .and_then(|handle| self.popped_at(handle))
                    .and_then(|pop| self.pushed_before(pop)),
                _ => None,
            },
            _ => None,
        };
        sites::site(configured.unwrap_or(instruction))
    }
}

/// The calls that set a launch's configuration, take it back, or use it up.
pub(super) fn configurations<'m>(context: &Context<'m>, flow: &Flow<'m>) -> Marks<'m> {
    flow.blocks()
        .iter()
        .copied()
        .flat_map(Block::instructions)
        .filter(|call| configuration(*call).is_some() || context.is_stub_call(*call))
        .collect()
}

fn configuration(call: Value<'_>) -> Option<Meaning> {
    let callee = call.called_function().filter(|callee| callee.is_declaration())?;
    match classify(&callee.name()) {
        Callee::Cuda { row, .. } => {
            matches!(row.meaning, Meaning::PushConfiguration { .. } | Meaning::PopConfiguration { .. })
                .then_some(placed(row.meaning, call))
        }
        _ => None,
    }
}

/// What a `<<<…>>>` says of grid and block.
fn pushed(push: Value<'_>) -> Option<Configuration<'_>> {
    let Meaning::PushConfiguration { grid, block, .. } = configuration(push)? else { return None };
    Some(Configuration {
        grid: first_half(push.argument(u32::from(grid))?)?,
        block: first_half(push.argument(u32::from(block))?)?,
    })
}

/// A call's meaning, with the positions that its arguments have: where grid and block take one each, what follows moves up.
pub(super) fn placed(meaning: Meaning, call: Value<'_>) -> Meaning {
    let is_one = |grid: u8| call.argument(u32::from(grid)).is_some_and(|grid| grid.ty().element().is_some());
    match meaning {
        Meaning::Launch { function, args, stream, configured: Some((grid, block)) } if is_one(grid) => {
            Meaning::Launch {
                function,
                args: args - 2,
                stream: stream.map(|stream| stream - 2),
                configured: Some((grid, block - 1)),
            }
        }
        Meaning::PushConfiguration { grid, block, stream } if is_one(grid) => {
            Meaning::PushConfiguration { grid, block: block - 1, stream: stream - 2 }
        }
        other => other,
    }
}

/// x and y of a grid or block, of one value or two; `None` if its parts are not in sight.
fn first_half(value: Value<'_>) -> Option<Value<'_>> {
    if value.ty().element().is_none() {
        return Some(value);
    }
    let mut whole = value;
    while whole.is_instruction() && whole.opcode() == Some(Opcode::LLVMInsertValue) {
        if whole.inserts_first() {
            return whole.operand(1);
        }
        whole = whole.operand(0)?;
    }
    whole.constant_element(0)
}

fn is_pop(call: Value<'_>) -> bool {
    matches!(configuration(call), Some(Meaning::PopConfiguration { .. }))
}

/// Does a stub launch with the per-thread default stream for null?
fn launches_per_thread(stub: Value<'_>) -> bool {
    stub.instructions().filter_map(Value::called_function).any(|callee| {
        matches!(classify(&callee.name()), Callee::Cuda { row, per_thread: true } if matches!(row.meaning, Meaning::Launch { .. }))
    })
}

/// Is a defined function a kernel's host stub: does it take the configuration back, launch once, and do nothing else that matters?
pub(super) fn is_stub(function: Value<'_>) -> bool {
    let (mut pops, mut launches) = (0, 0);
    for call in function.instructions().filter(|instruction| instruction.is_call()) {
        let Some(callee) = call.called_function().filter(|callee| callee.is_declaration()) else { return false };
        let name = callee.name();
        // nvcc's stubs ask for the kernel's handle once, behind the guard of a static variable.
        if name.starts_with("llvm.") || name.starts_with("__cxa_guard_") || name == "__cudaGetKernel" {
            continue;
        }
        match classify(&name) {
            Callee::Cuda { row, .. } => match row.meaning {
                Meaning::PopConfiguration { .. } => pops += 1,
                Meaning::Launch { .. } => launches += 1,
                _ => return false,
            },
            _ => return false,
        }
    }
    pops == 1 && launches == 1
}
