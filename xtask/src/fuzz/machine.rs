//! The abstract machine: runs a program on one input, exactly, and says what it prints, or why it has no meaning.
//!
//! It keeps the value of each element and whether it was ever written, which memory is alive, and (in `order`) which GPU work is certain to
//! be done. A program that it accepts has no race, reads nothing that was never written (copies between host and device may move such
//! bytes) and touches no memory that is gone; so it has one output, whatever the device does. That is the premise of the theorem, and
//! the output is known before anything is compiled.

use super::edit;
use super::language::{
    Action, BufferId, Condition, Count, Input, Kind, Memory, Program, Range, Scope, Stmt, StmtId, StreamId, StreamKind,
};
use super::order::{OpId, Order, Set};

/// Statements that a run may take; the longest programs take a few hundred.
const STEPS: usize = 4000;
/// What stands for the end of the function, where owned buffers are freed.
pub(super) const END: StmtId = StmtId::MAX;
/// What `acc` starts with.
pub(super) const SEED: u64 = 7;

/// What a run prints, a line each, and its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) lines: Vec<String>,
    pub(super) code: i32,
}

/// Why a program has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing orders the statement after earlier GPU work on the same elements.
    Unordered { at: StmtId, actor: Actor, earlier: StmtId, stream: StreamId },
    /// It reads what was never written.
    Undefined { at: StmtId, buffer: Option<BufferId> },
    /// Its memory is not there.
    Dead { at: StmtId },
    /// It cannot stand here, or not with these buffers.
    Misplaced { at: StmtId },
    /// It does not end soon enough.
    TooLong,
}

/// Who touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Actor {
    Host,
    Gpu(StreamId),
}

/// A GPU access that the host has not seen the end of.
#[derive(Clone, Debug)]
struct Access {
    op: OpId,
    stmt: StmtId,
    stream: StreamId,
    low: usize,
    high: usize,
    writes: bool,
}

/// An allocation.
#[derive(Clone, Debug)]
struct Object {
    /// `None`: never written.
    cells: Vec<Option<u64>>,
    alive: bool,
    accesses: Vec<Access>,
}

/// A pointer variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pointer {
    Null,
    To(usize),
    Dangling,
}

/// Where control goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Leave,
}

/// GPU work while its accesses are checked.
struct Op {
    id: OpId,
    before: Set,
    stmt: StmtId,
    stream: StreamId,
}

struct Machine<'a> {
    program: &'a Program,
    input: Input,
    order: Order,
    objects: Vec<Object>,
    pointers: Vec<Pointer>,
    kept: Option<usize>,
    acc: u64,
    lines: Vec<String>,
    rounds: Vec<usize>,
    steps: usize,
}

/// Runs the program.
pub(super) fn run(program: &Program, input: Input) -> Result<Expected, Fault> {
    place(&program.body, Place { looped: false, apart: false })?;
    place(&program.tail, Place { looped: false, apart: true })?;
    let mut machine = Machine {
        program,
        input,
        order: Order::new(&program.streams, program.events),
        // Object 0 is the device variable that keeps a pointer.
        objects: vec![Object { cells: vec![Some(0)], alive: true, accesses: Vec::new() }],
        pointers: vec![Pointer::Null; program.buffers.len()],
        kept: None,
        acc: SEED,
        lines: Vec::new(),
        rounds: Vec::new(),
        steps: 0,
    };
    let owned = || (0..program.buffers.len()).filter(|buffer| program.buffers[*buffer].memory.is_owned());
    for buffer in owned() {
        machine.allocate(buffer, END)?;
    }
    machine.block(&program.body)?;
    machine.block(&program.tail)?;
    for buffer in owned().collect::<Vec<_>>().into_iter().rev() {
        machine.release(buffer, false, END)?;
    }
    machine.lines.push(format!("{:x}", machine.acc));
    Ok(Expected { lines: machine.lines, code: (machine.acc & 63) as i32 })
}

/// Where a statement stands.
#[derive(Clone, Copy)]
struct Place {
    /// In a loop of its function.
    looped: bool,
    /// In a function apart, or behind `cleanup`.
    apart: bool,
}

/// Checks what must hold of statements that no run gets to as well: else the program does not compile.
fn place(block: &[Stmt], at: Place) -> Result<(), Fault> {
    for stmt in block {
        let fits = match &stmt.kind {
            Kind::Break(_) => at.looped,
            Kind::Leave(_) | Kind::Call { .. } => !at.apart,
            _ => true,
        };
        if !fits {
            return Err(Fault::Misplaced { at: stmt.id });
        }
        let within = match stmt.kind {
            Kind::Loop { .. } => Place { looped: true, ..at },
            Kind::Call { .. } => Place { looped: false, apart: true },
            _ => at,
        };
        if let Kind::Call { body, .. } = &stmt.kind {
            pointers_stay(body)?;
        }
        for inner in edit::blocks(&stmt.kind) {
            place(inner, within)?;
        }
    }
    Ok(())
}

/// A function apart has copies of the pointers.
fn pointers_stay(body: &[Stmt]) -> Result<(), Fault> {
    let mut changed = None;
    edit::visit(body, &mut |stmt| {
        if matches!(stmt.kind, Kind::Alloc(_) | Kind::Free { .. } | Kind::Swap(..)) {
            changed = Some(stmt.id);
        }
    });
    changed.map_or(Ok(()), |at| Err(Fault::Misplaced { at }))
}

impl Machine<'_> {
    fn block(&mut self, block: &[Stmt]) -> Result<Flow, Fault> {
        for stmt in block {
            self.steps += 1;
            if self.steps > STEPS {
                return Err(Fault::TooLong);
            }
            let flow = self.statement(stmt)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn round(&self) -> usize {
        self.rounds.last().copied().unwrap_or(0)
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<Flow, Fault> {
        let (at, round, misplaced) = (stmt.id, self.round(), Err(Fault::Misplaced { at: stmt.id }));
        match &stmt.kind {
            Kind::Fill { buffer, range, form, .. } => {
                self.host_write(*buffer, *range, at, |index, _| Some(form.apply(index as u64, round)))?;
            }
            Kind::Update { buffer, range, form, .. } => {
                self.host_values(*buffer, *range, at)?;
                self.host_write(*buffer, *range, at, |_, old| old.map(|old| form.apply(old, round)))?;
            }
            Kind::Clear { buffer, range, byte } => {
                let value = self.program.element.of_byte(*byte);
                self.host_write(*buffer, *range, at, |_, _| Some(value))?;
            }
            Kind::HostCopy { to, from, range, .. } => {
                let (low, high) = range.bounds(self.program.length(&[*to, *from]), round);
                let (target, source) = (self.host_object(*to, at)?, self.host_object(*from, at)?);
                if target == source {
                    return misplaced;
                }
                self.host_access(source, low, high, false, at)?;
                let values = self.defined(source, low, high, at, *from)?;
                self.host_access(target, low, high, true, at)?;
                self.store(target, low, values);
            }
            Kind::Read { buffer, range, .. } => {
                for value in self.host_values(*buffer, *range, at)? {
                    self.acc = self.acc.wrapping_mul(31).wrapping_add(value);
                }
            }
            Kind::ReadAt { buffer, at: spot } => {
                let value = self.element(*buffer, spot.of(self.program.length(&[*buffer]), round), at)?;
                self.acc = self.acc.wrapping_mul(31).wrapping_add(value);
            }
            Kind::StoreAt { buffer, at: spot, form } => {
                let index = spot.of(self.program.length(&[*buffer]), round);
                let object = self.host_object(*buffer, at)?;
                self.host_access(object, index, index + 1, true, at)?;
                let value = form.apply(index as u64, round) & self.program.element.mask();
                self.objects[object].cells[index] = Some(value);
            }
            Kind::Print => self.lines.push(format!("{:x}", self.acc)),
            Kind::Copy { to, from, range, shift, stream, .. } => {
                self.copy(*to, *from, *range, *shift, *stream, at)?;
            }
            Kind::Memset { buffer, range, byte, stream } => {
                let object = self.object(*buffer, at)?;
                if self.program.is_host(*buffer) {
                    return misplaced;
                }
                let (low, high) = range.bounds(self.program.length(&[*buffer]), round);
                let op = self.queue(stream.unwrap_or(0), at);
                self.gpu_access(&op, object, low, high, true)?;
                let value = self.program.element.of_byte(*byte);
                self.store(object, low, vec![Some(value); high - low]);
            }
            Kind::Launch { .. } => self.launch(stmt)?,
            Kind::Record { event, stream } => self.order.record(*event, *stream),
            Kind::StreamWait { stream, event } => self.order.stream_wait(*stream, *event),
            Kind::Wait(scope) => self.order.wait(*scope),
            Kind::Alloc(buffer) => {
                if self.program.buffers[*buffer].memory.is_owned() {
                    return misplaced;
                }
                self.allocate(*buffer, at)?;
            }
            Kind::Free { buffer, guarded } => {
                if self.program.buffers[*buffer].memory.is_owned() {
                    return misplaced;
                }
                self.release(*buffer, *guarded, at)?;
            }
            Kind::Swap(one, other) => {
                let like = |buffer: BufferId| {
                    let buffer = &self.program.buffers[buffer];
                    (buffer.memory, buffer.length)
                };
                if like(*one) != like(*other) || self.program.buffers[*one].memory.is_owned() {
                    return misplaced;
                }
                self.object(*one, at)?;
                self.object(*other, at)?;
                self.pointers.swap(*one, *other);
            }
            Kind::Loop { count, body } => return self.repeat(*count, body),
            Kind::If { condition, then, otherwise } => {
                return if self.holds(*condition, at)? { self.block(then) } else { self.block(otherwise) };
            }
            Kind::Break(condition) => {
                if self.holds(*condition, at)? {
                    return Ok(Flow::Break);
                }
            }
            Kind::Leave(condition) => {
                if self.holds(*condition, at)? {
                    return Ok(Flow::Leave);
                }
            }
            Kind::Call { body, .. } => {
                self.block(body)?;
            }
        }
        Ok(Flow::Next)
    }

    fn repeat(&mut self, count: Count, body: &[Stmt]) -> Result<Flow, Fault> {
        let count = match count {
            Count::Constant(count) => count,
            Count::Rounds => self.input.rounds,
        };
        for round in 0..count {
            self.rounds.push(round);
            let flow = self.block(body);
            self.rounds.pop();
            match flow? {
                Flow::Next => {}
                Flow::Break => break,
                Flow::Leave => return Ok(Flow::Leave),
            }
        }
        Ok(Flow::Next)
    }

    fn holds(&mut self, condition: Condition, at: StmtId) -> Result<bool, Fault> {
        Ok(match condition {
            Condition::Flag => self.input.flag,
            Condition::NotFlag => !self.input.flag,
            Condition::RoundIs(round) => self.round() == round,
            Condition::RoundOdd => self.round() % 2 == 1,
            Condition::AccOdd => self.acc % 2 == 1,
            Condition::Data { buffer, at: spot } => {
                let index = spot.of(self.program.length(&[buffer]), self.round());
                self.element(buffer, index, at)? % 2 == 1
            }
        })
    }

    // ------------------------------------------------------------ memory

    fn object(&self, buffer: BufferId, at: StmtId) -> Result<usize, Fault> {
        match self.pointers[buffer] {
            Pointer::To(object) if self.objects[object].alive => Ok(object),
            _ => Err(Fault::Dead { at }),
        }
    }

    fn host_object(&self, buffer: BufferId, at: StmtId) -> Result<usize, Fault> {
        if self.program.is_host(buffer) { self.object(buffer, at) } else { Err(Fault::Misplaced { at }) }
    }

    fn allocate(&mut self, buffer: BufferId, at: StmtId) -> Result<(), Fault> {
        if matches!(self.pointers[buffer], Pointer::To(_)) {
            return Err(Fault::Misplaced { at });
        }
        let memory = self.program.buffers[buffer].memory;
        let length = self.program.length(&[buffer]);
        let object = self.objects.len();
        let cells = vec![memory.is_cleared().then_some(0); length];
        self.objects.push(Object { cells, alive: true, accesses: Vec::new() });
        self.pointers[buffer] = Pointer::To(object);
        if let Memory::CudaMallocAsync(stream) = memory {
            let op = self.queue(stream, at);
            self.gpu_access(&op, object, 0, length, true)?;
        }
        Ok(())
    }

    fn release(&mut self, buffer: BufferId, guarded: bool, at: StmtId) -> Result<(), Fault> {
        if guarded && self.pointers[buffer] == Pointer::Null {
            return Ok(());
        }
        let object = self.object(buffer, at)?;
        let length = self.objects[object].cells.len();
        match self.program.buffers[buffer].memory {
            Memory::CudaMallocAsync(stream) if !guarded => {
                let op = self.queue(stream, at);
                self.gpu_access(&op, object, 0, length, true)?;
            }
            memory => {
                if !memory.is_host() && self.program.trust.free_waits {
                    self.order.wait(Scope::Device);
                }
                self.host_access(object, 0, length, true, at)?;
            }
        }
        self.objects[object].alive = false;
        self.pointers[buffer] = if guarded { Pointer::Null } else { Pointer::Dangling };
        Ok(())
    }

    fn host_access(&mut self, object: usize, low: usize, high: usize, writes: bool, at: StmtId) -> Result<(), Fault> {
        let order = &self.order;
        let accesses = &mut self.objects[object].accesses;
        accesses.retain(|access| !order.host_has(access.op));
        match accesses.iter().find(|earlier| conflict(earlier, low, high, writes)) {
            Some(earlier) => {
                Err(Fault::Unordered { at, actor: Actor::Host, earlier: earlier.stmt, stream: earlier.stream })
            }
            None => Ok(()),
        }
    }

    fn queue(&mut self, stream: StreamId, stmt: StmtId) -> Op {
        let (id, before) = self.order.queue(stream);
        Op { id, before, stmt, stream }
    }

    fn gpu_access(&mut self, op: &Op, object: usize, low: usize, high: usize, writes: bool) -> Result<(), Fault> {
        let accesses = &mut self.objects[object].accesses;
        let unordered = accesses
            .iter()
            .find(|earlier| earlier.op != op.id && conflict(earlier, low, high, writes) && !op.before.has(earlier.op));
        if let Some(earlier) = unordered {
            let (earlier, stream) = (earlier.stmt, earlier.stream);
            return Err(Fault::Unordered { at: op.stmt, actor: Actor::Gpu(op.stream), earlier, stream });
        }
        accesses.push(Access { op: op.id, stmt: op.stmt, stream: op.stream, low, high, writes });
        Ok(())
    }

    fn store(&mut self, object: usize, low: usize, values: Vec<Option<u64>>) {
        let mask = self.program.element.mask();
        for (cell, value) in self.objects[object].cells[low..].iter_mut().zip(values) {
            *cell = value.map(|value| value & mask);
        }
    }

    /// The values of some elements, all of which must have been written.
    fn defined(
        &self,
        object: usize,
        low: usize,
        high: usize,
        at: StmtId,
        buffer: BufferId,
    ) -> Result<Vec<Option<u64>>, Fault> {
        let cells = &self.objects[object].cells[low..high];
        let undefined = Fault::Undefined { at, buffer: Some(buffer) };
        if cells.iter().all(Option::is_some) { Ok(cells.to_vec()) } else { Err(undefined) }
    }

    fn host_values(&mut self, buffer: BufferId, range: Range, at: StmtId) -> Result<Vec<u64>, Fault> {
        let (low, high) = range.bounds(self.program.length(&[buffer]), self.round());
        let object = self.host_object(buffer, at)?;
        self.host_access(object, low, high, false, at)?;
        Ok(self.defined(object, low, high, at, buffer)?.into_iter().flatten().collect())
    }

    fn element(&mut self, buffer: BufferId, index: usize, at: StmtId) -> Result<u64, Fault> {
        let range = Range::Constant { low: index, high: index + 1 };
        Ok(self.host_values(buffer, range, at)?.first().copied().unwrap_or(0))
    }

    fn host_write(
        &mut self,
        buffer: BufferId,
        range: Range,
        at: StmtId,
        value: impl Fn(usize, Option<u64>) -> Option<u64>,
    ) -> Result<(), Fault> {
        let (low, high) = range.bounds(self.program.length(&[buffer]), self.round());
        let object = self.host_object(buffer, at)?;
        self.host_access(object, low, high, true, at)?;
        let values = (low..high).map(|index| value(index, self.objects[object].cells[index])).collect();
        self.store(object, low, values);
        Ok(())
    }

    // ------------------------------------------------------------ GPU work

    fn copy(
        &mut self,
        to: BufferId,
        from: BufferId,
        range: Range,
        shift: usize,
        stream: Option<StreamId>,
        at: StmtId,
    ) -> Result<(), Fault> {
        let (low, high) = range.bounds(self.program.length(&[to, from]), self.round());
        let (target, source) = (self.object(to, at)?, self.object(from, at)?);
        let (from_host, to_host) = (self.program.is_host(from), self.program.is_host(to));
        let fits = high + shift <= self.objects[target].cells.len();
        if !fits || low >= high || target == source || (from_host && to_host) {
            return Err(Fault::Misplaced { at });
        }
        let pinned = |buffer: BufferId| self.program.buffers[buffer].memory.is_pinned();
        let pageable_source = from_host && !pinned(from);
        let pageable_target = to_host && !pinned(to);
        let staging = self.program.trust.staging;
        let asynchronous = stream.is_some();
        if !asynchronous && (from_host || to_host) {
            // Also the copy that returns when its source is staged first waits for its stream.
            self.order.wait(Scope::Stream(0));
        }
        let on = stream.unwrap_or(0);
        let op = self.queue(on, at);
        if pageable_source && (!asynchronous || staging) {
            self.host_access(source, low, high, false, at)?;
        } else {
            self.gpu_access(&op, source, low, high, false)?;
        }
        let values = if from_host != to_host && shift == 0 {
            self.objects[source].cells[low..high].to_vec()
        } else {
            self.defined(source, low, high, at, from)?
        };
        self.gpu_access(&op, target, low + shift, high + shift, true)?;
        self.store(target, low + shift, values);
        let complete = match asynchronous {
            false => to_host || (from_host && pinned(from)),
            true => pageable_target && staging,
        };
        if complete {
            self.order.wait(Scope::Stream(on));
        }
        Ok(())
    }

    fn launch(&mut self, stmt: &Stmt) -> Result<(), Fault> {
        let Kind::Launch { kernel, buffers, range, form, stream } = &stmt.kind else { return Ok(()) };
        let (at, round) = (stmt.id, self.round());
        let action = self.program.kernels[*kernel].action;
        let parameters = action.parameters();
        let mut objects = Vec::new();
        for buffer in buffers {
            let object = self.object(*buffer, at)?;
            let memory = self.program.buffers[*buffer].memory;
            if memory.is_host() && !memory.is_pinned() || objects.contains(&object) {
                return Err(Fault::Misplaced { at });
            }
            objects.push(object);
        }
        if objects.len() != parameters.len() {
            return Err(Fault::Misplaced { at });
        }
        let op = self.queue(*stream, at);
        if matches!(action, Action::Keep | Action::UseKept) {
            self.gpu_access(&op, 0, 0, 1, action == Action::Keep)?;
        }
        let (low, high) = range.bounds(self.program.length(buffers), round);
        match action {
            Action::Keep => {
                self.kept = Some(objects[0]);
                return Ok(());
            }
            Action::Ignore => return Ok(()),
            Action::UseKept => {
                let object = self.kept.filter(|object| self.objects[*object].alive).ok_or(Fault::Dead { at })?;
                if high > self.objects[object].cells.len() {
                    return Err(Fault::Misplaced { at });
                }
                objects.push(object);
            }
            _ => {}
        }
        let both: &[(bool, bool)] = if action == Action::UseKept { &[(true, true)] } else { parameters };
        for (position, (object, (reads, writes))) in objects.iter().zip(both).enumerate() {
            let end = if action == Action::Sum && position == 0 { high.min(low + 1) } else { high };
            self.gpu_access(&op, *object, low, end, *writes)?;
            let written = self.objects[*object].cells[low..end].iter().all(Option::is_some);
            if *reads && !written {
                return Err(Fault::Undefined { at, buffer: buffers.get(position).copied() });
            }
        }
        self.compute(action, &objects, low, high, |value| form.apply(value, round));
        Ok(())
    }

    fn compute(&mut self, action: Action, objects: &[usize], low: usize, high: usize, form: impl Fn(u64) -> u64) {
        let mask = self.program.element.mask();
        let form = |value| form(value) & mask;
        let at = |machine: &Self, position: usize, index: usize| {
            objects.get(position).and_then(|object| machine.objects[*object].cells[index]).unwrap_or(0)
        };
        let before = |position: usize| (low..high).map(|index| at(self, position, index)).collect::<Vec<u64>>();
        let (x, y, z) = (before(0), before(1), before(2));
        let mut second = None;
        let new: Vec<u64> = match action {
            Action::Fill => (low..high).map(|index| form(index as u64)).collect(),
            Action::Scale | Action::UseKept => x.into_iter().map(form).collect(),
            Action::Map | Action::Shared => y.into_iter().map(form).collect(),
            Action::Zip => y.into_iter().zip(z).map(|(y, z)| form(y).wrapping_add(z)).collect(),
            Action::Accumulate => x.into_iter().zip(y).map(|(x, y)| x.wrapping_add(form(y))).collect(),
            Action::Shift => (0..y.len()).map(|index| form(y[(index + 1) % y.len()])).collect(),
            Action::UpdateOdd => x.into_iter().map(|x| if x % 2 == 1 { form(x) } else { x }).collect(),
            Action::FillOdd => {
                // What is not written keeps its state, which may be "never written".
                for (index, y) in (low..high).zip(y) {
                    if y % 2 == 1 {
                        self.objects[objects[0]].cells[index] = Some(form(index as u64));
                    }
                }
                return;
            }
            Action::Sum if low < high => vec![y.into_iter().fold(0, |sum: u64, y| sum.wrapping_add(form(y)))],
            Action::Two => {
                let new: Vec<u64> = z.into_iter().map(form).collect();
                second = Some(new.iter().map(|value| form(*value)).collect::<Vec<u64>>());
                new
            }
            Action::Sum | Action::Keep | Action::Ignore => Vec::new(),
        };
        self.store(objects[0], low, new.into_iter().map(Some).collect());
        if let Some(second) = second {
            self.store(objects[1], low, second.into_iter().map(Some).collect());
        }
    }
}

fn conflict(earlier: &Access, low: usize, high: usize, writes: bool) -> bool {
    (earlier.writes || writes) && earlier.low < high && low < earlier.high
}

/// The streams that a program has made itself.
pub(super) fn made(kind: StreamKind) -> bool {
    matches!(kind, StreamKind::Blocking | StreamKind::NonBlocking)
}
