//! What a random program can say. It is small, and every sentence of it has one meaning in the abstract machine (`machine`) and one way,
//! or several equal ones, to be written in CUDA C++ (`emit`).
//!
//! Buffers hold unsigned numbers of one type. A program has an accumulator `acc` into which it reads and which it prints: its output.

/// Index of a buffer variable.
pub(super) type BufferId = usize;
/// Index of a stream; 0 is the legacy default stream.
pub(super) type StreamId = usize;
/// Index of an event.
pub(super) type EventId = usize;
/// Names a statement, so that it can be found in the tree.
pub(super) type StmtId = u32;

/// A program; depends on a seed and an index only.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Program {
    pub(super) index: u64,
    pub(super) element: Element,
    /// Elements of most buffers.
    pub(super) n: usize,
    /// `n` is a constant in the source; else it comes from the command line.
    pub(super) constant_size: bool,
    pub(super) checks: Checks,
    pub(super) buffers: Vec<Buffer>,
    pub(super) streams: Vec<StreamKind>,
    pub(super) events: usize,
    pub(super) kernels: Vec<Kernel>,
    pub(super) body: Vec<Stmt>,
    /// What comes behind the label `cleanup`.
    pub(super) tail: Vec<Stmt>,
    pub(super) trust: Trust,
    /// What the command line says, one run each.
    pub(super) inputs: [Input; 2],
    /// The first thing the function does is to wait for the device, so that nothing of the caller is in flight.
    pub(super) waits_first: bool,
    /// The next statement's name.
    pub(super) next_id: StmtId,
}

/// What a program takes for granted although newer documentation says "may".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trust {
    /// An asynchronous copy from pageable memory has read it at its return; one to pageable memory is complete.
    pub(super) staging: bool,
    /// cudaFree waits for the device.
    pub(super) free_waits: bool,
}

/// The command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) rounds: usize,
    pub(super) flag: bool,
}

/// Type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    U8,
    U32,
    U64,
}

/// What a program does about errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checks {
    /// Nothing.
    None,
    /// A macro that prints and exits.
    Exit,
    /// `goto cleanup`.
    Goto,
    /// A function that throws.
    Throw,
}

/// A buffer variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Buffer {
    pub(super) memory: Memory,
    pub(super) length: Length,
}

/// How a buffer is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Malloc,
    Calloc,
    AlignedAlloc,
    NewArray,
    /// `std::vector`: alive from the function's start to its end, cleared at the start.
    Vector,
    /// `std::unique_ptr<T[]>`: as long.
    UniquePtr,
    MallocHost,
    HostAlloc,
    CudaMalloc,
    /// Through a function that returns the pointer.
    CudaMallocHelper,
    /// `cudaMallocAsync`, and `cudaFreeAsync` unless the free is guarded.
    CudaMallocAsync(StreamId),
    /// `cudaMalloc`, and `cudaFreeAsync` unless the free is guarded.
    CudaMallocFreedAsync(StreamId),
    /// An owning class: alive from the function's start to its end.
    DeviceOwner,
}

impl Memory {
    pub(super) fn is_host(self) -> bool {
        use Memory::{AlignedAlloc, Calloc, HostAlloc, Malloc, MallocHost, NewArray, UniquePtr, Vector};
        matches!(self, Malloc | Calloc | AlignedAlloc | NewArray | Vector | UniquePtr | MallocHost | HostAlloc)
    }

    pub(super) fn is_pinned(self) -> bool {
        matches!(self, Memory::MallocHost | Memory::HostAlloc)
    }

    /// An object owns it: no statement allocates or frees it.
    pub(super) fn is_owned(self) -> bool {
        matches!(self, Memory::Vector | Memory::UniquePtr | Memory::DeviceOwner)
    }

    /// The stream in which it is freed, if its free is not guarded.
    pub(super) fn freed_in(self) -> Option<StreamId> {
        match self {
            Memory::CudaMallocAsync(stream) | Memory::CudaMallocFreedAsync(stream) => Some(stream),
            _ => None,
        }
    }

    /// New memory is zero.
    pub(super) fn is_cleared(self) -> bool {
        matches!(self, Memory::Calloc | Memory::Vector)
    }
}

/// Elements of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    N,
    Half,
    More,
}

impl Length {
    pub(super) fn of(self, n: usize) -> usize {
        match self {
            Length::N => n,
            Length::Half => n / 2,
            Length::More => n + 16,
        }
    }
}

/// Kinds of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    Legacy,
    Blocking,
    NonBlocking,
    PerThread,
}

/// `v * factor + addend` (plus the round of the innermost loop).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) factor: u8,
    pub(super) addend: u8,
    pub(super) round: bool,
}

/// Elements that an operation touches, of a buffer with `len` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    Whole,
    FirstHalf,
    SecondHalf,
    /// All but the last.
    Most,
    Constant {
        low: usize,
        high: usize,
    },
    /// `[0, length)`, where `length` is the command line's and happens to be all.
    Dynamic,
    /// A quarter that depends on the round.
    Row,
}

impl Range {
    /// First element and the one behind the last, in a round.
    pub(super) fn bounds(self, len: usize, round: usize) -> (usize, usize) {
        match self {
            Range::Whole | Range::Dynamic => (0, len),
            Range::FirstHalf => (0, len / 2),
            Range::SecondHalf => (len / 2, len),
            Range::Most => (0, len - 1),
            Range::Constant { low, high } => (low.min(len), high.min(len)),
            Range::Row => {
                let low = (round % 4) * (len / 4);
                (low, low + len / 4)
            }
        }
    }
}

/// One element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    First,
    Middle,
    Last,
    Round,
}

impl Spot {
    pub(super) fn of(self, len: usize, round: usize) -> usize {
        match self {
            Spot::First => 0,
            Spot::Middle => len / 2,
            Spot::Last => len - 1,
            Spot::Round => round % len,
        }
    }
}

/// Where a branch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Flag,
    NotFlag,
    RoundIs(usize),
    RoundOdd,
    /// An element of a host buffer is odd.
    Data {
        buffer: BufferId,
        at: Spot,
    },
    AccOdd,
}

/// How often a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Constant(usize),
    /// From the command line.
    Rounds,
}

/// What a wait waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Device,
    Stream(StreamId),
    Event(EventId),
}

/// How a statement is written; each has the same meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Inline,
    /// A function that the compiler may inline.
    Helper,
    /// A function that it may not.
    Apart,
    /// An algorithm of the standard library.
    Library,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stmt {
    pub(super) id: StmtId,
    pub(super) kind: Kind,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// `h[i] = form(i)`
    Fill {
        buffer: BufferId,
        range: Range,
        form: Form,
        way: Way,
    },
    /// `h[i] = form(h[i])`
    Update {
        buffer: BufferId,
        range: Range,
        form: Form,
        way: Way,
    },
    /// `memset` of the host
    Clear {
        buffer: BufferId,
        range: Range,
        byte: u8,
    },
    /// `memcpy` of the host
    HostCopy {
        to: BufferId,
        from: BufferId,
        range: Range,
        way: Way,
    },
    /// `acc = acc * 31 + h[i]`
    Read {
        buffer: BufferId,
        range: Range,
        way: Way,
    },
    ReadAt {
        buffer: BufferId,
        at: Spot,
    },
    StoreAt {
        buffer: BufferId,
        at: Spot,
        form: Form,
    },
    Print,
    /// Between host and device, or on the device. `shift`: how much further the target lies.
    Copy {
        to: BufferId,
        from: BufferId,
        range: Range,
        shift: usize,
        stream: Option<StreamId>,
        default_kind: bool,
    },
    Memset {
        buffer: BufferId,
        range: Range,
        byte: u8,
        stream: Option<StreamId>,
    },
    Launch {
        kernel: usize,
        buffers: Vec<BufferId>,
        range: Range,
        form: Form,
        stream: StreamId,
    },
    Record {
        event: EventId,
        stream: StreamId,
    },
    StreamWait {
        stream: StreamId,
        event: EventId,
    },
    Wait(Scope),
    Alloc(BufferId),
    /// `guarded`: only if the pointer is not null, which it is afterwards.
    Free {
        buffer: BufferId,
        guarded: bool,
    },
    Swap(BufferId, BufferId),
    Loop {
        count: Count,
        body: Vec<Stmt>,
    },
    If {
        condition: Condition,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    Break(Condition),
    /// To the cleanup.
    Leave(Condition),
    /// The statements stand in a function of their own.
    Call {
        way: Way,
        body: Vec<Stmt>,
    },
}

/// A kernel: what it does with its buffers for `i` of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) action: Action,
    pub(super) grid: Grid,
    /// Parameters are `__restrict__`, those that are read only `const`.
    pub(super) qualified: bool,
    /// Pointers come inside a structure.
    pub(super) structure: bool,
}

/// Which thread does which element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grid {
    /// Each one.
    Each,
    /// A loop over the grid.
    Stride,
    /// One thread does all.
    Single,
}

/// What a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// `x[i] = form(i)`
    Fill,
    /// `x[i] = form(x[i])`
    Scale,
    /// `x[i] = form(y[i])`
    Map,
    /// `x[i] = form(y[i]) + z[i]`
    Zip,
    /// `x[i] += form(y[i])`
    Accumulate,
    /// `x[i] = form(y[next i of the range])`
    Shift,
    /// `if (x[i] is odd) x[i] = form(x[i])`
    UpdateOdd,
    /// `if (y[i] is odd) x[i] = form(i)`
    FillOdd,
    /// `x[low] = sum of form(y[i])`, by one thread
    Sum,
    /// `x[i] = form(z[i]); y[i] = form(x[i])`
    Two,
    /// Within a block, through shared memory: `x[i] = form(y[i])`
    Shared,
    /// A pointer to `x` is kept in a device variable.
    Keep,
    /// `kept[i] = form(kept[i])`
    UseKept,
    /// The parameter is not used.
    Ignore,
}

impl Action {
    /// Buffers that it is given: (read, written) each.
    pub(super) fn parameters(self) -> &'static [(bool, bool)] {
        const READ: (bool, bool) = (true, false);
        const WRITE: (bool, bool) = (false, true);
        const BOTH: (bool, bool) = (true, true);
        match self {
            Action::Fill => &[WRITE],
            Action::Scale | Action::UpdateOdd => &[BOTH],
            Action::Map | Action::Shift | Action::FillOdd | Action::Sum | Action::Shared => &[WRITE, READ],
            Action::Zip => &[WRITE, READ, READ],
            Action::Accumulate => &[BOTH, READ],
            Action::Two => &[WRITE, WRITE, READ],
            Action::Keep => &[BOTH],
            Action::UseKept => &[],
            Action::Ignore => &[READ],
        }
    }
}

impl Program {
    pub(super) fn fresh(&mut self, kind: Kind) -> Stmt {
        let id = self.next_id;
        self.next_id += 1;
        Stmt { id, kind }
    }

    /// Elements of the smallest of `buffers`.
    pub(super) fn length(&self, buffers: &[BufferId]) -> usize {
        buffers.iter().map(|buffer| self.buffers[*buffer].length.of(self.n)).min().unwrap_or(self.n)
    }

    pub(super) fn is_host(&self, buffer: BufferId) -> bool {
        self.buffers[buffer].memory.is_host()
    }
}

impl Element {
    pub(super) fn mask(self) -> u64 {
        match self {
            Element::U8 => 0xFF,
            Element::U32 => 0xFFFF_FFFF,
            Element::U64 => u64::MAX,
        }
    }

    /// An element made of equal bytes.
    pub(super) fn of_byte(self, byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8]) & self.mask()
    }
}

impl Form {
    /// What it makes of `value` in a round.
    pub(super) fn apply(self, value: u64, round: usize) -> u64 {
        let round = if self.round { round as u64 } else { 0 };
        value.wrapping_mul(u64::from(self.factor)).wrapping_add(u64::from(self.addend)).wrapping_add(round)
    }
}
