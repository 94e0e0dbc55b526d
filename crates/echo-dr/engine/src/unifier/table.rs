//! The merged blocks that are alive, and who waits for whom: the state behind the unifier's lock.
//!
//! All room is taken when the table is made. Nothing here allocates afterwards, since the callers are inside malloc.

use echo_dr_format::counters::PairCounters;
use echo_dr_format::plan::Pair;
use echo_rt::Merged;

use crate::matcher::{Matcher, Rule};

/// How many merged blocks may be alive.
pub(super) const BLOCKS: usize = 4096;

/// One of the program's two views of p.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// Not allocated yet: the partner that p waits for.
    Absent,
    /// In use.
    Live,
    /// Freed.
    Freed,
}

/// p.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) merged: Merged,
    pub(super) bytes: usize,
    /// Index of its pair.
    pub(super) pair: usize,
    pub(super) host: View,
    pub(super) device: View,
    /// Thread that made it.
    pub(super) thread: u64,
    /// Launches when it was made.
    pub(super) born: u64,
}

impl Block {
    pub(super) fn start(&self) -> usize {
        self.merged.address()
    }

    fn contains(&self, address: usize) -> bool {
        address >= self.start() && address - self.start() < self.bytes
    }
}

/// What happens with one pair.
#[derive(Debug)]
pub(super) struct PairState {
    pub(super) matcher: Matcher<usize>,
    /// A deviation has shown that its blocks can't be told apart as when profiled: nothing more is merged.
    pub(super) retired: bool,
    /// Blocks that are being made while the lock is open.
    pub(super) coming: u32,
    pub(super) counters: PairCounters,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Table {
    /// In order of their addresses.
    blocks: Vec<Block>,
    pub(super) pairs: Vec<PairState>,
}

impl Table {
    pub(super) fn new(pairs: &[Pair]) -> Self {
        let state = |pair: &Pair| PairState {
            matcher: Matcher::new(Rule::of(pair)),
            retired: false,
            coming: 0,
            counters: PairCounters { pair: pair.id, ..PairCounters::default() },
        };
        Self { blocks: Vec::with_capacity(BLOCKS), pairs: pairs.iter().map(state).collect() }
    }

    /// No room for `coming` more blocks.
    pub(super) fn is_full(&self) -> bool {
        let coming: u32 = self.pairs.iter().map(|pair| pair.coming).sum();
        self.blocks.len() + coming as usize >= BLOCKS
    }

    /// Blocks of a pair that are alive, of one thread if asked for one.
    pub(super) fn alive(&self, pair: usize, thread: Option<u64>) -> u32 {
        let counts = |block: &&Block| block.pair == pair && thread.is_none_or(|thread| block.thread == thread);
        u32::try_from(self.blocks.iter().filter(counts).count()).unwrap_or(u32::MAX)
    }

    /// Adds a block; there must be room. False if memory at that address is in the table, which no allocator gives.
    pub(super) fn insert(&mut self, block: Block) -> bool {
        let place = self.blocks.partition_point(|other| other.start() < block.start());
        let free = self.blocks.get(place).is_none_or(|next| next.start() != block.start());
        if free && self.blocks.len() < self.blocks.capacity() {
            self.blocks.insert(place, block);
            return true;
        }
        false
    }

    /// The block that starts at `address`.
    pub(super) fn starting(&mut self, address: usize) -> Option<&mut Block> {
        let place = self.blocks.binary_search_by_key(&address, Block::start).ok()?;
        self.blocks.get_mut(place)
    }

    /// The block that `address` is in.
    pub(super) fn containing(&self, address: usize) -> Option<&Block> {
        let after = self.blocks.partition_point(|block| block.start() <= address);
        self.blocks[..after].last().filter(|block| block.contains(address))
    }

    /// Takes a block out.
    pub(super) fn remove(&mut self, address: usize) -> Option<Block> {
        let place = self.blocks.binary_search_by_key(&address, Block::start).ok()?;
        Some(self.blocks.remove(place))
    }

    /// All blocks.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }
}
