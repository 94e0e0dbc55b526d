//! Which parts of a region are in use: a first-fit allocator of address ranges, with no memory of its own.

use std::collections::BTreeMap;

/// Free ranges of `0..size`.
#[derive(Debug)]
pub struct Blocks {
    /// Start and length; neighbours are always joined.
    free: BTreeMap<usize, usize>,
}

impl Blocks {
    /// All of `0..size` is free.
    pub fn new(size: usize) -> Blocks {
        Blocks { free: BTreeMap::from([(0, size)]) }
    }

    /// Takes `bytes` (not 0) at a multiple of `align`; `None` when there is no such range.
    pub fn take(&mut self, bytes: usize, align: usize) -> Option<usize> {
        let fits = |(start, length): (&usize, &usize)| {
            let aligned = start.checked_next_multiple_of(align)?;
            let end = aligned.checked_add(bytes)?;
            (end <= start + length).then_some((*start, *length, aligned))
        };
        let (start, length, aligned) = self.free.iter().find_map(fits)?;
        self.free.remove(&start);
        if aligned > start {
            self.free.insert(start, aligned - start);
        }
        let (end, free_end) = (aligned + bytes, start + length);
        if end < free_end {
            self.free.insert(end, free_end - end);
        }
        Some(aligned)
    }

    /// Gives a taken range back.
    pub fn give(&mut self, start: usize, bytes: usize) {
        let (mut start, mut end) = (start, start + bytes);
        if let Some((&before, &length)) = self.free.range(..start).next_back()
            && before + length == start
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(length) = self.free.remove(&end) {
            end += length;
        }
        self.free.insert(start, end - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random takes and gives against a bitmap.
    #[test]
    fn ranges_never_overlap_and_all_space_comes_back() {
        const SIZE: usize = 4096;
        let mut blocks = Blocks::new(SIZE);
        let mut used = [false; SIZE];
        let mut live: Vec<(usize, usize)> = Vec::new();
        let mut state = 12345u64;
        let mut random = |bound: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % bound
        };
        for _ in 0..5000 {
            if random(3) > 0 {
                let (bytes, align) = (1 + random(200), 1 << random(7));
                if let Some(start) = blocks.take(bytes, align) {
                    assert_eq!(start % align, 0);
                    assert!(used[start..start + bytes].iter().all(|in_use| !in_use));
                    used[start..start + bytes].fill(true);
                    live.push((start, bytes));
                }
            } else if !live.is_empty() {
                let (start, bytes) = live.swap_remove(random(live.len()));
                used[start..start + bytes].fill(false);
                blocks.give(start, bytes);
            }
        }
        for (start, bytes) in live {
            blocks.give(start, bytes);
        }
        assert_eq!(blocks.take(SIZE, 1), Some(0));
        assert_eq!(blocks.take(1, 1), None);
    }
}
