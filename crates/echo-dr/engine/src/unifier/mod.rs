//! Merging at run time: the first block of a planned pair becomes p, its partner gets the same p, copies between the two are skipped, and p ends with
//! the later of the two frees.
//!
//! What holds, whatever the program does:
//! - An address is p's only from the moment p is made until both of its views are freed (or the first is, if the second never came). All other
//!   addresses are forwarded untouched.
//! - A copy is skipped only if source and destination are one address of one p whose two views are alive. What the copy made the host wait for
//!   is then waited for, unless the plan says that an earlier wait covers it *and* the waits of this run confirm that ([`Pending`]).
//! - A copy with one end in p is made, and the host waits for it where the program's own memory would have made it wait.
//! - What was not profiled is counted as a [`Deviation`]. One that shows that blocks may not be paired as when profiled switches the pair off
//!   for new blocks; those that exist go on, since the program holds their addresses.
//!
//! What nothing here can know: whether the host touches p while the GPU works (validation), and whether a later run's blocks mean the same as
//! the profiled ones' (the plan's context).

mod near;
mod table;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use echo_dr_format::counters::PairCounters;
use echo_dr_format::event::{CopyKind, Shape, Stream, WaitFor};
use echo_dr_format::plan::{BackendName, CopySite, Direction, Pair, Plan, Wait, Way};
use echo_dr_format::reason::Deviation;
use echo_dr_format::site::Site;
use echo_rt::{Cuda, CudaError, DeviceFacts, Merged, PairFacts, Side as Place, usable};

use crate::calls::{
    AllocDecision, Copy, CopyDecision, DeviceAlloc, FreeDecision, HostAlloc, ReallocDecision, ResetDecision, Waiting,
};
use crate::matcher::{Arrival, Side};
use crate::pending::{Pending, WaitToken};
use near::Near;
use table::{Block, Table, View};

/// What heap memory of `echo-rt` is aligned to, and CUDA's at least.
const ALIGNMENT: usize = 256;

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
    deviations: [AtomicU64; Deviation::ALL.len()],
}

/// A block that is asked for.
#[derive(Clone, Copy)]
struct Asked {
    pair: usize,
    side: Side,
    zeroed: bool,
    thread: u64,
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

    /// Host memory is asked for. `device` says what the device is, `None` if the plan's device is not the one in use; it is asked only before p
    /// is made. The caller is inside malloc: `cuda` must not come back to the engine.
    pub fn host_alloc(
        &self,
        cuda: &impl Cuda,
        device: impl FnOnce() -> Option<DeviceFacts>,
        call: HostAlloc,
    ) -> AllocDecision {
        let Some(pair) = self.planned(call.site, call.bytes, |pair| pair.host) else {
            return AllocDecision::Forward;
        };
        if call.align > ALIGNMENT {
            self.retire(&mut self.lock(), pair, Deviation::Alignment);
            return AllocDecision::Forward;
        }
        let asked = Asked { pair, side: Side::Host, zeroed: call.zeroed, thread: call.thread };
        self.allocate(cuda, device, asked)
    }

    /// Device memory is asked for.
    pub fn device_alloc(
        &self,
        cuda: &impl Cuda,
        device: impl FnOnce() -> Option<DeviceFacts>,
        call: DeviceAlloc,
    ) -> AllocDecision {
        let Some(pair) = self.planned(call.site, call.bytes, |pair| pair.device) else {
            return AllocDecision::Forward;
        };
        self.allocate(cuda, device, Asked { pair, side: Side::Device, zeroed: false, thread: call.thread })
    }

    /// free(address), before the real call.
    #[inline]
    pub fn host_free(&self, cuda: &impl Cuda, address: usize) -> FreeDecision {
        if !self.near.may_start(address) {
            return FreeDecision::Forward;
        }
        let quiet = !cuda.has_error();
        let decision = self.free(cuda, address, Side::Host, false);
        if quiet && matches!(decision, FreeDecision::Done(Err(_))) {
            // free reports nothing, so the program must not find an error that it did not cause.
            cuda.forget_error();
        }
        decision
    }

    /// cudaFree(address), or cudaFreeAsync, before the real call.
    pub fn device_free(&self, cuda: &impl Cuda, address: usize, asynchronous: bool) -> FreeDecision {
        if !self.near.may_start(address) {
            return FreeDecision::Forward;
        }
        self.free(cuda, address, Side::Device, asynchronous)
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

    /// A copy, before it is made. `cuda` is used for prefetches.
    pub fn copy(&self, cuda: &impl Cuda, call: &Copy) -> CopyDecision {
        // A copy of which one end is far away may still read p.
        if !self.near.may_be_in(call.dst) && !self.near.may_be_in(call.src) {
            return CopyDecision::Forward;
        }
        if self.captures.load(Ordering::Acquire) > 0 || self.forked.load(Ordering::Acquire) {
            return CopyDecision::Forward;
        }
        let mut table = self.lock();
        let (dst, src) = (table.containing(call.dst).copied(), table.containing(call.src).copied());
        let (block, other) = match (dst, src) {
            (None, None) => return CopyDecision::Forward,
            (Some(block), other) => (block, other),
            (None, Some(block)) => (block, None),
        };
        let pair = block.pair;
        let within = other.is_some_and(|other| other.start() == block.start());
        let links = call.shape == Shape::Linear
            && call.dst == call.src
            && !matches!(call.kind, CopyKind::DeviceToDevice | CopyKind::HostToHost)
            && block.host == View::Live
            && block.device == View::Live
            && call.bytes <= block.bytes - (call.dst - block.start());
        if within && links {
            let decision = self.skip(&mut table, &block, call);
            drop(table);
            self.prefetch(cuda, &block, call);
            return decision;
        }
        if within && call.dst != call.src {
            self.retire(&mut table, pair, Deviation::ShiftedCopy);
        } else if !within && dst.is_some_and(|dst| self.pairs[dst.pair].direction != Direction::Output) {
            self.retire(&mut table, pair, Deviation::ForeignCopy);
        }
        table.pairs[pair].counters.copies_made += 1;
        // The program's own memory would have made the call wait (pageable memory) or be staged; p does not.
        if call.asynchronous && call.kind != CopyKind::DeviceToDevice {
            return CopyDecision::ForwardThenWait(Waiting::Stream(call.stream));
        }
        CopyDecision::Forward
    }

    /// A copy was made, and succeeded. `token` is from before it.
    pub fn copied(&self, token: WaitToken, call: &Copy) {
        if call.asynchronous || call.kind == CopyKind::DeviceToDevice {
            self.pending.launched(call.stream);
        } else {
            // It came back when everything before it in its stream was done.
            self.pending.copied(token, call.stream);
        }
    }

    /// A stream was created.
    pub fn stream_created(&self, stream: Stream, non_blocking: bool) {
        self.pending.created(stream, non_blocking);
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

    /// GPU work was put into a stream: a launch, a graph, a set, a host function. Told after the call.
    pub fn launched(&self, stream: Stream) {
        self.pending.launched(stream);
    }

    /// An event recorded a stream. Told after the call; `token` is from before it.
    pub fn recorded(&self, token: WaitToken, event: u64, stream: Stream) {
        self.pending.recorded(event, stream, token);
    }

    /// A wait, a copy or the record of an event is about to begin.
    #[must_use]
    pub fn waiting(&self) -> WaitToken {
        self.pending.waiting()
    }

    /// A wait has succeeded; also a query that said "done", and a wait that [`CopyDecision`] asked for.
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
        if let Some(pair) = table.blocks().iter().find(|block| block.host == View::Live).map(|block| block.pair) {
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
            // Device memory would go with the reset; what is left of p goes now.
            let _ = block.merged.release(cuda);
            table = self.lock();
        }
    }

    /// This process is the child of a fork: nothing is merged any more, and merged blocks are never released.
    pub fn forked(&self) {
        self.forked.store(true, Ordering::Release);
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

    /// The enabled pair whose block at `site` has this size.
    fn planned(&self, site: Site, bytes: usize, side: impl Fn(&Pair) -> Site) -> Option<usize> {
        if self.forked.load(Ordering::Acquire) {
            return None;
        }
        let mut other_size = None;
        for (index, pair) in self.pairs.iter().enumerate().filter(|(_, pair)| side(pair) == site) {
            if usize::try_from(pair.bytes) == Ok(bytes) {
                return Some(index);
            }
            other_size = Some(index);
        }
        if let Some(pair) = other_size {
            self.retire(&mut self.lock(), pair, Deviation::OtherSize);
        }
        None
    }

    fn allocate(&self, cuda: &impl Cuda, device: impl FnOnce() -> Option<DeviceFacts>, asked: Asked) -> AllocDecision {
        let pair = &self.pairs[asked.pair];
        let mut table = self.lock();
        if table.pairs[asked.pair].retired {
            self.count(Deviation::Retired);
            return AllocDecision::Forward;
        }
        match table.pairs[asked.pair].matcher.arrive(asked.side, asked.thread) {
            Arrival::Partner(address) => return self.join(&mut table, asked, address),
            Arrival::Deviation(deviation) => {
                self.retire(&mut table, asked.pair, deviation);
                return AllocDecision::Forward;
            }
            Arrival::First => {}
        }
        if let Some(deviation) = self.no_room(&table, asked) {
            self.retire(&mut table, asked.pair, deviation);
            return AllocDecision::Forward;
        }
        table.pairs[asked.pair].coming += 1;
        // CUDA may take locks of its own, under which another thread may be in a hook of ours: never call it with ours held.
        drop(table);
        let made = self.make(cuda, device, asked.pair);
        let mut table = self.lock();
        table.pairs[asked.pair].coming -= 1;
        let merged = match made {
            Ok(merged) => merged,
            Err(deviation) => {
                self.retire(&mut table, asked.pair, deviation);
                return AllocDecision::Forward;
            }
        };
        let (host, device) = match asked.side {
            Side::Host => (View::Live, View::Absent),
            Side::Device => (View::Absent, View::Live),
        };
        let bytes = usize::try_from(pair.bytes).unwrap_or(usize::MAX);
        let born = self.pending.launches();
        let block = Block { merged, bytes, pair: asked.pair, host, device, thread: asked.thread, born };
        let address = merged.address();
        self.near.add(address, bytes);
        let state = &mut table.pairs[asked.pair];
        let queued = !state.retired && state.matcher.wait(asked.side, asked.thread, address);
        if queued && table.insert(block) {
            table.pairs[asked.pair].counters.merged += 1;
            return AllocDecision::Use { address, fill_zero: asked.zeroed };
        }
        // Another thread took the last place, or switched the pair off, while the lock was open.
        table.pairs[asked.pair].matcher.leave(address);
        self.near.remove(address);
        self.retire(&mut table, asked.pair, Deviation::TooManyWaiting);
        drop(table);
        let _ = merged.release(cuda);
        AllocDecision::Forward
    }

    /// Why no p can be made, if so.
    fn no_room(&self, table: &Table, asked: Asked) -> Option<Deviation> {
        let pair = &self.pairs[asked.pair];
        let coming = table.pairs[asked.pair].coming;
        // A thread makes one block at a time, so what is coming concerns it only where threads share their blocks.
        if !pair.same_thread && coming > 0 {
            return Some(Deviation::TooManyWaiting);
        }
        if table.is_full() {
            return Some(Deviation::TableFull);
        }
        let alive = table.alive(asked.pair, pair.same_thread.then_some(asked.thread));
        (alive >= pair.alive).then_some(Deviation::TooManyAlive)
    }

    /// The second block of p.
    fn join(&self, table: &mut MutexGuard<'_, Table>, asked: Asked, address: usize) -> AllocDecision {
        let launches = self.pending.launches();
        let Some(block) = table.starting(address) else {
            return AllocDecision::Forward;
        };
        // calloc writes h at once, and the GPU may have given d a value, or be at it.
        if asked.zeroed && block.born != launches {
            self.retire(table, asked.pair, Deviation::ZeroedAfterUse);
            return AllocDecision::Forward;
        }
        match asked.side {
            Side::Host => block.host = View::Live,
            Side::Device => block.device = View::Live,
        }
        table.pairs[asked.pair].counters.met += 1;
        AllocDecision::Use { address, fill_zero: asked.zeroed }
    }

    /// Memory for a p. The lock is not held.
    fn make(
        &self,
        cuda: &impl Cuda,
        device: impl FnOnce() -> Option<DeviceFacts>,
        pair: usize,
    ) -> Result<Merged, Deviation> {
        let pair = &self.pairs[pair];
        let facts = PairFacts { mergeable: true, exclusive: pair.exclusive, synchronous_copies: false };
        let backend = pair.backend.backend();
        if !device().is_some_and(|device| usable(backend, device, facts)) {
            return Err(Deviation::BackendUnusable);
        }
        if cuda.has_error() {
            return Err(Deviation::ErrorPending);
        }
        let bytes = usize::try_from(pair.bytes).unwrap_or(usize::MAX);
        Merged::allocate(cuda, backend, bytes).ok_or_else(|| {
            cuda.forget_error();
            Deviation::AllocationFailed
        })
    }

    fn free(&self, cuda: &impl Cuda, address: usize, side: Side, asynchronous: bool) -> FreeDecision {
        let Some(mut table) = self.lock_in_any_process() else {
            // Perhaps p, perhaps a block of the heap: to leak the one is better than to free the other.
            self.count(Deviation::ForkedChild);
            return FreeDecision::Done(Ok(()));
        };
        let Some(block) = table.starting(address) else {
            return FreeDecision::Forward;
        };
        let (mine, other) = match side {
            Side::Host => (&mut block.host, block.device),
            Side::Device => (&mut block.device, block.host),
        };
        if *mine != View::Live {
            // Freed twice, or by the wrong function: what the real call makes of it is the program's own affair.
            return FreeDecision::Forward;
        }
        *mine = View::Freed;
        if self.forked.load(Ordering::Acquire) {
            self.count(Deviation::ForkedChild);
            return FreeDecision::Done(Ok(()));
        }
        let pair = block.pair;
        match other {
            View::Live => {
                drop(table);
                // cudaFree waits for the device, and programs count on it.
                let waits = side == Side::Device && !asynchronous;
                FreeDecision::Done(if waits { cuda.synchronize() } else { Ok(()) })
            }
            View::Absent | View::Freed => {
                if other == View::Absent {
                    self.retire(&mut table, pair, Deviation::PartnerNeverCame);
                }
                let block = self.take(&mut table, address);
                drop(table);
                FreeDecision::Done(block.map_or(Ok(()), |block| block.merged.release(cuda)))
            }
        }
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

    /// A linking copy goes; what stays of it.
    fn skip(&self, table: &mut MutexGuard<'_, Table>, block: &Block, call: &Copy) -> CopyDecision {
        let planned = self.copy_site(block.pair, call);
        if planned.is_none() {
            self.count(Deviation::UnknownCopySite);
        }
        // An upload that may return early makes nobody wait. A download to the program's pageable memory returns when it is done, whatever its name.
        let upload = match call.kind {
            CopyKind::HostToDevice => true,
            CopyKind::DeviceToHost => false,
            _ => planned.is_some_and(|site| site.way == Way::Upload),
        };
        let waits = !(upload && call.asynchronous);
        let waiting = waits.then(|| self.wait_of(planned.map(|site| site.wait), call.stream)).flatten();
        let counters = &mut table.pairs[block.pair].counters;
        counters.copies_skipped += 1;
        counters.bytes_skipped += call.bytes as u64;
        match waiting {
            None => CopyDecision::Skip,
            Some(waiting) => {
                counters.waits += 1;
                CopyDecision::SkipThenWait(waiting)
            }
        }
    }

    /// The wait that stands for a copy.
    fn wait_of(&self, planned: Option<Wait>, stream: Stream) -> Option<Waiting> {
        match planned {
            Some(Wait::Covered) if self.pending.idle() => None,
            Some(Wait::Covered) => {
                self.count(Deviation::WaitNotCovered);
                Some(Waiting::Device)
            }
            // A wait for a stream does not wait for what a copy in it would have waited for: work in the default stream.
            Some(Wait::Stream) if stream.is_own() && self.pending.idle_but_for(stream) => Some(Waiting::Stream(stream)),
            Some(Wait::Stream | Wait::Device) | None => Some(Waiting::Device),
        }
    }

    fn copy_site(&self, pair: usize, call: &Copy) -> Option<&CopySite> {
        self.pairs[pair].copies.iter().find(|copy| copy.site == call.site)
    }

    /// Managed memory is moved in bulk where the copy was. Advice: a failure is forgotten.
    fn prefetch(&self, cuda: &impl Cuda, block: &Block, call: &Copy) {
        let pair = &self.pairs[block.pair];
        if pair.backend != BackendName::Prefetched || cuda.has_error() {
            return;
        }
        let upload = match call.kind {
            CopyKind::HostToDevice => true,
            CopyKind::DeviceToHost => false,
            _ => self.copy_site(block.pair, call).is_some_and(|site| site.way == Way::Upload),
        };
        let place = if upload { Place::Device } else { Place::Host };
        if cuda
            .prefetch(call.dst, call.bytes, place, call.stream.0)
            .is_err_and(|error| error != CudaError::NOT_SUPPORTED)
        {
            cuda.forget_error();
        }
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
