//! S3 pointer: the program must not notice that the two pointers are one.
//!
//! Without this check `if (h == d)` would take the other branch. Uses other than accesses decline, each with its reason. So does what P
//! would not survive or could not mean with one buffer: a copy between the two at different offsets (of a buffer onto itself), one
//! operation that writes one of the two and touches the other, host code that touches device memory and the reverse, and more alignment
//! than p has.

use super::access::{Actor, link};
use super::decline::Decline;
use super::pair::{Pair, describe};
use super::program::{Allocator, Event, ObjectId, UseKind};
use super::verdict::Reason;
use crate::mutants::{Mutant, off};

/// What cudaMallocManaged and every other backend guarantee.
const ALIGNMENT: u64 = 256;

pub(super) fn check(pair: &Pair<'_>, reasons: &mut Vec<Reason>) {
    check_uses(pair, reasons);
    check_alignment(pair, reasons);
    check_operations(pair, reasons);
    check_captures(pair, reasons);
}

/// The pair's pointers are used for accesses only.
pub(super) fn escapes(pair: &Pair<'_>) -> bool {
    pair.program.uses.iter().any(|found| pair.has(found.object) || mixes_with(&found.kind, pair))
}

fn mixes_with(kind: &UseKind, pair: &Pair<'_>) -> bool {
    matches!(kind, UseKind::MixedWith(other) if pair.has(*other))
}

fn check_uses(pair: &Pair<'_>, reasons: &mut Vec<Reason>) {
    for found in pair.program.uses.iter().filter(|found| !off(Mutant::s3_use(&found.kind))) {
        if pair.has(found.object) {
            let decline = use_reason(pair, found.object, &found.kind);
            reasons.push(pair.reason_at_site(decline, found.site.clone()));
        } else if let UseKind::MixedWith(mine) = found.kind
            && pair.has(mine)
            && !off(Mutant::S3MixedFromOther)
        {
            let decline = Decline::Mixed { buffer: pair.name(mine), other: pair.name(found.object) };
            reasons.push(pair.reason_at_site(decline, found.site.clone()));
        }
    }
}

fn use_reason(pair: &Pair<'_>, object: ObjectId, kind: &UseKind) -> Decline {
    let buffer = pair.name(object);
    match kind {
        UseKind::Compared => Decline::Compared { buffer },
        UseKind::Stored => Decline::EscapesToMemory { buffer },
        UseKind::CastToInteger => Decline::CastToInteger { buffer },
        UseKind::Returned => Decline::Returned { buffer },
        UseKind::PassedTo(callee) => Decline::PassedTo { buffer, callee: callee.clone() },
        UseKind::Observed(callee) => Decline::Observed { buffer, callee: callee.clone() },
        UseKind::Registered(callee) => Decline::Registered { buffer, callee: callee.clone() },
        UseKind::MixedWith(other) => Decline::Mixed { buffer, other: pair.name(*other) },
        UseKind::VolatileOrAtomic => Decline::VolatileOrAtomic { buffer },
        UseKind::InlineAsm => Decline::InlineAsm { buffer },
        UseKind::Reallocated => Decline::Reallocated { buffer },
    }
}

fn check_alignment(pair: &Pair<'_>, reasons: &mut Vec<Reason>) {
    for buffer in pair.objects() {
        let object = pair.program.object(buffer);
        if object.alignment > ALIGNMENT && !off(Mutant::S3Alignment) {
            let decline = Decline::Alignment { buffer: object.name.clone(), bytes: object.alignment };
            reasons.push(pair.reason_at_site(decline, object.site.clone()));
        }
    }
}

fn check_operations(pair: &Pair<'_>, reasons: &mut Vec<Reason>) {
    let pinned = pair.program.object(pair.host).origin == Allocator::PinnedHost;
    for &node in pair.nodes {
        if link(pair.program, pair.host, pair.device, node).is_some() {
            continue;
        }
        let is_copy = matches!(pair.program.node(node).event, Event::Copy(_));
        let touches = |object: ObjectId| pair.touches(node).filter(move |touch| touch.object == object);
        if touches(pair.host).next().is_some() && touches(pair.device).next().is_some() {
            if is_copy {
                if !off(Mutant::S3OffsetCopy) {
                    reasons.push(pair.reason(Decline::OffsetCopy, node));
                }
            } else if pair.touches(node).any(|touch| touch.writes) && !off(Mutant::S3Overlap) {
                let operation = describe(pair.program, node);
                reasons.push(pair.reason(Decline::OverlapAssumed { operation }, node));
            }
        }
        if touches(pair.device).any(|touch| touch.actor == Actor::Host) && !off(Mutant::S3HostTouchesDevice) {
            reasons.push(pair.reason(Decline::HostTouchesDevice { buffer: pair.name(pair.device) }, node));
        }
        let by_gpu = touches(pair.host).any(|touch| touch.actor != Actor::Host);
        if !pinned && !is_copy && by_gpu && !off(Mutant::S3DeviceTouchesHost) {
            reasons.push(pair.reason(Decline::DeviceTouchesHost { buffer: pair.name(pair.host) }, node));
        }
    }
}

/// Pointers that GPU work keeps are followed within this function ([`super::access`]), not across threads.
fn check_captures(pair: &Pair<'_>, reasons: &mut Vec<Reason>) {
    if !pair.program.module.starts_threads || off(Mutant::S3CapturedAcrossThreads) {
        return;
    }
    for &node in pair.nodes {
        if let Event::Enqueue { work, .. } = &pair.program.node(node).event {
            for &buffer in work.captures.iter().filter(|object| pair.has(**object)) {
                reasons.push(pair.reason(Decline::CapturedAcrossThreads { buffer: pair.name(buffer) }, node));
            }
        }
    }
}
