//! Programs that differ only in names: bytes, streams of one kind, events. One of each is run, and it stands for all.

use crate::case::{Mask, STREAMS, Step, Touch};

/// A renaming.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Renaming {
    /// The two bytes of every buffer change places.
    bytes: bool,
    /// The two blocking streams change places.
    streams: bool,
    /// The two events change places.
    events: bool,
}

impl Renaming {
    fn mask(self, bytes: Mask) -> Mask {
        if self.bytes && bytes <= 0b11 { (bytes & 1) << 1 | bytes >> 1 } else { bytes }
    }

    fn stream(self, stream: u8) -> u8 {
        debug_assert_eq!(STREAMS[1], STREAMS[2], "1 and 2 are of one kind");
        match stream {
            1 | 2 if self.streams => 3 - stream,
            other => other,
        }
    }

    fn event(self, event: u8) -> u8 {
        if self.events { 1 - event } else { event }
    }

    fn step(self, step: &Step) -> Step {
        let touches = |touches: [Option<Touch>; 2]| {
            touches.map(|touch| touch.map(|touch| Touch { bytes: self.mask(touch.bytes), ..touch }))
        };
        match *step {
            Step::Host(all) => Step::Host(touches(all)),
            Step::Launch { stream, touches: all, keeps, uses_kept } => {
                Step::Launch { stream: self.stream(stream), touches: touches(all), keeps, uses_kept }
            }
            Step::Memset { stream, buffer, bytes } => {
                Step::Memset { stream: self.stream(stream), buffer, bytes: self.mask(bytes) }
            }
            Step::Copy { dst, src, bytes, stream, sync } => {
                Step::Copy { dst, src, bytes: self.mask(bytes), stream: self.stream(stream), sync }
            }
            Step::Shifted { dst, src, from } => {
                Step::Shifted { dst, src, from: if self.bytes { 1 - from } else { from } }
            }
            Step::WaitStream(stream) => Step::WaitStream(self.stream(stream)),
            Step::WaitEvent(event) => Step::WaitEvent(self.event(event)),
            Step::Record(event, stream) => Step::Record(self.event(event), self.stream(stream)),
            Step::StreamWait(stream, event) => Step::StreamWait(self.stream(stream), self.event(event)),
            same => same,
        }
    }
}

/// The renamings under which an alphabet is closed, as permutations of its indices; the identity is not among them.
#[derive(Clone, Debug)]
pub struct Symmetry {
    permutations: Vec<Vec<usize>>,
}

/// For each renaming, whether it leaves the sequence so far as it is; a bit each.
pub type Stable = u8;

impl Symmetry {
    /// Of an alphabet.
    #[must_use]
    pub fn of(alphabet: &[Vec<Step>]) -> Self {
        let mut permutations: Vec<Vec<usize>> = Vec::new();
        for bits in 1..8_u8 {
            let renaming = Renaming { bytes: bits & 1 != 0, streams: bits & 2 != 0, events: bits & 4 != 0 };
            let renamed = |symbol: &Vec<Step>| symbol.iter().map(|step| renaming.step(step)).collect::<Vec<_>>();
            let place = |symbol| alphabet.iter().position(|other| *other == renamed(symbol));
            let Some(permutation) = alphabet.iter().map(place).collect::<Option<Vec<usize>>>() else { continue };
            let identity = permutation.iter().enumerate().all(|(from, to)| from == *to);
            if !identity && !permutations.contains(&permutation) {
                permutations.push(permutation);
            }
        }
        Self { permutations }
    }

    /// Of the empty sequence.
    #[must_use]
    pub fn start(&self) -> Stable {
        (1 << self.permutations.len()) - 1
    }

    /// The sequence grows by a symbol. `None`: a renaming of it comes before it in the order of sequences, and stands for it.
    #[must_use]
    pub fn grow(&self, stable: Stable, symbol: usize) -> Option<Stable> {
        let mut still = stable;
        for (index, permutation) in self.permutations.iter().enumerate() {
            if stable & (1 << index) == 0 {
                continue;
            }
            match permutation[symbol].cmp(&symbol) {
                std::cmp::Ordering::Less => return None,
                std::cmp::Ordering::Greater => still &= !(1 << index),
                std::cmp::Ordering::Equal => {}
            }
        }
        Some(still)
    }

    /// How many sequences the one stands for.
    #[must_use]
    pub fn orbit(&self, stable: Stable) -> u64 {
        (self.permutations.len() as u64 + 1) / (u64::from(stable.count_ones()) + 1)
    }

    /// How many sequences of `length` more symbols behind this one stand for all such (Burnside's lemma).
    #[must_use]
    pub fn classes(&self, stable: Stable, symbols: usize, length: usize) -> u64 {
        let power = |base: usize| (base as u64).pow(length as u32);
        let fixed: u64 = self
            .permutations
            .iter()
            .enumerate()
            .filter(|(index, _)| stable & (1 << index) != 0)
            .map(|(_, permutation)| power(permutation.iter().enumerate().filter(|(from, to)| from == *to).count()))
            .sum();
        (power(symbols) + fixed) / (u64::from(stable.count_ones()) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alphabet;

    /// Every sequence is counted, by itself or by the one that stands for it.
    #[test]
    fn orbits_add_up_to_all_sequences() {
        let bytes = [alphabet::host_writes(0, 0b01), alphabet::host_writes(0, 0b10), alphabet::host_writes(0, 0b11)];
        for steps in [alphabet::streams(1, 2), alphabet::streams(0, 1), bytes.to_vec()].map(alphabet::single) {
            let symmetry = Symmetry::of(&steps);
            let (mut all, mut classes) = (0, 0);
            walk(&symmetry, steps.len(), 3, symmetry.start(), &mut |stable| {
                all += symmetry.orbit(stable);
                classes += 1;
            });
            assert_eq!(all, (steps.len() as u64).pow(3));
            assert_eq!(classes, symmetry.classes(symmetry.start(), steps.len(), 3));
        }
        assert_eq!(Symmetry::of(&alphabet::single(alphabet::streams(1, 2))).permutations.len(), 1);
        assert_eq!(Symmetry::of(&alphabet::single(bytes.to_vec())).permutations.len(), 1);
        assert_eq!(
            Symmetry::of(&alphabet::single(alphabet::core(0))).permutations.len(),
            0,
            "bytes differ in what can be done to them"
        );
    }

    fn walk(symmetry: &Symmetry, symbols: usize, left: usize, stable: Stable, seen: &mut dyn FnMut(Stable)) {
        if left == 0 {
            return seen(stable);
        }
        for symbol in 0..symbols {
            if let Some(stable) = symmetry.grow(stable, symbol) {
                walk(symmetry, symbols, left - 1, stable, seen);
            }
        }
    }
}
