//! Event programs written by hand, for tests: each call appends a node behind the last one.

use super::program::{
    Access, AccessKind, Allocator, Blemish, BlemishKind, Copy, CudaEvent, CudaEventId, Event, ModuleFacts, Node,
    NodeId, Object, ObjectId, Place, PointerUse, Program, Range, Site, Space, Stream, StreamId, UseKind, WaitScope,
    Work, WorkKind,
};
use super::symbolic::{AtomId, Sym};
use super::verdict::{Decision, MergePlan, Verdict};
use super::{AccessMode, Options, Target, analyse};

/// Bytes of a buffer unless a test says otherwise.
pub(super) const SIZE: u64 = 1 << 20;

/// The legacy default stream of every built program.
pub(super) const LEGACY: StreamId = StreamId(0);

/// A program that grows at its cursor.
pub(super) struct Build {
    program: Program,
    cursor: NodeId,
}

/// Reads some of an object.
pub(super) fn reads(object: ObjectId) -> Access {
    Access { object, kind: AccessKind::Read, range: Range::Unknown, must: false }
}

/// Writes some of an object, perhaps.
pub(super) fn writes(object: ObjectId) -> Access {
    Access { object, kind: AccessKind::Write, range: Range::Unknown, must: false }
}

/// Writes all of an object for certain.
pub(super) fn overwrites(object: ObjectId) -> Access {
    Access { object, kind: AccessKind::Write, range: Range::Whole, must: true }
}

/// A constant part.
pub(super) fn part(start: u64, len: u64) -> Range {
    Range::Part { start: start.into(), len: len.into() }
}

impl Build {
    /// `main` of a program with one device and no threads.
    pub(super) fn main() -> Self {
        let mut program = Program {
            function: "main".to_owned(),
            streams: vec![Stream::LegacyDefault],
            module: ModuleFacts {
                starts_threads: false,
                selects_devices: false,
                other_devices: false,
                entry_quiet: true,
            },
            ..Program::default()
        };
        let entry = program.graph.add_node(Node { event: Event::Skip, site: Site::default(), origin: 0 });
        program.entry = entry;
        Self { program, cursor: entry }
    }

    /// The two allocations are in no order on the whole control flow.
    pub(super) fn unordered(&mut self, one: ObjectId, other: ObjectId) {
        self.program.unordered.insert((one.min(other), one.max(other)));
    }

    /// A function that anybody may call.
    pub(super) fn function() -> Self {
        let mut build = Self::main();
        build.program.module.entry_quiet = false;
        build
    }

    pub(super) fn module(&mut self) -> &mut ModuleFacts {
        &mut self.program.module
    }

    pub(super) fn object(&mut self, object: ObjectId) -> &mut Object {
        &mut self.program.objects[object.0 as usize]
    }

    pub(super) fn stream(&mut self, kind: Stream) -> StreamId {
        self.program.streams.push(kind);
        StreamId(u32::try_from(self.program.streams.len() - 1).expect("few streams"))
    }

    pub(super) fn cuda_event(&mut self) -> CudaEventId {
        self.program.cuda_events.push(CudaEvent { unique: true });
        CudaEventId(u32::try_from(self.program.cuda_events.len() - 1).expect("few events"))
    }

    /// An atom that gets its value at `node`, or before the function.
    pub(super) fn atom(&mut self, node: Option<NodeId>) -> Sym {
        self.program.atoms.push(node);
        Sym::atom(AtomId(u32::try_from(self.program.atoms.len() - 1).expect("few atoms")))
    }

    // Control flow.

    pub(super) fn event(&mut self, event: Event) -> NodeId {
        let line = u32::try_from(self.program.graph.node_count()).expect("few nodes");
        let site = Site { file: "t.cu".to_owned(), line, column: 1 };
        let node = self.program.graph.add_node(Node { event, site, origin: line });
        self.program.graph.add_edge(self.cursor, node, ());
        self.cursor = node;
        node
    }

    /// What these nodes do, one instruction does.
    pub(super) fn of_one_instruction(&mut self, nodes: &[NodeId]) {
        let origin = self.program.node(nodes[0]).origin;
        nodes.iter().for_each(|node| self.program.graph[*node].origin = origin);
    }

    pub(super) fn skip(&mut self) -> NodeId {
        self.event(Event::Skip)
    }

    pub(super) fn exit(&mut self) -> NodeId {
        self.event(Event::Exit { returns: true })
    }

    pub(super) fn edge(&mut self, from: NodeId, to: NodeId) {
        self.program.graph.add_edge(from, to, ());
    }

    /// `if (…) { body; return; }`
    pub(super) fn perhaps_leave(&mut self, returns: bool, body: impl FnOnce(&mut Self)) {
        let before = self.skip();
        body(self);
        self.event(Event::Exit { returns });
        self.cursor = before;
    }

    /// `while (…) body`, entered at least once.
    pub(super) fn repeat(&mut self, body: impl FnOnce(&mut Self)) {
        let top = self.skip();
        body(self);
        let bottom = self.skip();
        self.edge(bottom, top);
    }

    /// `if (…) body`
    pub(super) fn perhaps(&mut self, body: impl FnOnce(&mut Self)) {
        let before = self.skip();
        body(self);
        let after = self.skip();
        self.edge(before, after);
    }

    // Objects.

    pub(super) fn buffer(&mut self, name: &str, space: Space, origin: Allocator, size: Option<Sym>) -> ObjectId {
        let id = ObjectId(u32::try_from(self.program.objects.len()).expect("few objects"));
        let site = Site { file: "t.cu".to_owned(), line: 1000 + id.0, column: 1 };
        self.program.objects.push(Object {
            name: name.to_owned(),
            space,
            origin,
            size,
            alignment: 0,
            may_be_absent: false,
            site,
        });
        id
    }

    fn allocated(&mut self, name: &str, space: Space, origin: Allocator) -> ObjectId {
        let object = self.buffer(name, space, origin, Some(SIZE.into()));
        self.event(Event::Alloc(object));
        object
    }

    pub(super) fn malloc(&mut self, name: &str) -> ObjectId {
        self.allocated(name, Space::Host, Allocator::Malloc)
    }

    pub(super) fn calloc(&mut self, name: &str) -> ObjectId {
        self.allocated(name, Space::Host, Allocator::Calloc)
    }

    pub(super) fn pinned(&mut self, name: &str) -> ObjectId {
        self.allocated(name, Space::Host, Allocator::PinnedHost)
    }

    pub(super) fn cuda_malloc(&mut self, name: &str) -> ObjectId {
        self.allocated(name, Space::Device, Allocator::CudaMalloc)
    }

    pub(super) fn alloc(&mut self, object: ObjectId) -> NodeId {
        self.event(Event::Alloc(object))
    }

    pub(super) fn free(&mut self, object: ObjectId) -> NodeId {
        self.event(Event::Free { object, waits: None, stream: None, may_be_null: false })
    }

    pub(super) fn cuda_free(&mut self, object: ObjectId) -> NodeId {
        self.event(Event::Free { object, waits: Some(WaitScope::Device), stream: None, may_be_null: false })
    }

    /// `free` of a pointer that may be null.
    pub(super) fn free_unless_null(&mut self, object: ObjectId) -> NodeId {
        self.event(Event::Free { object, waits: None, stream: None, may_be_null: true })
    }

    /// `cudaFree` of a pointer that may be null.
    pub(super) fn cuda_free_unless_null(&mut self, object: ObjectId) -> NodeId {
        self.event(Event::Free { object, waits: Some(WaitScope::Device), stream: None, may_be_null: true })
    }

    // Work.

    pub(super) fn host(&mut self, accesses: &[Access]) -> NodeId {
        self.event(Event::Host(accesses.to_vec()))
    }

    pub(super) fn launch(&mut self, name: &str, accesses: &[Access]) -> NodeId {
        self.launch_on(LEGACY, name, accesses)
    }

    pub(super) fn launch_on(&mut self, stream: StreamId, name: &str, accesses: &[Access]) -> NodeId {
        self.enqueue(stream, name, accesses, &[], false)
    }

    pub(super) fn enqueue(
        &mut self,
        stream: StreamId,
        name: &str,
        accesses: &[Access],
        captures: &[ObjectId],
        touches_captured: bool,
    ) -> NodeId {
        let work = Work {
            name: name.to_owned(),
            kind: WorkKind::Launch,
            accesses: accesses.to_vec(),
            touches_captured,
            captures: captures.to_vec(),
        };
        self.event(Event::Enqueue { stream, work })
    }

    /// A call that nobody modelled and that may call CUDA.
    pub(super) fn opaque(&mut self, name: &str) -> NodeId {
        self.event(Event::Opaque { launches: true, name: name.to_owned() })
    }

    // Copies.

    pub(super) fn copy(&mut self, copy: Copy) -> NodeId {
        self.event(Event::Copy(copy))
    }

    /// cudaMemcpy of whole buffers, the host one pageable.
    pub(super) fn upload(&mut self, device: ObjectId, host: ObjectId) -> NodeId {
        self.copy(Copy { waits_before: true, host_source_consumed: true, ..plain(device, host, LEGACY) })
    }

    /// cudaMemcpy of whole buffers.
    pub(super) fn download(&mut self, host: ObjectId, device: ObjectId) -> NodeId {
        self.copy(Copy { waits_before: true, waits_after: true, ..plain(host, device, LEGACY) })
    }

    /// cudaMemcpyAsync of whole buffers, the host one pageable.
    pub(super) fn upload_async(&mut self, device: ObjectId, host: ObjectId, stream: StreamId) -> NodeId {
        self.copy(Copy { host_source_consumed: true, ..plain(device, host, stream) })
    }

    // Order.

    pub(super) fn wait(&mut self, scope: WaitScope) -> NodeId {
        self.event(Event::Wait(scope))
    }

    pub(super) fn record(&mut self, event: CudaEventId, stream: StreamId) -> NodeId {
        self.event(Event::Record { event, stream })
    }

    pub(super) fn stream_wait(&mut self, stream: StreamId, event: CudaEventId) -> NodeId {
        self.event(Event::StreamWait { stream, event })
    }

    // What is no event.

    pub(super) fn pointer_use(&mut self, object: ObjectId, kind: UseKind) {
        let (node, site) = (self.cursor, Site::default());
        self.program.uses.push(PointerUse { object, kind, node, site });
    }

    pub(super) fn blemish(&mut self, kind: BlemishKind, objects: &[ObjectId]) {
        let blemish = Blemish { kind, objects: objects.to_vec(), node: self.cursor, site: Site::default() };
        self.program.blemishes.push(blemish);
    }

    // The end.

    pub(super) fn done(self) -> Program {
        self.program
    }

    pub(super) fn verdicts(mut self, options: &Options) -> Vec<Verdict> {
        self.exit();
        analyse(&self.program, options)
    }

    /// The codes against the only pair; empty: it was accepted.
    pub(super) fn codes(self) -> Vec<&'static str> {
        self.codes_with(&Options::default())
    }

    pub(super) fn codes_with(self, options: &Options) -> Vec<&'static str> {
        let verdicts = self.verdicts(options);
        assert_eq!(verdicts.len(), 1, "one candidate pair");
        codes(&verdicts[0])
    }

    /// The only pair's plan.
    pub(super) fn plan(self) -> MergePlan {
        self.plan_with(&Options::default())
    }

    pub(super) fn plan_with(self, options: &Options) -> MergePlan {
        let verdicts = self.verdicts(options);
        assert_eq!(verdicts.len(), 1, "one candidate pair");
        match &verdicts[0].decision {
            Decision::Accept(plan) => plan.clone(),
            Decision::Decline(reasons) => panic!("declined: {reasons:?}"),
        }
    }
}

/// A copy of whole buffers that waits for nothing.
pub(super) fn plain(dst: ObjectId, src: ObjectId, stream: StreamId) -> Copy {
    let whole = |object| Place { object: Some(object), range: Range::Whole };
    Copy {
        dst: whole(dst),
        src: whole(src),
        stream,
        waits_before: false,
        waits_after: false,
        host_source_consumed: false,
    }
}

/// The codes against a pair, without repetition.
pub(super) fn codes(verdict: &Verdict) -> Vec<&'static str> {
    match &verdict.decision {
        Decision::Accept(_) => Vec::new(),
        Decision::Decline(reasons) => {
            assert!(!reasons.is_empty(), "a decline without a reason");
            let mut codes: Vec<&str> = reasons.iter().map(|reason| reason.decline.code()).collect();
            codes.sort_unstable();
            codes.dedup();
            codes
        }
    }
}

/// Options of a device with concurrent access.
pub(super) fn concurrent() -> Options {
    Options { target: Target::Managed, access: AccessMode::Concurrent, repair: false, theta_min: 0, max_merges: None }
}
