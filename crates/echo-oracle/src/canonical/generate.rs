//! Which samples are judged: all of a size, then random larger ones.

use crate::canonical::sample::{ALL, D, E, G, H, HostKind, Region, Sample, Step, Touch};

fn touch(object: usize, writes: bool, bytes: u8, blurred: bool) -> Touch {
    Touch { object, writes, bytes, blurred }
}

/// Everything that can stand between the allocations and the end.
#[must_use]
pub fn alphabet(streams: &[usize]) -> Vec<Step> {
    let read = |object| touch(object, false, ALL, false);
    let write = |object| touch(object, true, ALL, false);
    let some = |object| touch(object, true, 0b01, true);
    let mut steps = vec![
        Step::Host(vec![read(H)]),
        Step::Host(vec![touch(H, false, 0b10, true)]),
        Step::Host(vec![write(H)]),
        Step::Host(vec![some(H)]),
        Step::Host(vec![read(G)]),
        Step::Host(vec![write(G)]),
        Step::Free(H),
        Step::Free(D),
        Step::WaitDevice,
        Step::WaitEvent,
    ];
    for &stream in streams {
        let copy = |dst, src, bytes, sync| Step::Copy { dst, src, bytes, stream, sync };
        steps.extend([
            Step::Launch(stream, vec![read(D)]),
            Step::Launch(stream, vec![write(D)]),
            Step::Launch(stream, vec![some(D)]),
            Step::Launch(stream, vec![read(D), write(D)]),
            Step::Launch(stream, vec![read(D), write(E)]),
            Step::Launch(stream, vec![read(E), write(D)]),
            Step::Launch(stream, vec![write(E)]),
            copy(D, H, ALL, true),
            copy(D, H, ALL, false),
            copy(H, D, ALL, true),
            copy(H, D, ALL, false),
            copy(D, H, 0b01, true),
            copy(H, D, 0b01, true),
            copy(E, H, ALL, true),
            copy(E, H, ALL, false),
            copy(G, D, ALL, true),
            copy(D, G, ALL, true),
            copy(D, G, ALL, false),
            copy(E, D, ALL, false),
            copy(G, E, ALL, true),
            copy(E, G, ALL, true),
            Step::WaitStream(stream),
            Step::Record(stream),
            Step::StreamWait(stream),
        ]);
    }
    steps
}

/// Work on two streams and an event.
fn events(one: usize, two: usize) -> Vec<Step> {
    vec![
        Step::Launch(one, vec![touch(D, false, ALL, false)]),
        Step::Launch(two, vec![touch(D, true, ALL, false)]),
        Step::Record(one),
        Step::StreamWait(two),
        Step::WaitEvent,
        Step::WaitEvent,
        Step::Host(vec![touch(H, true, ALL, false)]),
    ]
}

/// Work on other buffers and other streams than those of the pair, ordered by the pair's copies alone.
fn barriers() -> Vec<Step> {
    let copy = |dst, src, stream, sync| Step::Copy { dst, src, bytes: ALL, stream, sync };
    vec![
        Step::Launch(1, vec![touch(E, true, ALL, false)]),
        Step::Launch(2, vec![touch(E, false, ALL, false), touch(E, true, ALL, false)]),
        Step::Launch(3, vec![touch(E, false, ALL, false)]),
        copy(H, D, 0, true),
        copy(D, H, 0, true),
        copy(D, H, 1, false),
        copy(G, E, 3, true),
    ]
}

/// Frees among uses.
fn lives(stream: usize) -> Vec<Step> {
    vec![
        Step::Free(H),
        Step::Free(D),
        Step::FreeUnlessNull(H),
        Step::FreeUnlessNull(D),
        Step::Host(vec![touch(H, false, ALL, false)]),
        Step::Host(vec![touch(H, true, ALL, false)]),
        Step::Launch(stream, vec![touch(D, false, ALL, false)]),
        Step::Launch(stream, vec![touch(D, true, ALL, false)]),
        Step::Copy { dst: H, src: D, bytes: ALL, stream, sync: true },
    ]
}

/// `steps` between the allocations and the frees of what is not freed yet.
#[must_use]
pub fn frame(host: HostKind, host_first: bool, steps: &[Step], free_at_end: bool) -> Sample {
    let mut all: Vec<Step> = if host_first { [H, D] } else { [D, H] }.map(Step::Alloc).to_vec();
    all.extend_from_slice(steps);
    if free_at_end {
        for object in [D, H] {
            if !steps.contains(&Step::Free(object)) {
                all.push(Step::Free(object));
            }
        }
    }
    Sample { host, steps: all, region: None, blurred_streams: Vec::new() }
}

/// Every sequence of `length` steps of the alphabet, as indices.
pub fn sequences(alphabet: usize, length: u32) -> impl Iterator<Item = Vec<usize>> {
    (0..alphabet.pow(length)).map(move |mut number| {
        (0..length)
            .map(|_| {
                let digit = number % alphabet;
                number /= alphabet;
                digit
            })
            .collect()
    })
}

/// A small generator of random numbers (xorshift): the same seed makes the same samples everywhere.
pub struct Random(u64);

impl Random {
    /// Any seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap_or(0)
    }

    /// A random sample of up to `length` steps and the two allocations, perhaps with a loop or branch, streams that the prover cannot tell
    /// apart, late allocations, frees anywhere. Each sample draws from a handful of kinds of steps only, so that steps that have to do
    /// with each other meet.
    pub fn sample(&mut self, length: usize) -> Sample {
        let streams: &[usize] = [&[0][..], &[0, 1], &[0, 1, 2], &[0, 1, 3], &[1, 3], &[3]][self.below(6)];
        let every_kind = alphabet(streams);
        let mut kinds: Vec<Step> = match self.below(8) {
            0 => events(streams[self.below(streams.len())], streams[self.below(streams.len())]),
            1 => barriers(),
            2 => lives(streams[0]),
            _ => (0..4 + self.below(6)).map(|_| every_kind[self.below(every_kind.len())].clone()).collect(),
        };
        let stream = streams[self.below(streams.len())];
        let (dst, src) = if self.below(2) == 0 { (D, H) } else { (H, D) };
        let link = Step::Copy { dst, src, bytes: ALL, stream, sync: self.below(3) > 0 };
        kinds.push(link.clone());
        if self.below(3) == 0 {
            let stream = streams[self.below(streams.len())];
            kinds.extend([Step::Record(stream), Step::WaitEvent, Step::StreamWait(streams[self.below(streams.len())])]);
        }
        if self.below(3) == 0 {
            kinds.extend([Step::Free(H), Step::Free(D)]);
        }
        if self.below(4) == 0 {
            kinds.extend([Step::FreeUnlessNull(H), Step::FreeUnlessNull(D)]);
        }
        let count = 2 + self.below(length - 1);
        let mut steps: Vec<Step> = (0..count).map(|_| kinds[self.below(kinds.len())].clone()).collect();
        // A pair needs a linking copy.
        steps.insert(self.below(steps.len() + 1), link);
        let host = [HostKind::Malloc, HostKind::Malloc, HostKind::Calloc, HostKind::Pinned][self.below(4)];
        let mut sample = frame(host, self.below(2) == 0, &steps, self.below(4) > 0);
        for first in [1, 0] {
            if self.below(4) == 0 {
                // An allocation comes later.
                let moved = sample.steps.remove(first);
                let at = first + self.below(sample.steps.len().min(4));
                sample.steps.insert(at, moved);
            }
        }
        if self.below(2) == 0 {
            let first = self.below(sample.steps.len());
            let last = first + self.below(sample.steps.len() - first);
            let kind = if self.below(3) == 0 { Region::Branch } else { Region::Loop };
            sample.region = Some((first, last.min(first + 8), kind));
        }
        if self.below(6) == 0 {
            sample.blurred_streams = streams.to_vec();
            sample.blurred_streams.truncate(1 + self.below(2));
        }
        sample
    }
}
