//! S1 value: a write to one buffer must not destroy a value of the other that is still needed.
//!
//! In P' a write to `x` also overwrites its partner `x̄`. Without this check `h[0] = 999` between the upload and the kernel would change
//! what the kernel reads. A write passes if its partner was never written (nobody may read it), or if the partner is dead behind the write
//! and the writing operation does not read it itself. Linking copies are exempt: behind one, both buffers hold the same bytes.

use super::access::link;
use super::decline::Decline;
use super::initialised::written;
use super::liveness::Liveness;
use super::pair::{Pair, describe};
use super::verdict::Reason;
use crate::mutants::{Mutant, off};

pub(super) fn check(pair: &Pair<'_>, reasons: &mut Vec<Reason>) {
    let Pair { program, host, device, .. } = *pair;
    let liveness = Liveness::of(pair);
    let written = written(pair);
    for &node in pair.nodes {
        if link(program, host, device, node).is_some() {
            continue;
        }
        for buffer in pair.objects() {
            if !pair.touches(node).any(|touch| touch.object == buffer && touch.writes) {
                continue;
            }
            if off(Mutant::s1_writer(&program.node(node).event)) {
                continue;
            }
            let partner = pair.partner(buffer);
            let on_partner = |writes| pair.touches(node).any(|touch| touch.object == partner && touch.writes == writes);
            let before = written[node.index()].unwrap_or_default();
            let partner_written = if partner == host { before.host } else { before.device };
            if !partner_written && !on_partner(true) && !off(Mutant::S1NeverWritten) {
                continue;
            }
            if on_partner(false) && !off(Mutant::S1ReadsPartner) {
                reasons.push(pair.reason_on(
                    Decline::ReadsPartner { operation: describe(program, node) },
                    node,
                    &[node],
                ));
            }
            if let Some(path) = liveness.read_after(node, partner) {
                let writer = describe(program, node);
                let decline = if buffer == host {
                    Decline::DeviceValueOverwritten { writer }
                } else {
                    Decline::HostValueOverwritten { writer }
                };
                reasons.push(pair.reason_on(decline, node, &path));
            }
        }
    }
}
