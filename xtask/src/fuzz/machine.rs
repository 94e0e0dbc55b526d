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
pub(super) struct Object {
    /// `None`: never written.
    pub(super) cells: Vec<Option<u64>>,
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

/// The state of a run.
pub(super) struct Machine<'a> {
    pub(super) program: &'a Program,
    input: Input,
    order: Order,
    pub(super) objects: Vec<Object>,
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
        let memory = self.program.buffers[buffer].memory;
        match memory.freed_in() {
            Some(stream) if !guarded => {
                let op = self.queue(stream, at);
                self.gpu_access(&op, object, 0, length, true)?;
            }
            _ => {
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

    pub(super) fn store(&mut self, object: usize, low: usize, values: Vec<Option<u64>>) {
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
}

fn conflict(earlier: &Access, low: usize, high: usize, writes: bool) -> bool {
    (earlier.writes || writes) && earlier.low < high && low < earlier.high
}

/// The streams that a program has made itself.
pub(super) fn made(kind: StreamKind) -> bool {
    matches!(kind, StreamKind::Blocking | StreamKind::NonBlocking)
}

#[cfg(test)]
mod tests {
    use super::super::language::{Action, Form, Kernel, Way};
    use super::super::testing::{D, FORM, H, download, fill, program, read, scale, upload, with};
    use super::*;

    fn outcome(kinds: Vec<Kind>) -> Result<Expected, Fault> {
        outcome_with(kinds, |_| {})
    }

    /// The outcome of a program that first allocates both buffers, after a change.
    fn outcome_with(kinds: Vec<Kind>, change: impl FnOnce(&mut Program)) -> Result<Expected, Fault> {
        let mut program = with([vec![Kind::Alloc(H), Kind::Alloc(D)], kinds].concat());
        change(&mut program);
        run(&program, program.inputs[0])
    }

    fn is_unordered(outcome: Result<Expected, Fault>, by: Actor) -> bool {
        matches!(outcome, Err(Fault::Unordered { actor, .. }) if actor == by)
    }

    #[test]
    fn a_round_trip_prints_what_it_computes() {
        let expected = outcome(vec![fill(), upload(None), scale(0), download(None), read(), Kind::Print]).unwrap();
        let sum = (0..40_u64).fold(SEED, |sum, i| sum.wrapping_mul(31).wrapping_add((i * 3 + 5) * 3 + 5));
        assert_eq!(expected, Expected { lines: vec![format!("{sum:x}"); 2], code: (sum & 63) as i32 });
    }

    #[test]
    fn the_host_must_not_touch_what_pending_work_uses() {
        // Each with the wait that it lacks, and without.
        for (kinds, wait) in [
            (vec![fill(), upload(Some(1)), fill()], Scope::Stream(1)),
            (vec![fill(), upload(None), scale(1), download(Some(1)), read()], Scope::Stream(1)),
            (vec![fill(), upload(Some(2)), Kind::Free { buffer: H, guarded: false }], Scope::Device),
            (vec![fill(), upload(None), scale(1), Kind::Free { buffer: D, guarded: false }], Scope::Stream(1)),
        ] {
            assert!(is_unordered(outcome(kinds.clone()), Actor::Host), "{kinds:?}");
            let mut waited = kinds.clone();
            waited.insert(kinds.len() - 1, Kind::Wait(wait));
            assert!(outcome(waited).is_ok(), "{kinds:?}");
        }
    }

    #[test]
    fn streams_must_be_ordered() {
        let racy = vec![fill(), upload(None), scale(2), download(None), read()];
        assert!(is_unordered(outcome(racy), Actor::Gpu(2)), "the upload may still be under way");
        let (event, up) = (0, upload(Some(1)));
        let racy = vec![fill(), up.clone(), scale(2)];
        assert!(is_unordered(outcome(racy), Actor::Gpu(2)));
        let ordered = vec![
            fill(),
            up.clone(),
            Kind::Record { event, stream: 1 },
            Kind::StreamWait { stream: 2, event },
            scale(2),
        ];
        assert!(outcome(ordered).is_ok());
        let legacy = vec![fill(), up, scale(0), scale(1)];
        assert!(outcome(legacy).is_ok(), "the default stream orders blocking streams");
    }

    #[test]
    fn a_synchronous_upload_has_read_its_source_but_need_not_be_done() {
        assert!(outcome(vec![fill(), upload(None), fill()]).is_ok());
        assert!(is_unordered(outcome(vec![fill(), upload(None), scale(2)]), Actor::Gpu(2)));
        let pinned = |program: &mut Program| program.buffers[H].memory = Memory::MallocHost;
        assert!(outcome_with(vec![fill(), upload(None), scale(2)], pinned).is_ok());
    }

    #[test]
    fn what_may_be_trusted_is_said_by_the_program() {
        let staged = vec![fill(), upload(Some(1)), fill()];
        assert!(outcome_with(staged, |program| program.trust.staging = true).is_ok());
        let freed = vec![fill(), upload(None), scale(1), Kind::Free { buffer: D, guarded: false }];
        assert!(outcome_with(freed, |program| program.trust.free_waits = true).is_ok());
    }

    #[test]
    fn what_was_never_written_is_not_read() {
        let undefined = |outcome| matches!(outcome, Err(Fault::Undefined { .. }));
        assert!(undefined(outcome(vec![read()])));
        assert!(undefined(outcome(vec![scale(0)])));
        assert!(undefined(outcome(vec![upload(None), download(None), read()])), "copying makes nothing defined");
        assert!(outcome(vec![upload(None), download(None), fill(), read()]).is_ok(), "and is no reading");
        let half = Kind::Fill { buffer: H, range: Range::FirstHalf, form: FORM, way: Way::Inline };
        assert!(undefined(outcome(vec![half.clone(), read()])));
        let look = Kind::Read { buffer: H, range: Range::FirstHalf, way: Way::Inline };
        assert!(outcome(vec![half, look]).is_ok());
        assert!(outcome_with(vec![read()], |program| program.buffers[H].memory = Memory::Calloc).is_ok());
    }

    #[test]
    fn memory_that_is_gone_is_not_touched() {
        let free = Kind::Free { buffer: H, guarded: false };
        assert!(matches!(outcome(vec![free.clone(), fill()]), Err(Fault::Dead { .. })));
        assert!(matches!(outcome(vec![free.clone(), free.clone()]), Err(Fault::Dead { .. })));
        let guarded = Kind::Free { buffer: H, guarded: true };
        assert!(outcome(vec![guarded.clone(), guarded]).is_ok());
        assert!(matches!(outcome(vec![Kind::Alloc(H)]), Err(Fault::Misplaced { .. })), "the first would be lost");
        assert!(outcome(vec![free, Kind::Alloc(H), fill(), read()]).is_ok());
    }

    #[test]
    fn a_pointer_that_a_kernel_kept_is_followed() {
        let kernels = |program: &mut Program| {
            for action in [Action::Keep, Action::UseKept] {
                program.kernels.push(Kernel { action, ..program.kernels[0].clone() });
            }
        };
        let launch = |kernel, buffers| Kind::Launch { kernel, buffers, range: Range::Whole, form: FORM, stream: 1 };
        let start = vec![fill(), upload(None), launch(1, vec![D]), launch(2, vec![])];
        assert!(outcome_with(start.clone(), kernels).is_ok());
        let racy = [start.clone(), vec![download(Some(2))]].concat();
        assert!(is_unordered(outcome_with(racy, kernels), Actor::Gpu(2)));
        let gone = vec![
            fill(),
            upload(None),
            launch(1, vec![D]),
            Kind::Wait(Scope::Device),
            Kind::Free { buffer: D, guarded: false },
            launch(2, vec![]),
        ];
        assert!(matches!(outcome_with(gone, kernels), Err(Fault::Dead { .. })));
    }

    #[test]
    fn loops_branches_and_jumps() {
        let mut program = program();
        let (store, print) =
            (Kind::StoreAt { buffer: H, at: super::super::language::Spot::First, form: FORM }, Kind::Print);
        let condition = Condition::RoundIs(1);
        let inner: Vec<Stmt> =
            [store, Kind::ReadAt { buffer: H, at: super::super::language::Spot::First }, print, Kind::Break(condition)]
                .into_iter()
                .map(|kind| program.fresh(kind))
                .collect();
        let (alloc, all) =
            (program.fresh(Kind::Alloc(H)), program.fresh(Kind::Loop { count: Count::Constant(4), body: inner }));
        program.body = vec![alloc, all];
        let run = run(&program, program.inputs[0]).unwrap();
        assert_eq!(run.lines.len(), 3, "two rounds and the end");
        let values = (0..2).fold((SEED, Vec::new()), |(acc, mut lines), _| {
            let acc: u64 = acc * 31 + 5;
            lines.push(format!("{acc:x}"));
            (acc, lines)
        });
        assert_eq!(run.lines[..2], values.1);
    }

    #[test]
    fn what_cannot_be_compiled_is_refused_even_where_no_run_gets() {
        let mut program = with(vec![Kind::Alloc(H)]);
        let inner = program.fresh(Kind::Break(Condition::Flag));
        let never = program.fresh(Kind::If { condition: Condition::RoundIs(9), then: vec![inner], otherwise: vec![] });
        program.body.push(never);
        assert!(matches!(run(&program, program.inputs[0]), Err(Fault::Misplaced { .. })));
        let mut program = with(vec![Kind::Alloc(H)]);
        let inner = program.fresh(Kind::Free { buffer: H, guarded: false });
        let call = program.fresh(Kind::Call { way: Way::Apart, body: vec![inner] });
        program.body.push(call);
        assert!(matches!(run(&program, program.inputs[0]), Err(Fault::Misplaced { .. })));
    }

    #[test]
    fn a_loop_without_end_is_refused() {
        let body = Kind::Loop { count: Count::Constant(5000), body: with(vec![Kind::Print]).body };
        assert_eq!(outcome(vec![body]), Err(Fault::TooLong));
    }

    #[test]
    fn a_form_takes_the_round_in() {
        let form = Form { factor: 2, addend: 1, round: true };
        assert_eq!(form.apply(10, 3), 24);
        assert_eq!(FORM.apply(10, 3), 35);
    }
}
