//! Random programs, longer than those that can all be run. The same seed makes the same programs everywhere.

use crate::alphabet;
use crate::case::{ALL, Case, D, D2, E, H, H2, HostKind, Kind, Region, Step, Touch};
use crate::count::Counts;
use crate::examine::{Unsound, examine};

/// Programs in a batch.
pub const BATCH: u64 = 5_000;
/// Programs have at most this many steps between allocations and frees.
const STEPS: usize = 8;

/// A small generator of random numbers (xorshift).
pub struct Random(u64);

impl Random {
    /// Any seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        // The first numbers of neighbouring seeds are alike.
        for _ in 0..8 {
            random.below(2);
        }
        random
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % limit as u64).unwrap_or(0)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// A random program. Each draws from a handful of kinds of steps, so that steps that have to do with each other meet.
    pub fn case(&mut self) -> Case {
        let streams: &[u8] = self.pick(&[&[0_u8][..], &[0, 1], &[1, 2], &[0, 1, 3], &[1, 3], &[3], &[4], &[0, 4]]);
        let (one, other) = (self.pick(streams), self.pick(streams));
        let two_pairs = self.one_in(5);
        let mut every: Vec<Step> = match self.below(6) {
            _ if two_pairs => alphabet::pairs(one),
            0 => alphabet::strangers(one),
            1 => alphabet::streams(one, other),
            2 => alphabet::core(one),
            3 => alphabet::lives(one),
            _ => alphabet::full(one),
        };
        if one != other {
            every.extend(alphabet::streams(one, other));
        }
        let mut kinds: Vec<Step> = (0..4 + self.below(6)).map(|_| self.pick(&every)).collect();
        let (dst, src) = self.pick(&[(D, H), (H, D)]);
        let link = alphabet::copy(dst, src, ALL, one, !self.one_in(3));
        kinds.push(link);
        let mut steps: Vec<Step> = (0..1 + self.below(STEPS)).map(|_| self.pick(&kinds)).collect();
        steps.insert(self.below(steps.len() + 1), link);
        let mut buffers: Vec<u8> = if two_pairs { vec![H, D, H2, D2] } else { vec![H, D] };
        for index in (1..buffers.len()).rev() {
            buffers.swap(index, self.below(index + 1));
        }
        if !self.one_in(4) {
            for buffer in buffers.iter().rev() {
                if !steps.contains(&Step::Free(*buffer)) {
                    let at = if self.one_in(4) { self.below(steps.len() + 1) } else { steps.len() };
                    steps.insert(at, Step::Free(*buffer));
                }
            }
        }
        for buffer in buffers {
            let at = if self.one_in(5) { self.below(steps.len().min(4)) } else { 0 };
            steps.insert(at, Step::Alloc(buffer));
        }
        let regions = self.regions(steps.len());
        let host = self.pick(&[HostKind::Malloc, HostKind::Malloc, HostKind::Calloc, HostKind::Pinned]);
        let vague_streams = if self.one_in(8) { 1 << one } else { 0 };
        Case { host, steps, regions, vague_streams, outside: self.one_in(6) }
    }

    /// A program with much work on several streams and few waits: not many such are needed for very many interleavings.
    pub fn wide_case(&mut self) -> Case {
        let streams: &[u8] = self.pick(&[&[1_u8, 2, 3][..], &[0, 1, 3], &[0, 3], &[1, 2], &[3, 4]]);
        let first = self.pick(streams);
        let noise = alphabet::streams(first, self.pick(streams));
        let reads = |buffer| Touch::new(buffer, false, ALL);
        let mut steps = vec![Step::Alloc(H), Step::Alloc(D), alphabet::host_writes(H, ALL)];
        steps.push(alphabet::copy(D, H, ALL, first, !self.one_in(3)));
        if !self.one_in(4) {
            steps.push(Step::WaitDevice);
        }
        for _ in 0..3 + self.below(5) {
            let stream = self.pick(streams);
            steps.push(match self.below(8) {
                0 => self.pick(&noise),
                1 => alphabet::launch(first, reads(D), Some(Touch::new(D, true, ALL))),
                2 => alphabet::launch(first, reads(D), Some(Touch::new(E, true, ALL))),
                3 => Step::Memset { stream: first, buffer: E, bytes: ALL },
                4 => alphabet::launch(stream, reads(E), None),
                _ => alphabet::launch(stream, reads(D), None),
            });
        }
        if self.one_in(2) {
            steps.push(alphabet::copy(H, D, ALL, first, !self.one_in(4)));
        }
        if self.one_in(2) {
            steps.push(self.pick(&[Step::WaitDevice, Step::WaitStream(first), Step::WaitEvent(0)]));
        }
        if self.one_in(2) {
            steps.push(self.pick(&[alphabet::host_reads(H, ALL), alphabet::host_writes(H, ALL)]));
        }
        if !self.one_in(4) {
            steps.extend([Step::Free(D), Step::Free(H)]);
        }
        let last = steps.len() as u8 - 1;
        let around = Region { first: 2, last: last.min(5), kind: Kind::If };
        let regions = if self.one_in(4) { vec![around] } else { Vec::new() };
        let host = self.pick(&[HostKind::Malloc, HostKind::Pinned]);
        Case { host, steps, regions, vague_streams: 0, outside: self.one_in(8) }
    }

    /// Up to two, apart or nested.
    fn regions(&mut self, steps: usize) -> Vec<Region> {
        let kinds = [Kind::Loop, Kind::Loop, Kind::While, Kind::If, Kind::If, Kind::Return, Kind::Abort];
        let count = self.pick(&[0, 0, 1, 1, 1, 2]);
        let mut regions: Vec<Region> = Vec::new();
        for _ in 0..count {
            let first = self.below(steps);
            let last = first + self.below((steps - first).min(6));
            let new = Region { first: first as u8, last: last as u8, kind: self.pick(&kinds) };
            let apart = |old: &Region| old.last < new.first || new.last < old.first;
            let inside = |old: &Region| old.first <= new.first && new.last <= old.last;
            // Two loops in each other visit a step up to nine times: too much for one path's cells.
            let short = |old: &Region| [old.kind, new.kind].iter().filter(|kind| loops(**kind)).count() < 2;
            if regions.iter().all(|old| apart(old) || inside(old) && short(old)) {
                regions.push(new);
            }
        }
        regions
    }
}

fn loops(kind: Kind) -> bool {
    matches!(kind, Kind::Loop | Kind::While)
}

/// Runs a batch. `wide`: of [`Random::wide_case`].
#[must_use]
pub fn run(seed: u64, batch: u64, wide: bool) -> (Counts, Vec<Unsound>) {
    let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(batch));
    let (mut counts, mut found) = (Counts::default(), Vec::new());
    for _ in 0..BATCH {
        let case = if wide { random.wide_case() } else { random.case() };
        counts.programs += 1;
        counts.classes += 1;
        found.extend(examine(&case, &mut counts));
    }
    (counts, found)
}
