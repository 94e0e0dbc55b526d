//! The pages that are watched, for the fault handler: fixed room, atomics only, no lock.
//!
//! A block has a level, what its window allows, and may be closed besides because GPU work is in flight somewhere. A fault finds the block,
//! notes what it means and says what the pages allow from now on; the rest of validation reads the notes later.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use echo_dr_format::finding::Access;
use echo_dr_format::site::Site;

use super::{Fault, Memory, Protection};

/// How many host blocks can be watched at once.
const SLOTS: usize = 1024;

/// An access that a fault showed; the first one is kept.
#[derive(Debug, Default)]
struct Note {
    /// 0: none, 1: being written, 2: there.
    state: AtomicU8,
    access: AtomicU8,
    offset: AtomicU64,
    site: AtomicU64,
}

/// What a note says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) access: Access,
    pub(super) offset: u64,
    pub(super) site: Site,
}

impl Note {
    fn put(&self, seen: Seen) {
        if self.state.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.access.store(code(seen.access), Ordering::Relaxed);
            self.offset.store(seen.offset, Ordering::Relaxed);
            self.site.store(seen.site.0, Ordering::Relaxed);
            self.state.store(2, Ordering::Release);
        }
    }

    fn look(&self) -> Option<Seen> {
        if self.state.load(Ordering::Acquire) != 2 {
            return None;
        }
        Some(Seen {
            access: access(self.access.load(Ordering::Relaxed)),
            offset: self.offset.load(Ordering::Relaxed),
            site: Site(self.site.load(Ordering::Relaxed)),
        })
    }

    fn take(&self) -> Option<Seen> {
        let seen = self.look()?;
        self.state.store(0, Ordering::Release);
        Some(seen)
    }
}

/// A watched block.
#[derive(Debug, Default)]
struct Slot {
    used: AtomicBool,
    /// First page.
    start: AtomicUsize,
    /// End of the last page.
    end: AtomicUsize,
    level: AtomicU8,
    /// A read while the level is `Closed` is noted as doubtful and allowed.
    tolerant: AtomicBool,
    /// Closed because GPU work is in flight.
    flight: AtomicBool,
    /// What the pages allow.
    applied: AtomicU8,
    /// The host has written since this was last cleared.
    dirty: AtomicBool,
    /// The pages could not be given a protection.
    unguarded: AtomicBool,
    wrong: Note,
    doubtful: Note,
    in_flight: Note,
    /// System calls that are reading the block now, and that may be writing it.
    readers: AtomicU32,
    writers: AtomicU32,
    /// The last of them.
    borrower: Note,
    /// How many blocks the slot has had.
    generation: AtomicU32,
}

/// A block that a system call has in its hands: until it is given back its pages stay open.
#[derive(Clone, Copy, Debug)]
pub struct Loan {
    slot: SlotId,
    generation: u32,
    writes: bool,
}

/// A slot's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotId(usize);

/// All watched blocks.
#[derive(Debug)]
pub(super) struct Guard {
    slots: Box<[Slot]>,
    /// Slots beyond were never used.
    top: AtomicUsize,
    low: AtomicUsize,
    high: AtomicUsize,
    page: usize,
}

impl Guard {
    pub(super) fn new(page: usize) -> Self {
        let slots = (0..SLOTS).map(|_| Slot::default()).collect();
        let page = page.max(1);
        Self { slots, top: AtomicUsize::new(0), low: AtomicUsize::new(usize::MAX), high: AtomicUsize::new(0), page }
    }

    /// The address may be in a watched block.
    pub(super) fn is_near(&self, address: usize) -> bool {
        address >= self.low.load(Ordering::Relaxed) && address < self.high.load(Ordering::Relaxed)
    }

    /// Some byte of the range is in a watched block.
    pub(super) fn is_watched(&self, address: usize, bytes: usize) -> bool {
        let end = address.saturating_add(bytes);
        if end <= self.low.load(Ordering::Relaxed) || address >= self.high.load(Ordering::Relaxed) {
            return false;
        }
        let top = self.top.load(Ordering::Acquire).min(SLOTS);
        self.slots[..top].iter().any(|slot| {
            slot.used.load(Ordering::Acquire)
                && address < slot.end.load(Ordering::Relaxed)
                && slot.start.load(Ordering::Relaxed) < end
        })
    }

    /// Watches a block, open at first. `None` if there is no room. (Only called under the lock of validation.)
    pub(super) fn add(&self, address: usize, bytes: usize) -> Option<SlotId> {
        let number = self.slots.iter().position(|slot| !slot.used.load(Ordering::Acquire))?;
        let slot = &self.slots[number];
        let start = address / self.page * self.page;
        let end = address.checked_add(bytes)?.checked_next_multiple_of(self.page)?;
        slot.start.store(start, Ordering::Relaxed);
        slot.end.store(end, Ordering::Relaxed);
        for level in [&slot.level, &slot.applied] {
            level.store(byte(Protection::Open), Ordering::Relaxed);
        }
        for flag in [&slot.tolerant, &slot.flight, &slot.dirty, &slot.unguarded] {
            flag.store(false, Ordering::Relaxed);
        }
        for note in [&slot.wrong, &slot.doubtful, &slot.in_flight, &slot.borrower] {
            note.take();
        }
        for count in [&slot.readers, &slot.writers] {
            count.store(0, Ordering::Relaxed);
        }
        slot.generation.fetch_add(1, Ordering::Relaxed);
        self.low.fetch_min(start, Ordering::AcqRel);
        self.high.fetch_max(end, Ordering::AcqRel);
        slot.used.store(true, Ordering::Release);
        self.top.fetch_max(number + 1, Ordering::AcqRel);
        Some(SlotId(number))
    }

    /// Opens the block and watches it no longer.
    pub(super) fn remove(&self, memory: &impl Memory, id: SlotId) {
        let slot = &self.slots[id.0];
        for count in [&slot.readers, &slot.writers] {
            count.store(0, Ordering::Release);
        }
        slot.flight.store(false, Ordering::Release);
        self.set(memory, id, Protection::Open, false);
        self.slots[id.0].used.store(false, Ordering::Release);
    }

    /// Opens and forgets all blocks, without any lock.
    pub(super) fn open_all(&self, memory: &impl Memory) {
        for number in 0..self.top.load(Ordering::Acquire).min(SLOTS) {
            if self.slots[number].used.load(Ordering::Acquire) {
                self.remove(memory, SlotId(number));
            }
        }
    }

    /// The window's level.
    pub(super) fn set(&self, memory: &impl Memory, id: SlotId, level: Protection, tolerant: bool) {
        let slot = &self.slots[id.0];
        slot.tolerant.store(tolerant, Ordering::Release);
        slot.level.store(byte(level), Ordering::Release);
        self.apply(memory, slot);
    }

    /// GPU work is in flight, or no longer.
    pub(super) fn set_flight(&self, memory: &impl Memory, id: SlotId, flight: bool) {
        let slot = &self.slots[id.0];
        slot.flight.store(flight, Ordering::Release);
        self.apply(memory, slot);
    }

    /// Opens the pages as far as a CUDA call needs, whatever the level; [`Guard::restore`] undoes it.
    pub(super) fn lend(&self, memory: &impl Memory, id: SlotId, writes: bool) {
        let slot = &self.slots[id.0];
        let needed = if writes { Protection::Open } else { Protection::ReadOnly };
        if protection(slot.applied.load(Ordering::Acquire)).allows_less_than(needed) {
            self.protect(memory, slot, needed);
        }
    }

    /// The pages allow again what the level says.
    pub(super) fn restore(&self, memory: &impl Memory, id: SlotId) {
        self.apply(memory, &self.slots[id.0]);
    }

    /// The host has written since the flag was cleared.
    pub(super) fn is_dirty(&self, id: SlotId) -> bool {
        self.slots[id.0].dirty.load(Ordering::Acquire)
    }

    /// Clears the flag and what was doubtful.
    pub(super) fn clean(&self, id: SlotId) {
        self.slots[id.0].dirty.store(false, Ordering::Release);
        self.slots[id.0].doubtful.take();
    }

    /// An access that a window forbids.
    pub(super) fn take_wrong(&self, id: SlotId) -> Option<Seen> {
        self.slots[id.0].wrong.take()
    }

    /// A read that was allowed on trial.
    pub(super) fn take_doubtful(&self, id: SlotId) -> Option<Seen> {
        self.slots[id.0].doubtful.take()
    }

    /// The pages could not be given a protection.
    pub(super) fn take_unguarded(&self, id: SlotId) -> bool {
        self.slots[id.0].unguarded.swap(false, Ordering::AcqRel)
    }

    /// An access while GPU work was in flight.
    pub(super) fn take_in_flight(&self, id: SlotId) -> Option<Seen> {
        self.slots[id.0].in_flight.take()
    }

    /// A fault at `address`. Runs in a signal handler.
    pub(super) fn touched(&self, address: usize, access: Access, site: Site) -> Fault {
        let top = self.top.load(Ordering::Acquire);
        let mut slots = self.slots[..top.min(SLOTS)].iter();
        let covers = |slot: &&Slot| {
            slot.used.load(Ordering::Acquire)
                && address >= slot.start.load(Ordering::Relaxed)
                && address < slot.end.load(Ordering::Relaxed)
        };
        let Some(slot) = slots.find(covers) else {
            return Fault::NotOurs;
        };
        let start = slot.start.load(Ordering::Relaxed);
        let end = slot.end.load(Ordering::Relaxed);
        let level = note_access(slot, Seen { access, offset: (address - start) as u64, site });
        slot.applied.store(byte(level), Ordering::Release);
        Fault::Reopen { start, bytes: end - start, protection: level }
    }

    /// The same for an access that a call announces. True if the pages change.
    pub(super) fn announced(&self, memory: &impl Memory, id: SlotId, seen: Seen, writes: bool) {
        let slot = &self.slots[id.0];
        let applied = protection(slot.applied.load(Ordering::Acquire));
        let needed = if writes { Protection::Open } else { Protection::ReadOnly };
        if applied.allows_less_than(needed) {
            note_access_as(slot, seen, writes);
            self.apply(memory, slot);
        }
    }

    /// A system call takes the block: it is an access now, and at whatever moment a window would close the pages until it is given back. (Closed
    /// under the call, they would make it fail, or end short.)
    pub(super) fn borrow(&self, memory: &impl Memory, id: SlotId, seen: Seen, writes: bool) -> Loan {
        let slot = &self.slots[id.0];
        self.announced(memory, id, seen, writes);
        slot.borrower.take();
        slot.borrower.put(seen);
        if writes { &slot.writers } else { &slot.readers }.fetch_add(1, Ordering::AcqRel);
        Loan { slot: id, generation: slot.generation.load(Ordering::Relaxed), writes }
    }

    /// The call is over.
    pub(super) fn give_back(&self, loan: Loan) {
        let slot = &self.slots[loan.slot.0];
        if slot.used.load(Ordering::Acquire) && slot.generation.load(Ordering::Relaxed) == loan.generation {
            let count = if loan.writes { &slot.writers } else { &slot.readers };
            let _ = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
        }
    }

    fn apply(&self, memory: &impl Memory, slot: &Slot) {
        let wanted = || {
            if slot.flight.load(Ordering::Acquire) {
                Protection::Closed
            } else {
                protection(slot.level.load(Ordering::Acquire))
            }
        };
        let writes = slot.writers.load(Ordering::Acquire) > 0;
        let needed = match slot.readers.load(Ordering::Acquire) {
            _ if writes => Protection::Open,
            0 => Protection::Closed,
            _ => Protection::ReadOnly,
        };
        if wanted().allows_less_than(needed)
            && let Some(seen) = slot.borrower.look()
        {
            note_access_as(slot, seen, writes);
        }
        let level = wanted();
        if protection(slot.applied.load(Ordering::Acquire)) != level {
            self.protect(memory, slot, level);
        }
    }

    fn protect(&self, memory: &impl Memory, slot: &Slot, level: Protection) {
        let start = slot.start.load(Ordering::Relaxed);
        slot.applied.store(byte(level), Ordering::Release);
        if !memory.protect(start, slot.end.load(Ordering::Relaxed) - start, level) {
            slot.unguarded.store(true, Ordering::Release);
        }
    }
}

fn note_access(slot: &Slot, seen: Seen) -> Protection {
    note_access_as(slot, seen, seen.access != Access::Read)
}

/// Notes what an access means, and says what the pages allow from now on.
fn note_access_as(slot: &Slot, seen: Seen, writes: bool) -> Protection {
    if slot.flight.swap(false, Ordering::AcqRel) {
        slot.in_flight.put(seen);
    }
    let level = protection(slot.level.load(Ordering::Acquire));
    let next = match level {
        Protection::Closed if slot.tolerant.load(Ordering::Acquire) && !writes => {
            slot.doubtful.put(seen);
            Protection::ReadOnly
        }
        Protection::Closed => {
            slot.wrong.put(seen);
            Protection::Open
        }
        // A write where reading is allowed. In a window whose reads are on trial it is as wrong as ever.
        Protection::ReadOnly if writes && slot.tolerant.load(Ordering::Acquire) => {
            slot.wrong.put(seen);
            Protection::Open
        }
        Protection::ReadOnly if writes => Protection::Open,
        Protection::ReadOnly => Protection::ReadOnly,
        Protection::Open => Protection::Open,
    };
    if writes {
        slot.dirty.store(true, Ordering::Release);
    }
    slot.level.store(byte(next), Ordering::Release);
    next
}

fn byte(protection: Protection) -> u8 {
    match protection {
        Protection::Open => 0,
        Protection::ReadOnly => 1,
        Protection::Closed => 2,
    }
}

fn protection(byte: u8) -> Protection {
    match byte {
        0 => Protection::Open,
        1 => Protection::ReadOnly,
        _ => Protection::Closed,
    }
}

const ACCESSES: [Access; 5] = [Access::Read, Access::Write, Access::Unknown, Access::SystemCall, Access::CudaCall];

fn code(access: Access) -> u8 {
    match access {
        Access::Read => 0,
        Access::Write => 1,
        Access::Unknown => 2,
        Access::SystemCall => 3,
        Access::CudaCall => 4,
    }
}

fn access(code: u8) -> Access {
    ACCESSES.get(usize::from(code)).copied().unwrap_or(Access::Unknown)
}
