//! Validation: when the host must keep its hands off a host buffer.

use echo_dr_format::event::{Stream, WaitFor};
use echo_dr_format::finding::{Access, Finding, PairSeen};
use echo_dr_format::plan::Plan;
use echo_dr_format::site::Site;

use crate::calls::Copy;
use crate::pending::{Pending, WaitToken};

/// What the pages of a host buffer allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Everything.
    Open,
    /// Reading.
    ReadOnly,
    /// Nothing.
    Closed,
}

/// What validation needs done. None of it is called while the engine holds a lock that [`Windows::touched`] needs.
pub trait Memory {
    /// `mprotect` of whole pages.
    fn protect(&self, start: usize, bytes: usize, protection: Protection);
    /// A hash of host memory, which may be protected at the time: the program's threads must not see it opened.
    fn host_digest(&self, address: usize, bytes: usize) -> u64;
    /// The same hash of device memory, after all work of the device is done. `None` if it can't be read.
    fn device_digest(&self, address: usize, bytes: usize) -> Option<u64>;
    /// Fills fresh device memory with a pattern that programs don't write.
    fn poison(&self, address: usize, bytes: usize);
}

/// What a fault handler does with a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The address is none of ours: the previous handler's business.
    NotOurs,
    /// Give these pages this protection (`mprotect`) and let the program go on.
    Reopen {
        /// The first page's address.
        start: usize,
        /// Bytes, whole pages.
        bytes: usize,
        /// What they allow from now on.
        protection: Protection,
    },
}

/// The windows of a plan's pairs.
#[derive(Debug)]
pub struct Windows {
    _plan: Plan,
    pending: Pending,
}

impl Windows {
    /// For the candidates of a plan. `exclusive`: also watch for host accesses while any GPU work is in flight.
    #[must_use]
    pub fn new(plan: Plan, page_size: usize, exclusive: bool) -> Self {
        let _ = (page_size, exclusive);
        Self { _plan: plan, pending: Pending::default() }
    }

    /// Some pair has blocks of this size. Asked before the stack is walked for the site.
    #[must_use]
    pub fn wants_size(&self, bytes: usize) -> bool {
        let _ = bytes;
        false
    }

    /// A pair's host block is allocated here: it must get pages of its own.
    #[must_use]
    pub fn is_host_site(&self, site: Site, bytes: usize) -> bool {
        let _ = (site, bytes);
        false
    }

    /// `address` may be in a watched block: a few nanoseconds. Never false for one that is.
    #[must_use]
    pub fn is_near(&self, address: usize) -> bool {
        let _ = address;
        false
    }

    /// A host block was allocated at `address`, on pages of its own.
    pub fn host_alloc(&self, memory: &impl Memory, site: Site, address: usize, bytes: usize, thread: u64) {
        let _ = (memory, site, address, bytes, thread);
    }

    /// A device block was allocated.
    pub fn device_alloc(&self, memory: &impl Memory, site: Site, address: usize, bytes: usize, thread: u64) {
        let _ = (memory, site, address, bytes, thread);
    }

    /// A host block is about to be freed or resized; its pages are open afterwards.
    pub fn host_free(&self, memory: &impl Memory, address: usize) {
        let _ = (memory, address);
    }

    /// A device block is about to be freed.
    pub fn device_free(&self, memory: &impl Memory, address: usize) {
        let _ = (memory, address);
    }

    /// A copy is about to be made; host pages that it needs are open afterwards.
    pub fn copying(&self, memory: &impl Memory, call: &Copy) {
        let _ = (memory, call);
    }

    /// The copy was made, or failed.
    pub fn copied(&self, memory: &impl Memory, call: &Copy, succeeded: bool) {
        let _ = (memory, call, succeeded);
    }

    /// Device memory is about to be set.
    pub fn set(&self, memory: &impl Memory, dst: usize, bytes: usize, stream: Stream) {
        let _ = (memory, dst, bytes, stream);
    }

    /// GPU work is about to be put into a stream: a launch, a graph, a host function. (Copies and sets have calls of their own.)
    pub fn launched(&self, memory: &impl Memory, stream: Stream) {
        let _ = (memory, stream);
    }

    /// An event records a stream.
    pub fn recorded(&self, event: u64, stream: Stream) {
        let _ = (event, stream);
    }

    /// The host is about to wait.
    #[must_use]
    pub fn waiting(&self) -> WaitToken {
        self.pending.waiting()
    }

    /// A wait has succeeded.
    pub fn waited(&self, memory: &impl Memory, token: WaitToken, on: WaitFor) {
        let _ = (memory, token, on);
    }

    /// A system call is about to read from or write to memory of the program; watched pages there are open afterwards. Returns whether there were any.
    pub fn system_call(&self, memory: &impl Memory, address: usize, bytes: usize, site: Site) -> bool {
        let _ = (memory, address, bytes, site);
        false
    }

    /// A fault. For a signal handler: takes no lock, allocates nothing.
    #[must_use]
    pub fn touched(&self, address: usize, access: Access, site: Site) -> Fault {
        let _ = (address, access, site);
        Fault::NotOurs
    }

    /// This process is the child of a fork: everything watched is opened and nothing is watched any more.
    pub fn forked(&self, memory: &impl Memory) {
        let _ = memory;
    }

    /// Findings since the last call; `time` is what they get as their time.
    #[must_use]
    pub fn findings(&self, time: u64) -> Vec<Finding> {
        let _ = time;
        Vec::new()
    }

    /// What was seen of each pair.
    #[must_use]
    pub fn seen(&self) -> Vec<PairSeen> {
        Vec::new()
    }
}
