//! Allocations and frees: who gets p, and when it ends.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use echo_dr_format::plan::Pair;
use echo_dr_format::reason::Deviation;
use echo_dr_format::site::Site;
use echo_rt::{Backend, Cuda, CudaError, DeviceFacts, Merged, PairFacts, usable};

use super::Unifier;
use super::table::{Block, Table, View};
use crate::calls::{AllocDecision, DeviceAlloc, FreeDecision, HostAlloc};
use crate::matcher::{Arrival, Side};

/// What the program's own free waits for.
#[derive(Clone, Copy)]
enum Waits {
    No,
    ForDevice,
}

/// An address that is no block's, for an error of CUDA's own making.
const NO_BLOCK: usize = 1;

/// A block that is asked for.
#[derive(Clone, Copy)]
struct Asked {
    pair: usize,
    side: Side,
    /// What p's address must be a multiple of. CUDA promises 256 and gives more, depending on size and device, so it is looked at.
    align: usize,
    zeroed: bool,
    thread: u64,
}

impl Asked {
    fn is_aligned(self, address: usize) -> bool {
        address.is_multiple_of(self.align.max(1))
    }
}

impl Unifier {
    /// Host memory is asked for, of the heap or page-locked. `device` says what the device is, `None` if the plan's device is not the one in use;
    /// it is asked only before p is made. The caller may be inside malloc: `cuda` must not come back to the engine.
    pub fn host_alloc(
        &self,
        cuda: &impl Cuda,
        device: impl FnOnce() -> Option<DeviceFacts>,
        call: HostAlloc,
    ) -> AllocDecision {
        let Some(pair) = self.planned(call.site, call.bytes, |pair| pair.host) else {
            return AllocDecision::Forward;
        };
        if call.page_locked != self.pairs[pair].page_locked {
            self.retire(&mut self.lock(), pair, Deviation::OtherKind);
            return AllocDecision::Forward;
        }
        let asked = Asked { pair, side: Side::Host, align: call.align, zeroed: call.zeroed, thread: call.thread };
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
        self.allocate(cuda, device, Asked { pair, side: Side::Device, align: 1, zeroed: false, thread: call.thread })
    }

    /// free(address), before the real call.
    #[inline]
    pub fn host_free(&self, cuda: &impl Cuda, address: usize) -> FreeDecision {
        if !self.near.may_start(address) {
            return FreeDecision::Forward;
        }
        let quiet = !cuda.has_error();
        let decision = self.free(cuda, address, Side::Host, Waits::No);
        if quiet && matches!(decision, FreeDecision::Done(Err(_))) {
            // free reports nothing, so the program must not find an error that it did not cause.
            cuda.forget_error();
        }
        decision
    }

    /// cudaFreeHost(address), before the real call.
    pub fn page_locked_free(&self, cuda: &impl Cuda, address: usize) -> FreeDecision {
        if !self.near.may_start(address) {
            return FreeDecision::Forward;
        }
        // Drivers wait for the device here, though no documentation says so: programs may count on it unawares.
        self.free(cuda, address, Side::Host, Waits::ForDevice)
    }

    /// cudaFree(address), or cudaFreeAsync, before the real call.
    pub fn device_free(&self, cuda: &impl Cuda, address: usize) -> FreeDecision {
        if !self.near.may_start(address) {
            return FreeDecision::Forward;
        }
        // cudaFree waits for the device, and programs count on it. cudaFreeAsync does not, but afterwards nobody knows which work of a stream uses p,
        // while the program takes h for memory that no GPU uses.
        self.free(cuda, address, Side::Device, Waits::ForDevice)
    }

    /// The enabled pair whose block at `site` has this size.
    fn planned(&self, site: Site, bytes: usize, side: impl Fn(&Pair) -> Site) -> Option<usize> {
        if self.forked.load(Ordering::Acquire) || self.stopped.load(Ordering::Acquire) {
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
        let made = self.make(cuda, device, asked);
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
        if !asked.is_aligned(address) {
            self.retire(table, asked.pair, Deviation::Alignment);
            return AllocDecision::Forward;
        }
        let launches = self.pending.launches();
        let Some(block) = table.starting(address) else {
            return AllocDecision::Forward;
        };
        // calloc writes h at once, and the GPU may have given d a value, or be at it.
        let forbidden = self.exclusive.load(Ordering::Acquire) && !self.pending.idle();
        if asked.zeroed && (block.born != launches || forbidden) {
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
        asked: Asked,
    ) -> Result<Merged, Deviation> {
        let pair = &self.pairs[asked.pair];
        let facts = PairFacts { mergeable: true, exclusive: pair.exclusive, synchronous_copies: false };
        let backend = pair.backend.backend();
        let device = device().filter(|&device| usable(backend, device, facts)).ok_or(Deviation::BackendUnusable)?;
        if cuda.has_error() {
            return Err(Deviation::ErrorPending);
        }
        let is_exclusive = backend == Backend::Managed && !device.concurrent_managed_access;
        self.exclusive.fetch_or(is_exclusive, Ordering::AcqRel);
        // Filling p with zeroes is an access of the host, which that device forbids while work is in flight.
        if asked.zeroed && is_exclusive && !self.pending.idle() && cuda.synchronize().is_err() {
            return Err(Deviation::ErrorPending);
        }
        let bytes = usize::try_from(pair.bytes).unwrap_or(usize::MAX);
        let merged = Merged::allocate(cuda, backend, bytes).ok_or_else(|| {
            cuda.forget_error();
            Deviation::AllocationFailed
        })?;
        if !asked.is_aligned(merged.address()) {
            let _ = merged.release(cuda);
            return Err(Deviation::Alignment);
        }
        Ok(merged)
    }

    fn free(&self, cuda: &impl Cuda, address: usize, side: Side, waits: Waits) -> FreeDecision {
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
        // free, and not cudaFreeHost.
        let of_heap = side == Side::Host && matches!(waits, Waits::No);
        if *mine != View::Live || (side == Side::Host && of_heap == self.pairs[block.pair].page_locked) {
            // Freed twice, or by the wrong function. CUDA says no to that, and would not if it were given p, which the other view still needs.
            drop(table);
            let refused = match side {
                Side::Host if of_heap => return FreeDecision::Forward,
                Side::Host => cuda.host_free(NO_BLOCK),
                Side::Device => cuda.free(NO_BLOCK),
            };
            return FreeDecision::Done(refused.and(Err(CudaError::INVALID_VALUE)));
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
                FreeDecision::Done(match waits {
                    Waits::ForDevice => cuda.synchronize(),
                    Waits::No => Ok(()),
                })
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
}

#[cfg(test)]
mod tests {
    use echo_dr_format::context::{Context, FileIdentity, Process};
    use echo_dr_format::plan::Plan;
    use echo_dr_format::site::Hash64;
    use echo_rt::{CudaError, Direction as Way, Side as Place};

    use super::*;

    /// CUDA in the child of a fork, where nothing may be called.
    struct Nobody;

    macro_rules! never {
        ($($name:ident($($type:ty),*) $(-> $result:ty)?;)*) => {
            impl Cuda for Nobody {
                $(fn $name(&self, $(_: $type),*) $(-> $result)? {
                    unreachable!("the child of a fork calls {}", stringify!($name))
                })*
            }
        };
    }

    never! {
        malloc(usize) -> Result<usize, CudaError>;
        free(usize) -> Result<(), CudaError>;
        malloc_managed(usize) -> Result<usize, CudaError>;
        host_alloc(usize) -> Result<(usize, usize), CudaError>;
        host_free(usize) -> Result<(), CudaError>;
        heap_alloc(usize) -> Option<usize>;
        heap_free(usize);
        copy(usize, usize, usize, Way) -> Result<(), CudaError>;
        synchronize() -> Result<(), CudaError>;
        has_error() -> bool;
        forget_error();
        prefetch(usize, usize, Place, u64) -> Result<(), CudaError>;
    }

    #[test]
    fn a_child_that_inherits_a_taken_lock_leaks_and_does_not_hang() {
        let executable = FileIdentity { path: "/app".into(), build_id: String::new(), bytes: 1, hash: Hash64(1) };
        let process = Process { executable, libraries: Vec::new(), host: "host".into(), arguments: Vec::new() };
        let plan = Plan {
            context: Context { process, device: None },
            threshold: 1,
            loop_site: None,
            pairs: Vec::new(),
            ineligible: Vec::new(),
            notes: Vec::new(),
            together: None,
        };
        let unifier = Unifier::new(&plan);
        // The thread that held it is in the parent only, so it stays taken for ever.
        let _taken = unifier.lock();
        unifier.forked();
        for side in [Side::Host, Side::Device] {
            assert_eq!(unifier.free(&Nobody, 0x1000, side, Waits::No), FreeDecision::Done(Ok(())));
        }
        assert_eq!(unifier.deviations(), [(Deviation::ForkedChild, 2)]);
    }
}
