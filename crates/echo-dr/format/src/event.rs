//! What a traced program did, one call at a time.
//!
//! Runtime and driver API share this vocabulary: an event says what a call means, `api` which call it was. Addresses are numbers; nothing
//! dereferences them. Only calls that succeeded are events.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::site::Site;

/// One call. The time of a free is taken before the real call and that of an allocation after it, so that in time order an address never belongs
/// to two blocks at once. Of all other calls it is the time before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Nanoseconds since the trace began.
    pub time: u64,
    /// How long the real call took, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub took: u64,
    /// The thread, counted from 0 in order of appearance.
    pub thread: u32,
    /// Where it was called; zero where the site does not matter (frees, waits).
    pub site: Site,
    /// The function's name.
    pub api: Cow<'static, str>,
    /// What it means.
    pub call: Call,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A stream's handle; [`Stream::LEGACY`] and [`Stream::PER_THREAD`] are the default streams. The per-thread variants of calls (`_ptds`, `_ptsz`) name
/// `PER_THREAD` where the program gave 0. A per-thread default stream is another one in each thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stream(pub u64);

impl Stream {
    /// The legacy default stream: 0 and `cudaStreamLegacy` both become this.
    pub const LEGACY: Self = Self(0);
    /// `cudaStreamPerThread`.
    pub const PER_THREAD: Self = Self(2);

    /// A stream that the program created.
    #[must_use]
    pub fn is_own(self) -> bool {
        self != Self::LEGACY && self != Self::PER_THREAD
    }
}

/// What a host block is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostKind {
    /// malloc and its relatives.
    Heap,
    /// calloc: the block is zero.
    Zeroed,
    /// `cudaMallocHost`, `cudaHostAlloc`, `cuMemAllocHost`, `cuMemHostAlloc`.
    PageLocked,
}

/// What a device block is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// `cudaMalloc`, `cuMemAlloc`.
    Plain,
    /// `cudaMallocAsync` and other allocations in stream order or from a pool.
    Pooled,
    /// `cudaMallocManaged`.
    Managed,
    /// `cudaMallocPitch`, `cudaMalloc3D`.
    Pitched,
}

/// Which way a copy goes. `cudaMemcpyDefault` is resolved by the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyKind {
    /// Host to device.
    HostToDevice,
    /// Device to host.
    DeviceToHost,
    /// Device to device.
    DeviceToDevice,
    /// Host to host, by a CUDA call.
    HostToHost,
    /// The addresses say.
    Default,
}

/// Whether the copied bytes are one run on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// One run of bytes.
    #[default]
    Linear,
    /// 2D or 3D, with pitches.
    Pitched,
    /// To or from an array, texture or symbol.
    Array,
}

/// What a wait of the host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// All work of the device (or context).
    Device,
    /// Work of one stream.
    Stream(Stream),
    /// What an event has recorded.
    Event(u64),
}

/// Things that concern a whole process or context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setup {
    /// A call that must come before CUDA is initialised (`cudaSetDeviceFlags`, `cudaSetValidDevices` …).
    BeforeInitialisation,
    /// `cudaDeviceReset`, or a context's end.
    Reset,
    /// The process forked; this is the parent.
    Fork,
    /// CUDA is used for the first time.
    FirstUse,
}

/// What a call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Call {
    /// A host block comes to be.
    HostAlloc {
        /// First byte.
        ptr: u64,
        /// Size that was asked for.
        bytes: u64,
        /// Alignment that was asked for, 0 if none.
        align: u64,
        /// What it is made of.
        kind: HostKind,
    },
    /// realloc moved or resized a block (one event instead of a free and an allocation).
    HostRealloc {
        /// The old block.
        old: u64,
        /// The new one.
        ptr: u64,
        /// Its size.
        bytes: u64,
    },
    /// A host block ends; also `cudaFreeHost`.
    HostFree {
        /// First byte.
        ptr: u64,
    },
    /// Host memory is page-locked or unlocked in place (`cudaHostRegister`, `cudaHostUnregister`).
    HostRegister {
        /// First byte.
        ptr: u64,
        /// Size; 0 for unregister.
        bytes: u64,
    },
    /// A device block comes to be.
    DeviceAlloc {
        /// First byte.
        ptr: u64,
        /// Size that was asked for.
        bytes: u64,
        /// What it is made of.
        kind: DeviceKind,
    },
    /// A device block ends.
    DeviceFree {
        /// First byte.
        ptr: u64,
        /// In stream order (`cudaFreeAsync`).
        asynchronous: bool,
    },
    /// A copy.
    Copy {
        /// Where to.
        dst: u64,
        /// Where from.
        src: u64,
        /// How many bytes (of a pitched copy: width times height times depth).
        bytes: u64,
        /// Which way.
        kind: CopyKind,
        /// In which stream.
        stream: Stream,
        /// The function may return before the copy is done.
        asynchronous: bool,
        /// One run of bytes or not.
        shape: Shape,
    },
    /// A copy that a run with a plan left out: its two ends are one buffer.
    Skipped {
        /// How many bytes it would have moved.
        bytes: u64,
        /// What the host waited for in its place, if the plan says so.
        wait: Option<WaitFor>,
    },
    /// Device memory is set to a value.
    Set {
        /// Where.
        dst: u64,
        /// How many bytes.
        bytes: u64,
        /// In which stream.
        stream: Stream,
    },
    /// Work for the GPU that may touch any device memory: a kernel, a graph, a prefetch, a host function in a stream.
    Launch {
        /// In which stream.
        stream: Stream,
    },
    /// The host waits.
    Wait {
        /// What for.
        on: WaitFor,
    },
    /// An event records a stream.
    EventRecord {
        /// The event.
        event: u64,
        /// The stream.
        stream: Stream,
    },
    /// A stream waits for an event.
    StreamWait {
        /// The stream.
        stream: Stream,
        /// The event.
        event: u64,
    },
    /// A stream comes to be.
    StreamCreate {
        /// The stream.
        stream: Stream,
        /// It does not wait for the legacy default stream, nor that for it.
        non_blocking: bool,
    },
    /// A stream ends.
    StreamDestroy {
        /// The stream.
        stream: Stream,
    },
    /// A stream is recorded into a graph from here on, or no longer.
    Capture {
        /// The stream.
        stream: Stream,
        /// It begins.
        begin: bool,
    },
    /// The current device (or context) of this thread changed.
    SetDevice {
        /// Its number.
        device: i32,
    },
    /// The program asked what an address is, exported it to another process or gave advice on it: whatever a merged buffer would answer otherwise.
    Query {
        /// The address.
        ptr: u64,
    },
    /// A function that may copy, set, free or map memory in a way that isn't known.
    Unknown {
        /// No call of it can be seen: it was found as an import of the program, and may be called at any time.
        unseen: bool,
    },
    /// A process-wide event.
    Setup {
        /// Which.
        what: Setup,
    },
}
