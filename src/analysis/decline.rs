//! Every way to say no: the broken condition as data, its stable code, its sentence and what would help.
//!
//! Numbers are `ESR2xx`, grouped by condition: 20x candidate, 21x S1, 22x S2, 23x and 24x S3, 25x S4, 26x S5, 27x C. A number or code is
//! never used again for something else.

use std::fmt;

/// A broken condition of one pair. `buffer` names the half of the pair that is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decline {
    /// No linking copy moves the whole buffer.
    NoWholeCopy,
    /// The two sizes are not provably equal.
    SizesDiffer,
    /// The size of a buffer is not known.
    SizeUnknown {
        /// Its name.
        buffer: String,
    },
    /// The pair is smaller than θ_min.
    BelowThreshold {
        /// Bytes of the pair.
        size: u64,
        /// θ_min in bytes.
        threshold: u64,
    },
    /// One of the two is merged with another buffer, which saves more.
    BetterPartner {
        /// The buffer that both want.
        shared: String,
        /// The one it is merged with.
        partner: String,
    },
    /// S1: the host buffer is written while the device buffer's value is still needed.
    DeviceValueOverwritten {
        /// What writes.
        writer: String,
    },
    /// S1: the device buffer is written while the host buffer's value is still needed.
    HostValueOverwritten {
        /// What writes.
        writer: String,
    },
    /// S1: one operation writes one of the two and reads the other.
    ReadsPartner {
        /// What does so.
        operation: String,
    },
    /// S2: host code touches the pair while GPU work that touches it may be running.
    KernelPending {
        /// The work.
        work: String,
    },
    /// S2: host code touches the pair while a copy that stays may be using it.
    CopyPending,
    /// S2: two operations on the GPU touch the pair and no stream or event orders them.
    UnorderedStreams {
        /// The earlier one.
        first: String,
        /// The later one.
        second: String,
    },
    /// S2: an asynchronous linking copy is all that orders work on other streams.
    StreamOrderLost {
        /// The work that it holds back for.
        work: String,
    },
    /// S3: compared with another pointer.
    Compared {
        /// Whose pointer.
        buffer: String,
    },
    /// S3: stored to memory that the analysis does not follow.
    EscapesToMemory {
        /// Whose pointer.
        buffer: String,
    },
    /// S3: turned into an integer.
    CastToInteger {
        /// Whose pointer.
        buffer: String,
    },
    /// S3: returned.
    Returned {
        /// Whose pointer.
        buffer: String,
    },
    /// S3: given to a function that may keep it.
    PassedTo {
        /// Whose pointer.
        buffer: String,
        /// The function.
        callee: String,
    },
    /// S3: its attributes or its value are asked for.
    Observed {
        /// Whose pointer.
        buffer: String,
        /// The function that asks.
        callee: String,
    },
    /// S3: registered with the driver or the kernel.
    Registered {
        /// Whose pointer.
        buffer: String,
        /// The function that registers.
        callee: String,
    },
    /// S3: one pointer variable means this buffer or another one.
    Mixed {
        /// Whose pointer.
        buffer: String,
        /// The other one.
        other: String,
    },
    /// S3: volatile or atomic host access.
    VolatileOrAtomic {
        /// Whose memory.
        buffer: String,
    },
    /// S3: given to inline assembly.
    InlineAsm {
        /// Whose pointer.
        buffer: String,
    },
    /// S3: reallocated.
    Reallocated {
        /// Whose memory.
        buffer: String,
    },
    /// S3: a copy between the two at different or unknown offsets stays, and would copy a buffer onto itself.
    OffsetCopy,
    /// S3: the program asked for more alignment than p has.
    Alignment {
        /// Whose memory.
        buffer: String,
        /// Bytes asked for.
        bytes: u64,
    },
    /// S3: host code touches device memory, which P does not survive and P' would.
    HostTouchesDevice {
        /// Whose memory.
        buffer: String,
    },
    /// S3: GPU work touches pageable host memory, which P may not survive and P' would.
    DeviceTouchesHost {
        /// Whose memory.
        buffer: String,
    },
    /// S3: one operation writes one of the two and touches the other, and may assume that they don't overlap.
    OverlapAssumed {
        /// What does so.
        operation: String,
    },
    /// S3: GPU work keeps the pointer, and other threads may start work that uses it.
    CapturedAcrossThreads {
        /// Whose pointer.
        buffer: String,
    },
    /// S4: not exactly one place in this function allocates it.
    AllocationSites {
        /// Which.
        buffer: String,
        /// How many places do.
        count: usize,
    },
    /// S4: neither allocation is always before the other.
    AllocationsUnordered,
    /// S4: the buffer that is allocated second can be allocated when the other is freed already, or perhaps never, where p cannot stand
    /// in for the first one alone.
    AllocationsNotPaired,
    /// S4: an access or free that can be reached without the allocation.
    NotDominated {
        /// Which buffer.
        buffer: String,
    },
    /// S4: allocated again before it was freed.
    AllocatedAgain {
        /// Which buffer.
        buffer: String,
    },
    /// S4: freed in stream order (cudaFreeAsync).
    StreamOrderedFree,
    /// S4: used after the device was reset.
    UsedAfterReset {
        /// Which buffer.
        buffer: String,
    },
    /// S4: used after a call that nobody modelled and that may reset the device or fork.
    MayBeReset {
        /// The call.
        callee: String,
    },
    /// S4: no function has both the buffer and the one that it is copied from or to in sight.
    DifferentFunctions {
        /// The device buffer.
        buffer: String,
        /// Its function.
        function: String,
        /// Why that function was not joined with others.
        why: String,
    },
    /// S5: the host touches p while unrelated GPU work may be running.
    HostAccessInFlight {
        /// The work.
        work: String,
    },
    /// S5: p is allocated while GPU work may be running.
    AllocatedInFlight {
        /// The work.
        work: String,
    },
    /// S5: another thread may start GPU work at any time.
    Threads,
    /// C: a pointer variable could not be resolved.
    AmbiguousSlot,
    /// C: the direction of a copy is known only at run time.
    CopyDirection,
    /// C: a CUDA call that Echo does not model.
    UnmodelledCudaCall {
        /// The call.
        callee: String,
    },
    /// C: setjmp, longjmp.
    NonLocalJump,
    /// A stream of this function may be capturing a graph.
    GraphCapture,
    /// C: compiled without optimisation.
    NotOptimised,
    /// C: the process forks.
    Fork,
    /// C: a limit of the lowering.
    Limit {
        /// Which.
        what: &'static str,
    },
    /// C: the module uses more than one device.
    SeveralDevices,
    /// C: a copy of an unresolved pointer, after a pointer of the pair escaped.
    UnresolvedCopy,
}

/// One row a variant: number, code, hint.
macro_rules! rows {
    ($($pattern:pat => $number:literal, $code:literal, $help:literal;)*) => {
        impl Decline {
            /// The number of its page in `docs/remarks`, e.g. `ESR210`.
            #[must_use]
            pub fn number(&self) -> &'static str {
                match self { $($pattern => $number,)* }
            }

            /// The stable code, e.g. `S1-device-value-overwritten`.
            #[must_use]
            pub fn code(&self) -> &'static str {
                match self { $($pattern => $code,)* }
            }

            /// What would help.
            #[must_use]
            pub fn help(&self) -> &'static str {
                match self { $($pattern => $help,)* }
            }
        }

        /// Number and code of every variant, in the order of the list.
        pub const ALL: &[(&str, &str)] = &[$(($number, $code),)*];
    };
}

rows! {
    Decline::NoWholeCopy => "ESR201", "CAND-no-whole-copy",
        "copy the whole buffer in one call, or give the copied part a buffer of its own";
    Decline::SizesDiffer => "ESR202", "CAND-sizes-differ",
        "allocate both with the same size variable, and do not change it between the two calls";
    Decline::SizeUnknown { .. } => "ESR203", "CAND-size-unknown",
        "compute the size in this function, in size_t arithmetic";
    Decline::BelowThreshold { .. } => "ESR204", "CAND-below-threshold",
        "nothing to gain at this size; lower theta-min to merge it all the same";
    Decline::BetterPartner { .. } => "ESR205", "CAND-better-partner",
        "nothing to do: one buffer can share its storage with one other, and the copy between these two stays";
    Decline::DeviceValueOverwritten { .. } => "ESR210", "S1-device-value-overwritten",
        "write the host buffer before the upload or after the last use of the device buffer, or write another buffer";
    Decline::HostValueOverwritten { .. } => "ESR211", "S1-host-value-overwritten",
        "if the kernel only reads the buffer, declare the parameter `const T *__restrict__` and compile the kernel with the plugin so that its effects are known; else let it write another buffer";
    Decline::ReadsPartner { .. } => "ESR212", "S1-reads-partner",
        "split the operation, or let it read the buffer that it writes";
    Decline::KernelPending { .. } => "ESR220", "S2-kernel-pending",
        "wait for the work (cudaStreamSynchronize) before the host touches the buffer";
    Decline::CopyPending => "ESR221", "S2-copy-pending",
        "wait for the copy (cudaStreamSynchronize) before the host touches the buffer";
    Decline::UnorderedStreams { .. } => "ESR222", "S2-unordered-streams",
        "order the streams with cudaEventRecord and cudaStreamWaitEvent";
    Decline::StreamOrderLost { .. } => "ESR223", "S2-stream-order-lost",
        "use streams made with cudaStreamNonBlocking, or order the work with an event or a wait instead of the copy";
    Decline::Compared { .. } => "ESR230", "S3-compared",
        "compare with NULL or with pointers into the same buffer only";
    Decline::EscapesToMemory { .. } => "ESR231", "S3-escapes-to-memory",
        "keep the pointer in a local variable whose address is given only to the allocation call";
    Decline::CastToInteger { .. } => "ESR232", "S3-cast-to-integer",
        "index the buffer instead of computing with its address";
    Decline::Returned { .. } => "ESR233", "S3-returned",
        "allocate, use and free in one function, or let the callee be inlined (LTO sees across files)";
    Decline::PassedTo { .. } => "ESR234", "S3-passed-to-unknown",
        "make the callee visible (same file, static, LTO) or give it a model";
    Decline::Observed { .. } => "ESR235", "S3-observed",
        "remove the query, or keep the buffers apart";
    Decline::Registered { .. } => "ESR236", "S3-registered",
        "drop the registration: a merged buffer does not need it";
    Decline::Mixed { .. } => "ESR237", "S3-mixed-with-another",
        "use one pointer variable a buffer";
    Decline::VolatileOrAtomic { .. } => "ESR238", "S3-volatile-or-atomic",
        "wait with the CUDA API instead of polling memory";
    Decline::InlineAsm { .. } => "ESR239", "S3-inline-asm",
        "use a builtin or an intrinsic";
    Decline::Reallocated { .. } => "ESR240", "S3-reallocated",
        "allocate the final size at once";
    Decline::OffsetCopy => "ESR241", "S3-offset-copy",
        "copy between equal offsets, or through a third buffer";
    Decline::Alignment { .. } => "ESR242", "S3-alignment",
        "256 bytes is what the merged buffer has; ask for no more";
    Decline::HostTouchesDevice { .. } => "ESR243", "S3-host-touches-device-memory",
        "copy to a host buffer and read that";
    Decline::DeviceTouchesHost { .. } => "ESR244", "S3-device-touches-pageable-memory",
        "give the kernel the device buffer";
    Decline::OverlapAssumed { .. } => "ESR245", "S3-overlap-assumed",
        "give the operation buffers that do not belong to one pair";
    Decline::CapturedAcrossThreads { .. } => "ESR246", "S3-captured-across-threads",
        "compile the kernel with the plugin, so that it is known not to keep the pointer";
    Decline::AllocationSites { .. } => "ESR250", "S4-allocation-sites",
        "allocate the buffer at one place of the function that uses it";
    Decline::AllocationsUnordered => "ESR251", "S4-allocations-unordered",
        "allocate both buffers next to each other";
    Decline::AllocationsNotPaired => "ESR252", "S4-allocations-not-paired",
        "allocate both buffers under the same conditions, and free neither before the other is allocated";
    Decline::NotDominated { .. } => "ESR253", "S4-used-without-allocation",
        "allocate the buffer on every path that uses it";
    Decline::AllocatedAgain { .. } => "ESR254", "S4-allocated-again",
        "free the buffer in each round of the loop, or allocate it once before";
    Decline::StreamOrderedFree => "ESR256", "S4-stream-ordered-free",
        "use cudaMalloc and cudaFree for this buffer";
    Decline::UsedAfterReset { .. } => "ESR257", "S4-used-after-reset",
        "reset the device after the last use of the buffer";
    Decline::MayBeReset { .. } => "ESR258", "S4-may-be-reset",
        "make the callee visible (same file, static, LTO) or give it a model";
    Decline::DifferentFunctions { .. } => "ESR259", "S4-different-functions",
        "define the functions that allocate, use and free the two buffers in one file, or link with LTO (-flto)";
    Decline::HostAccessInFlight { .. } => "ESR260", "S5-host-access-in-flight",
        "wait for the device before the host touches the buffer; or set access=concurrent for devices with concurrentManagedAccess";
    Decline::AllocatedInFlight { .. } => "ESR261", "S5-allocated-in-flight",
        "allocate before the first GPU work; or set access=concurrent for devices with concurrentManagedAccess";
    Decline::Threads => "ESR262", "S5-threads",
        "set access=concurrent if the device has concurrentManagedAccess";
    Decline::AmbiguousSlot => "ESR270", "C-ambiguous-pointer",
        "use one pointer variable a buffer, and assign it once";
    Decline::CopyDirection => "ESR271", "C-copy-direction",
        "pass a constant cudaMemcpyKind";
    Decline::UnmodelledCudaCall { .. } => "ESR272", "C-unmodelled-cuda-call",
        "report the call, so that it gets a model";
    Decline::NonLocalJump => "ESR273", "C-non-local-jump",
        "move setjmp or longjmp out of this function";
    Decline::GraphCapture => "ESR274", "GRAPH-capture",
        "allocate and copy outside the capture";
    Decline::NotOptimised => "ESR275", "C-not-optimised",
        "compile with -O1 or more, without optnone";
    Decline::Fork => "ESR276", "C-fork",
        "fork before the first CUDA call, or use posix_spawn";
    Decline::Limit { .. } => "ESR277", "C-limit",
        "split the function";
    Decline::SeveralDevices => "ESR278", "C-several-devices",
        "select one constant device in the program";
    Decline::UnresolvedCopy => "ESR279", "C-unresolved-copy",
        "keep the pointers of the copy in local variables";
}

impl fmt::Display for Decline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoWholeCopy => write!(f, "no copy between the two moves the whole buffer"),
            Self::SizesDiffer => write!(f, "the two sizes are not provably equal"),
            Self::SizeUnknown { buffer } => write!(f, "the size of `{buffer}` is not known"),
            Self::BelowThreshold { size, threshold } => {
                write!(f, "the pair has {size} bytes, less than the threshold of {threshold}")
            }
            Self::BetterPartner { shared, partner } => {
                write!(f, "`{shared}` is merged with `{partner}`, which saves more")
            }
            Self::DeviceValueOverwritten { writer } => {
                write!(f, "{writer} writes the host buffer while the device buffer's value is still needed")
            }
            Self::HostValueOverwritten { writer } => {
                write!(f, "{writer} may write the device buffer while the host buffer's value is still needed")
            }
            Self::ReadsPartner { operation } => {
                write!(f, "{operation} writes one buffer of the pair and reads the other")
            }
            Self::KernelPending { work } => {
                write!(f, "the host touches the buffer here while {work} may still be using it")
            }
            Self::CopyPending => {
                write!(f, "the host touches the buffer here while a copy that stays may still be using it")
            }
            Self::UnorderedStreams { first, second } => {
                write!(f, "nothing orders {second} after {first}, and both use the buffer")
            }
            Self::StreamOrderLost { work } => {
                write!(f, "this asynchronous copy alone orders {work} before later work")
            }
            Self::Compared { buffer } => write!(f, "`{buffer}` is compared with another pointer"),
            Self::EscapesToMemory { buffer } => write!(f, "the pointer `{buffer}` is stored to memory"),
            Self::CastToInteger { buffer } => write!(f, "the pointer `{buffer}` is turned into an integer"),
            Self::Returned { buffer } => write!(f, "the pointer `{buffer}` is returned"),
            Self::PassedTo { buffer, callee } => {
                write!(f, "the pointer `{buffer}` is passed to `{callee}`, which may keep it")
            }
            Self::Observed { buffer, callee } => write!(f, "`{callee}` observes the pointer `{buffer}`"),
            Self::Registered { buffer, callee } => write!(f, "`{callee}` registers `{buffer}`"),
            Self::Mixed { buffer, other } => write!(f, "one pointer means `{buffer}` or `{other}`"),
            Self::VolatileOrAtomic { buffer } => write!(f, "volatile or atomic host access to `{buffer}`"),
            Self::InlineAsm { buffer } => write!(f, "`{buffer}` is given to inline assembly"),
            Self::Reallocated { buffer } => write!(f, "`{buffer}` is reallocated"),
            Self::OffsetCopy => write!(f, "a copy between the two buffers at different or unknown offsets"),
            Self::Alignment { buffer, bytes } => write!(f, "`{buffer}` is aligned to {bytes} bytes"),
            Self::HostTouchesDevice { buffer } => write!(f, "host code touches the device buffer `{buffer}`"),
            Self::DeviceTouchesHost { buffer } => {
                write!(f, "GPU work may touch the pageable host buffer `{buffer}`")
            }
            Self::OverlapAssumed { operation } => {
                write!(f, "{operation} touches both buffers of the pair and may assume that they don't overlap")
            }
            Self::CapturedAcrossThreads { buffer } => {
                write!(f, "GPU work may keep the pointer `{buffer}` and another thread may start work that uses it")
            }
            Self::AllocationSites { buffer, count } => {
                write!(f, "`{buffer}` is allocated at {count} places of the function")
            }
            Self::AllocationsUnordered => write!(f, "neither allocation always comes before the other"),
            Self::AllocationsNotPaired => write!(f, "one buffer can be allocated where the other is not"),
            Self::NotDominated { buffer } => write!(f, "`{buffer}` can be used here without having been allocated"),
            Self::AllocatedAgain { buffer } => write!(f, "`{buffer}` can be allocated again before it is freed"),
            Self::StreamOrderedFree => write!(f, "the device buffer is freed in stream order"),
            Self::UsedAfterReset { buffer } => write!(f, "`{buffer}` is used after the device was reset"),
            Self::MayBeReset { callee } => {
                write!(f, "`{callee}` is not known and may reset the device; the host buffer is used afterwards")
            }
            Self::DifferentFunctions { buffer, function, why } => {
                write!(f, "`{buffer}` and what it is copied from or to are not both allocated in `{function}`: {why}")
            }
            Self::HostAccessInFlight { work } => {
                write!(f, "the host touches the buffer here while {work} may be running")
            }
            Self::AllocatedInFlight { work } => {
                write!(f, "the buffer is allocated here while {work} may be running")
            }
            Self::Threads => write!(f, "another thread may start GPU work while the host touches the buffer"),
            Self::AmbiguousSlot => write!(f, "a pointer variable may hold different buffers"),
            Self::CopyDirection => write!(f, "the direction of a copy is known only at run time"),
            Self::UnmodelledCudaCall { callee } => write!(f, "Echo has no model of `{callee}`"),
            Self::NonLocalJump => write!(f, "setjmp or longjmp"),
            Self::GraphCapture => write!(f, "a stream may be capturing a graph"),
            Self::NotOptimised => write!(f, "the function is compiled without optimisation"),
            Self::Fork => write!(f, "the process forks while the buffer exists"),
            Self::Limit { what } => write!(f, "the function exceeds a limit: {what}"),
            Self::SeveralDevices => write!(f, "the program may use more than one device"),
            Self::UnresolvedCopy => {
                write!(f, "a copy whose pointer is not resolved may touch the pair, whose pointer has escaped")
            }
        }
    }
}
