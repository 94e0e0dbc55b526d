//! A random number generator of our own, so that a seed means the same program for as long as the generator itself does not change.

/// SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    /// The stream of numbers that belongs to `seed` and `index`, and to nothing else.
    pub(super) fn new(seed: u64, index: u64) -> Self {
        let mut random = Random { state: seed ^ 0x5DEE_CE66_D1CE_4E5B };
        let salt = random.next();
        Random { state: salt ^ index.wrapping_mul(0xD134_2543_DE82_EF95) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.state;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ (value >> 31)
    }

    /// A number below `limit`; 0 if there is none.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.next() % limit as u64) as usize }
    }

    /// A number of `low..=high`.
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of 100 cases.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `items`, which has some.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// The index of one of `weights`, in proportion to them.
    pub(super) fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut rest = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            match rest.checked_sub(*weight) {
                Some(less) => rest = less,
                None => return index,
            }
        }
        0
    }

    /// Puts `items` in a random order.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_belong_to_seed_and_index() {
        let numbers = |seed, index| {
            let mut random = Random::new(seed, index);
            (0..8).map(|_| random.next()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert_ne!(numbers(1, 2), numbers(1, 3));
        assert_ne!(numbers(1, 2), numbers(2, 2));
    }

    #[test]
    fn weights_are_proportions_and_zero_is_never() {
        let mut random = Random::new(1, 1);
        let mut counts = [0; 3];
        for _ in 0..4000 {
            counts[random.weighted(&[1, 0, 3])] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((700..1300).contains(&counts[0]), "{counts:?}");
    }
}
