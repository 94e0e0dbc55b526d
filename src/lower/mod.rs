//! LLVM IR → event program.
//!
//! [`lower_function`] reads one function of a host module, as it is after inlining and simplification, and makes the [`Program`] on which
//! `analysis` decides, together with where each part of it came from ([`Lowered`]), which `rewrite` needs. It changes nothing.
//!
//! In the order in which the work is done:
//! - `flow`: the blocks that control can reach;
//! - `slots`: memory of the function's own whose contents are in plain sight (`float *d; cudaMalloc(&d, n)`);
//! - `allocations`: the calls that make buffers; each is an object;
//! - `premise` (with `empty`, `edges`): the edges that "allocations succeed" rules out;
//! - `pointers`: which values point into which object;
//! - `uses`: accesses, and uses that are no accesses, of those values outside of calls;
//! - `events` (with `launches`, `grids`, `handles`): what each call does, in program order.
//!
//! Soundness rests on one rule: every use of a followed pointer ends as an access, as a [`PointerUse`], or as a [`Blemish`]; what is not
//! understood is a blemish or a use that declines, never nothing. A buffer all of whose uses are of the first kind cannot be reached in
//! any other way, because its address is nowhere else.

mod allocations;
mod callees;
mod context;
mod devices;
mod edges;
mod empty;
mod ends;
mod events;
mod flow;
mod grids;
mod handles;
mod intrinsics;
mod launches;
mod libraries;
mod pointers;
mod premise;
mod sites;
mod slots;
mod symbolic;
#[cfg(test)]
pub(crate) mod tests;
mod uses;

use rustc_hash::FxHashMap;

use self::allocations::space;
pub use self::allocations::{Allocation, Delivery};
pub use self::context::Context;
pub(crate) use self::flow::Flow;
use self::flow::Marks;
use self::handles::Handles;
use self::pointers::Pointers;
use self::premise::Failures;
use self::slots::Slots;
pub use self::slots::{Cell, Part, is_private_variable, separable_parts};
use self::symbolic::Atoms;
use crate::analysis::program::{
    Access, Blemish, BlemishKind, Event, Node, NodeId, Object, ObjectId, PointerUse, Program, Range, Site, Space,
    UseKind,
};
use crate::analysis::symbolic::Sym;
use crate::calls::cuda::Meaning;
use crate::calls::{Callee, classify};
use crate::ir::{Block, Module, Opcode, Value};
use crate::mutants::{Mutant, off};

/// Functions with more blocks than this are declined. The analyses are linear in blocks for each pair; no function of the samples has over
/// 300 after inlining, generated code can have very many more.
const MAX_BLOCKS: usize = 20_000;

/// An event program and where its parts came from.
pub struct Lowered<'m> {
    /// For the analysis.
    pub program: Program,
    /// The instruction of each node, by [`Node::origin`]; `None` for nodes that stand for no instruction.
    pub origins: Vec<Option<Value<'m>>>,
    /// The allocation of each object, by [`ObjectId`].
    pub allocations: Vec<Allocation<'m>>,
    /// The instruction of each of [`Program::uses`], in the same order.
    pub uses: Vec<Value<'m>>,
    /// The instruction of each of [`Program::blemishes`], in the same order; those of the function as a whole come last and have none.
    pub blemishes: Vec<Value<'m>>,
}

impl<'m> Lowered<'m> {
    /// The instruction that a node stands for.
    #[must_use]
    pub fn instruction(&self, node: NodeId) -> Option<Value<'m>> {
        self.origins.get(self.program.node(node).origin as usize).copied().flatten()
    }
}

/// Does the function make device buffers? Others need not be lowered.
#[must_use]
pub fn has_device_allocation(function: Value<'_>) -> bool {
    function.instructions().any(|call| {
        call.called_function().filter(|callee| callee.is_declaration()).is_some_and(|callee| {
            match classify(&callee.name()) {
                Callee::Cuda { row, .. } => match row.meaning {
                    Meaning::Allocate { allocator, .. } => space(allocator) == Space::Device,
                    Meaning::MallocPitch { .. } => true,
                    _ => false,
                },
                _ => false,
            }
        })
    })
}

/// Lowers a function with a body; `None` for a declaration.
#[must_use]
pub fn lower_function<'m>(context: &Context<'m>, function: Value<'m>) -> Option<Lowered<'m>> {
    lower_as(context, function, &function.name())
}

/// Lowers a function that is a copy of the one called `name`, or that one itself.
#[must_use]
pub fn lower_as<'m>(context: &Context<'m>, function: Value<'m>, name: &str) -> Option<Lowered<'m>> {
    let mut flow = Flow::of(function)?;
    let module = context.module;
    let mut atoms = Atoms::default();
    let slots = Slots::of(context, &flow);
    let mut allocations = allocations::allocations(module, &flow, &slots, &mut atoms);
    let failures = premise::rule_out_failures(module, &mut flow, &slots, &allocations);
    atoms.look_through(&flow);
    for allocation in &mut allocations {
        let empty = failures.empties.iter().find(|empty| empty.call == allocation.call);
        allocation.joined = empty.map(|empty| empty.joined);
        allocation.size = allocation.size_in(&mut atoms);
    }
    let pointers = Pointers::follow(module, &flow, &slots, &allocations, &mut atoms);
    let mut lowering = Lowering {
        context,
        module,
        handles: Handles::default(),
        found: Findings::default(),
        program: Program::default(),
        origins: vec![None],
        function,
        name,
        flow: &flow,
        failures: &failures,
        slots: &slots,
        allocations: &allocations,
        objects: allocations.iter().map(|allocation| allocation.call).zip((0..).map(ObjectId)).collect(),
        pointers: &pointers,
        configurations: launches::configurations(context, &flow),
        atoms,
    };
    lowering.name_objects();
    lowering.order_of_allocations();
    lowering.pointer_uses();
    let positions = lowering.graph();
    lowering.program.module.selects_devices = lowering.works_on_several_devices();
    let uses = lowering.found.uses.iter().map(|(at, ..)| *at).collect();
    let blemishes = lowering.found.blemishes.iter().map(|(at, ..)| *at).collect();
    lowering.place_findings(&positions);
    let Lowering { mut program, origins, handles, atoms, .. } = lowering;
    program.atoms = atoms.values().iter().map(|value| positions.before(*value)).collect();
    handles.give(&mut program);
    Some(Lowered { program, origins, allocations, uses, blemishes })
}

/// What was found about instructions, before the graph has places for it.
#[derive(Default)]
struct Findings<'m> {
    /// Accesses by instructions that are no calls.
    accesses: FxHashMap<Value<'m>, Vec<Access>>,
    uses: Vec<(Value<'m>, ObjectId, UseKind)>,
    blemishes: Vec<(Value<'m>, BlemishKind, Vec<ObjectId>)>,
}

/// Which node each instruction has before it.
#[derive(Default)]
struct Positions<'m> {
    /// The node at the start of each block.
    first: FxHashMap<Block<'m>, NodeId>,
    /// The instructions of a block that have nodes, in order, each with the last of them.
    behind: FxHashMap<Block<'m>, Vec<(Value<'m>, NodeId)>>,
}

impl<'m> Positions<'m> {
    /// The node before the instruction, or at the start of its block; `None` for what is no instruction, or where control never gets.
    fn before(&self, value: Value<'m>) -> Option<NodeId> {
        let block = value.block()?;
        let first = *self.first.get(&block)?;
        let nodes = self.behind.get(&block).map_or(&[][..], Vec::as_slice);
        let count = nodes.partition_point(|(instruction, _)| instruction.comes_before(value));
        Some(count.checked_sub(1).map_or(first, |last| nodes[last].1))
    }
}

/// The work on one function.
struct Lowering<'a, 'm> {
    context: &'a Context<'m>,
    module: Module<'m>,
    function: Value<'m>,
    name: &'a str,
    flow: &'a Flow<'m>,
    failures: &'a Failures<'m>,
    slots: &'a Slots<'m>,
    allocations: &'a [Allocation<'m>],
    /// The object of each allocation's call.
    objects: FxHashMap<Value<'m>, ObjectId>,
    pointers: &'a Pointers<'m>,
    /// Every launch looks for its own among these.
    configurations: Marks<'m>,
    atoms: Atoms<'m>,
    handles: Handles<'m>,
    found: Findings<'m>,
    program: Program,
    origins: Vec<Option<Value<'m>>>,
}

impl<'m> Lowering<'_, 'm> {
    fn name_objects(&mut self) {
        let names = sites::names(self.module, self.flow, self.slots, self.allocations);
        self.program.objects = self
            .allocations
            .iter()
            .zip(names)
            .map(|(allocation, name)| Object {
                name,
                space: space(allocation.allocator),
                origin: allocation.allocator,
                size: allocation.size.clone(),
                alignment: allocation.alignment,
                may_be_absent: allocation.joined.is_some(),
                site: sites::site(allocation.call),
            })
            .collect();
        self.program.function = self.name.to_owned();
        self.program.module = self.context.facts;
        // Any function but main may be called while work of its callers is in flight.
        let quiet = self.name == "main" && !self.context.constructors_launch();
        self.program.module.entry_quiet = quiet;
        self.program.module.other_devices = self.context.facts.selects_devices && !quiet;
    }

    fn order_of_allocations(&mut self) {
        let ids = (0..).map(ObjectId);
        // An allocation's pointer is there behind the allocation, and where the ways meet around one that may be left out.
        let comes_before = |one: &Allocation<'m>, other: &Allocation<'m>| {
            self.flow.dominates_always(one.joined.unwrap_or(one.call), other.call)
        };
        let sites: Vec<_> = self.allocations.iter().zip(ids).collect();
        for (index, (site, id)) in sites.iter().enumerate() {
            for (earlier, earlier_id) in &sites[..index] {
                let ordered = comes_before(earlier, site) || comes_before(site, earlier);
                if !ordered && !off(Mutant::LowerOrderWithoutPremise) {
                    self.program.unordered.insert((*earlier_id, *id));
                }
            }
        }
    }

    /// Builds the graph; answers with the node before each instruction.
    fn graph(&mut self) -> Positions<'m> {
        let mut positions = Positions::default();
        let mut last = FxHashMap::default();
        for block in self.flow.blocks().to_vec() {
            let mut node = self.node(Event::Skip, Site::default(), None);
            positions.first.insert(block, node);
            if positions.first.len() == 1 {
                self.program.entry = node;
            }
            for instruction in block.instructions() {
                for event in self.events(instruction, self.failures.normal.contains(&block)) {
                    let next = self.node(event, self.site(instruction), Some(instruction));
                    self.program.graph.add_edge(node, next, ());
                    positions.behind.entry(block).or_default().push((instruction, next));
                    node = next;
                }
            }
            last.insert(block, node);
        }
        for block in self.flow.blocks() {
            for successor in self.flow.successors(*block) {
                let target = if self.failures.cut.contains(&(*block, successor)) {
                    self.node(Event::Exit { returns: false }, Site::default(), None)
                } else {
                    positions.first[&successor]
                };
                self.program.graph.update_edge(last[block], target, ());
            }
        }
        positions
    }

    fn node(&mut self, event: Event, site: Site, instruction: Option<Value<'m>>) -> NodeId {
        // The nodes of one instruction are made one after the other.
        if instruction.is_some() && self.origins.last() != Some(&instruction) {
            self.origins.push(instruction);
        }
        let origin = instruction.map_or(0, |_| u32::try_from(self.origins.len() - 1).unwrap_or(0));
        self.program.graph.add_node(Node { event, site, origin })
    }

    /// What an instruction does, as nodes in order; `normal`: control comes there without the failure of an allocation.
    fn events(&mut self, instruction: Value<'m>, normal: bool) -> Vec<Event> {
        match instruction.opcode() {
            Some(Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMCallBr) => self.call(instruction),
            Some(Opcode::LLVMRet) => vec![Event::Exit { returns: true }],
            // Behind a throw that no landing pad of the function catches, control is in the caller.
            Some(Opcode::LLVMUnreachable) => {
                let throws =
                    instruction.previous().is_some_and(|before| before.may_unwind()) && !off(Mutant::LowerThrow);
                let in_caller = throws && self.name != "main";
                vec![Event::Exit { returns: normal && (in_caller || ends::ends_well(instruction, 0)) }]
            }
            // An exception that leaves main ends the program.
            Some(Opcode::LLVMResume | Opcode::LLVMCleanupRet) => {
                vec![Event::Exit { returns: self.name != "main" }]
            }
            _ => self.found.accesses.remove(&instruction).map(Event::Host).into_iter().collect(),
        }
    }

    /// The bytes `[offset, offset + length)` of a followed pointer's object, for an access at `at`.
    fn range(&self, pointer: &pointers::Pointer, length: Option<Sym>, at: Value<'m>) -> Range {
        let (Some(start), Some(len)) = (pointer.offset.clone(), length) else { return Range::Unknown };
        let allocation = &self.allocations[pointer.object.0 as usize];
        // Equal sums are equal bytes if nothing they are made of was computed anew in between; the allocation dominates the access, and
        // what the size is made of dominates the allocation, so another round would have to pass the allocation again.
        let whole = start == Sym::default()
            && allocation.size.as_ref() == Some(&len)
            && self.flow.dominates(allocation.call, at);
        if whole { Range::Whole } else { Range::Part { start, len } }
    }

    fn record_use(&mut self, at: Value<'m>, object: ObjectId, kind: UseKind) {
        self.found.uses.push((at, object, kind));
    }

    fn blemish(&mut self, at: Value<'m>, kind: BlemishKind, objects: Vec<ObjectId>) {
        self.found.blemishes.push((at, kind, objects));
    }

    /// Gives uses and blemishes their places on the graph, and adds those of the function as a whole.
    fn place_findings(&mut self, positions: &Positions<'m>) {
        let entry = self.program.entry;
        let node = |at: &Value<'m>| positions.before(*at).unwrap_or(entry);
        let found = std::mem::take(&mut self.found);
        self.program.uses = found
            .uses
            .into_iter()
            .map(|(at, object, kind)| PointerUse { object, kind, node: node(&at), site: sites::site(at) })
            .collect();
        self.program.blemishes = found
            .blemishes
            .into_iter()
            .map(|(at, kind, objects)| Blemish { kind, objects, node: node(&at), site: sites::site(at) })
            .collect();
        let mut of_function = Vec::new();
        if self.function.has_attribute("optnone") {
            of_function.push(BlemishKind::NotOptimised);
        }
        if self.context.captures_streams() && !off(Mutant::LowerCaptureAnywhere) {
            of_function.push(BlemishKind::StreamCapture);
        }
        if self.flow.blocks().len() > MAX_BLOCKS {
            of_function.push(BlemishKind::Limit("blocks in a function"));
        }
        self.program.blemishes.extend(of_function.into_iter().map(|kind| Blemish {
            kind,
            objects: vec![],
            node: entry,
            site: Site::default(),
        }));
    }
}
