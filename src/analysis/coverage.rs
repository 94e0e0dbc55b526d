//! C coverage: everything that touches the pair is on the graph.
//!
//! The other conditions judge the accesses that they are shown. What the lowering could not express ([`Blemish`]) may hide some, and so
//! may a second device, whose waits this analysis would take for waits of all. A copy of an unresolved pointer cannot mean a buffer whose
//! pointer never escaped; if one did, the copy is named beside the escape.
//!
//! [`Blemish`]: super::program::Blemish

use super::decline::Decline;
use super::pair::Pair;
use super::program::{BlemishKind, Event};
use super::s3_pointer;
use super::verdict::Reason;
use crate::mutants::{Mutant, off};

pub(super) fn check(pair: &Pair<'_>, reasons: &mut Vec<Reason>) {
    for blemish in pair.program.blemishes.iter().filter(|blemish| !off(Mutant::c_blemish(&blemish.kind))) {
        let of_all = blemish.objects.is_empty() && !off(Mutant::CBlemishOfAll);
        let concerned = of_all || blemish.objects.iter().any(|object| pair.has(*object));
        if let (true, Some(decline)) = (concerned, blemish_reason(&blemish.kind)) {
            reasons.push(pair.reason_at_site(decline, blemish.site.clone()));
        }
    }
    if pair.program.module.selects_devices && !off(Mutant::CSeveralDevices) {
        let site = pair.program.object(pair.device).site.clone();
        reasons.push(pair.reason_at_site(Decline::SeveralDevices, site));
    }
    if s3_pointer::escapes(pair) && !off(Mutant::CUnresolvedCopy) {
        for &node in pair.cfg.order() {
            if let Event::Copy(copy) = &pair.program.node(node).event
                && (copy.dst.object.is_none() || copy.src.object.is_none())
            {
                reasons.push(pair.reason(Decline::UnresolvedCopy, node));
            }
        }
    }
}

fn blemish_reason(kind: &BlemishKind) -> Option<Decline> {
    Some(match kind {
        BlemishKind::AmbiguousSlot => Decline::AmbiguousSlot,
        BlemishKind::CopyDirection => Decline::CopyDirection,
        BlemishKind::UnmodelledCudaCall(callee) => Decline::UnmodelledCudaCall { callee: callee.clone() },
        BlemishKind::NonLocalJump => Decline::NonLocalJump,
        BlemishKind::StreamCapture => Decline::GraphCapture,
        BlemishKind::NotOptimised => Decline::NotOptimised,
        BlemishKind::Fork => Decline::Fork,
        BlemishKind::Limit(what) => Decline::Limit { what },
        // Harmless behind the last use: S4 decides.
        BlemishKind::DeviceReset => return None,
    })
}
