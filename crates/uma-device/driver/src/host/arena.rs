//! The program's side of device-visible memory: the mapped regions and the allocations in them.

use super::blocks::Blocks;
use super::regions::Regions;
use crate::coverage::Coverage;
use crate::error::{CuError, Result};
use crate::layout::{DEVICE_ALIGN, Region};
use crate::mapping::{self, Protection};
use crate::settings::{Access, POISON, Settings};
use crate::sync_table::Memory;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Free blocks of at least this size go back to the system. Smaller ones stay: giving back and faulting in again costs more than the copy
/// that a program typically makes between.
const RETURN_BYTES: usize = 32 << 20;

/// Who may touch managed memory (`cudaMemAttach…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// The device from any stream.
    Global,
    /// The host at all times, once it has waited for the stream (its slot) in which this was asked for.
    Host(u32),
    /// The device from one stream (its slot).
    Stream(u32),
}

/// How memory was allocated, which says how it is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `cudaMalloc`, `cudaMallocManaged` and their kin: `cudaFree`.
    Device,
    /// `cudaMallocHost`, `cudaHostAlloc`: `cudaFreeHost`.
    Host,
    /// `cudaHostRegister`: `cudaHostUnregister`.
    Registered,
    /// A device global: never freed by the program.
    Global,
    /// Ours: staging buffers.
    Staging,
}

/// One allocation.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    /// First address.
    pub base: usize,
    /// Bytes that the program asked for.
    pub bytes: usize,
    /// Bytes that are in use for it.
    pub reserved: usize,
    /// Kind of memory.
    pub memory: Memory,
    /// How it was made.
    pub origin: Origin,
    /// Flags of `cudaHostAlloc` or `cudaHostRegister`.
    pub flags: u32,
    /// Who may touch it, if it is managed.
    pub attach: Attach,
    /// Whether the host may touch it now, if it is managed.
    pub open: bool,
}

impl Allocation {
    /// Whether `bytes` from `address` lie in it.
    pub fn holds(&self, address: usize, bytes: usize) -> bool {
        address.checked_sub(self.base).and_then(|offset| offset.checked_add(bytes)).is_some_and(|end| end <= self.bytes)
    }
}

/// All allocations.
#[derive(Debug)]
pub struct Arena {
    regions: Arc<Regions>,
    blocks: [Blocks; 3],
    live: BTreeMap<usize, Allocation>,
    used: usize,
    total: usize,
    poison: bool,
    exclusive: bool,
    /// Managed allocations that the host may touch and that work closes.
    open_managed: usize,
}

impl Arena {
    /// No allocations; `total` bytes can be in use.
    pub fn new(regions: Arc<Regions>, settings: &Settings, total: usize) -> Arena {
        let blocks = [(); 3].map(|()| Blocks::new(regions.bytes()));
        Arena {
            regions,
            blocks,
            live: BTreeMap::new(),
            used: 0,
            total,
            poison: settings.poison,
            exclusive: settings.access == Access::Exclusive,
            open_managed: 0,
        }
    }

    /// Bytes that can still be allocated, and all bytes.
    pub fn capacity(&self) -> (usize, usize) {
        (self.total.saturating_sub(self.used), self.total)
    }

    /// The allocation that holds `address`.
    pub fn find(&self, address: usize) -> Option<&Allocation> {
        let (_, allocation) = self.live.range(..=address).next_back()?;
        allocation.holds(address, 1).then_some(allocation)
    }

    /// What kind of memory `address` is, and whether `bytes` from there are one allocation.
    pub fn classify(&self, address: usize, bytes: usize) -> Result<Memory> {
        match self.find(address) {
            Some(allocation) if allocation.holds(address, bytes) => Ok(allocation.memory),
            Some(_) => Err(CuError::INVALID_VALUE),
            // Freed or never allocated, but an address of ours: surely no host memory.
            None if Region::of(address).is_some() => Err(CuError::INVALID_VALUE),
            None => Ok(Memory::Pageable),
        }
    }

    /// Allocates. `idle`: whether the host may touch managed memory now.
    pub fn allocate(&mut self, bytes: usize, memory: Memory, origin: Origin, idle: bool) -> Result<Allocation> {
        let region = match memory {
            Memory::Device => Region::Device,
            Memory::Managed => Region::Managed,
            Memory::Pinned => Region::Pinned,
            Memory::Pageable => return Err(CuError::INVALID_VALUE),
        };
        // Memory that the host reaches has its own pages, so that it can be protected.
        let align = if region == Region::Device { DEVICE_ALIGN } else { mapping::page_size() };
        let reserved = bytes.max(1).checked_next_multiple_of(align).ok_or(CuError::OUT_OF_MEMORY)?;
        if reserved > self.total.saturating_sub(self.used) {
            return Err(CuError::OUT_OF_MEMORY);
        }
        let offset = self.blocks[region.index()].take(reserved, align).ok_or(CuError::OUT_OF_MEMORY)?;
        let open = memory == Memory::Managed && (idle || !self.exclusive);
        let allocation = Allocation {
            base: region.base() + offset,
            bytes,
            reserved,
            memory,
            origin,
            flags: 0,
            attach: Attach::Global,
            open,
        };
        if open || (memory == Memory::Pinned && origin != Origin::Staging) {
            let opened = mapping::protect(allocation.base, reserved, Protection::ReadWrite);
            if opened.is_err() {
                self.blocks[region.index()].give(offset, reserved);
                return Err(CuError::OUT_OF_MEMORY);
            }
        }
        if self.poison && origin != Origin::Staging {
            self.regions.fill(allocation.base, POISON, reserved);
        }
        self.used += reserved;
        self.open_managed += usize::from(open);
        self.live.insert(allocation.base, allocation);
        Ok(allocation)
    }

    /// Notes registered host memory, which keeps its own address.
    pub fn add_registered(&mut self, base: usize, bytes: usize, flags: u32) {
        let allocation = Allocation {
            base,
            bytes,
            reserved: bytes,
            memory: Memory::Pinned,
            origin: Origin::Registered,
            flags,
            attach: Attach::Global,
            open: false,
        };
        self.live.insert(base, allocation);
    }

    /// Whether an allocation has a byte of the range.
    pub fn overlaps(&self, base: usize, bytes: usize) -> bool {
        let before = self.live.range(..base).next_back();
        before.is_some_and(|(start, a)| start + a.bytes > base) || self.live.range(base..base + bytes).next().is_some()
    }

    /// Changes an allocation; `false` when none starts at `base`.
    pub fn update(&mut self, base: usize, change: impl FnOnce(&mut Allocation)) -> bool {
        self.live.get_mut(&base).map(change).is_some()
    }

    /// Takes an allocation out of the books: nothing finds it any more, but its memory stays (see [`Arena::release`]).
    pub fn forget(&mut self, base: usize) -> Option<Allocation> {
        let allocation = self.live.remove(&base)?;
        self.open_managed -= usize::from(allocation.open);
        Some(allocation)
    }

    /// Gives the memory of a forgotten allocation back. No queued work may use it.
    pub fn release(&mut self, allocation: &Allocation) {
        let Some((region, offset)) = Region::of(allocation.base) else { return };
        if region != Region::Device {
            // A failure leaves memory reachable that a correct program does not touch.
            let _ = mapping::protect(allocation.base, allocation.reserved, Protection::None);
        }
        if allocation.reserved >= RETURN_BYTES {
            self.regions.give_back(allocation.base, allocation.reserved);
        }
        self.blocks[region.index()].give(offset, allocation.reserved);
        self.used -= allocation.reserved;
    }

    /// All live allocations.
    pub fn allocations(&self) -> impl Iterator<Item = &Allocation> {
        self.live.values()
    }

    /// Bytes of managed memory that work on the device may use.
    pub fn managed_bytes(&self) -> usize {
        let managed =
            self.live.values().filter(|a| a.memory == Memory::Managed && !matches!(a.attach, Attach::Host(_)));
        managed.map(|a| a.reserved).sum()
    }

    /// Whether the host may have touched managed memory since work was last queued.
    pub fn has_open_managed(&self) -> bool {
        self.open_managed > 0
    }

    /// Work was queued in stream `slot`: takes managed memory from the host.
    pub fn close(&mut self, slot: u32) -> Result<()> {
        if !self.exclusive || self.open_managed == 0 {
            return Ok(());
        }
        let closes = |a: &Allocation| match a.attach {
            Attach::Global => true,
            Attach::Host(_) => false,
            Attach::Stream(own) => own == slot,
        };
        self.set_open(false, closes)
    }

    /// The program waited for work: gives managed memory back to the host as far as `coverage` says.
    pub fn open(&mut self, coverage: &Coverage) -> Result<()> {
        if !self.exclusive {
            return Ok(());
        }
        let idle = coverage.is_idle();
        let opens = |a: &Allocation| match a.attach {
            Attach::Global => idle,
            Attach::Host(own) | Attach::Stream(own) => idle || coverage.is_stream_idle(own),
        };
        self.set_open(true, opens)
    }

    /// Opens or closes managed allocations, neighbours in one system call.
    fn set_open(&mut self, open: bool, which: impl Fn(&Allocation) -> bool) -> Result<()> {
        let protection = if open { Protection::ReadWrite } else { Protection::None };
        let protect = |(start, end): (usize, usize)| {
            mapping::protect(start, end - start, protection).map_err(|_| CuError::OPERATING_SYSTEM)
        };
        let mut run: Option<(usize, usize)> = None;
        let region = Region::Managed.base()..Region::Managed.base() + self.regions.bytes();
        for (_, allocation) in self.live.range_mut(region) {
            if allocation.open == open || !which(allocation) {
                continue;
            }
            allocation.open = open;
            self.open_managed = if open { self.open_managed + 1 } else { self.open_managed - 1 };
            let end = allocation.base + allocation.reserved;
            run = match run {
                Some((start, last)) if last == allocation.base => Some((start, end)),
                Some(done) => {
                    protect(done)?;
                    Some((allocation.base, end))
                }
                None => Some((allocation.base, end)),
            };
        }
        run.map_or(Ok(()), protect)
    }
}
