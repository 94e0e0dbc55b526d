//! Plans in terms of a case's steps: what the prover planned, and the obvious plan for a pair that it declined.

use echo_sr::analysis::program::{NodeId, WaitScope};
use echo_sr::analysis::verdict::{FreeAction, MergePlan, RepairPlace, SyncAction};

use crate::case::{Buffer, Case, Step, is_host};

/// Index of a step.
pub type Place = usize;

/// A wait of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For all work.
    Device,
    /// For a stream.
    Stream(u8),
    /// For an event.
    Event(u8),
}

/// What stays where a free was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Free {
    /// Nothing but a wait.
    Drop(Option<Wait>),
    /// p ends, behind a wait.
    Release(Option<Wait>),
    /// Behind a wait, p has one name less, and ends if none is left.
    Count(Option<Wait>),
}

/// How one pair is merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// h.
    pub host: Buffer,
    /// d.
    pub device: Buffer,
    /// The allocation that makes p.
    pub creates: Place,
    /// Linking copies, and the wait that stays.
    pub copies: Vec<(Place, Option<Wait>)>,
    /// Frees.
    pub frees: Vec<(Place, Free)>,
    /// Waits behind copies that stay.
    pub waits: Vec<(Place, Wait)>,
    /// Waits for the device that P did not have; `true`: before the step, else behind it.
    pub repairs: Vec<(Place, bool)>,
    /// The host never touches p while work may be running.
    pub exclusive: bool,
    /// The run time chose not to merge the pair: what stays of the plan is its waits behind copies.
    pub separate: bool,
}

impl Plan {
    /// The buffer is merged by this plan.
    #[must_use]
    pub fn has(&self, buffer: Buffer) -> bool {
        !self.separate && (buffer == self.host || buffer == self.device)
    }

    /// What the prover planned.
    ///
    /// # Panics
    ///
    /// If the plan names a node that is no step.
    #[must_use]
    pub fn of(plan: &MergePlan, nodes: &[NodeId]) -> Self {
        let place = |node: &NodeId| {
            nodes.iter().position(|step| step == node).unwrap_or_else(|| panic!("{node:?} of the plan is no step"))
        };
        let buffer = |id: echo_sr::analysis::program::ObjectId| Buffer::try_from(id.0).unwrap_or(Buffer::MAX);
        let free = |action: &FreeAction| match action {
            FreeAction::Drop { wait: scope } => Free::Drop(scope.map(wait)),
            FreeAction::Release { wait: scope } => Free::Release(scope.map(wait)),
            FreeAction::Count { wait: scope } => Free::Count(scope.map(wait)),
        };
        let copy = |action: &SyncAction| match action {
            SyncAction::Nothing => None,
            SyncAction::Wait(scope) => Some(wait(*scope)),
        };
        Self {
            host: buffer(plan.host()),
            device: buffer(plan.device()),
            creates: place(&plan.creates()),
            copies: plan.copies().iter().map(|(node, action)| (place(node), copy(action))).collect(),
            frees: plan.frees().iter().map(|(node, action)| (place(node), free(action))).collect(),
            waits: plan.waits().iter().map(|(node, scope)| (place(node), wait(*scope))).collect(),
            repairs: plan.repairs().iter().map(|(node, at)| (place(node), *at == RepairPlace::Before)).collect(),
            exclusive: plan.exclusive_ok(),
            separate: false,
        }
    }

    /// What one would write without thinking: p is made by the first allocation in the code and ends with the last of its halves; a copy
    /// that made the host wait leaves a wait for the device.
    #[must_use]
    pub fn obvious(case: &Case, host: Buffer, device: Buffer) -> Option<Self> {
        let places = || case.steps.iter().enumerate();
        let mine = |buffer: Buffer| buffer == host || buffer == device;
        let (creates, _) = places().find(|(_, step)| matches!(step, Step::Alloc(buffer) if mine(*buffer)))?;
        let frees = places()
            .filter(|(_, step)| matches!(step, Step::Free(buffer) | Step::FreeUnlessNull(buffer) if mine(*buffer)));
        let (mut copies, mut waits) = (Vec::new(), Vec::new());
        for (place, step) in places() {
            let Step::Copy { dst, src, sync, .. } = *step else { continue };
            let row = case.row(dst, src, sync);
            // Programs rely on it although the documentation only says that it may wait.
            let waited = row.before || row.after || !is_host(src) && case.pageable(dst);
            if mine(dst) && mine(src) {
                copies.push((place, waited.then_some(Wait::Device)));
            } else if (mine(dst) || mine(src)) && (waited || row.consumed) {
                waits.push((place, Wait::Device));
            }
        }
        let frees = frees.map(|(place, _)| (place, Free::Count(Some(Wait::Device)))).collect();
        Some(Self {
            host,
            device,
            creates,
            copies,
            frees,
            waits,
            repairs: Vec::new(),
            exclusive: false,
            separate: false,
        })
    }
}

fn wait(scope: WaitScope) -> Wait {
    match scope {
        WaitScope::Device => Wait::Device,
        WaitScope::Stream(stream) => Wait::Stream(u8::try_from(stream.0).unwrap_or(u8::MAX)),
        WaitScope::Event(event) => Wait::Event(u8::try_from(event.0).unwrap_or(u8::MAX)),
    }
}
