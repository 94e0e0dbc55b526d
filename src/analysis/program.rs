//! Event programs: the language between LLVM IR and the proof.
//!
//! A function becomes objects (buffers), streams, CUDA events, and a control-flow graph whose nodes are [`Event`]s. `lower` makes it,
//! `analysis` decides on it. What cannot be said here declines in `lower`, as a [`Blemish`] with the objects that it touches.
//!
//! Contract of the maker (what the proof relies on):
//! - every access to an object that a candidate could be is on the graph, with a range that covers it; `must` and [`Range::Whole`] only
//!   where that is certain;
//! - every use of an object's pointer that is not an access is in [`Program::uses`];
//! - the accesses of one node are in no particular order; an access of an object means what its last [`Event::Alloc`] made;
//! - nodes of one basic block form a chain in program order; edges are the function's control flow; nodes that cannot be reached from
//!   `entry` are left out;
//! - a call that nobody modelled is [`Event::Opaque`]; what it may touch is only what escaped, and escaping is a [`PointerUse`].

use std::collections::BTreeSet;

use petgraph::graph::{DiGraph, NodeIndex};

use super::symbolic::Sym;

/// A node of the control-flow event graph.
pub type NodeId = NodeIndex<u32>;

/// Index into [`Program::objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

/// Index into [`Program::streams`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// Index into [`Program::cuda_events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaEventId(pub u32);

/// One function as events.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The function's name as a user knows it.
    pub function: String,
    /// Every buffer that the function allocates or is given. See [`ObjectId`].
    pub objects: Vec<Object>,
    /// See [`StreamId`].
    pub streams: Vec<Stream>,
    /// See [`CudaEventId`].
    pub cuda_events: Vec<CudaEvent>,
    /// Control flow.
    pub graph: DiGraph<Node, ()>,
    /// The node that control enters; it is [`Event::Skip`].
    pub entry: NodeId,
    /// Uses of pointers that are no accesses.
    pub uses: Vec<PointerUse>,
    /// What the lowering could not express.
    pub blemishes: Vec<Blemish>,
    /// The node at which each atom of a [`Sym`] gets its value: the last node before its definition in the same block, or the block's
    /// first node. `None`: a constant of the whole execution of the function (argument, value computed from arguments alone).
    pub atoms: Vec<Option<NodeId>>,
    /// Pairs of objects of which neither allocation site dominates the other on the whole control flow. (On `graph` one may, where a way
    /// ends because allocations succeed. Then a pointer of the one need not exist at the other.) The smaller id comes first.
    pub unordered: BTreeSet<(ObjectId, ObjectId)>,
    /// Facts of the module around the function.
    pub module: ModuleFacts,
}

/// A buffer.
#[derive(Clone, Debug)]
pub struct Object {
    /// What a user calls it (the variable's name where debug information has it).
    pub name: String,
    /// Which side it belongs to.
    pub space: Space,
    /// What made it.
    pub origin: Allocator,
    /// Bytes; `None` where unknown.
    pub size: Option<Sym>,
    /// Alignment in bytes that the program asked for explicitly (aligned_alloc); 0 if it did not.
    pub alignment: u64,
    /// Where it has no bytes it is not allocated: its pointer is null then, nothing else happens where it would have been allocated, and the
    /// graph leaves that out. Its [`Event::Free`]s may be given null.
    pub may_be_absent: bool,
    /// Where in the source.
    pub site: Site,
}

/// Which processor an allocation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Host memory.
    Host,
    /// Device memory.
    Device,
    /// Managed, mapped or otherwise of both: never part of a pair.
    Both,
}

/// What made an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// malloc
    Malloc,
    /// calloc: the object is written (zeroes) by its allocation.
    Calloc,
    /// aligned_alloc, posix_memalign, memalign
    AlignedAlloc,
    /// operator new / new[]
    OperatorNew,
    /// cudaMallocHost, cudaHostAlloc
    PinnedHost,
    /// cudaMalloc
    CudaMalloc,
    /// cudaMallocAsync
    CudaMallocAsync,
    /// cudaMallocManaged
    CudaMallocManaged,
    /// A stack slot, a global, an argument, anything this function did not allocate: never part of a pair.
    Foreign,
}

/// A stream. An id of a kind other than `Unknown` means one and the same stream wherever it occurs in the function (a handle that is
/// assigned twice, or a stream that is created in a loop, is `Unknown`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The legacy default stream: waits for, and holds back, blocking streams.
    LegacyDefault,
    /// The per-thread default stream: ordered with the legacy default stream as a blocking stream is.
    PerThreadDefault,
    /// Made by cudaStreamCreate.
    Blocking,
    /// Made with cudaStreamNonBlocking.
    NonBlocking,
    /// Which one is not known: nothing orders it, and no wait but the device's covers it.
    Unknown,
}

/// A cudaEvent_t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaEvent {
    /// Exactly one event is meant at every use, and nothing but this function's nodes records it; otherwise a wait for it covers nothing.
    pub unique: bool,
}

/// A node: an event, and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// What happens.
    pub event: Event,
    /// Where in the source.
    pub site: Site,
    /// The lowering's own index of the instruction; 0 if there is none. Nodes of one instruction stand behind each other and share it: nothing
    /// can be put between them.
    pub origin: u32,
}

/// What happens at a node.
#[derive(Clone, Debug)]
pub enum Event {
    /// Nothing: entry, join, block without events.
    Skip,
    /// An object starts.
    Alloc(ObjectId),
    /// An object ends.
    Free {
        /// Which.
        object: ObjectId,
        /// The host may wait before it ends: cudaFree for its device, in practice.
        waits: Option<WaitScope>,
        /// For cudaFreeAsync: the stream in whose order the object ends.
        stream: Option<StreamId>,
        /// The pointer may be null instead, and then nothing happens; an allocation need not come before. If it is not null it is the
        /// object's last allocation.
        may_be_null: bool,
    },
    /// Host code.
    Host(Vec<Access>),
    /// GPU work is queued; it runs later, in stream order.
    Enqueue {
        /// On which stream.
        stream: StreamId,
        /// What.
        work: Work,
    },
    /// A memory copy call with a host side or a device-to-device copy that may wait.
    Copy(Copy),
    /// The host waits.
    Wait(WaitScope),
    /// A CUDA event is recorded.
    Record {
        /// Which event.
        event: CudaEventId,
        /// On which stream.
        stream: StreamId,
    },
    /// A stream waits for a CUDA event.
    StreamWait {
        /// The stream that waits.
        stream: StreamId,
        /// For which event.
        event: CudaEventId,
    },
    /// A call that nobody modelled. It may touch what escaped. It is never assumed to wait.
    Opaque {
        /// It may call the CUDA runtime: start GPU work, reset the device. It may also fork. (That it may start threads is a fact of the
        /// module.)
        launches: bool,
        /// The callee, for messages.
        name: String,
    },
    /// Control leaves the function.
    Exit {
        /// false: the process ends with a failure (abort, exit with a status other than 0, throw out of main), or control never comes there. An
        /// exception that leaves the function for its caller returns, and `exit(0)` ends the program as returning from main does.
        returns: bool,
    },
}

/// GPU work.
#[derive(Clone, Debug)]
pub struct Work {
    /// Kernel or library function, for messages.
    pub name: String,
    /// Which kind.
    pub kind: WorkKind,
    /// What it touches of known objects.
    pub accesses: Vec<Access>,
    /// It may touch every device object whose pointer was captured earlier by GPU work.
    pub touches_captured: bool,
    /// Objects whose pointer it may keep for later work.
    pub captures: Vec<ObjectId>,
}

/// Which kind of GPU work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// A kernel.
    Launch,
    /// cudaMemset*
    Memset,
    /// A library function (cuBLAS …) with a model.
    Library,
}

/// A copy call.
#[derive(Clone, Debug)]
pub struct Copy {
    /// Destination range.
    pub dst: Place,
    /// Source range; the same length.
    pub src: Place,
    /// The stream that it runs on.
    pub stream: StreamId,
    /// The host waits for the stream's earlier work before the copy starts.
    pub waits_before: bool,
    /// The host waits until the copy is complete. (A pageable upload returns once it is staged: its source may be reused, and the
    /// destination is written in stream order; `host_source_consumed` says so.)
    pub waits_after: bool,
    /// When the call returns, the host source has been read.
    pub host_source_consumed: bool,
}

/// One side of a copy.
#[derive(Clone, Debug)]
pub struct Place {
    /// The object; `None` where the pointer is not resolved. It is then certainly not derived from an object that has no [`PointerUse`]
    /// and no [`Blemish`].
    pub object: Option<ObjectId>,
    /// The bytes.
    pub range: Range,
}

/// One access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Of which object.
    pub object: ObjectId,
    /// Read or write.
    pub kind: AccessKind,
    /// Which bytes.
    pub range: Range,
    /// It happens whenever control passes the node, on all bytes of `range`. false: perhaps, or on some.
    pub must: bool,
}

/// Read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Read.
    Read,
    /// Write.
    Write,
}

/// Bytes of an object: `[start, start + len)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// All of it.
    Whole,
    /// Known bounds.
    Part {
        /// First byte.
        start: Sym,
        /// Number of bytes.
        len: Sym,
    },
    /// Somewhere in it.
    Unknown,
}

/// What the host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitScope {
    /// All work queued so far on the current device.
    Device,
    /// All work queued so far on a stream.
    Stream(StreamId),
    /// All work queued before the event's last record.
    Event(CudaEventId),
}

/// A use of an object's pointer that is no access.
#[derive(Clone, Debug)]
pub struct PointerUse {
    /// Whose pointer.
    pub object: ObjectId,
    /// How it is used.
    pub kind: UseKind,
    /// Where on the graph.
    pub node: NodeId,
    /// Where in the source.
    pub site: Site,
}

/// How a pointer is used. What is harmless (comparison with null, difference of pointers of one object) is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UseKind {
    /// Compared with a pointer that is not derived from the same object.
    Compared,
    /// Stored to memory that is no slot.
    Stored,
    /// Turned into an integer.
    CastToInteger,
    /// Returned.
    Returned,
    /// Given to a call without a model that may keep it.
    PassedTo(String),
    /// Its own attributes are asked for (cudaPointerGetAttributes, malloc_usable_size, printf %p).
    Observed(String),
    /// Registered with the driver or the kernel (cudaHostRegister, ioctl).
    Registered(String),
    /// Merged by phi or select with a pointer of another object.
    MixedWith(ObjectId),
    /// Accessed by the host with a volatile or atomic operation.
    VolatileOrAtomic,
    /// Given to inline assembly.
    InlineAsm,
    /// Reallocated.
    Reallocated,
}

/// Something that the lowering could not express.
#[derive(Clone, Debug)]
pub struct Blemish {
    /// What.
    pub kind: BlemishKind,
    /// Only these objects are concerned; empty: every object of the function.
    pub objects: Vec<ObjectId>,
    /// Where on the graph.
    pub node: NodeId,
    /// Where in the source.
    pub site: Site,
}

/// See [`Blemish`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlemishKind {
    /// A slot (pointer variable) holds different objects at different times, or its address is used in another way.
    AmbiguousSlot,
    /// A copy whose direction is known only at run time.
    CopyDirection,
    /// A call of the CUDA runtime that Echo does not model.
    UnmodelledCudaCall(String),
    /// setjmp, longjmp.
    NonLocalJump,
    /// A stream of this function may be capturing a graph.
    StreamCapture,
    /// The function is compiled without optimisation (optnone).
    NotOptimised,
    /// The device is reset or the context is destroyed.
    DeviceReset,
    /// The process forks, and the child goes on in this function.
    Fork,
    /// A limit of the lowering was reached; the text names it.
    Limit(&'static str),
}

/// Facts of the module around the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleFacts {
    /// It starts threads, or calls a function that may.
    pub starts_threads: bool,
    /// Another device may become current after this function's first GPU event (for a module: it selects a device other than device 0, which
    /// is current where none was selected).
    pub selects_devices: bool,
    /// GPU work from outside the function may be on another device than the one that is current in it: no wait here covers it.
    pub other_devices: bool,
    /// No GPU work can be running when the function is entered: it is `main`, and nothing that runs before `main` starts any.
    pub entry_quiet: bool,
}

impl Default for ModuleFacts {
    /// Nothing is known: assume the worst.
    fn default() -> Self {
        Self { starts_threads: true, selects_devices: true, other_devices: true, entry_quiet: false }
    }
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// Path as the compiler knows it; empty without debug information.
    pub file: String,
    /// 1-based; 0 without debug information.
    pub line: u32,
    /// 1-based; 0 without debug information.
    pub column: u32,
}

impl std::fmt::Display for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line == 0 { f.write_str("<no debug location>") } else { write!(f, "{}:{}", self.file, self.line) }
    }
}

impl Program {
    /// The object of an id.
    #[must_use]
    pub fn object(&self, id: ObjectId) -> &Object {
        &self.objects[id.0 as usize]
    }

    /// The node of an id.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.graph[id]
    }
}
