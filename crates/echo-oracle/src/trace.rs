//! A path made ready to run: the host's actions in order and the items of work that they queue, each with what it waits for and what it
//! does to memory.
//!
//! Memory is a row of cells, one a byte of an *instance* of a buffer: each allocation makes a new instance, so a use of what an earlier
//! round of a loop allocated is never taken for a use of the newest. Data that a call has read and not yet delivered (a staged upload)
//! has cells too.

use crate::case::{BYTES, Buffer, Mask};
use crate::machine::Items;

/// Index of a cell.
pub type Cell = u8;
/// A set of cells.
pub type Cells = u64;
/// Index of an instance.
pub type Instance = u8;
/// A path has at most this many cells.
pub const MAX_CELLS: usize = Cells::BITS as usize;

/// What an action or an item does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing to memory.
    Nothing,
    /// Reads cells, then writes cells with values that are hashes of `name`, of what was read, and of which byte it is.
    Compute {
        /// Which operation, at which visit; the same in P and P'.
        name: u32,
        /// In the order of the program's access list.
        reads: Vec<Cell>,
        /// Each with what tells it from the others, the same in P and P'.
        writes: Vec<(Cell, u32)>,
    },
    /// Bytes move.
    Move {
        /// From, to.
        pairs: Vec<(Cell, Cell)>,
        /// It links the pair: what it reads may be undefined.
        links: bool,
    },
    /// Zeroes are written (calloc).
    Zero(Vec<Cell>),
    /// An instance begins, undefined.
    Begin(Instance),
    /// Instances end.
    End(Vec<Instance>),
}

/// An effect, and what it touches.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What it does.
    pub effect: Effect,
    /// The visit that it belongs to.
    pub place: u8,
    /// Cells that it reads.
    pub reads: Cells,
    /// Cells that it writes. Beginning and ending count as writing everything.
    pub writes: Cells,
    /// Instances that must be alive, a bit each.
    pub needs: u64,
}

/// What the host does next.
#[derive(Clone, Debug)]
pub struct Action {
    /// It starts when these are done.
    pub after: Items,
    /// What it does.
    pub operation: Operation,
    /// The item that it queues.
    pub queues: Option<usize>,
}

/// Work on a stream.
#[derive(Clone, Debug)]
pub struct Item {
    /// It starts when these are done.
    pub after: Items,
    /// What it does.
    pub operation: Operation,
}

/// A path, ready to run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The host's part.
    pub host: Vec<Action>,
    /// The GPU's part.
    pub items: Vec<Item>,
    /// Values of the cells at the beginning; 0 is undefined.
    pub memory: Vec<u64>,
    /// Instances that exist at the beginning.
    pub alive: u64,
    /// Cells whose last values somebody may look at, each with what tells it from the others.
    pub finals: Vec<(Cell, u32)>,
    /// What is wrong with the path, whichever order GPU work runs in: decided while it was made ready.
    pub fault: Option<(u8, Flaw)>,
}

/// See [`Trace::fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A buffer is used or freed that was never made.
    Missing,
    /// Both halves ended and p has not.
    Leak,
    /// The host touches p, or makes it, while work may be running.
    Exclusive,
}

impl Trace {
    /// A new instance.
    pub fn instance(&mut self) -> Instance {
        let instance = self.memory.len() / BYTES;
        self.memory.extend([0; BYTES]);
        assert!(self.memory.len() <= MAX_CELLS, "a path of a case makes few buffers");
        u8::try_from(instance).unwrap_or(u8::MAX)
    }

    /// Notes a flaw; the first counts.
    pub fn flaw(&mut self, place: u8, flaw: Flaw) {
        self.fault.get_or_insert((place, flaw));
    }
}

/// The cells of some bytes of an instance.
pub fn cells(instance: Instance, bytes: Mask) -> impl Iterator<Item = Cell> {
    (0..BYTES).filter(move |byte| bytes & (1 << byte) != 0).map(move |byte| instance * BYTES as u8 + byte as u8)
}

/// What tells a byte of a buffer from other bytes, the same in P and P'.
#[must_use]
pub fn label(buffer: Buffer, byte: usize) -> u32 {
    u32::from(buffer) * BYTES as u32 + byte as u32
}

impl Operation {
    /// The operation of a visit.
    #[must_use]
    pub fn new(place: u8, effect: Effect) -> Self {
        let mut operation = Self { effect, place, reads: 0, writes: 0, needs: 0 };
        let set = |cells: &mut dyn Iterator<Item = Cell>| cells.fold(0, |set: Cells, cell| set | 1 << cell);
        let all = |instance: &Instance| set(&mut cells(*instance, u8::MAX));
        match &operation.effect {
            Effect::Nothing => {}
            Effect::Compute { reads, writes, .. } => {
                operation.reads = set(&mut reads.iter().copied());
                operation.writes = set(&mut writes.iter().map(|(cell, _)| *cell));
            }
            Effect::Move { pairs, .. } => {
                operation.reads = set(&mut pairs.iter().map(|(from, _)| *from));
                operation.writes = set(&mut pairs.iter().map(|(_, to)| *to));
            }
            Effect::Zero(zeroed) => operation.writes = set(&mut zeroed.iter().copied()),
            Effect::Begin(instance) => operation.writes = all(instance),
            Effect::End(instances) => operation.writes = instances.iter().map(all).fold(0, |set, one| set | one),
        }
        if !matches!(operation.effect, Effect::Begin(_)) {
            let touched = operation.reads | operation.writes;
            let touches = |instance: &u8| touched & all(instance) != 0;
            operation.needs = (0..(MAX_CELLS / BYTES) as u8).filter(touches).fold(0, |set, one| set | 1 << one);
        }
        operation
    }

    /// Nothing at a visit.
    #[must_use]
    pub fn nothing(place: u8) -> Self {
        Self { effect: Effect::Nothing, place, reads: 0, writes: 0, needs: 0 }
    }

    /// The two may not run at the same time.
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        self.writes & (other.reads | other.writes) != 0 || other.writes & self.reads != 0
    }
}
