//! Merging at run time.

use echo_dr_format::counters::PairCounters;
use echo_dr_format::event::{Stream, WaitFor};
use echo_dr_format::plan::Plan;
use echo_dr_format::reason::Deviation;
use echo_rt::{Cuda, DeviceFacts};

use crate::calls::{
    AllocDecision, Copy, CopyDecision, DeviceAlloc, FreeDecision, HostAlloc, ReallocDecision, ResetDecision,
};

/// The merged blocks of a process.
#[derive(Debug)]
pub struct Unifier {
    _plan: Plan,
}

impl Unifier {
    /// For a plan whose context holds. `candidates`: also the pairs that are not enabled but have the state `Validated` (calibration).
    #[must_use]
    pub fn new(plan: Plan, candidates: bool) -> Self {
        let _ = candidates;
        Self { _plan: plan }
    }

    /// Some pair has blocks of this size. Asked before the stack is walked for the site.
    #[must_use]
    pub fn wants_size(&self, bytes: usize) -> bool {
        let _ = bytes;
        false
    }

    /// `address` may be in merged memory: a few nanoseconds, for the front of every hook. Never false for one that is.
    #[must_use]
    pub fn is_near(&self, address: usize) -> bool {
        let _ = address;
        false
    }

    /// Host memory is asked for. `device` says what the device is; it is asked only before p is made. The caller is inside malloc: `cuda` must
    /// not come back to the engine.
    pub fn host_alloc(
        &self,
        cuda: &impl Cuda,
        device: impl FnOnce() -> Option<DeviceFacts>,
        call: HostAlloc,
    ) -> AllocDecision {
        let _ = (cuda, device, call);
        AllocDecision::Forward
    }

    /// Device memory is asked for.
    pub fn device_alloc(
        &self,
        cuda: &impl Cuda,
        device: impl FnOnce() -> Option<DeviceFacts>,
        call: DeviceAlloc,
    ) -> AllocDecision {
        let _ = (cuda, device, call);
        AllocDecision::Forward
    }

    /// free(address), before the real call.
    pub fn host_free(&self, cuda: &impl Cuda, address: usize) -> FreeDecision {
        let _ = (cuda, address);
        FreeDecision::Forward
    }

    /// cudaFree(address) or cudaFreeAsync, before the real call.
    pub fn device_free(&self, cuda: &impl Cuda, address: usize) -> FreeDecision {
        let _ = (cuda, address);
        FreeDecision::Forward
    }

    /// realloc of `address`, before the real call.
    #[must_use]
    pub fn realloc(&self, address: usize) -> ReallocDecision {
        let _ = address;
        ReallocDecision::Forward
    }

    /// Size of the merged block at `address`, for malloc_usable_size.
    #[must_use]
    pub fn size_of(&self, address: usize) -> Option<usize> {
        let _ = address;
        None
    }

    /// A copy, before it is made. `cuda` is used for prefetches.
    pub fn copy(&self, cuda: &impl Cuda, call: Copy) -> CopyDecision {
        let _ = (cuda, call);
        CopyDecision::Forward
    }

    /// cudaMemset of merged memory, before it is made (it is always made). Told where [`Unifier::is_near`] holds.
    pub fn set(&self, dst: usize) {
        let _ = dst;
    }

    /// GPU work is about to be put into a stream: a launch, a graph, a copy or set that is made, a host function.
    pub fn launched(&self, stream: Stream) {
        let _ = stream;
    }

    /// The host is about to wait. Give the token to [`Unifier::waited`] when the wait has succeeded.
    #[must_use]
    pub fn waiting(&self) -> WaitToken {
        WaitToken(0)
    }

    /// A wait has succeeded.
    pub fn waited(&self, token: WaitToken, on: WaitFor) {
        let _ = (token, on);
    }

    /// The device is about to be reset, or a context to be destroyed.
    #[must_use]
    pub fn reset(&self) -> ResetDecision {
        ResetDecision::Forward
    }

    /// This process is the child of a fork: nothing is merged any more, and merged blocks are never released.
    pub fn forked(&self) {}

    /// What happened to each pair of the plan.
    #[must_use]
    pub fn counters(&self) -> Vec<PairCounters> {
        Vec::new()
    }

    /// How often each deviation happened.
    #[must_use]
    pub fn deviations(&self) -> Vec<(Deviation, u64)> {
        Vec::new()
    }
}

/// What was launched when a wait began.
#[derive(Clone, Copy, Debug)]
pub struct WaitToken(u64);
