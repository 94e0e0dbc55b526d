//! `cudaHostRegister`: pages of the program become pages of the pinned region, at their own address, in both processes.
//!
//! The contents move to the region and the region's pages are put in place of the old ones in one system call. So a program sees no change, with
//! these limits: no other thread may write to these pages during the call; only private writable memory can be registered, and not the
//! calling thread's stack; after a fork parent and child share the pages.

use super::arena::{Allocation, Origin};
use super::regions::Regions;
use super::state::State;
use crate::command::Command;
use crate::error::{CuError, Result};
use crate::layout::Region;
use crate::mapping::{self, Mapping, Place, Protection};
use crate::sync_table::Memory;
use std::collections::BTreeMap;
use std::ops::Range;

/// Pages that were replaced together.
#[derive(Debug)]
struct Run {
    /// The region's memory that is mapped there.
    block: Allocation,
    /// Registrations that need it.
    users: usize,
}

/// Replaced pages.
#[derive(Debug, Default)]
pub struct Registered {
    /// By first address.
    runs: BTreeMap<usize, Run>,
}

impl Registered {
    /// First addresses of the runs that have a page of `pages`.
    fn touched(&self, pages: &Range<usize>) -> Vec<usize> {
        let overlaps = |(start, run): &(&usize, &Run)| **start + run.block.bytes > pages.start;
        self.runs.range(..pages.end).filter(overlaps).map(|(start, _)| *start).collect()
    }

    /// Parts of `pages` that no run has.
    fn missing(&self, pages: &Range<usize>) -> Vec<Range<usize>> {
        let mut gaps = Vec::new();
        let mut at = pages.start;
        for start in self.touched(pages) {
            if start > at {
                gaps.push(at..start);
            }
            at = at.max(start + self.runs[&start].block.bytes);
        }
        if at < pages.end {
            gaps.push(at..pages.end);
        }
        gaps
    }

    /// Gives all replaced pages back to the program (before a reset).
    pub fn restore_all(&mut self, regions: &Regions) {
        for (start, run) in std::mem::take(&mut self.runs) {
            restore(regions, start, &run);
        }
    }
}

/// Puts private pages with the present contents in place of the region's.
fn restore(regions: &Regions, start: usize, run: &Run) {
    if mapping::move_private_copy(regions.reach(run.block.base), start, run.block.bytes).is_err() {
        eprintln!("uma-device: no memory to unregister {start:#x}; its pages stay shared with the device");
    }
}

impl State {
    /// Registers `bytes` of host memory at `base`. Nothing may be queued that touches them.
    pub fn register(&mut self, base: usize, bytes: usize, flags: u32) -> Result<()> {
        self.device()?;
        let end = base.checked_add(bytes).ok_or(CuError::INVALID_VALUE)?;
        if base == 0 || bytes == 0 || Region::of(base).is_some() {
            return Err(CuError::INVALID_VALUE);
        }
        if self.arena.overlaps(base, bytes) {
            return Err(CuError::HOST_MEMORY_ALREADY_REGISTERED);
        }
        let page = mapping::page_size();
        let pages = base / page * page..end.checked_next_multiple_of(page).ok_or(CuError::INVALID_VALUE)?;
        for gap in self.registered.missing(&pages) {
            check_private(&gap)?;
            self.replace(&gap)?;
        }
        for start in self.registered.touched(&pages) {
            if let Some(run) = self.registered.runs.get_mut(&start) {
                run.users += 1;
            }
        }
        self.arena.add_registered(base, bytes, flags);
        Ok(())
    }

    /// Undoes [`register`](State::register). Nothing may be queued that touches the memory.
    pub fn unregister(&mut self, base: usize) -> Result<()> {
        let allocation = self.arena.find(base).copied().filter(|a| a.base == base && a.origin == Origin::Registered);
        let allocation = allocation.ok_or(CuError::HOST_MEMORY_NOT_REGISTERED)?;
        self.arena.forget(base);
        let page = mapping::page_size();
        let pages = base / page * page..(base + allocation.bytes).next_multiple_of(page);
        for start in self.registered.touched(&pages) {
            let Some(run) = self.registered.runs.get_mut(&start) else { continue };
            run.users -= 1;
            if run.users == 0
                && let Some(run) = self.registered.runs.remove(&start)
            {
                restore(&self.regions, start, &run);
                let bytes = run.block.bytes;
                self.request(|request| Command::UnmapPages { request, address: start, bytes })?;
                self.arena.release(&run.block);
            }
        }
        Ok(())
    }

    /// Puts pages of the pinned region in place of the program's.
    fn replace(&mut self, pages: &Range<usize>) -> Result<()> {
        let bytes = pages.len();
        let block = self.arena.allocate(bytes, Memory::Pinned, Origin::Staging, false)?;
        self.arena.forget(block.base);
        let (_, offset) = Region::of(block.base).ok_or(CuError::UNKNOWN)?;
        let address = pages.start;
        if let Err(error) = self.request(|request| Command::MapPages { request, address, bytes, offset }) {
            eprintln!("uma-device: {address:#x} can't be registered: the device process uses that address itself");
            self.arena.release(&block);
            return Err(error);
        }
        // SAFETY: the program's pages are readable (checked above); the block is ours and as long.
        unsafe {
            std::ptr::copy_nonoverlapping(address as *const u8, self.regions.reach(block.base) as *mut u8, bytes)
        };
        let file = self.regions.file(Region::Pinned);
        match Mapping::new(file, offset, bytes, Place::Replace(address), Protection::ReadWrite) {
            Ok(mapping) => mapping.leak(),
            Err(_) => {
                self.request(|request| Command::UnmapPages { request, address, bytes })?;
                self.arena.release(&block);
                return Err(CuError::OUT_OF_MEMORY);
            }
        }
        self.registered.runs.insert(address, Run { block, users: 0 });
        Ok(())
    }
}

/// Checks that `pages` are private writable memory and not the calling thread's stack.
fn check_private(pages: &Range<usize>) -> Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|_| CuError::OPERATING_SYSTEM)?;
    let here = std::ptr::from_ref(&maps) as usize;
    let mut at = pages.start;
    for line in maps.lines() {
        let Some((range, permissions)) = parse(line) else { continue };
        if range.end <= at || range.start >= pages.end {
            continue;
        }
        if range.start > at || !permissions.starts_with("rw") || !permissions.ends_with('p') {
            break;
        }
        if range.contains(&here) {
            eprintln!("uma-device: the calling thread's own stack can't be registered");
            return Err(CuError::NOT_SUPPORTED);
        }
        at = range.end;
    }
    if at >= pages.end { Ok(()) } else { Err(CuError::INVALID_VALUE) }
}

/// Range and permissions of a line of `/proc/self/maps`.
fn parse(line: &str) -> Option<(Range<usize>, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let hex = |text| usize::from_str_radix(text, 16).ok();
    Some((hex(start)?..hex(end)?, fields.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_writable_memory_can_be_registered() {
        let page = mapping::page_size();
        let heap = vec![0u8; 8 * page];
        let start = (heap.as_ptr() as usize).next_multiple_of(page);
        assert_eq!(check_private(&(start..start + 4 * page)), Ok(()));
        let code = check_private as *const () as usize / page * page;
        assert_eq!(check_private(&(code..code + page)), Err(CuError::INVALID_VALUE));
        assert_eq!(check_private(&(page..2 * page)), Err(CuError::INVALID_VALUE));
        let local = 0u8;
        let stack = std::ptr::from_ref(&local) as usize / page * page;
        assert_eq!(check_private(&(stack..stack + page)), Err(CuError::NOT_SUPPORTED));
    }
}
