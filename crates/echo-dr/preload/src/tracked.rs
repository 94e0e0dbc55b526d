//! Which host blocks Echo knows: first a compare, then one byte of a table, then a map.
//!
//! Most blocks that a program frees are small and unknown. `may_be` answers for them in one compare where they lie below every known block
//! (the main heap lies below everything mapped) and in one more load elsewhere. It may say yes of a block that isn't known, never no of one
//! that is.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHasher;

/// What a known block is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The program's own allocator.
    Program,
    /// Pages of its own, for validation.
    Pages,
    /// Half of a merged pair: p.
    Merged,
}

/// A known block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Bytes that were asked for.
    pub(crate) bytes: usize,
    /// What it is made of.
    pub(crate) origin: Origin,
}

/// Slots of the table: 2¹⁶ bytes, one for each page number modulo 2¹⁶. A program that knows 1000 large blocks fills 1.5 % of them.
const SLOTS: usize = 1 << 16;
/// Of an address, what is below the page number on every machine.
const PAGE_BITS: u32 = 12;

static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
/// No known block ends above it.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);
static TABLE: [AtomicU8; SLOTS] = [const { AtomicU8::new(0) }; SLOTS];

fn slot(address: usize) -> &'static AtomicU8 {
    &TABLE[(address >> PAGE_BITS) % SLOTS]
}

/// False only if the block at `address` is not known.
#[inline(always)]
pub(crate) fn may_be(address: usize) -> bool {
    address >= LOWEST.load(Ordering::Relaxed) && table_says_maybe(address)
}

/// False only if no known block is in the range: those lie between the lowest and the highest ever known.
pub(crate) fn may_overlap(address: usize, bytes: usize) -> bool {
    address.saturating_add(bytes) > LOWEST.load(Ordering::Relaxed) && address < HIGHEST.load(Ordering::Relaxed)
}

#[inline(always)]
fn table_says_maybe(address: usize) -> bool {
    slot(address).load(Ordering::Relaxed) != 0
}

/// From now on the blocks of the arena, which aren't in the map, are looked at.
pub(crate) fn always_look(start: usize, bytes: usize) {
    for page in (start >> PAGE_BITS)..=((start + bytes - 1) >> PAGE_BITS) {
        TABLE[page % SLOTS].store(u8::MAX, Ordering::Relaxed);
    }
    LOWEST.fetch_min(start, Ordering::Relaxed);
}

pub(crate) type Map = HashMap<usize, Block, BuildHasherDefault<FxHasher>>;
static BLOCKS: Mutex<Map> = Mutex::new(HashMap::with_hasher(BuildHasherDefault::new()));

/// The map's lock, for the time of a fork.
pub(crate) fn hold() -> MutexGuard<'static, Map> {
    blocks()
}

/// The map, also where a thread died holding it: nothing leaves it half changed.
fn blocks() -> MutexGuard<'static, Map> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The block is known from now on; before its address reaches the program.
pub(crate) fn insert(address: usize, block: Block) {
    let mut blocks = blocks();
    if blocks.insert(address, block).is_none() {
        // A full byte stays full: it only makes more look-ups.
        let _ = slot(address).fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_add(1));
    }
    LOWEST.fetch_min(address, Ordering::Relaxed);
    HIGHEST.fetch_max(address.saturating_add(block.bytes), Ordering::Relaxed);
}

/// The block is unknown from now on; before its memory goes back, since the address may be handed out again at once.
pub(crate) fn remove(address: usize) -> Option<Block> {
    let mut blocks = blocks();
    let block = blocks.remove(&address)?;
    let _ = slot(address).fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| match count {
        0 | u8::MAX => None,
        _ => Some(count - 1),
    });
    Some(block)
}

/// The block at exactly this address.
pub(crate) fn find(address: usize) -> Option<Block> {
    blocks().get(&address).copied()
}

/// Known blocks with a byte in the range. Looks at all of them: for calls that are rare.
pub(crate) fn overlapping(address: usize, bytes: usize) -> Vec<usize> {
    let end = address.saturating_add(bytes);
    let overlaps = |&(&start, block): &(&usize, &Block)| start < end && address < start.saturating_add(block.bytes);
    blocks().iter().filter(overlaps).map(|(&start, _)| start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Addresses of no mapping, each test its own: the table is shared by the tests of this process.
    const BLOCK: Block = Block { bytes: 4096, origin: Origin::Program };

    #[test]
    fn a_known_block_is_found_until_it_is_removed() {
        let address = 0x7000_0000_1010;
        assert_eq!(find(address), None);
        insert(address, BLOCK);
        assert!(may_be(address));
        assert_eq!(find(address), Some(BLOCK));
        assert_eq!(remove(address), Some(BLOCK));
        assert_eq!(remove(address), None);
        assert!(!may_be(address));
    }

    #[test]
    fn blocks_are_found_by_any_byte_of_theirs() {
        let address = 0x7000_0000_5010;
        insert(address, BLOCK);
        assert!(may_overlap(address, 1));
        assert_eq!(overlapping(address + 4095, 1), [address]);
        assert_eq!(overlapping(address - 16, 17), [address]);
        assert!(overlapping(address - 16, 16).is_empty());
        assert!(overlapping(address + 4096, 16).is_empty());
        remove(address);
        assert!(overlapping(address, 1).is_empty());
    }

    #[test]
    fn blocks_that_share_a_slot_do_not_hide_each_other() {
        let one = 0x7000_0000_2010;
        let other = one + (SLOTS << PAGE_BITS);
        insert(one, BLOCK);
        insert(other, BLOCK);
        remove(one);
        assert!(may_be(other));
        remove(other);
        assert!(!may_be(other));
    }

    #[test]
    fn a_slot_that_has_overflowed_stays_on() {
        let base = 0x7000_0000_3000;
        let addresses: Vec<_> = (0..300).map(|at| base + at * 8).collect();
        addresses.iter().for_each(|&address| insert(address, BLOCK));
        addresses[1..].iter().for_each(|&address| assert!(remove(address).is_some()));
        assert!(may_be(base), "300 blocks in one slot are more than its byte counts");
    }
}
