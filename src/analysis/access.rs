//! What each node does to each object, in one form for host code, GPU work and copies.
//!
//! Three things are added to what the program says: a copy reads its source and writes its destination; calloc writes zeroes where it
//! allocates; and once GPU work has kept a device pointer (`captures`), later work that can use kept pointers, and calls that nobody
//! modelled, may read and write that object until it is freed.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::cfg::{Cfg, Region};
use super::dataflow::forward;
use super::program::{Access, AccessKind, Allocator, Copy, Event, NodeId, ObjectId, Place, Program, Range, StreamId};
use super::symbolic::Sym;
use crate::mutants::{Mutant, off};

/// Who touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Actor {
    /// Host code, when control is there.
    Host,
    /// Work on a stream, later; `None`: nobody knows which.
    Gpu(Option<StreamId>),
}

/// One access.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    pub(super) object: ObjectId,
    pub(super) writes: bool,
    pub(super) range: Range,
    /// It happens at every visit and covers every byte of the object.
    pub(super) whole: bool,
    pub(super) actor: Actor,
}

/// Every access of a program, by node.
pub(super) struct Accesses {
    by_node: Vec<Vec<Touch>>,
    captured: Vec<Captured>,
    /// See [`Self::mentions`]; by object.
    mentions: Vec<Vec<NodeId>>,
    /// By object.
    allocations: Vec<Vec<NodeId>>,
    /// Copies and frees.
    movers: Vec<NodeId>,
    /// Calls that nobody modelled and that may start GPU work.
    launching: Vec<NodeId>,
}

/// The objects whose pointer GPU work may hold. Most nodes have the state of the one before, and share it.
type Captured = Rc<BTreeSet<ObjectId>>;

impl Accesses {
    pub(super) fn new(program: &Program, cfg: &Cfg<'_>) -> Self {
        let mut accesses = Self {
            by_node: vec![Vec::new(); program.graph.node_count()],
            captured: captured(program, cfg),
            mentions: vec![Vec::new(); program.objects.len()],
            allocations: vec![Vec::new(); program.objects.len()],
            movers: Vec::new(),
            launching: Vec::new(),
        };
        for node in program.graph.node_indices() {
            if let Event::Alloc(object) = program.node(node).event {
                accesses.allocations[object.0 as usize].push(node);
            }
        }
        for &node in cfg.order() {
            let touches = touches(program, cfg, &accesses.allocations, node, &accesses.captured[node.index()]);
            let mut mentioned: Vec<ObjectId> = touches.iter().map(|touch| touch.object).collect();
            match &program.node(node).event {
                Event::Alloc(object) => mentioned.push(*object),
                Event::Free { object, .. } => {
                    mentioned.push(*object);
                    accesses.movers.push(node);
                }
                Event::Copy(_) => accesses.movers.push(node),
                Event::Enqueue { work, .. } => mentioned.extend(&work.captures),
                Event::Opaque { launches: true, .. } => accesses.launching.push(node),
                _ => {}
            }
            mentioned.sort_unstable();
            mentioned.dedup();
            mentioned.into_iter().for_each(|object| accesses.mentions[object.0 as usize].push(node));
            accesses.by_node[node.index()] = touches;
        }
        accesses
    }

    /// What the node touches.
    pub(super) fn at(&self, node: NodeId) -> &[Touch] {
        &self.by_node[node.index()]
    }

    /// GPU work may hold the object's pointer when control arrives at the node.
    pub(super) fn is_captured(&self, object: ObjectId, node: NodeId) -> bool {
        self.captured[node.index()].contains(&object)
    }

    /// The nodes that touch, allocate, free or capture the object, in the order of control. At all others nothing happens to it.
    pub(super) fn mentions(&self, object: ObjectId) -> &[NodeId] {
        &self.mentions[object.0 as usize]
    }

    /// The nodes that allocate the object, also where control never gets.
    pub(super) fn allocations(&self, object: ObjectId) -> &[NodeId] {
        &self.allocations[object.0 as usize]
    }

    /// All copies and frees, in the order of control.
    pub(super) fn movers(&self) -> &[NodeId] {
        &self.movers
    }

    /// All calls that nobody modelled and that may start GPU work, in the order of control.
    pub(super) fn launching(&self) -> &[NodeId] {
        &self.launching
    }
}

fn captured(program: &Program, cfg: &Cfg<'_>) -> Vec<Captured> {
    let join = |into: &mut Captured, from: &Captured| {
        let grows = !Rc::ptr_eq(into, from) && !from.is_subset(into);
        if grows {
            Rc::make_mut(into).extend(from.iter());
        }
        grows
    };
    let transfer = |node: NodeId, state: &mut Captured| match &program.node(node).event {
        Event::Alloc(object) | Event::Free { object, may_be_null: false, .. } if state.contains(object) => {
            Rc::make_mut(state).remove(object);
        }
        Event::Enqueue { work, .. } if work.captures.iter().any(|object| !state.contains(object)) => {
            Rc::make_mut(state).extend(&work.captures);
        }
        _ => {}
    };
    let nothing = Captured::default();
    let states = forward(program, cfg, Region::ALL, Rc::clone(&nothing), join, transfer);
    states.into_iter().map(|state| state.unwrap_or_else(|| Rc::clone(&nothing))).collect()
}

fn touches(
    program: &Program,
    cfg: &Cfg<'_>,
    allocations: &[Vec<NodeId>],
    node: NodeId,
    captured: &BTreeSet<ObjectId>,
) -> Vec<Touch> {
    let covers =
        |object: ObjectId, range: &Range| covers(program, cfg, &allocations[object.0 as usize], object, range, node);
    let touch = |access: &Access, actor| Touch {
        object: access.object,
        writes: access.kind == AccessKind::Write,
        range: access.range.clone(),
        whole: (access.must || off(Mutant::WholeMust)) && covers(access.object, &access.range),
        actor,
    };
    let anything = |object: &ObjectId, actor| {
        [false, true].map(|writes| Touch { object: *object, writes, range: Range::Unknown, whole: false, actor })
    };
    match &program.node(node).event {
        Event::Host(accesses) => accesses.iter().map(|access| touch(access, Actor::Host)).collect(),
        Event::Enqueue { stream, work } => {
            let actor = Actor::Gpu(Some(*stream));
            let mut all: Vec<Touch> = work.accesses.iter().map(|access| touch(access, actor)).collect();
            if work.touches_captured && !off(Mutant::CapturedByLaunch) {
                all.extend(captured.iter().flat_map(|object| anything(object, actor)));
            }
            all
        }
        Event::Copy(copy) => {
            let side = |place: &Place, writes| {
                place.object.map(|object| Touch {
                    object,
                    writes,
                    range: place.range.clone(),
                    whole: covers(object, &place.range),
                    actor: Actor::Gpu(Some(copy.stream)),
                })
            };
            side(&copy.src, false).into_iter().chain(side(&copy.dst, true)).collect()
        }
        Event::Alloc(object) if program.object(*object).origin == Allocator::Calloc => {
            vec![Touch { object: *object, writes: true, range: Range::Whole, whole: true, actor: Actor::Host }]
        }
        Event::Opaque { launches: true, .. } if !off(Mutant::CapturedByUnknown) => {
            captured.iter().flat_map(|object| anything(object, Actor::Gpu(None))).collect()
        }
        _ => Vec::new(),
    }
}

/// The range is provably all of the object, at a visit of `node`.
fn covers(
    program: &Program,
    cfg: &Cfg<'_>,
    allocations: &[NodeId],
    object: ObjectId,
    range: &Range,
    node: NodeId,
) -> bool {
    match range {
        Range::Whole => true,
        Range::Unknown => false,
        Range::Part { start, len } => {
            start.as_constant() == Some(0)
                && (program.object(object).size.as_ref() == Some(len) || off(Mutant::WholeLength))
                && allocations.iter().all(|alloc| same_value(program, cfg, len, *alloc, node))
        }
    }
}

/// The sum has the same value at a visit of `later` as it had at the last visit of `earlier`: no atom gets a new value in between.
pub(super) fn same_value(program: &Program, cfg: &Cfg<'_>, sum: &Sym, earlier: NodeId, later: NodeId) -> bool {
    sum.atoms().all(|atom| match program.atoms.get(atom.0 as usize) {
        None => false,
        Some(None) => true,
        _ if off(Mutant::SameValue) => true,
        // A definition stands just before or just behind its node, so arriving at it counts as well. One that stands at `earlier`
        // stands before it, or `earlier` could not use it.
        Some(&Some(definition)) => {
            definition == earlier
                || cfg.position(definition).is_none()
                || !(cfg.reaches(earlier, definition, earlier)
                    && (definition == later || cfg.reaches(definition, later, earlier)))
        }
    })
}

/// A copy between the two that moves each byte to the same offset, if `node` is one.
pub(super) fn link(program: &Program, host: ObjectId, device: ObjectId, node: NodeId) -> Option<&Copy> {
    let Event::Copy(copy) = &program.node(node).event else { return None };
    let (Some(dst), Some(src)) = (copy.dst.object, copy.src.object) else { return None };
    let between = (dst, src) == (host, device) || (dst, src) == (device, host);
    (between && (start(&copy.dst.range)? == start(&copy.src.range)? || off(Mutant::EqualOffsets))).then_some(copy)
}

fn start(range: &Range) -> Option<Sym> {
    match range {
        Range::Whole => Some(Sym::default()),
        Range::Part { start, .. } => Some(start.clone()),
        Range::Unknown => None,
    }
}

/// The two ranges of one object have no byte in common, whatever the run. Only constants are compared: atoms may have changed between
/// the two places.
pub(super) fn disjoint(left: &Range, right: &Range) -> bool {
    let bounds = |range: &Range| match range {
        Range::Part { start, len } => {
            let first = start.as_constant()?;
            Some((first, first.checked_add(len.as_constant()?)?))
        }
        _ => None,
    };
    match (bounds(left), bounds(right)) {
        (Some((left_start, left_end)), Some((right_start, right_end))) => {
            left_end <= right_start || right_end <= left_start
        }
        _ => off(Mutant::S2UnknownRanges),
    }
}
