//! Why not: every way in which Echo-DR leaves something as it was. Each has a number with a page in `docs/remarks`, and a short name for programs.
//!
//! | numbers | type | who says it |
//! | --- | --- | --- |
//! | EDR301 … EDR339 | [`Decline`] | the analysis of a trace, of a pair |
//! | EDR340 … EDR349 | [`Decline`] | validation, of a pair |
//! | EDR350 … EDR359 | [`Decline`] | calibration, of a pair |
//! | EDR360 … EDR369 | [`Refusal`] | the library, of a whole plan |
//! | EDR370 … EDR399 | [`Deviation`] | the library, counted, of one call |

use serde::{Deserialize, Serialize};

use crate::finding::Access;

/// What every reason has.
pub trait Reason {
    /// The number, as `EDR301`.
    fn number(&self) -> &'static str;
    /// The short name, as `recurs-too-rarely`.
    fn name(&self) -> &'static str;
}

macro_rules! numbered {
    ($type:ident { $($number:literal $name:literal $variant:pat,)* }) => {
        impl Reason for $type {
            fn number(&self) -> &'static str {
                match self { $($variant => $number,)* }
            }
            fn name(&self) -> &'static str {
                match self { $($variant => $name,)* }
            }
        }

        impl $type {
            /// All numbers with their names.
            pub const NUMBERS: &[(&str, &str)] = &[$(($number, $name)),*];
            /// All numbers with the variants that have them, as a pattern.
            pub const PATTERNS: &[(&str, &str)] = &[$(($number, stringify!($variant))),*];
        }
    };
}

/// Why a pair stays two buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Decline {
    /// Fewer than k_min copies at the dominant copy site.
    #[error("its most frequent copy ran {found} times, at least {needed} are asked for")]
    RecursTooRarely {
        /// Copies at the dominant site.
        found: u64,
        /// k_min.
        needed: u64,
    },
    /// Smaller than θ_min.
    #[error("it has {bytes} bytes, the threshold is {threshold}")]
    BelowThreshold {
        /// Its size.
        bytes: u64,
        /// θ_min.
        threshold: u64,
    },
    /// Host block, device block and copies do not have one size.
    #[error("the host block has {host} bytes, the device block {device}, a copy {copy}")]
    SizesDiffer {
        /// Of the host block.
        host: u64,
        /// Of the device block.
        device: u64,
        /// Of a copy.
        copy: u64,
    },
    /// A copy moves a part only.
    #[error("a copy moves {copy} of {bytes} bytes")]
    PartialCopy {
        /// Bytes of the copy.
        copy: u64,
        /// Bytes of the pair.
        bytes: u64,
    },
    /// A 2D, 3D, array or symbol copy.
    #[error("a copy between the two is not one run of bytes (2D, 3D or array)")]
    ShapedCopy,
    /// The pair's copies are in more than one stream.
    #[error("its copies are in several streams")]
    SeveralStreams,
    /// A host block is copied to or from several device blocks.
    #[error("the host block is copied to or from several device blocks")]
    HostHasSeveralPartners,
    /// A device block is copied to or from several host blocks.
    #[error("the device block is copied to or from several host blocks")]
    DeviceHasSeveralPartners,
    /// One side was freed and allocated again while the other lived.
    #[error("one of its blocks is freed and allocated again while the other lives on")]
    FreedBetween,
    /// A CUDA call uses the page-locked host block otherwise than as the host's end of a copy.
    #[error("a CUDA call uses the page-locked host block as if it were device memory")]
    UsedAsDeviceMemory,
    /// The device block is managed memory.
    #[error("the device block is managed memory already")]
    Managed,
    /// The device block is pitched or from a pool.
    #[error("the device block is pitched or comes from a memory pool")]
    SpecialDeviceMemory,
    /// The host block is resized.
    #[error("the host block is resized by realloc")]
    Reallocated,
    /// The host block asks for an alignment that merged memory does not promise.
    #[error("the host block must be aligned to {align} bytes")]
    Alignment {
        /// What was asked for.
        align: u64,
    },
    /// A copy between the two at different offsets.
    #[error("a copy between the two goes from one offset to another")]
    ShiftedCopy,
    /// Two threads copy the pair at once.
    #[error("two threads copy it at the same time")]
    CopiesOverlap,
    /// Something else is written into the host block by a CUDA call.
    #[error("a CUDA call writes something else into the host block")]
    OtherDataIntoHost,
    /// Something else is copied into the device block or it is set, where the host block's value is still needed.
    #[error("the device block is set, or written by another copy, outside of its uploads and the work after them")]
    OtherDataIntoDevice,
    /// Merging by site and order would pair other blocks than the copies do.
    #[error("pairing blocks by their allocation sites would not give the pairs that the copies show")]
    UnstablePairing,
    /// Some blocks of the sites have no partner.
    #[error("{count} blocks of its allocation sites are never copied to a partner")]
    BlocksWithoutPartner {
        /// How many.
        count: u64,
    },
    /// Another pair has the same allocation site and size on one side.
    #[error("another pair has the same allocation site and size")]
    SharedSite,
    /// The program uses several devices.
    #[error("the program uses several devices, or several contexts of one")]
    SeveralDevices,
    /// The process forks while the pair lives.
    #[error("the process forks while it is alive, or between its allocation and the first use of CUDA")]
    AliveAtFork,
    /// The device is reset while the pair lives.
    #[error("the device is reset, or its context ends, while it is alive")]
    AliveAtReset,
    /// Its copies are captured into a graph.
    #[error("a copy of it is captured into a graph")]
    Captured,
    /// The program asks what a pointer of the pair is, or page-locks it.
    #[error("the program asks about one of its addresses, gives advice on it, page-locks it, or puts it into a graph")]
    PointerQueried,
    /// Its host block comes before a call that must precede CUDA's initialisation.
    #[error("its host block is allocated before a call that must come before CUDA is initialised")]
    TooEarly,
    /// The host block is zeroed when the GPU may be using the device block.
    #[error("its host block comes zeroed from calloc after the device block was used")]
    ZeroedAfterUse,
    /// The trace has lost events.
    #[error("the trace has lost {count} events")]
    EventsLost {
        /// How many.
        count: u64,
    },
    /// One side of the copies is no recorded block.
    #[error(
        "one side of its copies is no allocated block that was recorded (stack, static or mapped memory, or a block below the threshold)"
    )]
    UnrecordedMemory,
    /// A CUDA function is called that isn't known.
    #[error("the program calls {name}, a CUDA function that this Echo-DR does not know, while it is alive")]
    UnknownFunction {
        /// Its name.
        name: String,
    },
    /// The host touches h while the GPU uses the pair.
    #[error("the host touches it while the GPU may be using it ({0})")]
    HostTouched(Access),
    /// The host writes h, then GPU work that may use d comes before the next upload.
    #[error("the host changes it, and GPU work follows before the next upload")]
    LaunchAfterHostWrite,
    /// A download replaces what the host wrote.
    #[error("the host changes it, and a download replaces the change")]
    HostWriteLost,
    /// The GPU changes d outside the windows, or an upload replaces what it wrote.
    #[error("the GPU changes it, and the host's own value is needed afterwards")]
    DeviceWriteLost,
    /// A kernel uses the host block without a copy.
    #[error("the GPU reaches the host block without a copy: the program fails where it can't")]
    ReachedByGpu,
    /// The GPU reaches all memory of the process, and whether it touches h could not be watched.
    #[error("the GPU can reach any host memory here, and whether it reaches the host block could not be watched")]
    ReachUnknown,
    /// Validation did not see it.
    #[error("it did not come up in the validation run")]
    NotValidated,
    /// Something that can't be watched may touch h.
    #[error(
        "its host block is given to something that can't be watched (asynchronous or ring input and output, calls that change its pages)"
    )]
    OutOfSight,
    /// It does not pay.
    #[error("it gains nothing ({:.1} %)", *gain_ppm as f64 / 1e4)]
    NoGain {
        /// The best backend's gain.
        gain_ppm: i64,
    },
    /// The program's output was another with the plan.
    #[error("the program's output was another with it merged")]
    OutputDiffers,
    /// No backend is possible here.
    #[error("no kind of memory on this machine can hold it merged")]
    NoBackend,
    /// The program failed with the plan.
    #[error("the program failed with it merged")]
    TrialFailed,
    /// The plan is a trial's, of other pairs.
    #[error("the plan is that of a trial run, in which other pairs are measured")]
    SwitchedOff,
}

numbered!(Decline {
    "EDR301" "recurs-too-rarely" Self::RecursTooRarely { .. },
    "EDR302" "below-threshold" Self::BelowThreshold { .. },
    "EDR303" "sizes-differ" Self::SizesDiffer { .. },
    "EDR304" "partial-copy" Self::PartialCopy { .. },
    "EDR305" "shaped-copy" Self::ShapedCopy,
    "EDR306" "several-streams" Self::SeveralStreams,
    "EDR307" "host-has-several-partners" Self::HostHasSeveralPartners,
    "EDR308" "device-has-several-partners" Self::DeviceHasSeveralPartners,
    "EDR309" "freed-between" Self::FreedBetween,
    "EDR310" "used-as-device-memory" Self::UsedAsDeviceMemory,
    "EDR311" "managed-already" Self::Managed,
    "EDR312" "special-device-memory" Self::SpecialDeviceMemory,
    "EDR313" "reallocated" Self::Reallocated,
    "EDR314" "alignment" Self::Alignment { .. },
    "EDR315" "shifted-copy" Self::ShiftedCopy,
    "EDR316" "copies-overlap" Self::CopiesOverlap,
    "EDR317" "other-data-into-host" Self::OtherDataIntoHost,
    "EDR318" "other-data-into-device" Self::OtherDataIntoDevice,
    "EDR319" "unstable-pairing" Self::UnstablePairing,
    "EDR320" "blocks-without-partner" Self::BlocksWithoutPartner { .. },
    "EDR321" "shared-site" Self::SharedSite,
    "EDR322" "several-devices" Self::SeveralDevices,
    "EDR323" "alive-at-fork" Self::AliveAtFork,
    "EDR324" "alive-at-reset" Self::AliveAtReset,
    "EDR325" "captured" Self::Captured,
    "EDR326" "pointer-queried" Self::PointerQueried,
    "EDR327" "too-early" Self::TooEarly,
    "EDR328" "zeroed-after-use" Self::ZeroedAfterUse,
    "EDR329" "events-lost" Self::EventsLost { .. },
    "EDR330" "unrecorded-memory" Self::UnrecordedMemory,
    "EDR331" "unknown-function" Self::UnknownFunction { .. },
    "EDR340" "host-touched" Self::HostTouched(_),
    "EDR341" "launch-after-host-write" Self::LaunchAfterHostWrite,
    "EDR342" "host-write-lost" Self::HostWriteLost,
    "EDR343" "device-write-lost" Self::DeviceWriteLost,
    "EDR344" "not-validated" Self::NotValidated,
    "EDR345" "reached-by-gpu" Self::ReachedByGpu,
    "EDR346" "reach-unknown" Self::ReachUnknown,
    "EDR347" "out-of-sight" Self::OutOfSight,
    "EDR350" "no-gain" Self::NoGain { .. },
    "EDR351" "output-differs" Self::OutputDiffers,
    "EDR352" "no-backend" Self::NoBackend,
    "EDR353" "trial-failed" Self::TrialFailed,
    "EDR354" "switched-off" Self::SwitchedOff,
});

/// Why a whole plan is not used. The program runs unchanged, and this is said once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Refusal {
    /// The text is no plan.
    #[error("it is no plan: {0}")]
    Malformed(String),
    /// Another schema version.
    #[error("it has format version {found}, this Echo-DR reads version {readable}; make it again with `echo-dr tune`")]
    Version {
        /// Of the file.
        found: u64,
        /// Of this program.
        readable: u32,
    },
    /// The checksum does not hold.
    #[error("its checksum does not fit its contents; it was damaged or edited")]
    Checksum,
    /// Another program.
    #[error("it was made for another executable, or for an older build of this one")]
    Executable,
    /// Another version of a library.
    #[error("it was made with another version of {path}")]
    Library {
        /// Where it was.
        path: String,
    },
    /// Another machine.
    #[error("it was made on the machine {planned}, this is {found}")]
    Host {
        /// The plan's.
        planned: String,
        /// This one.
        found: String,
    },
    /// Other arguments.
    #[error("it was made for other arguments")]
    Arguments,
    /// Another GPU.
    #[error("it was made for the GPU {planned}, this is {found}")]
    Device {
        /// The plan's.
        planned: String,
        /// This one.
        found: String,
    },
    /// Another driver or runtime.
    #[error("it was made with another version of the CUDA driver or runtime")]
    Runtime,
    /// The file is not the user's own, or others may write it.
    #[error("it is not owned by you, or others may write it")]
    NotOwned,
}

numbered!(Refusal {
    "EDR360" "malformed" Self::Malformed(_),
    "EDR361" "version" Self::Version { .. },
    "EDR362" "checksum" Self::Checksum,
    "EDR363" "executable" Self::Executable,
    "EDR364" "library" Self::Library { .. },
    "EDR365" "host" Self::Host { .. },
    "EDR366" "arguments" Self::Arguments,
    "EDR367" "device" Self::Device { .. },
    "EDR368" "runtime" Self::Runtime,
    "EDR369" "not-owned" Self::NotOwned,
});

/// What went otherwise than in the profiled runs: one call, forwarded or made safe, and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Deviation {
    /// A block that should have been merged was freed before its partner came.
    #[error("a block was freed before its partner was allocated")]
    PartnerNeverCame,
    /// The block that should come second came first.
    #[error("a block was allocated before its partner, which came first when profiled")]
    OtherOrder,
    /// More blocks wait for partners than when profiled.
    #[error("more blocks than when profiled were waiting for partners")]
    TooManyWaiting,
    /// More merged blocks live than when profiled.
    #[error("more blocks than when profiled were alive")]
    TooManyAlive,
    /// A planned site allocates another size.
    #[error("a planned allocation site asked for another size")]
    OtherSize,
    /// A copy within p from one offset to another.
    #[error("a copy within a merged block went from one offset to another")]
    ShiftedCopy,
    /// A copy between p and memory that is not its partner, which the profiled runs did not have.
    #[error("a merged block was copied from or to other memory in a way that was not profiled")]
    ForeignCopy,
    /// p was set or written by another copy.
    #[error("a merged block was set")]
    Set,
    /// p could not be allocated.
    #[error("merged memory could not be allocated")]
    AllocationFailed,
    /// The plan's backend is not possible here.
    #[error("the planned kind of memory is not possible on this device")]
    BackendUnusable,
    /// calloc after the device block was used.
    #[error("a zeroed host block was asked for after its device block was used")]
    ZeroedAfterUse,
    /// No room in the engine's tables.
    #[error("too many merged blocks are alive at once")]
    TableFull,
    /// The process is a fork's child.
    #[error("a forked child touched a merged block")]
    ForkedChild,
    /// The plan said that the wait is covered, and work was pending.
    #[error("a copy whose wait was covered when profiled had work pending, and waited")]
    WaitNotCovered,
    /// realloc of h.
    #[error("a merged host block was resized and is an ordinary block again")]
    Reallocated,
    /// The program has an error of its own that it has not looked at.
    #[error("an earlier CUDA error of the program is pending")]
    ErrorPending,
    /// An earlier deviation of this pair showed that its blocks are not paired as when profiled.
    #[error("an earlier deviation switched the pair off")]
    Retired,
    /// A larger alignment than merged memory has.
    #[error("a host block asked for a larger alignment than merged memory has")]
    Alignment,
    /// The device was about to be reset.
    #[error("a reset of the device was replaced by a wait, since merged host memory was alive")]
    ResetPostponed,
    /// A skipped copy at a site that the plan does not have.
    #[error("a copy of a merged block came from a site that was not profiled, and waited for the device")]
    UnknownCopySite,
    /// A planned site allocates page-locked memory where it was heap memory, or the other way round.
    #[error("a planned allocation site asked for another kind of host memory")]
    OtherKind,
    /// The program asks CUDA about p, gives advice on it or page-locks it.
    #[error("the program asked CUDA about a merged block, gave advice on it or page-locked it")]
    Queried,
}

numbered!(Deviation {
    "EDR370" "partner-never-came" Self::PartnerNeverCame,
    "EDR371" "other-order" Self::OtherOrder,
    "EDR372" "too-many-waiting" Self::TooManyWaiting,
    "EDR373" "too-many-alive" Self::TooManyAlive,
    "EDR374" "other-size" Self::OtherSize,
    "EDR375" "shifted-copy-at-run-time" Self::ShiftedCopy,
    "EDR376" "foreign-copy" Self::ForeignCopy,
    "EDR377" "set-at-run-time" Self::Set,
    "EDR378" "allocation-failed" Self::AllocationFailed,
    "EDR379" "backend-unusable" Self::BackendUnusable,
    "EDR380" "zeroed-after-use-at-run-time" Self::ZeroedAfterUse,
    "EDR381" "table-full" Self::TableFull,
    "EDR382" "forked-child" Self::ForkedChild,
    "EDR383" "wait-not-covered" Self::WaitNotCovered,
    "EDR384" "reallocated-at-run-time" Self::Reallocated,
    "EDR385" "error-pending" Self::ErrorPending,
    "EDR386" "retired" Self::Retired,
    "EDR387" "alignment-at-run-time" Self::Alignment,
    "EDR388" "reset-postponed" Self::ResetPostponed,
    "EDR389" "unknown-copy-site" Self::UnknownCopySite,
    "EDR390" "other-kind" Self::OtherKind,
    "EDR391" "queried-at-run-time" Self::Queried,
});

impl Deviation {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 22] = [
        Self::PartnerNeverCame,
        Self::OtherOrder,
        Self::TooManyWaiting,
        Self::TooManyAlive,
        Self::OtherSize,
        Self::ShiftedCopy,
        Self::ForeignCopy,
        Self::Set,
        Self::AllocationFailed,
        Self::BackendUnusable,
        Self::ZeroedAfterUse,
        Self::TableFull,
        Self::ForkedChild,
        Self::WaitNotCovered,
        Self::Reallocated,
        Self::ErrorPending,
        Self::Retired,
        Self::Alignment,
        Self::ResetPostponed,
        Self::UnknownCopySite,
        Self::OtherKind,
        Self::Queried,
    ];
}
