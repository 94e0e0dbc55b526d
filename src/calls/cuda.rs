//! What a call of the CUDA runtime can mean. Which function means what: `runtime`.

use std::collections::HashMap;
use std::sync::OnceLock;

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

/// How many bytes a copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// This argument says.
    Arg(Arg),
    /// Rows. They are one linear range if both sides have no gaps between them.
    Rows {
        /// From one row of the destination to the next; `None`: the destination is no linear memory.
        dst_pitch: Option<Arg>,
        /// From one row of the source to the next; `None`: the source is no linear memory.
        src_pitch: Option<Arg>,
        /// Bytes of a row.
        width: Arg,
        /// How many rows.
        height: Arg,
    },
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
    /// A copy between two linear memories.
    Copy {
        /// Destination.
        dst: Arg,
        /// Source.
        src: Arg,
        /// Number of bytes.
        bytes: Size,
        /// Direction.
        kind: CopyKind,
        /// Stream.
        stream: StreamArg,
        /// The call is of the Async family: no wait is certain.
        asynchronous: bool,
    },
    /// A copy to or from a device symbol or an array: memory that no pointer of a buffer names.
    SymbolCopy {
        /// The host (or device) pointer.
        pointer: Arg,
        /// Number of bytes on the pointer's side.
        bytes: Size,
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
    /// Starts no work and waits for nothing that could be relied on, but the runtime or another process may keep what its arguments point
    /// to, or tells something of the address.
    Keeps,
    /// GPU work (or host code in a stream's order) that touches what was given to the runtime earlier, or what the call's arguments point
    /// to; the runtime keeps it.
    OtherWork,
}

/// The row of a symbol (without `_ptsz` or `_ptds`).
#[must_use]
pub fn row_of(name: &str) -> Option<&'static Row> {
    static TABLE: OnceLock<HashMap<&'static str, &'static Row>> = OnceLock::new();
    let rows = || super::runtime::SECTIONS.iter().flat_map(|section| section.rows);
    TABLE.get_or_init(|| rows().map(|row| (row.name, row)).collect()).get(name).copied()
}
