//! Samples: small programs that are known to the byte, and the event program that the prover sees of them.

use echo_sr::analysis::program::{
    Access, AccessKind, Allocator, Copy, CudaEvent, CudaEventId, Event, ModuleFacts, Node, NodeId, Object, ObjectId,
    Place, Program, Range, Site, Space, Stream, StreamId, WaitScope, Work, WorkKind,
};

/// Bytes of every buffer.
pub const BYTES: usize = 2;
/// A set of a buffer's bytes, one bit each.
pub type Mask = u8;
/// All bytes.
pub const ALL: Mask = (1 << BYTES) - 1;

/// Host buffer of the pair.
pub const H: usize = 0;
/// Device buffer of the pair.
pub const D: usize = 1;
/// Another host buffer; it exists all the time.
pub const G: usize = 2;
/// Another device buffer; it exists all the time.
pub const E: usize = 3;
/// Number of buffers.
pub const OBJECTS: usize = 4;

/// The streams that a sample can use, by index: legacy default, two blocking ones, a non-blocking one.
pub const STREAMS: [Stream; 4] = [Stream::LegacyDefault, Stream::Blocking, Stream::Blocking, Stream::NonBlocking];

/// How the pair's host buffer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// malloc
    Malloc,
    /// calloc
    Calloc,
    /// cudaMallocHost: asynchronous copies are truly so.
    Pinned,
}

/// One access of a step. `blurred`: the prover is told only that it may happen, somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Which buffer.
    pub object: usize,
    /// It writes.
    pub writes: bool,
    /// Which bytes.
    pub bytes: Mask,
    /// See above.
    pub blurred: bool,
}

/// One step of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The pair's buffer is allocated.
    Alloc(usize),
    /// The pair's buffer is freed; a device buffer's free waits for the device.
    Free(usize),
    /// The same, if it is there; else the pointer is null, and nothing happens.
    FreeUnlessNull(usize),
    /// Host code.
    Host(Vec<Touch>),
    /// A kernel on a stream.
    Launch(usize, Vec<Touch>),
    /// A copy call.
    Copy {
        /// Destination buffer.
        dst: usize,
        /// Source buffer.
        src: usize,
        /// Bytes that it moves, to the same offsets.
        bytes: Mask,
        /// Stream.
        stream: usize,
        /// cudaMemcpy, not cudaMemcpyAsync.
        sync: bool,
    },
    /// The host waits for all.
    WaitDevice,
    /// The host waits for a stream.
    WaitStream(usize),
    /// The host waits for the event.
    WaitEvent,
    /// The event is recorded.
    Record(usize),
    /// A stream waits for the event.
    StreamWait(usize),
}

/// Straight-line steps with at most one loop or branch around some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How `h` is made.
    pub host: HostKind,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// `[first, last]` is a loop body or the body of an `if`.
    pub region: Option<(usize, usize, Region)>,
    /// Streams that the prover cannot tell apart: one handle means any of them.
    pub blurred_streams: Vec<usize>,
}

/// See [`Sample::region`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Runs once or more.
    Loop,
    /// Runs or not.
    Branch,
}

impl Sample {
    /// How a copy behaves by CUDA's API synchronisation rules: waits before, waits after, host source consumed at return.
    #[must_use]
    pub fn copy_rules(&self, dst: usize, src: usize, sync: bool) -> (bool, bool, bool) {
        let pageable = |object: usize| object == G || object == H && self.host != HostKind::Pinned;
        let (to_host, from_host) = (is_host(dst), is_host(src));
        match (from_host, to_host) {
            (true, false) if pageable(src) => (sync, false, true),
            (false, true) if pageable(dst) => (true, true, false),
            (true, false) | (false, true) => (sync, sync, false),
            _ => (false, false, false),
        }
    }

    /// The event program, and the node of each step.
    #[must_use]
    pub fn program(&self) -> (Program, Vec<NodeId>) {
        let object = |name: &str, space, origin| Object {
            name: name.to_owned(),
            space,
            origin,
            size: Some((BYTES as u64).into()),
            alignment: 0,
            may_be_absent: false,
            site: Site::default(),
        };
        let origin = match self.host {
            HostKind::Malloc => Allocator::Malloc,
            HostKind::Calloc => Allocator::Calloc,
            HostKind::Pinned => Allocator::PinnedHost,
        };
        let mut streams = STREAMS.to_vec();
        streams.push(Stream::Unknown);
        let mut program = Program {
            function: "sample".to_owned(),
            objects: vec![
                object("h", Space::Host, origin),
                object("d", Space::Device, Allocator::CudaMalloc),
                object("g", Space::Host, Allocator::Foreign),
                object("e", Space::Device, Allocator::Foreign),
            ],
            streams,
            cuda_events: vec![CudaEvent { unique: true }],
            module: ModuleFacts {
                starts_threads: false,
                selects_devices: false,
                other_devices: false,
                entry_quiet: true,
            },
            ..Program::default()
        };
        let mut add = |event| program.graph.add_node(Node { event, site: Site::default(), origin: 0 });
        let entry = add(Event::Skip);
        let mut chain = vec![entry];
        let mut nodes = Vec::new();
        let mut extra = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            if let Some((first, _, _)) = self.region
                && first == index
            {
                chain.push(add(Event::Skip));
            }
            let node = add(self.event(step));
            nodes.push(node);
            chain.push(node);
            if let Some((first, last, kind)) = self.region
                && last == index
            {
                let bottom = add(Event::Skip);
                chain.push(bottom);
                let top = chain[chain.len() - 3 - (last - first)];
                extra.push(if kind == Region::Loop { (bottom, top) } else { (top, bottom) });
            }
        }
        chain.push(add(Event::Exit { returns: true }));
        for pair in chain.windows(2) {
            program.graph.add_edge(pair[0], pair[1], ());
        }
        for (from, to) in extra {
            program.graph.add_edge(from, to, ());
        }
        program.entry = entry;
        (program, nodes)
    }

    fn event(&self, step: &Step) -> Event {
        let stream_id = |stream: usize| {
            let id = if self.blurred_streams.contains(&stream) { STREAMS.len() } else { stream };
            StreamId(u32::try_from(id).unwrap_or(u32::MAX))
        };
        let event = CudaEventId(0);
        match step {
            Step::Alloc(object) => Event::Alloc(id(*object)),
            Step::Free(object) | Step::FreeUnlessNull(object) => {
                let waits = (*object == D).then_some(WaitScope::Device);
                let may_be_null = matches!(step, Step::FreeUnlessNull(_));
                Event::Free { object: id(*object), waits, stream: None, may_be_null }
            }
            Step::Host(touches) => Event::Host(touches.iter().map(access).collect()),
            Step::Launch(stream, touches) => Event::Enqueue {
                stream: stream_id(*stream),
                work: Work {
                    name: "kernel".to_owned(),
                    kind: WorkKind::Launch,
                    accesses: touches.iter().map(access).collect(),
                    touches_captured: false,
                    captures: Vec::new(),
                },
            },
            Step::Copy { dst, src, bytes, stream, sync } => {
                let (waits_before, waits_after, host_source_consumed) = self.copy_rules(*dst, *src, *sync);
                Event::Copy(Copy {
                    dst: Place { object: Some(id(*dst)), range: range(*bytes) },
                    src: Place { object: Some(id(*src)), range: range(*bytes) },
                    stream: stream_id(*stream),
                    waits_before,
                    waits_after,
                    host_source_consumed,
                })
            }
            Step::WaitDevice => Event::Wait(WaitScope::Device),
            Step::WaitStream(stream) => Event::Wait(WaitScope::Stream(stream_id(*stream))),
            Step::WaitEvent => Event::Wait(WaitScope::Event(event)),
            Step::Record(stream) => Event::Record { event, stream: stream_id(*stream) },
            Step::StreamWait(stream) => Event::StreamWait { stream: stream_id(*stream), event },
        }
    }

    /// The paths that are run: indices of steps. A loop runs up to three times.
    #[must_use]
    pub fn paths(&self) -> Vec<Vec<usize>> {
        let all = 0..self.steps.len();
        let Some((first, last, kind)) = self.region else { return vec![all.collect()] };
        let counts = if kind == Region::Loop { 1..=3 } else { 0..=1 };
        counts
            .map(|count| {
                let body = (0..count).flat_map(|_| first..=last);
                (0..first).chain(body).chain(last + 1..self.steps.len()).collect()
            })
            .collect()
    }
}

/// The buffer is host memory.
#[must_use]
pub fn is_host(object: usize) -> bool {
    object == H || object == G
}

fn id(object: usize) -> ObjectId {
    ObjectId(u32::try_from(object).unwrap_or(u32::MAX))
}

fn access(touch: &Touch) -> Access {
    Access {
        object: id(touch.object),
        kind: if touch.writes { AccessKind::Write } else { AccessKind::Read },
        range: if touch.blurred { Range::Unknown } else { range(touch.bytes) },
        must: !touch.blurred,
    }
}

fn range(bytes: Mask) -> Range {
    match bytes {
        ALL => Range::Whole,
        0b01 => Range::Part { start: 0.into(), len: 1.into() },
        0b10 => Range::Part { start: 1.into(), len: 1.into() },
        _ => Range::Unknown,
    }
}
