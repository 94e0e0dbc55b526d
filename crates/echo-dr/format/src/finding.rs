//! What validation found, as it is written into the trace of a validation run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::site::Site;

/// How the host touched a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// The processor does not say.
    Unknown,
    /// A system call of that name's hook (`read`, `recv` …) was given the buffer.
    SystemCall,
    /// A CUDA call that stays was given the buffer.
    CudaCall,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "a read",
            Self::Write => "a write",
            Self::Unknown => "a read or write",
            Self::SystemCall => "a system call",
            Self::CudaCall => "a CUDA call",
        })
    }
}

/// What is wrong with a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// The host touched h while the GPU was using the pair.
    HostTouched(Access),
    /// The host wrote h after a round, and GPU work that may use d came before the next upload.
    LaunchAfterHostWrite,
    /// The host wrote h, and a download then replaced what it had written.
    HostWriteLost,
    /// The GPU wrote d outside the pair's windows, or an upload replaced what it had written.
    DeviceWriteLost,
    /// A copy links a block with another one than its partner.
    WrongPartner,
    /// h was given to something that touches it in ways that can't be watched.
    OutOfSight,
    /// The host touched h while some GPU work was in flight. No reason to reject, but managed memory must not be used where access is exclusive,
    /// and where the GPU reaches all memory of the process nobody knows whether it touched h too.
    NotExclusive(Access),
    /// The GPU failed, in a run in which it can't reach the host block: a kernel may use it without a copy.
    ReachedByGpu,
}

/// One observation. Validation writes the first of each kind for a pair and counts the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Nanoseconds since the trace began.
    pub time: u64,
    /// The pair's number in the plan.
    pub pair: u32,
    /// What is wrong.
    pub trouble: Trouble,
    /// Where the access was, as a site whose frames are in the trace; absent where no instruction did it.
    pub site: Option<Site>,
    /// The byte of h that was touched.
    pub offset: Option<u64>,
}

/// At the end of a validation run: what was seen of a pair, so that "nothing was wrong" is told from "nothing happened".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairSeen {
    /// The pair's number in the plan.
    pub pair: u32,
    /// How many times its two buffers came to be.
    pub buffers: u64,
    /// Blocks of it that could not be watched: more of them, or others, than when profiled.
    pub unwatched: u64,
    /// How many windows opened.
    pub windows: u64,
    /// How many closed.
    pub closed: u64,
    /// Findings, the first ones included.
    pub findings: u64,
    /// Host accesses while other GPU work was in flight were watched for, from first to last.
    pub exclusive_watched: bool,
}
