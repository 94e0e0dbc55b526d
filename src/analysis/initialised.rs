//! Which buffers of a pair may have been written when control is at a node.
//!
//! What was never written is never read, by the theorem's premise, except by linking copies, and what those copy stays unwritten. So
//! overwriting it harms nobody: that is what lets `memset(h, 0)` pass before the device buffer got its first value.

use super::access::link;
use super::dataflow::forward;
use super::pair::Pair;
use super::program::{Event, NodeId};
use crate::mutants::{Mutant, off};

/// Whether each buffer may hold a written byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) host: bool,
    pub(super) device: bool,
}

/// The state before each node; `None` where control never gets.
pub(super) fn written(pair: &Pair<'_>) -> Vec<Option<Written>> {
    let Pair { program, cfg, accesses, host, device, .. } = *pair;
    let join = |into: &mut Written, from: &Written| {
        let old = *into;
        into.host |= from.host;
        into.device |= from.device;
        *into != old
    };
    let transfer = |node: NodeId, state: &mut Written| {
        if let Some(copy) = link(program, host, device, node) {
            if off(Mutant::S1LinkWrites) {
                return;
            }
            if copy.src.object == Some(host) {
                state.device |= state.host;
            } else {
                state.host |= state.device;
            }
            return;
        }
        match program.node(node).event {
            _ if off(Mutant::S1AllocationIsNew) => {}
            Event::Alloc(object) if object == host => state.host = false,
            Event::Alloc(object) if object == device => state.device = false,
            _ => {}
        }
        for touch in accesses.at(node).iter().filter(|touch| touch.writes && !off(Mutant::S1WritesCount)) {
            state.host |= touch.object == host;
            state.device |= touch.object == device;
        }
    };
    forward(program, cfg, pair.region, Written::default(), join, transfer)
}
