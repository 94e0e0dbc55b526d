//! The pairs of blocks that are watched: the state behind the lock of validation.

use echo_dr_format::finding::{Access, Finding, PairSeen};
use echo_dr_format::site::Site;

use super::guard::Seen;
use super::instance::{Instance, Stage};
use crate::calls::Copy;
use crate::matcher::Matcher;

/// What is behind the lock.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) instances: Vec<Instance>,
    pub(super) pairs: Vec<PairWatch>,
    pub(super) findings: Vec<Finding>,
    pub(super) next_key: u64,
    pub(super) joined: bool,
    /// Launches when the host last made a call that may wait for them without saying so.
    pub(super) hidden: u64,
    pub(super) flying: bool,
    /// Kernels, graphs, sets and host functions that the program began to give the GPU.
    pub(super) begun: u64,
    /// Those whose calls have come back.
    pub(super) told: u64,
    /// The GPU has failed.
    pub(super) failed: bool,
}

/// What is known of one pair.
#[derive(Debug)]
pub(super) struct PairWatch {
    pub(super) matcher: Matcher<u64>,
    pub(super) seen: PairSeen,
    /// Something is wrong with it; it is not watched any more.
    pub(super) rejected: bool,
}

impl Watch {
    /// Nothing is to be watched of this pair.
    pub(super) fn is_rejected(&self, pair: usize) -> bool {
        self.pairs[pair].rejected
    }

    /// Instances whose host block the range overlaps.
    pub(super) fn touching(&self, address: usize, bytes: usize) -> Vec<usize> {
        let end = address.saturating_add(bytes);
        let overlaps = |instance: &Instance| {
            instance
                .host
                .is_some_and(|host| address < host.address.saturating_add(instance.bytes) && host.address < end)
        };
        (0..self.instances.len()).filter(|&place| overlaps(&self.instances[place])).collect()
    }

    /// Counts a window that opened or closed.
    pub(super) fn count(&mut self, place: usize, was_open: bool) {
        let Some(instance) = self.instances.get(place) else { return };
        let is_open = matches!(instance.stage, Stage::Open { .. });
        let seen = &mut self.pairs[instance.pair].seen;
        seen.windows += u64::from(!was_open && is_open);
        seen.closed += u64::from(was_open && !is_open);
    }
}

impl Instance {
    pub(super) fn has_device_in(&self, address: usize, bytes: usize) -> bool {
        let end = address.saturating_add(bytes);
        self.device.is_some_and(|device| address < device.address.saturating_add(self.bytes) && device.address < end)
    }

    /// One end of the copy is this pair's device block.
    pub(super) fn partner_in(&self, call: &Copy) -> bool {
        self.has_device_in(call.dst, call.bytes) || self.has_device_in(call.src, call.bytes)
    }
}

impl Seen {
    pub(super) fn at(site: Site) -> Self {
        Self { access: Access::CudaCall, offset: 0, site }
    }
}
