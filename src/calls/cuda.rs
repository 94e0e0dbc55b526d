//! The CUDA runtime: one row a call.
//!
//! Sources: CUDA Runtime API reference, "API synchronization behavior" (when copies and memsets return), "Stream synchronization
//! behavior" (legacy and per-thread default streams), and the pages of the functions themselves. Where the reference says "may"
//! (an asynchronous copy of pageable memory *may* be synchronous), no wait is assumed: the program cannot rely on it either.

use self::Meaning as M;
use crate::analysis::program::Allocator;

/// One call.
#[derive(Debug)]
pub struct Row {
    /// The symbol, without `_ptsz` and `_ptds`.
    pub name: &'static str,
    /// What it does.
    pub meaning: Meaning,
}

/// Position of an argument.
pub type Arg = u8;

/// The stream of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamArg {
    /// It has no stream argument and runs on the default stream.
    Default,
    /// The argument that names it; null is the default stream.
    Arg(Arg),
}

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// A `cudaMemcpyKind` argument.
    Arg(Arg),
    /// To a device symbol, from the `src` argument.
    ToSymbol,
    /// From a device symbol, to the `dst` argument.
    FromSymbol,
}

/// What a call does. Arguments that a meaning does not mention are numbers, or out-parameters that no pointer of a buffer is given to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// `*out` becomes a new allocation of `bytes`.
    Allocate {
        /// Address of the pointer variable.
        out: Arg,
        /// Number of bytes.
        bytes: Arg,
        /// Which kind of memory.
        allocator: Allocator,
    },
    /// `*out` becomes a new device allocation whose size is only known to the runtime (cudaMallocPitch).
    MallocPitch {
        /// Address of the pointer variable.
        out: Arg,
    },
    /// The allocation ends.
    Free {
        /// The pointer.
        pointer: Arg,
        /// The host waits for the device first.
        waits: bool,
        /// The stream in whose order it ends.
        stream: Option<StreamArg>,
    },
    /// A linear copy.
    Copy {
        /// Destination.
        dst: Arg,
        /// Source.
        src: Arg,
        /// Number of bytes.
        bytes: Arg,
        /// Direction.
        kind: CopyKind,
        /// Stream.
        stream: StreamArg,
        /// The call is of the Async family: no wait is certain.
        asynchronous: bool,
    },
    /// A linear copy to or from a device symbol.
    SymbolCopy {
        /// The host (or device) pointer.
        pointer: Arg,
        /// Number of bytes.
        bytes: Arg,
        /// Direction: [`CopyKind::ToSymbol`] or [`CopyKind::FromSymbol`].
        kind: CopyKind,
        /// Stream.
        stream: StreamArg,
        /// The call is of the Async family.
        asynchronous: bool,
    },
    /// Bytes are set, in stream order. Of device memory: the host does not wait.
    Memset {
        /// Destination.
        dst: Arg,
        /// Number of bytes; `None` where it is not one linear range.
        bytes: Option<Arg>,
        /// Stream.
        stream: StreamArg,
    },
    /// A kernel: `function(args[0], …)`.
    Launch {
        /// The host stub.
        function: Arg,
        /// Array of pointers to the arguments.
        args: Arg,
        /// Stream; `None` where it stands in a structure.
        stream: Option<Arg>,
        /// x and y of the grid in one number, then those of the block; `None` where they stand in a structure.
        configured: Option<(Arg, Arg)>,
    },
    /// `<<<…>>>` before the call of the stub.
    PushConfiguration {
        /// x and y of the grid in one number.
        grid: Arg,
        /// x and y of a block in one number.
        block: Arg,
        /// Stream.
        stream: Arg,
    },
    /// `<<<…>>>` inside the stub.
    PopConfiguration {
        /// Address of the variable that receives the stream.
        stream: Arg,
    },
    /// The host waits for the current device.
    WaitDevice,
    /// The host waits for a stream.
    WaitStream {
        /// The stream.
        stream: Arg,
    },
    /// The host waits for an event.
    WaitEvent {
        /// The event.
        event: Arg,
    },
    /// `*out` becomes a new stream.
    CreateStream {
        /// Address of the stream variable.
        out: Arg,
        /// Flags; `None`: blocking.
        flags: Option<Arg>,
    },
    /// `*out` becomes a new event.
    CreateEvent {
        /// Address of the event variable.
        out: Arg,
    },
    /// An event is recorded.
    Record {
        /// The event.
        event: Arg,
        /// Stream.
        stream: StreamArg,
    },
    /// A stream waits for an event.
    StreamWait {
        /// The stream.
        stream: Arg,
        /// The event.
        event: Arg,
    },
    /// The current device changes.
    SelectDevice {
        /// Its number.
        device: Arg,
    },
    /// The device's memory ends with its context.
    DeviceReset,
    /// A stream starts or ends capturing a graph.
    StreamCapture,
    /// Reads state of the runtime or writes it to out-parameters; starts no work, waits for nothing that could be relied on, keeps no
    /// pointer.
    Harmless,
    /// Known, and known to break what the proof relies on if a pointer of a buffer is given to it; `everywhere`: even if none is.
    Dangerous {
        /// It concerns every buffer.
        everywhere: bool,
    },
}

const fn row(name: &'static str, meaning: Meaning) -> Row {
    Row { name, meaning }
}

const fn allocate(allocator: Allocator) -> Meaning {
    M::Allocate { out: 0, bytes: 1, allocator }
}

const DEFAULT: StreamArg = StreamArg::Default;

/// The table, sorted by name.
pub static ROWS: &[Row] = &[
    // nvcc's stubs ask for the kernel's handle, once.
    row("__cudaGetKernel", M::Harmless),
    row("__cudaInitModule", M::Harmless),
    row("__cudaLaunchKernel", M::Launch { function: 0, args: 5, stream: Some(7), configured: Some((1, 3)) }),
    row("__cudaPopCallConfiguration", M::PopConfiguration { stream: 3 }),
    row("__cudaPushCallConfiguration", M::PushConfiguration { grid: 0, block: 2, stream: 5 }),
    row("__cudaRegisterFatBinary", M::Harmless),
    row("__cudaRegisterFatBinaryEnd", M::Harmless),
    row("__cudaRegisterFunction", M::Harmless),
    row("__cudaRegisterManagedVar", M::Harmless),
    row("__cudaRegisterVar", M::Harmless),
    row("__cudaUnregisterFatBinary", M::Harmless),
    row("cudaCtxResetPersistingL2Cache", M::Harmless),
    row("cudaDeviceCanAccessPeer", M::Harmless),
    row("cudaDeviceGetAttribute", M::Harmless),
    row("cudaDeviceGetByPCIBusId", M::Harmless),
    row("cudaDeviceGetCacheConfig", M::Harmless),
    row("cudaDeviceGetDefaultMemPool", M::Harmless),
    row("cudaDeviceGetLimit", M::Harmless),
    row("cudaDeviceGetPCIBusId", M::Harmless),
    row("cudaDeviceGetStreamPriorityRange", M::Harmless),
    row("cudaDeviceReset", M::DeviceReset),
    row("cudaDeviceSetCacheConfig", M::Harmless),
    row("cudaDeviceSetLimit", M::Harmless),
    row("cudaDeviceSynchronize", M::WaitDevice),
    row("cudaDriverGetVersion", M::Harmless),
    row("cudaEventCreate", M::CreateEvent { out: 0 }),
    row("cudaEventCreateWithFlags", M::CreateEvent { out: 0 }),
    row("cudaEventDestroy", M::Harmless),
    row("cudaEventElapsedTime", M::Harmless),
    row("cudaEventElapsedTime_v2", M::Harmless),
    row("cudaEventQuery", M::Harmless),
    row("cudaEventRecord", M::Record { event: 0, stream: StreamArg::Arg(1) }),
    row("cudaEventRecordWithFlags", M::Record { event: 0, stream: StreamArg::Arg(1) }),
    row("cudaEventSynchronize", M::WaitEvent { event: 0 }),
    row("cudaFree", M::Free { pointer: 0, waits: true, stream: None }),
    row("cudaFreeAsync", M::Free { pointer: 0, waits: false, stream: Some(StreamArg::Arg(1)) }),
    row("cudaFreeHost", M::Free { pointer: 0, waits: false, stream: None }),
    row("cudaFuncGetAttributes", M::Harmless),
    row("cudaFuncSetAttribute", M::Harmless),
    row("cudaFuncSetCacheConfig", M::Harmless),
    row("cudaGetDevice", M::Harmless),
    row("cudaGetDeviceCount", M::Harmless),
    row("cudaGetDeviceFlags", M::Harmless),
    row("cudaGetDeviceProperties", M::Harmless),
    row("cudaGetDeviceProperties_v2", M::Harmless),
    row("cudaGetErrorName", M::Harmless),
    row("cudaGetErrorString", M::Harmless),
    row("cudaGetLastError", M::Harmless),
    // The symbol's address is handed out: buffers are not concerned, a kernel that uses the symbol is seen by its own effects.
    row("cudaGetSymbolAddress", M::Harmless),
    row("cudaGetSymbolSize", M::Harmless),
    row("cudaHostAlloc", allocate(Allocator::PinnedHost)),
    row("cudaHostGetDevicePointer", M::Dangerous { everywhere: false }),
    row("cudaHostGetFlags", M::Dangerous { everywhere: false }),
    row("cudaHostRegister", M::Dangerous { everywhere: false }),
    row("cudaHostUnregister", M::Dangerous { everywhere: false }),
    // A callback on a stream is host code that runs while the host goes on.
    row("cudaLaunchHostFunc", M::Dangerous { everywhere: true }),
    row("cudaLaunchKernel", M::Launch { function: 0, args: 5, stream: Some(7), configured: Some((1, 3)) }),
    row("cudaLaunchKernelExC", M::Launch { function: 1, args: 2, stream: None, configured: None }),
    row("cudaMalloc", allocate(Allocator::CudaMalloc)),
    row("cudaMallocAsync", allocate(Allocator::CudaMallocAsync)),
    row("cudaMallocHost", allocate(Allocator::PinnedHost)),
    row("cudaMallocManaged", allocate(Allocator::CudaMallocManaged)),
    row("cudaMallocPitch", M::MallocPitch { out: 0 }),
    row("cudaMemAdvise", M::Dangerous { everywhere: false }),
    row("cudaMemGetInfo", M::Harmless),
    row("cudaMemPrefetchAsync", M::Dangerous { everywhere: false }),
    row(
        "cudaMemcpy",
        M::Copy { dst: 0, src: 1, bytes: 2, kind: CopyKind::Arg(3), stream: DEFAULT, asynchronous: false },
    ),
    row(
        "cudaMemcpyAsync",
        M::Copy { dst: 0, src: 1, bytes: 2, kind: CopyKind::Arg(3), stream: StreamArg::Arg(4), asynchronous: true },
    ),
    row(
        "cudaMemcpyFromSymbol",
        M::SymbolCopy { pointer: 0, bytes: 2, kind: CopyKind::FromSymbol, stream: DEFAULT, asynchronous: false },
    ),
    row(
        "cudaMemcpyFromSymbolAsync",
        M::SymbolCopy {
            pointer: 0,
            bytes: 2,
            kind: CopyKind::FromSymbol,
            stream: StreamArg::Arg(5),
            asynchronous: true,
        },
    ),
    row(
        "cudaMemcpyToSymbol",
        M::SymbolCopy { pointer: 1, bytes: 2, kind: CopyKind::ToSymbol, stream: DEFAULT, asynchronous: false },
    ),
    row(
        "cudaMemcpyToSymbolAsync",
        M::SymbolCopy { pointer: 1, bytes: 2, kind: CopyKind::ToSymbol, stream: StreamArg::Arg(5), asynchronous: true },
    ),
    row("cudaMemset", M::Memset { dst: 0, bytes: Some(2), stream: DEFAULT }),
    row("cudaMemset2D", M::Memset { dst: 0, bytes: None, stream: DEFAULT }),
    row("cudaMemset2DAsync", M::Memset { dst: 0, bytes: None, stream: StreamArg::Arg(5) }),
    row("cudaMemsetAsync", M::Memset { dst: 0, bytes: Some(2), stream: StreamArg::Arg(3) }),
    row("cudaOccupancyMaxActiveBlocksPerMultiprocessor", M::Harmless),
    row("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", M::Harmless),
    row("cudaPeekAtLastError", M::Harmless),
    row("cudaPointerGetAttributes", M::Dangerous { everywhere: false }),
    row("cudaProfilerStart", M::Harmless),
    row("cudaProfilerStop", M::Harmless),
    row("cudaRuntimeGetVersion", M::Harmless),
    row("cudaSetDevice", M::SelectDevice { device: 0 }),
    row("cudaSetDeviceFlags", M::Harmless),
    row("cudaStreamAddCallback", M::Dangerous { everywhere: true }),
    row("cudaStreamAttachMemAsync", M::Dangerous { everywhere: false }),
    row("cudaStreamBeginCapture", M::StreamCapture),
    row("cudaStreamBeginCaptureToGraph", M::StreamCapture),
    row("cudaStreamCreate", M::CreateStream { out: 0, flags: None }),
    row("cudaStreamCreateWithFlags", M::CreateStream { out: 0, flags: Some(1) }),
    row("cudaStreamCreateWithPriority", M::CreateStream { out: 0, flags: Some(1) }),
    // Destroying does not wait: the stream's work goes on.
    row("cudaStreamDestroy", M::Harmless),
    row("cudaStreamEndCapture", M::StreamCapture),
    row("cudaStreamGetPriority", M::Harmless),
    row("cudaStreamQuery", M::Harmless),
    row("cudaStreamSynchronize", M::WaitStream { stream: 0 }),
    row("cudaStreamWaitEvent", M::StreamWait { stream: 0, event: 1 }),
    row("cudaThreadExit", M::DeviceReset),
    row("cudaThreadSynchronize", M::WaitDevice),
];

/// The row of a symbol (without `_ptsz` or `_ptds`).
#[must_use]
pub fn row_of(name: &str) -> Option<&'static Row> {
    ROWS.binary_search_by(|row| row.name.cmp(name)).ok().map(|index| &ROWS[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_so_that_the_search_finds_every_row() {
        for pair in ROWS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} is out of order", pair[1].name);
        }
    }

    #[test]
    fn an_asynchronous_copy_promises_no_wait() {
        for row in ROWS.iter().filter(|row| row.name.contains("Async")) {
            match row.meaning {
                M::Copy { asynchronous, .. } | M::SymbolCopy { asynchronous, .. } => {
                    assert!(asynchronous, "{}", row.name)
                }
                M::Free { waits, .. } => assert!(!waits, "{}", row.name),
                _ => {}
            }
        }
    }
}
