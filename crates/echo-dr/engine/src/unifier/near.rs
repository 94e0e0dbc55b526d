//! "Not ours" in a few nanoseconds: what every free and every copy of the program passes through.
//!
//! Merged blocks lie between two addresses that are kept as atomics, and most addresses of a program are outside. Of those inside, a small
//! table of counts by a hash of the address tells almost all that are no block's first byte.

use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

const PLACES: usize = 4096;

/// Where merged blocks are.
#[derive(Debug)]
pub(super) struct Near {
    low: AtomicUsize,
    high: AtomicUsize,
    starts: Box<[AtomicU16]>,
}

impl Near {
    pub(super) fn new() -> Self {
        let starts = (0..PLACES).map(|_| AtomicU16::new(0)).collect();
        Self { low: AtomicUsize::new(usize::MAX), high: AtomicUsize::new(0), starts }
    }

    /// A block comes to be. Told before anybody has its address. The range only grows: blocks of one kind come from one region.
    pub(super) fn add(&self, address: usize, bytes: usize) {
        self.starts[place(address)].fetch_add(1, Ordering::AcqRel);
        self.low.fetch_min(address, Ordering::AcqRel);
        self.high.fetch_max(address.saturating_add(bytes), Ordering::AcqRel);
    }

    /// There was no block yet.
    pub(super) fn is_unused(&self) -> bool {
        self.high.load(Ordering::Acquire) == 0
    }

    /// A block ends. Told before its memory is given back.
    pub(super) fn remove(&self, address: usize) {
        self.starts[place(address)].fetch_sub(1, Ordering::AcqRel);
    }

    /// The address may be in a block.
    #[inline]
    pub(super) fn may_be_in(&self, address: usize) -> bool {
        address >= self.low.load(Ordering::Relaxed) && address < self.high.load(Ordering::Relaxed)
    }

    /// The address may be a block's first byte. (Relaxed: who has the address of a block got it from a thread that had it after `add`.)
    #[inline]
    pub(super) fn may_start(&self, address: usize) -> bool {
        self.may_be_in(address) && self.starts[place(address)].load(Ordering::Relaxed) != 0
    }
}

#[inline]
fn place(address: usize) -> usize {
    (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize) >> (usize::BITS - PLACES.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_near_as_long_as_it_lives() {
        let near = Near::new();
        assert!(!near.may_be_in(0) && !near.may_be_in(usize::MAX));
        near.add(0x7000_0000, 0x1000);
        near.add(0x7000_2000, 0x1000);
        for address in [0x7000_0000, 0x7000_2000] {
            assert!(near.may_start(address) && near.may_be_in(address + 0xfff));
        }
        assert!(!near.may_be_in(0x6fff_ffff) && !near.may_be_in(0x7000_3000));
        near.remove(0x7000_0000);
        assert!(!near.may_start(0x7000_0000) && near.may_start(0x7000_2000));
    }

    #[test]
    fn few_other_addresses_in_the_range_pass() {
        let near = Near::new();
        (0..64).for_each(|block| near.add(0x7000_0000 + block * 0x10_0000, 0x10_0000));
        let passed = (0..100_000).filter(|i| near.may_start(0x7000_0010 + i * 0x250)).count();
        assert!(passed < 4_000, "{passed} of 100000");
    }
}
