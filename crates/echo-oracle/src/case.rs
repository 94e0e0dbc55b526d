//! Cases: small programs that are known to the byte, and the worlds that they run in.
//!
//! A case is a list of steps with regions (loops, branches, early exits) around some of them. What the program's input decides is a *world*:
//! how often each region's body runs, and which of the things that may happen do. In one world a case is one path of steps; what is left
//! open is only the order in which GPU work runs, and that is what [`crate::explore`] goes through. P and P' run in the same worlds.
//!
//! Branches that look at bytes need no case of their own: every value that a host step reads is output, so where P' would branch in
//! another way than P it has differed before.

use echo_sr::analysis::program::Stream;

/// Bytes of every buffer.
pub const BYTES: usize = 2;
/// A set of a buffer's bytes, one bit each.
pub type Mask = u8;
/// All bytes.
pub const ALL: Mask = (1 << BYTES) - 1;

/// Index of a buffer.
pub type Buffer = u8;
/// Host buffer of the pair.
pub const H: Buffer = 0;
/// Device buffer of the pair.
pub const D: Buffer = 1;
/// Another host buffer; pageable, it exists all the time and outlives the program.
pub const G: Buffer = 2;
/// Another device buffer; it exists all the time and outlives the program.
pub const E: Buffer = 3;
/// Host buffer of a second pair.
pub const H2: Buffer = 4;
/// Device buffer of a second pair.
pub const D2: Buffer = 5;
/// Number of buffers.
pub const BUFFERS: usize = 6;

/// The streams that a case can use, by index. The last one is nobody's: work that others started runs there.
pub const STREAMS: [Stream; 6] = [
    Stream::LegacyDefault,
    Stream::Blocking,
    Stream::Blocking,
    Stream::NonBlocking,
    Stream::PerThreadDefault,
    Stream::NonBlocking,
];
/// Index of the stream of others' work.
pub const ELSEWHERE: u8 = 5;
/// Number of CUDA events that a case can use.
pub const EVENTS: usize = 2;

/// How the pairs' host buffers are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostKind {
    /// malloc
    Malloc,
    /// calloc
    Calloc,
    /// cudaMallocHost: copies don't stage, kernels may touch it.
    Pinned,
}

/// One access of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Touch {
    /// Which buffer.
    pub buffer: Buffer,
    /// It writes.
    pub writes: bool,
    /// Which bytes.
    pub bytes: Mask,
    /// Whether it happens depends on the world; the prover is told that it may.
    pub may: bool,
    /// The prover is not told which bytes.
    pub vague: bool,
}

impl Touch {
    /// A certain access of known bytes.
    #[must_use]
    pub const fn new(buffer: Buffer, writes: bool, bytes: Mask) -> Self {
        Self { buffer, writes, bytes, may: false, vague: false }
    }

    /// The same, and the world decides whether it happens; the prover does not know which bytes.
    #[must_use]
    pub const fn perhaps(self) -> Self {
        Self { may: true, vague: true, ..self }
    }
}

/// Up to two accesses.
pub type Touches = [Option<Touch>; 2];

/// One step of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A pair's buffer is allocated.
    Alloc(Buffer),
    /// A pair's buffer is freed; a device buffer's free waits for the device.
    Free(Buffer),
    /// The same, if it is there; else the pointer is null, and nothing is certain to happen.
    FreeUnlessNull(Buffer),
    /// Host code.
    Host(Touches),
    /// A kernel.
    Launch {
        /// Stream.
        stream: u8,
        /// What it touches.
        touches: Touches,
        /// It keeps the pointer of `d`.
        keeps: bool,
        /// It may read and write, through kept pointers, what earlier kernels kept; the world decides whether it does.
        uses_kept: bool,
    },
    /// cudaMemsetAsync.
    Memset {
        /// Stream.
        stream: u8,
        /// Which buffer.
        buffer: Buffer,
        /// Which bytes.
        bytes: Mask,
    },
    /// A copy call.
    Copy {
        /// Destination buffer.
        dst: Buffer,
        /// Source buffer.
        src: Buffer,
        /// Bytes that it moves, to the same offsets.
        bytes: Mask,
        /// Stream.
        stream: u8,
        /// cudaMemcpy, not cudaMemcpyAsync.
        sync: bool,
    },
    /// cudaMemcpy of one byte of `src` to the other byte of `dst`, which links nothing.
    Shifted {
        /// Destination buffer.
        dst: Buffer,
        /// Source buffer.
        src: Buffer,
        /// Which byte of the source.
        from: u8,
    },
    /// The host waits for all.
    WaitDevice,
    /// The host waits for a stream.
    WaitStream(u8),
    /// The host waits for an event.
    WaitEvent(u8),
    /// An event is recorded: event, stream.
    Record(u8, u8),
    /// A stream waits for an event: stream, event.
    StreamWait(u8, u8),
    /// A call that nobody modelled. The world decides whether it starts work, which then touches what kernels kept.
    Opaque,
    /// cudaDeviceReset: waits for all work; device memory ends.
    Reset,
}

/// What is around the steps `first..=last`. Regions are apart or nested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// First step of the body.
    pub first: u8,
    /// Last step of the body.
    pub last: u8,
    /// See [`Kind`].
    pub kind: Kind,
}

/// A kind of region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The body runs one to three times.
    Loop,
    /// The body runs up to two times.
    While,
    /// The body runs or not.
    If,
    /// The body runs and the function returns, or it does not run.
    Return,
    /// The body runs and the process ends, or it does not run.
    Abort,
}

/// A small program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// How the host buffers are made.
    pub host: HostKind,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// Outermost first where they nest.
    pub regions: Vec<Region>,
    /// Streams (a bit each) that the prover cannot tell apart: one handle means any of them.
    pub vague_streams: u8,
    /// Work of others may be running when the function is entered.
    pub outside: bool,
}

/// One step on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Index of the step.
    pub step: u8,
    /// How often it was visited before.
    pub round: u8,
    /// Whether what may happen there happens.
    pub does: bool,
}

/// A path in one world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The steps.
    pub visits: Vec<Visit>,
    /// The function returns at the end; the process does not end there.
    pub returns: bool,
}

impl Case {
    /// Straight-line code.
    #[must_use]
    pub fn straight(host: HostKind, steps: Vec<Step>) -> Self {
        Self { host, steps, regions: Vec::new(), vague_streams: 0, outside: false }
    }

    /// The host buffer's memory is pageable: copies of it may be staged, and the GPU cannot touch it.
    #[must_use]
    pub fn pageable(&self, buffer: Buffer) -> bool {
        buffer == G || is_host(buffer) && self.host != HostKind::Pinned
    }

    /// How a copy call behaves for certain, by CUDA's API synchronisation rules.
    #[must_use]
    pub fn row(&self, dst: Buffer, src: Buffer, sync: bool) -> Row {
        let (before, after, consumed) = match (is_host(src), is_host(dst)) {
            _ if !sync => (false, false, false),
            (false, false) => (false, false, false),
            (true, false) => (true, !self.pageable(src), true),
            (_, true) => (true, true, true),
        };
        Row { before, after, consumed }
    }

    /// The world decides something at the step.
    fn open(step: &Step) -> bool {
        match step {
            Step::Host(touches) => touches.iter().flatten().any(|touch| touch.may),
            Step::Launch { touches, uses_kept, .. } => *uses_kept || touches.iter().flatten().any(|touch| touch.may),
            Step::Opaque => true,
            _ => false,
        }
    }

    /// The paths of all worlds.
    #[must_use]
    pub fn paths(&self) -> Vec<Path> {
        let end = u8::try_from(self.steps.len()).unwrap_or(u8::MAX);
        self.routes(0, end, &self.regions).into_iter().flat_map(|route| self.worlds(&route)).collect()
    }

    /// Control flow alone, through `from..to`.
    fn routes(&self, from: u8, to: u8, regions: &[Region]) -> Vec<Route> {
        let Some((place, region)) = regions
            .iter()
            .enumerate()
            .filter(|(_, region)| from <= region.first && region.last < to)
            .min_by_key(|(place, region)| (region.first, *place))
        else {
            return vec![Route { steps: (from..to).collect(), end: None }];
        };
        let inner: Vec<Region> =
            regions.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, region)| *region).collect();
        let body = self.routes(region.first, region.last + 1, &inner);
        let mut bodies = vec![Route::default()];
        let (least, most) = match region.kind {
            Kind::Loop => (1, 3),
            Kind::While => (0, 2),
            Kind::If | Kind::Return | Kind::Abort => (0, 1),
        };
        let mut middles = if least == 0 { bodies.clone() } else { Vec::new() };
        for _ in 0..most {
            let mut longer = Vec::new();
            for begun in bodies.iter().filter(|route| route.end.is_none()) {
                longer.extend(body.iter().map(|round| begun.then(round)));
            }
            match region.kind {
                Kind::Return => longer.iter_mut().for_each(|route| route.end = route.end.or(Some(true))),
                Kind::Abort => longer.iter_mut().for_each(|route| route.end = route.end.or(Some(false))),
                Kind::Loop | Kind::While | Kind::If => {}
            }
            middles.extend(longer.iter().cloned());
            bodies = longer;
        }
        let before = Route { steps: (from..region.first).collect(), end: None };
        let after = self.routes(region.last + 1, to, &inner);
        let mut all = Vec::new();
        for middle in middles {
            let begun = before.then(&middle);
            if begun.end.is_some() {
                all.push(begun);
            } else {
                all.extend(after.iter().map(|rest| begun.then(rest)));
            }
        }
        all
    }

    /// Every choice of what happens on a route. A step that is visited often has four patterns: never, always, the first time, all but
    /// the first time.
    fn worlds(&self, route: &Route) -> Vec<Path> {
        let mut rounds = vec![0_u8; self.steps.len()];
        let mut visits = Vec::with_capacity(route.steps.len());
        for &step in &route.steps {
            let round = &mut rounds[usize::from(step)];
            visits.push(Visit { step, round: *round, does: false });
            *round += 1;
        }
        let mut paths = vec![Path { visits, returns: route.end.unwrap_or(true) }];
        for (step, count) in rounds.iter().enumerate() {
            if *count == 0 || !Self::open(&self.steps[step]) {
                continue;
            }
            let patterns: &[fn(u8) -> bool] =
                if *count == 1 { &[|_| true] } else { &[|_| true, |round| round == 0, |round| round > 0] };
            let mut more = Vec::new();
            for path in &paths {
                more.extend(patterns.iter().map(|pattern| {
                    let mut path = path.clone();
                    for visit in path.visits.iter_mut().filter(|visit| usize::from(visit.step) == step) {
                        visit.does = pattern(visit.round);
                    }
                    path
                }));
            }
            paths.extend(more);
        }
        paths
    }
}

/// What is certain about a copy call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The host waits for the stream's earlier work first.
    pub before: bool,
    /// The host waits until the copy is complete.
    pub after: bool,
    /// The host source has been read when the call returns.
    pub consumed: bool,
}

#[derive(Clone, Debug, Default)]
struct Route {
    steps: Vec<u8>,
    /// The function ended: did it return?
    end: Option<bool>,
}

impl Route {
    fn then(&self, next: &Self) -> Self {
        Self { steps: [self.steps.as_slice(), &next.steps].concat(), end: next.end }
    }
}

/// The buffer is host memory.
#[must_use]
pub const fn is_host(buffer: Buffer) -> bool {
    matches!(buffer, H | G | H2)
}

/// The buffer's lifetime is not the program's.
#[must_use]
pub const fn is_foreign(buffer: Buffer) -> bool {
    matches!(buffer, G | E)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(path: &Path) -> Vec<u8> {
        path.visits.iter().map(|visit| visit.step).collect()
    }

    fn case(regions: &[(u8, u8, Kind)]) -> Case {
        let mut case = Case::straight(HostKind::Malloc, vec![Step::WaitDevice; 3]);
        case.regions = regions.iter().map(|&(first, last, kind)| Region { first, last, kind }).collect();
        case
    }

    fn routes(regions: &[(u8, u8, Kind)]) -> Vec<Vec<u8>> {
        case(regions).paths().iter().map(steps).collect()
    }

    #[test]
    fn regions_make_the_paths_that_they_say() {
        assert_eq!(routes(&[]), [vec![0, 1, 2]]);
        assert_eq!(routes(&[(1, 1, Kind::Loop)]), [vec![0, 1, 2], vec![0, 1, 1, 2], vec![0, 1, 1, 1, 2]]);
        assert_eq!(routes(&[(1, 1, Kind::While)]), [vec![0, 2], vec![0, 1, 2], vec![0, 1, 1, 2]]);
        assert_eq!(routes(&[(0, 1, Kind::If)]), [vec![2], vec![0, 1, 2]]);
        assert_eq!(routes(&[(1, 1, Kind::Return)]), [vec![0, 2], vec![0, 1]]);
        let ends: Vec<bool> = case(&[(1, 1, Kind::Abort)]).paths().iter().map(|path| path.returns).collect();
        assert_eq!(ends, [true, false]);
    }

    #[test]
    fn regions_nest() {
        let nested = routes(&[(0, 2, Kind::While), (1, 1, Kind::If)]);
        assert_eq!(nested.len(), 1 + 2 + 4);
        assert!(nested.contains(&vec![0, 2, 0, 1, 2]));
        let leaves = routes(&[(0, 2, Kind::Loop), (1, 1, Kind::Return)]);
        assert!(leaves.contains(&vec![0, 2, 0, 1]));
        assert!(leaves.contains(&vec![0, 2, 0, 2, 0, 2]));
        assert_eq!(leaves.len(), 6);
    }

    #[test]
    fn every_pattern_of_what_may_happen_is_a_world() {
        let touch = Touch::new(H, true, ALL).perhaps();
        let mut case = case(&[]);
        case.steps[1] = Step::Host([Some(touch), None]);
        assert_eq!(case.paths().len(), 2);
        case.regions = vec![Region { first: 1, last: 1, kind: Kind::Loop }];
        assert_eq!(case.paths().len(), 2 + 4 + 4);
    }
}
