//! The regions as the program maps them: at the device's addresses, closed until an allocation opens them, and once more elsewhere for the
//! library's own copies.

use crate::layout::{ARENA_BASE, Region};
use crate::mapping::{self, Mapping, Place, Protection};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The three regions. They stay mapped as long as the program runs.
#[derive(Debug)]
pub struct Regions {
    files: [OwnedFd; 3],
    aliases: [usize; 3],
    bytes: usize,
}

impl Regions {
    /// Creates and maps the regions, each of `bytes`.
    pub fn create(bytes: usize) -> io::Result<Regions> {
        let mut aliases = [0; 3];
        let mut files = Vec::with_capacity(3);
        for (region, name) in Region::ALL.into_iter().zip([c"uma-device", c"uma-managed", c"uma-pinned"]) {
            let file = mapping::memory_file(name, bytes)?;
            let fixed = Mapping::new(file.as_raw_fd(), 0, bytes, Place::Free(region.base()), Protection::None);
            let fixed = fixed.map_err(|error| io::Error::new(error.kind(), taken(region, bytes, &error)))?;
            let alias = Mapping::new(file.as_raw_fd(), 0, bytes, Place::Anywhere, Protection::ReadWrite)?;
            fixed.leave_out_of_dumps();
            alias.leave_out_of_dumps();
            aliases[region.index()] = alias.address();
            fixed.leak();
            alias.leak();
            files.push(file);
        }
        let files = files.try_into().map_err(|_| io::Error::other("three regions have three files"))?;
        Ok(Regions { files, aliases, bytes })
    }

    /// Bytes of each region.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The file of a region.
    pub fn file(&self, region: Region) -> RawFd {
        self.files[region.index()].as_raw_fd()
    }

    /// Where the library itself reaches `address`: an address outside the arena is itself.
    pub fn reach(&self, address: usize) -> usize {
        Region::of(address).map_or(address, |(region, offset)| self.aliases[region.index()] + offset)
    }

    /// Sets `bytes` at an arena address, inside one region.
    pub fn fill(&self, address: usize, value: u8, bytes: usize) {
        if Region::of(address).is_none() {
            return;
        }
        // SAFETY: the alias of a region is mapped for ever; the caller names bytes of one allocation in it.
        unsafe { std::ptr::write_bytes(self.reach(address) as *mut u8, value, bytes) };
    }

    /// Gives the whole pages of a range of the arena back to the system.
    pub fn give_back(&self, address: usize, bytes: usize) {
        let Some((region, offset)) = Region::of(address) else { return };
        let page = mapping::page_size();
        let start = offset.next_multiple_of(page);
        let end = (offset + bytes) / page * page;
        if end > start {
            // Pages that can't be given back just stay in use.
            let _ = mapping::punch_hole(self.file(region), start, end - start);
        }
    }

    /// Empties all regions and closes them to the program.
    pub fn clear(&self) -> io::Result<()> {
        for region in Region::ALL {
            mapping::protect(region.base(), self.bytes, Protection::None)?;
            mapping::punch_hole(self.file(region), 0, self.bytes)?;
        }
        Ok(())
    }
}

fn taken(region: Region, bytes: usize, error: &io::Error) -> String {
    format!(
        "the address range {:#x}..{:#x} (arena at {ARENA_BASE:#x}) can't be mapped: {error}; is another library there, or is address space limited (ulimit -v)?",
        region.base(),
        region.base() + bytes
    )
}
