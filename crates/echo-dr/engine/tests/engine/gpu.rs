//! A GPU with the legacy default stream and two streams that wait for it, for programs without races: work is done at once or as late as can be,
//! by stream.

use std::cell::RefCell;
use std::collections::BTreeMap;

use echo_dr_format::event::Stream;
use echo_rt::{Cuda, CudaError, Direction};

pub(crate) const A: Stream = Stream(0x5000);
pub(crate) const B: Stream = Stream(0x6000);

/// Operations by number, as bits.
type Set = u64;

/// What an operation does. Blocks are addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Add(usize),
    /// What the block holds is what the program shows for this step.
    Look(usize, usize),
    Store(usize, u64),
    Copy(usize, usize),
    Nothing,
}

impl Work {
    /// (block, it is written)
    fn accesses(self) -> Vec<(usize, bool)> {
        match self {
            Work::Add(block) | Work::Store(block, _) => vec![(block, true)],
            Work::Look(block, _) => vec![(block, false)],
            Work::Copy(dst, src) => vec![(dst, true), (src, false)],
            Work::Nothing => Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
struct Op {
    stream: Stream,
    work: Work,
    /// What is done before it whatever the device does.
    before: Set,
    done: bool,
}

/// See the module.
#[derive(Debug, Default)]
struct State {
    blocks: BTreeMap<usize, Option<u64>>,
    ops: Vec<Op>,
    /// What the host knows to be done.
    known: Set,
    /// What a stream waits for besides its own work.
    joins: BTreeMap<Stream, Set>,
    output: BTreeMap<usize, u64>,
    /// It read what was never written, or two accesses are not ordered.
    wrong: bool,
    next: usize,
}

#[derive(Debug)]
pub(crate) struct Gpu {
    state: RefCell<State>,
    /// Streams whose work is done at once.
    eager: Vec<Stream>,
}

impl State {
    fn load(&mut self, block: usize) -> Option<u64> {
        *self.blocks.get(&block).expect("an access of memory that isn't there")
    }

    fn store(&mut self, block: usize, value: Option<u64>) {
        *self.blocks.get_mut(&block).expect("an access of memory that isn't there") = value;
    }

    fn defined(&mut self, block: usize) -> u64 {
        let value = self.load(block);
        self.wrong |= value.is_none();
        value.unwrap_or(0)
    }

    fn all(&self) -> Set {
        (1 << self.ops.len()) - 1
    }

    fn of(&self, counts: impl Fn(Stream) -> bool) -> Set {
        let ops = self.ops.iter().enumerate().filter(|(_, op)| counts(op.stream));
        ops.fold(0, |set, (number, op)| set | op.before | 1 << number)
    }

    /// Another access than those that are ordered before it meets a write, or is a write and meets anything.
    fn races(&self, accesses: &[(usize, bool)], ordered: Set) -> bool {
        self.ops.iter().enumerate().filter(|(number, _)| ordered >> number & 1 == 0).any(|(_, op)| {
            let theirs = op.work.accesses();
            accesses
                .iter()
                .any(|&(block, writes)| theirs.iter().any(|&(other, wrote)| block == other && (writes || wrote)))
        })
    }

    fn finish(&mut self, set: Set) {
        for number in (0..self.ops.len()).filter(|number| set >> number & 1 == 1) {
            if std::mem::replace(&mut self.ops[number].done, true) {
                continue;
            }
            match self.ops[number].work {
                Work::Add(block) => {
                    let value = self.defined(block).wrapping_add(1);
                    self.store(block, Some(value));
                }
                Work::Look(block, step) => {
                    let value = self.defined(block);
                    self.output.insert(step, value);
                }
                Work::Store(block, value) => self.store(block, Some(value)),
                Work::Copy(dst, src) => {
                    let value = self.load(src);
                    self.store(dst, value);
                }
                Work::Nothing => {}
            }
        }
    }
}

impl Gpu {
    pub(crate) fn new(eager: Vec<Stream>) -> Self {
        Self { state: RefCell::default(), eager }
    }

    pub(crate) fn take(&self) -> usize {
        let mut state = self.state.borrow_mut();
        state.next += 0x10000;
        let address = state.next;
        state.blocks.insert(address, None);
        address
    }

    pub(crate) fn issue(&self, stream: Stream, work: Work) {
        let mut state = self.state.borrow_mut();
        let joined = state.joins.get(&stream).copied().unwrap_or(0);
        let before = joined
            | state.known
            | state.of(|other| other == stream || stream == Stream::LEGACY || other == Stream::LEGACY);
        state.wrong |= state.races(&work.accesses(), before);
        state.ops.push(Op { stream, work, before, done: false });
        let number = state.ops.len() - 1;
        assert!(number < 60, "more operations than bits");
        if self.eager.contains(&stream) {
            state.finish(before | 1 << number);
        }
    }

    /// `stream` waits for what is in `other` now.
    pub(crate) fn join(&self, stream: Stream, other: Stream) {
        let mut state = self.state.borrow_mut();
        let set = state.of(|it| it == other);
        *state.joins.entry(stream).or_default() |= set;
    }

    pub(crate) fn wait(&self, stream: Option<Stream>) {
        let mut state = self.state.borrow_mut();
        let set = state.of(|other| stream.is_none_or(|stream| stream == other));
        state.known |= set;
        state.finish(set);
    }

    /// Everything is done, and the host is not told.
    pub(crate) fn drain(&self) {
        let mut state = self.state.borrow_mut();
        let all = state.all();
        state.finish(all);
    }

    /// What a block holds, told to nobody.
    pub(crate) fn content(&self, block: usize) -> Option<u64> {
        self.state.borrow_mut().load(block)
    }

    pub(crate) fn host_read(&self, block: usize, step: usize) {
        let mut state = self.state.borrow_mut();
        let known = state.known;
        state.wrong |= state.races(&[(block, false)], known);
        let value = state.defined(block);
        state.output.insert(step, value);
    }

    pub(crate) fn host_write(&self, block: usize, value: u64) {
        let mut state = self.state.borrow_mut();
        let known = state.known;
        state.wrong |= state.races(&[(block, true)], known);
        state.store(block, Some(value));
    }

    /// What an asynchronous copy from pageable memory takes along at once.
    pub(crate) fn staged(&self, block: usize) -> u64 {
        let mut state = self.state.borrow_mut();
        let known = state.known;
        state.wrong |= state.races(&[(block, false)], known);
        state.defined(block)
    }

    /// What the program has shown; `None` if it has no meaning.
    pub(crate) fn output(self) -> Option<BTreeMap<usize, u64>> {
        self.drain();
        let state = self.state.into_inner();
        (!state.wrong).then_some(state.output)
    }

    /// As [`Gpu::output`], of a program whose meaning is known: races are not asked for.
    pub(crate) fn shown(self) -> BTreeMap<usize, u64> {
        self.drain();
        self.state.into_inner().output
    }
}

impl Cuda for Gpu {
    fn malloc(&self, _: usize) -> Result<usize, CudaError> {
        Ok(self.take())
    }
    fn free(&self, _: usize) -> Result<(), CudaError> {
        unreachable!("these programs free nothing")
    }
    fn malloc_managed(&self, _: usize) -> Result<usize, CudaError> {
        Ok(self.take())
    }
    fn host_alloc(&self, _: usize) -> Result<(usize, usize), CudaError> {
        unreachable!("the plans of this test are of managed memory")
    }
    fn host_free(&self, _: usize) -> Result<(), CudaError> {
        unreachable!("the plans of this test are of managed memory")
    }
    fn heap_alloc(&self, _: usize) -> Option<usize> {
        unreachable!("the plans of this test are of managed memory")
    }
    fn heap_free(&self, _: usize) {
        unreachable!("the plans of this test are of managed memory")
    }
    fn copy(&self, _: usize, _: usize, _: usize, _: Direction) -> Result<(), CudaError> {
        unreachable!("the engine makes no copies")
    }
    fn synchronize(&self) -> Result<(), CudaError> {
        self.wait(None);
        Ok(())
    }
    fn has_error(&self) -> bool {
        false
    }
    fn forget_error(&self) {}
}
