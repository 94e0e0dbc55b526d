//! Merging at run time: the first block of a planned pair becomes p, its partner gets the same p, copies between the two are skipped, and p ends with
//! the later of the two frees.
//!
//! What holds, whatever the program does:
//! - An address is p's only from the moment p is made until both of its views are freed (or the first is, if the second never came). All other
//!   addresses are forwarded untouched.
//! - A copy is skipped only if source and destination are one address of one p whose two views are alive. What the copy made the host wait for
//!   is then waited for, unless the plan says that an earlier wait covers it *and* the waits of this run confirm that ([`Pending`]). So is what an
//!   asynchronous copy ordered without making anybody wait: work on both sides of the legacy default stream, and behind an event.
//! - A copy with one end in p is made, and the host waits for it where the program's own memory would have made it wait.
//! - What was not profiled is counted as a [`Deviation`]. One that shows that blocks may not be paired as when profiled switches the pair off
//!   for new blocks; those that exist go on, since the program holds their addresses.
//!
//! What nothing here can know: whether the host touches p while the GPU works (validation), and whether a later run's blocks mean the same as
//! the profiled ones' (the plan's context).

mod blocks;
mod copies;
mod near;
mod table;

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use echo_dr_format::counters::PairCounters;
use echo_dr_format::event::{Stream, WaitFor};
use echo_dr_format::plan::{Direction, Pair, Plan};
use echo_dr_format::reason::Deviation;
use echo_rt::Cuda;

use crate::calls::{ReallocDecision, ResetDecision};
use crate::pending::{Pending, WaitToken};
use near::Near;
use table::{Block, Table, View};

/// The merged blocks of a process.
#[derive(Debug)]
pub struct Unifier {
    /// The enabled pairs.
    pairs: Vec<Pair>,
    /// Their sizes, sorted.
    sizes: Vec<usize>,
    near: Near,
    pending: Pending,
    table: Mutex<Table>,
    /// Streams that are being captured.
    captures: AtomicU32,
    forked: AtomicBool,
    stopped: AtomicBool,
    /// The device that p are made on.
    device: AtomicI32,
    /// Another one has been used since: what waits for one device says nothing of the other, and streams of both may have one name.
    several: AtomicBool,
    /// Some p is managed memory that the host must not touch while any GPU work is in flight.
    exclusive: AtomicBool,
    deviations: [AtomicU64; Deviation::ALL.len()],
}

impl Unifier {
    /// For a plan whose context holds; its enabled pairs are merged.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let pairs: Vec<Pair> = plan.enabled().cloned().collect();
        let mut sizes: Vec<usize> = pairs.iter().filter_map(|pair| usize::try_from(pair.bytes).ok()).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let table = Mutex::new(Table::new(&pairs));
        Self {
            pairs,
            sizes,
            near: Near::new(),
            pending: Pending::default(),
            table,
            captures: AtomicU32::new(0),
            forked: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            device: AtomicI32::new(0),
            several: AtomicBool::new(false),
            exclusive: AtomicBool::new(false),
            deviations: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Some pair has blocks of this size. Asked before the stack is walked for the site.
    #[must_use]
    #[inline]
    pub fn wants_size(&self, bytes: usize) -> bool {
        self.sizes.binary_search(&bytes).is_ok()
    }

    /// `address` may be in merged memory: a few nanoseconds, for the front of every hook. Never false for one that is.
    #[must_use]
    #[inline]
    pub fn is_near(&self, address: usize) -> bool {
        self.near.may_be_in(address)
    }

    /// realloc of `address`, before the real call.
    #[must_use]
    pub fn realloc(&self, address: usize) -> ReallocDecision {
        if !self.near.may_start(address) {
            return ReallocDecision::Forward;
        }
        let Some(mut table) = self.lock_in_any_process() else {
            return ReallocDecision::Forward;
        };
        match table.starting(address) {
            Some(&mut Block { host: View::Live, bytes, pair, .. }) => {
                self.retire(&mut table, pair, Deviation::Reallocated);
                ReallocDecision::Replace { bytes }
            }
            _ => ReallocDecision::Forward,
        }
    }

    /// Size of the merged host block at `address`, for malloc_usable_size.
    #[must_use]
    pub fn size_of(&self, address: usize) -> Option<usize> {
        if !self.near.may_start(address) {
            return None;
        }
        self.lock_in_any_process()?.starting(address).filter(|block| block.host == View::Live).map(|block| block.bytes)
    }

    /// cudaMemset of device memory, before it is made (it is always made).
    pub fn set(&self, dst: usize) {
        if !self.near.may_be_in(dst) || self.forked.load(Ordering::Acquire) {
            return;
        }
        let mut table = self.lock();
        if let Some(pair) = table.containing(dst).map(|block| block.pair)
            && self.pairs[pair].direction != Direction::Output
        {
            self.retire(&mut table, pair, Deviation::Set);
        }
    }

    /// The program asks CUDA about an address, gives advice on it or page-locks it. It is told of p; what it does then was not profiled.
    pub fn queried(&self, address: usize) {
        if !self.near.may_be_in(address) || self.forked.load(Ordering::Acquire) {
            return;
        }
        let mut table = self.lock();
        if let Some(pair) = table.containing(address).map(|block| block.pair) {
            self.retire(&mut table, pair, Deviation::Queried);
        }
    }

    /// GPU work was put into a stream: a launch, a graph, a set, a host function. Told after the call.
    pub fn launched(&self, stream: Stream) {
        self.pending.launched(stream);
    }

    /// An event recorded a stream. Told after the call; `token` is from before it.
    pub fn recorded(&self, token: WaitToken, event: u64, stream: Stream) {
        self.pending.recorded(event, stream, token);
    }

    /// A stream was made to wait for an event. Told after the call.
    pub fn joined(&self, stream: Stream) {
        self.pending.joined(stream);
    }

    /// A wait, a copy or the record of an event is about to begin.
    #[must_use]
    pub fn waiting(&self) -> WaitToken {
        self.pending.waiting()
    }

    /// A wait has succeeded; also a query that said "done", and a wait that [`crate::calls::CopyDecision`] asked for.
    pub fn waited(&self, token: WaitToken, on: WaitFor) {
        self.pending.waited(token, on);
    }

    /// A stream's capture begins or ends. While one is captured no copy is skipped: a wait would break the capture.
    pub fn capture(&self, begin: bool) {
        if begin {
            self.captures.fetch_add(1, Ordering::AcqRel);
        } else {
            // More ends than beginnings are a program's mistake, not a reason to wrap.
            let _ = self.captures.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
        }
    }

    /// The device is about to be reset, or its context to be destroyed.
    pub fn reset(&self, cuda: &impl Cuda) -> ResetDecision {
        if self.forked.load(Ordering::Acquire) {
            return ResetDecision::Forward;
        }
        let mut table = self.lock();
        // Page-locked memory would go with the reset, as device memory does.
        let stays = |block: &&Block| block.host == View::Live && !self.pairs[block.pair].page_locked;
        if let Some(pair) = table.blocks().iter().find(stays).map(|block| block.pair) {
            self.retire(&mut table, pair, Deviation::ResetPostponed);
            return ResetDecision::WaitInstead;
        }
        loop {
            let Some(address) = table.blocks().first().map(Block::start) else {
                return ResetDecision::Forward;
            };
            let Some(block) = self.take(&mut table, address) else {
                return ResetDecision::Forward;
            };
            drop(table);
            // What the program had here would go with the reset; what is left of p goes now.
            let _ = block.merged.release(cuda);
            table = self.lock();
        }
    }

    /// The program goes over to a device, or to a context that counts as one. When profiled it had one only.
    pub fn device_set(&self, device: i32) {
        if self.near.is_unused() {
            self.device.store(device, Ordering::Release);
        } else if self.device.load(Ordering::Acquire) != device {
            self.several.store(true, Ordering::Release);
        }
    }

    /// This process is the child of a fork: nothing is merged any more, and merged blocks are never released.
    pub fn forked(&self) {
        self.forked.store(true, Ordering::Release);
    }

    /// No new blocks are merged any more; those that exist go on.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// What happened to each enabled pair.
    #[must_use]
    pub fn counters(&self) -> Vec<PairCounters> {
        let mut counters = Vec::with_capacity(self.pairs.len());
        counters.extend(self.lock().pairs.iter().map(|pair| pair.counters));
        counters
    }

    /// How often each deviation happened; those that did.
    #[must_use]
    pub fn deviations(&self) -> Vec<(Deviation, u64)> {
        let count = |(&deviation, count): (&Deviation, &AtomicU64)| (deviation, count.load(Ordering::Relaxed));
        Deviation::ALL.iter().zip(&self.deviations).map(count).filter(|&(_, count)| count > 0).collect()
    }

    /// Takes p out of all tables. Its memory is given back by the caller, without the lock: afterwards the address may be anybody's.
    fn take(&self, table: &mut MutexGuard<'_, Table>, address: usize) -> Option<Block> {
        let block = table.remove(address)?;
        self.near.remove(address);
        let state = &mut table.pairs[block.pair];
        state.matcher.leave(address);
        state.counters.released += 1;
        Some(block)
    }

    /// Counts, and merges no new blocks of the pair.
    fn retire(&self, table: &mut MutexGuard<'_, Table>, pair: usize, deviation: Deviation) {
        self.count(deviation);
        table.pairs[pair].retired = true;
    }

    fn count(&self, deviation: Deviation) {
        if let Some(place) = Deviation::ALL.iter().position(|&known| known == deviation) {
            self.deviations[place].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The lock; in the child of a fork `None` if a thread held it that only the parent has.
    fn lock_in_any_process(&self) -> Option<MutexGuard<'_, Table>> {
        if !self.forked.load(Ordering::Acquire) {
            return Some(self.lock());
        }
        match self.table.try_lock() {
            Ok(table) => Some(table),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing that holds the lock can leave the table half changed.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
