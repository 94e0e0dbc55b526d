//! The event program that the prover sees of a case. This is the only file that both sides of the comparison rest on.

use echo_sr::analysis::program::WaitScope;
use echo_sr::analysis::program::{
    Access, AccessKind, Allocator, Blemish, BlemishKind, Copy, CudaEvent, CudaEventId, Event, ModuleFacts, Node,
    NodeId, Object, ObjectId, Place, Program, Range, Site, Space, Stream, StreamId, Work, WorkKind,
};

use crate::case::{ALL, BYTES, Buffer, Case, D, EVENTS, HostKind, Kind, Mask, STREAMS, Step, Touch, is_host};

/// The event program, and the node of each step.
#[must_use]
pub fn program(case: &Case) -> (Program, Vec<NodeId>) {
    let mut program = Program {
        function: "case".to_owned(),
        objects: objects(case),
        streams: STREAMS.iter().copied().chain([Stream::Unknown]).collect(),
        cuda_events: vec![CudaEvent { unique: true }; EVENTS],
        module: ModuleFacts {
            starts_threads: false,
            selects_devices: false,
            other_devices: false,
            entry_quiet: !case.outside,
        },
        ..Program::default()
    };
    let mut maker = Maker { case, program: &mut program, tail: None };
    let entry = maker.add(Event::Skip);
    let nodes: Vec<NodeId> = (0..case.steps.len()).map(|step| maker.step(step)).collect();
    maker.add(Event::Exit { returns: true });
    program.entry = entry;
    connect_regions(case, &mut program, &nodes);
    for (step, node) in case.steps.iter().zip(&nodes) {
        if *step == Step::Reset {
            let site = Site::default();
            program.blemishes.push(Blemish { kind: BlemishKind::DeviceReset, objects: Vec::new(), node: *node, site });
        }
    }
    (program, nodes)
}

fn objects(case: &Case) -> Vec<Object> {
    let origin = match case.host {
        HostKind::Malloc => Allocator::Malloc,
        HostKind::Calloc => Allocator::Calloc,
        HostKind::Pinned => Allocator::PinnedHost,
    };
    let rows = [
        ("h", Space::Host, origin),
        ("d", Space::Device, Allocator::CudaMalloc),
        ("g", Space::Host, Allocator::Foreign),
        ("e", Space::Device, Allocator::Foreign),
        ("h2", Space::Host, origin),
        ("d2", Space::Device, Allocator::CudaMalloc),
    ];
    let size = BYTES as u64;
    let object = |(name, space, origin): (&str, Space, Allocator)| Object {
        name: name.to_owned(),
        space,
        origin,
        size: Some(size.into()),
        alignment: 0,
        may_be_absent: false,
        site: Site::default(),
    };
    rows.into_iter().map(object).collect()
}

/// Appends nodes in a chain; every region begins and ends with a node of its own, so that edges can be put there.
struct Maker<'a> {
    case: &'a Case,
    program: &'a mut Program,
    tail: Option<NodeId>,
}

impl Maker<'_> {
    fn add(&mut self, event: Event) -> NodeId {
        let node = self.program.graph.add_node(Node { event, site: Site::default(), origin: 0 });
        if let Some(tail) = self.tail {
            self.program.graph.add_edge(tail, node, ());
        }
        self.tail = Some(node);
        node
    }

    fn step(&mut self, step: usize) -> NodeId {
        for _ in self.case.regions.iter().filter(|region| usize::from(region.first) == step) {
            self.add(Event::Skip);
        }
        let node = self.add(event(self.case, &self.case.steps[step]));
        for _ in self.case.regions.iter().filter(|region| usize::from(region.last) == step) {
            self.add(Event::Skip);
        }
        node
    }
}

/// The chain runs through every body once; this adds what else a region can do.
fn connect_regions(case: &Case, program: &mut Program, nodes: &[NodeId]) {
    for (index, region) in case.regions.iter().enumerate() {
        // Skips stand directly before the first step, outermost first, and directly behind the last step, innermost first.
        let inside = |other: &&crate::case::Region| other.first == region.first;
        let behind_me = case.regions[index..].iter().filter(inside).count();
        let top = NodeId::new(nodes[usize::from(region.first)].index() - behind_me);
        let inner_ends = case.regions[index + 1..].iter().filter(|other| other.last == region.last).count();
        let end = nodes[usize::from(region.last)].index() + inner_ends;
        let (end, bottom) = (NodeId::new(end), NodeId::new(end + 1));
        match region.kind {
            Kind::Loop => {
                program.graph.add_edge(bottom, top, ());
            }
            Kind::While => {
                program.graph.add_edge(top, bottom, ());
                redirect(program, end, bottom, top);
            }
            Kind::If => {
                program.graph.add_edge(top, bottom, ());
            }
            Kind::Return | Kind::Abort => {
                program.graph.add_edge(top, bottom, ());
                let event = Event::Exit { returns: region.kind == Kind::Return };
                let exit = program.graph.add_node(Node { event, site: Site::default(), origin: 0 });
                redirect(program, end, bottom, exit);
            }
        }
    }
}

/// The body's end goes elsewhere than on.
fn redirect(program: &mut Program, end: NodeId, bottom: NodeId, to: NodeId) {
    if let Some(edge) = program.graph.find_edge(end, bottom) {
        program.graph.remove_edge(edge);
    }
    program.graph.add_edge(end, to, ());
}

fn event(case: &Case, step: &Step) -> Event {
    let stream_id = |stream: u8| {
        let vague = case.vague_streams & (1 << stream) != 0;
        StreamId(if vague { STREAMS.len() as u32 } else { u32::from(stream) })
    };
    let work =
        |kind, accesses| Work { name: "k".to_owned(), kind, accesses, touches_captured: false, captures: Vec::new() };
    match *step {
        Step::Alloc(buffer) => Event::Alloc(id(buffer)),
        Step::Free(buffer) | Step::FreeUnlessNull(buffer) => {
            let waits = (!is_host(buffer)).then_some(WaitScope::Device);
            let may_be_null = matches!(step, Step::FreeUnlessNull(_));
            Event::Free { object: id(buffer), waits, stream: None, may_be_null }
        }
        Step::Host(touches) => Event::Host(touches.iter().flatten().map(access).collect()),
        Step::Launch { stream, touches, keeps, uses_kept } => Event::Enqueue {
            stream: stream_id(stream),
            work: Work {
                touches_captured: uses_kept,
                captures: if keeps { vec![id(D)] } else { Vec::new() },
                ..work(WorkKind::Launch, touches.iter().flatten().map(access).collect())
            },
        },
        Step::Memset { stream, buffer, bytes } => Event::Enqueue {
            stream: stream_id(stream),
            work: work(WorkKind::Memset, vec![access(&Touch::new(buffer, true, bytes))]),
        },
        Step::Copy { dst, src, bytes, stream, sync } => {
            let row = case.row(dst, src, sync);
            Event::Copy(Copy {
                dst: Place { object: Some(id(dst)), range: range(bytes) },
                src: Place { object: Some(id(src)), range: range(bytes) },
                stream: stream_id(stream),
                waits_before: row.before,
                waits_after: row.after,
                host_source_consumed: row.consumed,
            })
        }
        Step::Shifted { dst, src, from } => {
            let row = case.row(dst, src, true);
            Event::Copy(Copy {
                dst: Place { object: Some(id(dst)), range: range(0b10 >> from) },
                src: Place { object: Some(id(src)), range: range(1 << from) },
                stream: stream_id(0),
                waits_before: row.before,
                waits_after: row.after,
                host_source_consumed: row.consumed,
            })
        }
        Step::WaitDevice => Event::Wait(WaitScope::Device),
        Step::WaitStream(stream) => Event::Wait(WaitScope::Stream(stream_id(stream))),
        Step::WaitEvent(event) => Event::Wait(WaitScope::Event(CudaEventId(event.into()))),
        Step::Record(event, stream) => Event::Record { event: CudaEventId(event.into()), stream: stream_id(stream) },
        Step::StreamWait(stream, event) => {
            Event::StreamWait { stream: stream_id(stream), event: CudaEventId(event.into()) }
        }
        Step::Opaque => Event::Opaque { launches: true, name: "f".to_owned() },
        // What it does to the pair is said by a blemish.
        Step::Reset => Event::Wait(WaitScope::Device),
    }
}

fn id(buffer: Buffer) -> ObjectId {
    ObjectId(buffer.into())
}

fn access(touch: &Touch) -> Access {
    Access {
        object: id(touch.buffer),
        kind: if touch.writes { AccessKind::Write } else { AccessKind::Read },
        range: if touch.vague { Range::Unknown } else { range(touch.bytes) },
        must: !touch.may && !touch.vague,
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
