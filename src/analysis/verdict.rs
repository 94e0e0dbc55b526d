//! What the analysis says of a candidate pair.

pub use super::decline::Decline;
use super::program::{NodeId, ObjectId, Site, WaitScope};

/// One candidate pair and what was decided.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Host buffer h.
    pub host: ObjectId,
    /// Device buffer d.
    pub device: ObjectId,
    /// Where each linking copy stands.
    pub copies: Vec<Site>,
    /// Bytes that those of them which stand in a loop move each time around it; `None` if none does, or one of unknown length.
    pub saved_per_iteration: Option<u64>,
    /// The decision.
    pub decision: Decision,
    /// What a reader of an accepted verdict should know.
    pub notes: Vec<Note>,
}

/// See [`Verdict::notes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// The size is known only at run time, so it was not compared with θ_min.
    SizeNotCompared,
    /// S5 does not hold: the merged buffer needs concurrentManagedAccess.
    NeedsConcurrentAccess,
    /// S5 does not hold: the runtime takes managed memory only under concurrentManagedAccess, else another kind.
    ManagedNeedsConcurrentAccess,
    /// Waits were put in where only an order was missing.
    Repaired,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::SizeNotCompared => "the size is known only at run time and was not compared with the threshold",
            Self::NeedsConcurrentAccess => "right only on devices with concurrentManagedAccess",
            Self::Repaired => "a wait was put in where only an order was missing (repair=on)",
            Self::ManagedNeedsConcurrentAccess => {
                "not made of managed memory on devices without concurrentManagedAccess"
            }
        })
    }
}

/// See [`Verdict`].
#[derive(Clone, Debug)]
pub enum Decision {
    /// The pair can be merged, in this way.
    Accept(MergePlan),
    /// It cannot; every broken condition is listed.
    Decline(Vec<Reason>),
}

/// Why a pair is declined.
#[derive(Clone, Debug)]
pub struct Reason {
    /// The broken condition, as data.
    pub decline: Decline,
    /// The event that breaks it.
    pub at: Site,
    /// A path that shows it: the events in order, each with a few words.
    pub witness: Vec<(Site, String)>,
    /// A repair that would make the pair acceptable, where only an order is missing.
    pub suggestion: Option<String>,
    /// The order that is missing, if that is what is broken.
    pub order: Option<MissingOrder>,
}

/// An order that a wait of the host would supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingOrder {
    /// The GPU work that may still run; `None`: work from outside the function.
    pub work: Option<NodeId>,
    /// Where it must not run any more.
    pub at: NodeId,
}

/// How a pair is merged. Only the prover makes one; `rewrite` takes it and cannot fail.
#[derive(Clone, Debug)]
pub struct MergePlan {
    pub(super) host: ObjectId,
    pub(super) device: ObjectId,
    pub(super) creates: NodeId,
    pub(super) yields: NodeId,
    pub(super) copies: Vec<(NodeId, SyncAction)>,
    pub(super) frees: Vec<(NodeId, FreeAction)>,
    pub(super) waits: Vec<(NodeId, WaitScope)>,
    pub(super) repairs: Vec<(NodeId, RepairPlace)>,
    pub(super) counted: bool,
    pub(super) keeps_host: bool,
    pub(super) exclusive_ok: bool,
}

/// What stays where a linking copy was: sync(c) of R3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncAction {
    /// Nothing: the copy's result becomes cudaSuccess.
    Nothing,
    /// A wait; the copy's result becomes its result.
    Wait(WaitScope),
}

/// What stays where a free was (R4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeAction {
    /// Nothing; p lives on. A removed cudaFree that waited for pending work leaves that wait.
    Drop {
        /// What to wait for, if work was pending.
        wait: Option<WaitScope>,
    },
    /// p is released here.
    Release {
        /// What to wait for first, if work on p may be pending.
        wait: Option<WaitScope>,
    },
    /// p has one name less; it is released here if none is left. A null pointer was no name. All frees of a plan that counts do this.
    Count {
        /// What to wait for first, whether p is released or not.
        wait: Option<WaitScope>,
    },
}

/// Where a wait that repairs an order stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairPlace {
    /// Directly before the node.
    Before,
    /// Directly behind it.
    Behind,
}

impl MergePlan {
    /// Host buffer h.
    #[must_use]
    pub fn host(&self) -> ObjectId {
        self.host
    }
    /// Device buffer d.
    #[must_use]
    pub fn device(&self) -> ObjectId {
        self.device
    }
    /// The allocation that creates p (it dominates the other).
    #[must_use]
    pub fn creates(&self) -> NodeId {
        self.creates
    }
    /// The allocation that yields p. If the host buffer came from calloc, its own allocation node, be it this or [`Self::creates`],
    /// fills p with zeroes.
    #[must_use]
    pub fn yields(&self) -> NodeId {
        self.yields
    }
    /// The linking copies, and what stays where each was.
    #[must_use]
    pub fn copies(&self) -> &[(NodeId, SyncAction)] {
        &self.copies
    }
    /// The frees of h and d, and what stays where each was.
    #[must_use]
    pub fn frees(&self) -> &[(NodeId, FreeAction)] {
        &self.frees
    }
    /// Waits to insert directly after a copy that stays. It waited when its host side was pageable; of managed memory it may not.
    #[must_use]
    pub fn waits(&self) -> &[(NodeId, WaitScope)] {
        &self.waits
    }
    /// Waits for the device that P did not have: an order was missing, and the user wants it supplied (`repair`).
    #[must_use]
    pub fn repairs(&self) -> &[(NodeId, RepairPlace)] {
        &self.repairs
    }
    /// Which free is p's last depends on the path, so p counts its names while the program runs: one more at each visit of
    /// [`Self::creates`] and [`Self::yields`], one less at each free.
    #[must_use]
    pub fn counted(&self) -> bool {
        self.counted
    }
    /// The program may come to use h and never to allocate d, perhaps because there is no device. Where p cannot be made h is what it was
    /// in P, and [`Self::yields`] reports the failure.
    #[must_use]
    pub fn keeps_host(&self) -> bool {
        self.keeps_host
    }
    /// S5 holds: p may be managed memory where access is exclusive (concurrentManagedAccess = 0).
    #[must_use]
    pub fn exclusive_ok(&self) -> bool {
        self.exclusive_ok
    }
}
