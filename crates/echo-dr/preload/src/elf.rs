//! What is read from a loaded object's program headers: its extent, its build-id, its unwind tables and its symbols.

use std::ffi::{CStr, c_char};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use echo_dr_format::site::Fnv1a;

/// Tags of the dynamic section.
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// `.eh_frame` and its index, where they are mapped.
#[derive(Debug)]
pub(crate) struct UnwindTables {
    /// The records; the end is that of the segment, since no header tells the section's.
    pub(crate) eh_frame: Range<usize>,
    /// The index.
    pub(crate) eh_frame_hdr: Range<usize>,
}

/// The program headers of one loaded object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers<'a> {
    base: usize,
    list: &'a [libc::Elf64_Phdr],
}

/// The headers of a loader's entry.
///
/// # Safety
/// The object of `info` stays loaded for `'a`.
pub(crate) unsafe fn headers(info: &libc::dl_phdr_info) -> Headers<'_> {
    let list = if info.dlpi_phdr.is_null() {
        &[]
    } else {
        // SAFETY: the loader keeps dlpi_phnum headers there while the object is loaded.
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) }
    };
    Headers { base: info.dlpi_addr as usize, list }
}

/// Mapped bytes that stay while their object is loaded. A list of modules that holds them is not used for addresses of an object that has
/// gone: the list is made anew when the loader's counts change.
pub(crate) fn bytes(range: &Range<usize>) -> &'static [u8] {
    // SAFETY: the ranges given here lie in readable segments of a loaded object (see `unwind_tables`).
    unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) }
}

impl Headers<'_> {
    fn segments(&self, kind: u32) -> impl Iterator<Item = Range<usize>> + '_ {
        self.list.iter().filter(move |header| header.p_type == kind).map(|header| {
            let start = self.base.wrapping_add(header.p_vaddr as usize);
            start..start.wrapping_add(header.p_memsz as usize)
        })
    }

    /// From the first to the last loaded byte.
    pub(crate) fn range(&self) -> Option<Range<usize>> {
        self.segments(libc::PT_LOAD).reduce(|all, one| all.start.min(one.start)..all.end.max(one.end))
    }

    /// Where a function is that the object defines for others, by its hash table of the GNU kind. Of several versions, any.
    ///
    /// # Safety
    /// The object is loaded.
    pub(crate) unsafe fn symbol(&self, name: &CStr) -> Option<usize> {
        let [symbols, strings, hashes] = self.dynamic([DT_SYMTAB, DT_STRTAB, DT_GNU_HASH])?;
        let wanted =
            name.to_bytes().iter().fold(5381_u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(byte.into()));
        // SAFETY: the table begins with four words, which say where its parts are, and all of them are mapped.
        let word = |at: usize| unsafe { ((hashes + 4 * at) as *const u32).read_unaligned() };
        let (buckets, first, bloom) = (word(0), word(1) as usize, word(2) as usize);
        let bucket = 4 + 2 * bloom + (wanted.checked_rem(buckets)?) as usize;
        let chains = 4 + 2 * bloom + buckets as usize;
        let mut number = word(bucket) as usize;
        if number < first {
            return None;
        }
        loop {
            let hash = word(chains + number - first);
            // SAFETY: the table has numbers of symbols only, and a symbol's name is a string of the object.
            let symbol = unsafe { (symbols as *const libc::Elf64_Sym).add(number).read_unaligned() };
            // SAFETY: as above.
            let text = unsafe { CStr::from_ptr((strings + symbol.st_name as usize) as *const c_char) };
            if hash | 1 == wanted | 1 && text == name && symbol.st_shndx != 0 {
                return Some(self.base.wrapping_add(symbol.st_value as usize));
            }
            if hash & 1 == 1 {
                return None;
            }
            number += 1;
        }
    }

    /// Shows the names of the symbols that the object takes from others.
    ///
    /// # Safety
    /// The object is loaded.
    pub(crate) unsafe fn undefined(&self, mut show: impl FnMut(&CStr)) {
        let Some([symbols, strings, hashes]) = self.dynamic([DT_SYMTAB, DT_STRTAB, DT_GNU_HASH]) else { return };
        // SAFETY: the hash table's second word is the number of its first symbol; those that aren't defined come before.
        let first = unsafe { ((hashes + 4) as *const u32).read_unaligned() } as usize;
        for number in 1..first {
            // SAFETY: as above; a symbol's name is a string of the object.
            unsafe {
                let symbol = (symbols as *const libc::Elf64_Sym).add(number).read_unaligned();
                show(CStr::from_ptr((strings + symbol.st_name as usize) as *const c_char));
            }
        }
    }

    /// Addresses in the object's dynamic section, by tag.
    fn dynamic<const N: usize>(&self, tags: [u64; N]) -> Option<[usize; N]> {
        let section = self.segments(libc::PT_DYNAMIC).next()?;
        let mut found = [0; N];
        for entry in bytes(&section).chunks_exact(16) {
            let word = |at: usize| entry[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
            if word(0) == 0 {
                break;
            }
            if let Some(place) = tags.iter().position(|&tag| tag == word(0)) {
                // The loader has made addresses of what the file has, but for a few objects of the kernel.
                let value = word(8) as usize;
                found[place] = if value < self.base { value + self.base } else { value };
            }
        }
        found.iter().all(|&address| address != 0).then_some(found)
    }

    /// The note `NT_GNU_BUILD_ID`.
    ///
    /// # Safety
    /// The object is loaded.
    pub(crate) unsafe fn build_id(&self) -> Option<Vec<u8>> {
        const NT_GNU_BUILD_ID: u32 = 3;
        self.segments(libc::PT_NOTE).find_map(|segment| {
            let mut notes = bytes(&segment);
            loop {
                let (head, rest) = notes.split_at_checked(12)?;
                let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
                let (name_len, text_len, kind) = (word(0) as usize, word(4) as usize, word(8));
                let (name, rest) = rest.split_at_checked(name_len.next_multiple_of(4))?;
                let (text, rest) = rest.split_at_checked(text_len.next_multiple_of(4))?;
                if kind == NT_GNU_BUILD_ID && name.starts_with(b"GNU\0") {
                    return text.get(..text_len).map(<[u8]>::to_vec);
                }
                notes = rest;
            }
        })
    }

    /// Of an object without a build-id: its file name and its segments' places, which are the same in every run of the same file.
    pub(crate) fn key_without_build_id(&self, path: &Path) -> u64 {
        let mut hash = Fnv1a::default();
        hash.write(path.file_name().map_or(&[][..], |name| name.as_bytes()));
        for header in self.list {
            [header.p_vaddr, header.p_filesz, header.p_memsz].iter().for_each(|word| hash.write(&word.to_le_bytes()));
        }
        hash.finish()
    }

    /// The unwind tables, if the object has the index and its pointer has the usual form (a signed 32-bit distance).
    ///
    /// # Safety
    /// The object is loaded.
    pub(crate) unsafe fn unwind_tables(&self) -> Option<UnwindTables> {
        const PCREL_SDATA4: u8 = 0x1b;
        let index = self.segments(libc::PT_GNU_EH_FRAME).next()?;
        let head = bytes(&index).get(..8)?;
        if head[0] != 1 || head[1] != PCREL_SDATA4 {
            return None;
        }
        let distance = i32::from_ne_bytes([head[4], head[5], head[6], head[7]]);
        let start = (index.start + 4).wrapping_add_signed(distance as isize);
        let segment = self.segments(libc::PT_LOAD).find(|segment| segment.contains(&start))?;
        Some(UnwindTables { eh_frame: start..segment.end, eh_frame_hdr: index })
    }
}
