//! Makes traces: what P and P' have in common.

use crate::case::{BUFFERS, BYTES, Buffer, Case, D, E, ELSEWHERE, G, Mask, Path, Step, Touches, Visit, is_host};
use crate::machine::{Items, Machine, Queues};
use crate::plan::Wait;
use crate::trace::{Action, Cell, Effect, Flaw, Instance, Item, Operation, Trace, cells, label};

/// A trace that grows visit by visit.
pub struct Build<'a> {
    pub(crate) case: &'a Case,
    machine: Machine,
    pub(crate) trace: Trace,
    pub(crate) queues: Queues,
    /// What each buffer's pointer points to.
    pub(crate) pointers: [Option<Instance>; BUFFERS],
    /// Instances that are alive where the host is.
    pub(crate) alive: u64,
    /// What the host's next action waits for.
    after: Items,
    /// What an earlier kernel kept.
    kept: Option<Instance>,
}

impl<'a> Build<'a> {
    /// Before the first step.
    #[must_use]
    pub fn new(case: &'a Case, machine: Machine) -> Self {
        let mut build = Self {
            case,
            machine,
            trace: Trace::default(),
            queues: Queues::new(machine),
            pointers: [None; BUFFERS],
            alive: 0,
            after: 0,
            kept: None,
        };
        for buffer in [G, E] {
            let instance = build.exists();
            for byte in 0..BYTES {
                build.trace.memory[usize::from(instance) * BYTES + byte] = 0xF00 + u64::from(label(buffer, byte));
            }
            build.pointers[usize::from(buffer)] = Some(instance);
        }
        if case.outside {
            let (_, after) = build.queues.queue(ELSEWHERE);
            build.trace.items.push(Item { after, operation: Operation::nothing(0) });
            let action = Action { after: 0, operation: Operation::nothing(0), queues: Some(0) };
            build.trace.host.push(action);
        }
        build
    }

    /// An instance that is there from the start.
    pub(crate) fn exists(&mut self) -> Instance {
        let instance = self.trace.instance();
        self.trace.alive |= 1 << instance;
        self.alive |= 1 << instance;
        instance
    }

    /// A new instance begins.
    pub(crate) fn begin(&mut self, place: u8) -> Instance {
        let instance = self.trace.instance();
        self.alive |= 1 << instance;
        self.host(Operation::new(place, Effect::Begin(instance)));
        instance
    }

    /// Instances end.
    pub(crate) fn end(&mut self, place: u8, instances: Vec<Instance>) {
        for instance in &instances {
            self.alive &= !(1 << instance);
        }
        self.host(Operation::new(place, Effect::End(instances)));
    }

    /// A buffer that is no half of a merged pair is freed.
    pub(crate) fn free(&mut self, place: u8, buffer: Buffer) {
        if !is_host(buffer) {
            self.wait(self.queues.device());
        }
        if let Some(instance) = self.instance(place, buffer) {
            self.end(place, vec![instance]);
        }
    }

    /// The same, or the pointer is null. Whether cudaFree of null waits is left open.
    pub(crate) fn free_unless_null(&mut self, place: u8, buffer: Buffer) {
        let there = |instance: Instance| self.alive & (1 << instance) != 0;
        if self.pointers[usize::from(buffer)].is_some_and(there) {
            self.free(place, buffer);
        } else if !is_host(buffer) && self.machine.synchronous {
            self.wait(self.queues.device());
        }
    }

    /// The buffer's instance; a buffer that was never made is a flaw.
    pub(crate) fn instance(&mut self, place: u8, buffer: Buffer) -> Option<Instance> {
        let instance = self.pointers[usize::from(buffer)];
        if instance.is_none() {
            self.trace.flaw(place, Flaw::Missing);
        }
        instance
    }

    /// Zeroes are written to all of an instance.
    pub(crate) fn zero(&mut self, place: u8, instance: Instance) {
        self.host(Operation::new(place, Effect::Zero(cells(instance, Mask::MAX).collect())));
    }

    /// The host does something.
    pub(crate) fn host(&mut self, operation: Operation) {
        let after = std::mem::take(&mut self.after);
        self.trace.host.push(Action { after, operation, queues: None });
    }

    /// The host queues something, doing something else with the same call.
    pub(crate) fn queue(&mut self, stream: u8, by_host: Operation, operation: Operation) -> Items {
        let (item, after) = self.queues.queue(stream);
        self.trace.items.push(Item { after, operation });
        let after = std::mem::take(&mut self.after);
        self.trace.host.push(Action { after, operation: by_host, queues: Some(item) });
        1 << item
    }

    /// The host waits before its next action.
    pub(crate) fn wait(&mut self, items: Items) {
        self.after |= items;
        self.queues.cover(items);
    }

    /// The same, for a wait of a plan.
    pub(crate) fn wait_for(&mut self, wait: Option<Wait>) {
        let items = match wait {
            None => return,
            Some(Wait::Device) => self.queues.device(),
            Some(Wait::Stream(stream)) => self.queues.stream(stream),
            Some(Wait::Event(event)) => self.queues.event(event),
        };
        self.wait(items);
    }

    /// A copy as CUDA makes it of memory that is not managed.
    pub(crate) fn copy(&mut self, place: u8, stream: u8, call: &CopyCall) {
        let row = self.case.row(call.dst, call.src, call.sync);
        if row.before {
            self.wait(self.queues.behind(stream));
        }
        let practice = self.practice(call, |_| false);
        let staged = !row.after && (row.consumed || practice == Some(Practice::Staged));
        let item = self.moves(place, stream, call, staged);
        if row.after || practice == Some(Practice::Synchronous) {
            self.wait(item);
        }
    }

    /// Queues the copy alone, its source read by the call if it is staged.
    pub(crate) fn moves(&mut self, place: u8, stream: u8, call: &CopyCall, staged: bool) -> Items {
        let (Some(to), Some(from)) = (self.instance(place, call.dst), self.instance(place, call.src)) else {
            return 0;
        };
        let (from, to): (Vec<Cell>, Vec<Cell>) =
            call.moves.iter().map(|(source, target)| (cell(from, *source), cell(to, *target))).unzip();
        let moving = |from: &[Cell], to: &[Cell]| {
            let pairs = from.iter().copied().zip(to.iter().copied()).collect();
            Operation::new(place, Effect::Move { pairs, links: call.links })
        };
        if staged {
            let stage: Vec<Cell> = cells(self.exists(), Mask::MAX).take(from.len()).collect();
            self.queue(stream, moving(&from, &stage), moving(&stage, &to))
        } else {
            self.queue(stream, Operation::nothing(place), moving(&from, &to))
        }
    }

    /// What the copy does on this machine beyond what the documentation promises. `managed`: which buffers are managed memory, of which
    /// nothing is known.
    pub(crate) fn practice(&self, call: &CopyCall, managed: impl Fn(Buffer) -> bool) -> Option<Practice> {
        let ordinary = |side: Buffer| self.case.pageable(side) && !managed(side);
        match (is_host(call.src), is_host(call.dst)) {
            _ if !self.machine.synchronous => None,
            (false, false) => Some(Practice::Synchronous),
            (true, false) => ordinary(call.src).then_some(Practice::Staged),
            (_, true) => ordinary(call.dst).then_some(Practice::Synchronous),
        }
    }

    /// Steps that P and P' share.
    pub(crate) fn common(&mut self, visit: Visit, step: &Step) {
        let place = visit.step;
        match *step {
            Step::Host(touches) => {
                let effect = self.compute(visit, &touches, false);
                self.host(Operation::new(place, effect));
            }
            Step::Launch { stream, touches, keeps, uses_kept } => {
                let effect = self.compute(visit, &touches, uses_kept && visit.does);
                self.queue(stream, Operation::nothing(place), Operation::new(place, effect));
                if keeps {
                    self.kept = self.instance(place, D);
                }
            }
            Step::Memset { stream, buffer, bytes } => {
                let touches = [Some(crate::case::Touch::new(buffer, true, bytes)), None];
                let effect = self.compute(visit, &touches, false);
                let item = self.queue(stream, Operation::nothing(place), Operation::new(place, effect));
                if self.machine.synchronous {
                    self.wait(item);
                }
            }
            Step::WaitDevice => self.wait(self.queues.device()),
            Step::WaitStream(stream) => self.wait(self.queues.stream(stream)),
            Step::WaitEvent(event) => self.wait(self.queues.event(event)),
            Step::Record(event, stream) => self.queues.record(event, stream),
            Step::StreamWait(stream, event) => self.queues.stream_wait(stream, event),
            Step::Opaque => {
                if visit.does {
                    let effect = self.compute(visit, &[None; 2], true);
                    self.queue(ELSEWHERE, Operation::nothing(place), Operation::new(place, effect));
                }
            }
            Step::Alloc(_)
            | Step::Free(_)
            | Step::FreeUnlessNull(_)
            | Step::Copy { .. }
            | Step::Shifted { .. }
            | Step::Reset => {}
        }
    }

    /// Device memory ends with the device.
    pub(crate) fn reset(&mut self, place: u8, and: impl Fn(Instance) -> bool) {
        self.wait(self.queues.device());
        let of_device = |buffer: &usize| !is_host(*buffer as Buffer);
        let mut ended: Vec<Instance> =
            (0..BUFFERS).filter(of_device).filter_map(|buffer| self.pointers[buffer]).collect();
        ended.extend((0..64).filter(|instance| and(*instance)));
        ended.sort_unstable();
        ended.dedup();
        ended.retain(|instance| self.alive & (1 << instance) != 0);
        self.end(place, ended);
    }

    fn compute(&mut self, visit: Visit, touches: &Touches, through_kept: bool) -> Effect {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for touch in touches.iter().flatten().filter(|touch| !touch.may || visit.does) {
            let Some(instance) = self.instance(visit.step, touch.buffer) else { continue };
            add(&mut reads, &mut writes, instance, (touch.buffer, touch.bytes), (!touch.writes, touch.writes));
        }
        if let (true, Some(instance)) = (through_kept, self.kept) {
            add(&mut reads, &mut writes, instance, (D, Mask::MAX), (true, true));
        }
        Effect::Compute { name: u32::from(visit.step) << 8 | u32::from(visit.round), reads, writes }
    }

    /// Behind the last step.
    #[must_use]
    pub fn done(mut self, path: &Path) -> Trace {
        if path.returns {
            let kept = self.kept.map(|instance| (D, instance));
            let foreign = [G, E].map(|buffer| self.pointers[usize::from(buffer)].map(|instance| (buffer, instance)));
            for (buffer, instance) in foreign.into_iter().flatten().chain(kept) {
                if self.alive & (1 << instance) != 0 {
                    let bytes = cells(instance, Mask::MAX).enumerate();
                    self.trace.finals.extend(bytes.map(|(byte, cell)| (cell, label(buffer, byte))));
                }
            }
        }
        self.trace
    }
}

/// See [`Build::practice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Practice {
    /// The source has been read when the call returns.
    Staged,
    /// The copy is complete when the call returns.
    Synchronous,
}

/// A copy call.
pub(crate) struct CopyCall {
    pub(crate) dst: Buffer,
    pub(crate) src: Buffer,
    /// Bytes, from and to.
    pub(crate) moves: Vec<(usize, usize)>,
    pub(crate) sync: bool,
    pub(crate) links: bool,
}

impl CopyCall {
    /// The call of a step, if it is one. `links` tells of two buffers whether they are linked.
    pub(crate) fn of(step: &Step, links: impl Fn(Buffer, Buffer) -> bool) -> Option<(u8, Self)> {
        match *step {
            Step::Copy { dst, src, bytes, stream, sync } => {
                let moves = (0..BYTES).filter(|byte| bytes & (1 << byte) != 0).map(|byte| (byte, byte)).collect();
                Some((stream, Self { dst, src, moves, sync, links: links(dst, src) }))
            }
            Step::Shifted { dst, src, from } => {
                let moves = vec![(usize::from(from), usize::from(1 - from))];
                Some((0, Self { dst, src, moves, sync: true, links: false }))
            }
            _ => None,
        }
    }
}

pub(crate) fn cell(instance: Instance, byte: usize) -> Cell {
    instance * BYTES as u8 + byte as u8
}

fn add(
    reads: &mut Vec<Cell>,
    writes: &mut Vec<(Cell, u32)>,
    instance: Instance,
    (buffer, bytes): (Buffer, Mask),
    (does_read, does_write): (bool, bool),
) {
    for byte in (0..BYTES).filter(|byte| bytes & (1 << byte) != 0) {
        if does_read {
            reads.push(cell(instance, byte));
        }
        if does_write {
            writes.push((cell(instance, byte), label(buffer, byte)));
        }
    }
}
