//! Liveness of a pair's values: whether some byte of one buffer, as it is now, may be read later.
//!
//! Order of events: work counts where it is queued. That is exact for what it is used for: P is free of races by the theorem's premise and
//! P' by S2, so both behave as if every queued operation ran at once, and "read later, before it is overwritten" is a question of paths.
//!
//! A linking copy reads its source only on behalf of its destination: the source's value lives on in the destination, and if that is
//! never read the copy read nothing that matters. What ends a value is a write that covers every byte at every visit, and the allocation
//! of a new object. Host code made of single stores therefore never ends one.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::access::{Accesses, Touch, link};
use super::cfg::Cfg;
use super::pair::Pair;
use super::program::{Event, NodeId, ObjectId, Program};
use crate::mutants::{Mutant, off};

/// One pair's values.
pub(super) struct Liveness<'a> {
    pub(super) program: &'a Program,
    pub(super) cfg: &'a Cfg<'a>,
    pub(super) accesses: &'a Accesses,
    pub(super) host: ObjectId,
    pub(super) device: ObjectId,
    /// Behind this rank nothing reads the pair.
    pub(super) last: usize,
}

impl<'a> Liveness<'a> {
    pub(super) fn of(pair: &Pair<'a>) -> Self {
        let Pair { program, cfg, accesses, host, device, region, .. } = *pair;
        // Work that kept a pointer may read at every exit.
        let kept = pair.nodes.iter().any(|node| match &program.node(*node).event {
            Event::Enqueue { work, .. } => work.captures.iter().any(|object| pair.has(*object)),
            _ => false,
        });
        Self { program, cfg, accesses, host, device, last: if kept { usize::MAX } else { region.last } }
    }

    fn partner(&self, object: ObjectId) -> ObjectId {
        if object == self.host { self.device } else { self.host }
    }

    /// A path on which a value that `object` holds after `event` is read: the nodes from `event` to the read. `None`: it is dead.
    pub(super) fn read_after(&self, event: NodeId, object: ObjectId) -> Option<Vec<NodeId>> {
        // Nodes paired with the buffer that holds the value when control arrives there.
        type Place = (NodeId, ObjectId);
        let mut cause: FxHashMap<Place, Option<Place>> = FxHashMap::default();
        let mut queue: VecDeque<Place> = VecDeque::new();
        for next in self.cfg.successors(event) {
            if self.cfg.rank(next) <= self.last && cause.insert((next, object), None).is_none() {
                queue.push_back((next, object));
            }
        }
        while let Some(place) = queue.pop_front() {
            let (node, held) = place;
            if self.reads(node, held) {
                let mut path = vec![node];
                let mut at = place;
                while let Some(&Some(before)) = cause.get(&at) {
                    path.push(before.0);
                    at = before;
                }
                path.push(event);
                path.reverse();
                return Some(path);
            }
            let mut holders = Vec::new();
            if !self.ends(node, held) {
                holders.push(held);
            }
            if let Some(copy) = link(self.program, self.host, self.device, node)
                && copy.src.object == Some(held)
                && !off(Mutant::S1LinkPassesOn)
            {
                holders.push(self.partner(held));
            }
            for next in self.cfg.successors(node).filter(|next| self.cfg.rank(*next) <= self.last) {
                for &holder in &holders {
                    cause.entry((next, holder)).or_insert_with(|| {
                        queue.push_back((next, holder));
                        Some(place)
                    });
                }
            }
        }
        None
    }

    /// The node reads some of the object for a purpose other than linking.
    fn reads(&self, node: NodeId, object: ObjectId) -> bool {
        // Work of others that kept the pointer may run after the function has returned.
        if matches!(self.program.node(node).event, Event::Exit { .. }) && self.accesses.is_captured(object, node) {
            return !off(Mutant::S1KeptAtExit);
        }
        (link(self.program, self.host, self.device, node).is_none() || off(Mutant::S1LinkIsNoRead))
            && self.accesses.at(node).iter().any(|touch| touch.object == object && !touch.writes)
    }

    /// No byte of the object keeps its value over the node.
    fn ends(&self, node: NodeId, object: ObjectId) -> bool {
        let ends = |touch: &Touch| {
            touch.object == object
                && touch.writes
                && (touch.whole || off(Mutant::S1PartEnds))
                && !off(Mutant::S1WholeEnds)
        };
        matches!(self.program.node(node).event, Event::Alloc(new) if new == object && !off(Mutant::S1AllocationEnds))
            || self.accesses.at(node).iter().any(ends)
    }
}
