//! Which object a pointer points into, and where.
//!
//! Starting from the allocation sites, pointers are followed through address arithmetic, casts, phis and selects of one base, and slots.
//! A phi is first believed to point where those of its inputs point that are known so far; when nothing changes any more, each phi is
//! checked against all of its inputs, and one that mixes is reported ([`Trouble`]), which declines every object concerned.
//!
//! One allocation site stands for many objects if it is in a loop. A pointer variable could then hold the object of an earlier round. That
//! cannot be where the allocation dominates the phi, or the store that the load reads: every way from the allocation's second run to the use
//! would have to pass the phi (or store) again. Elsewhere it is reported. The same holds of the numbers in an offset, which is forgotten there.

use rustc_hash::FxHashMap;

use super::allocations::{Allocation, Delivery, POINTER_BYTES};
use super::flow::Flow;
use super::intrinsics::{Intrinsic, intrinsic};
use super::slots::{Definition, Slots};
use super::symbolic::Atoms;
use crate::analysis::program::ObjectId;
use crate::analysis::symbolic::Sym;
use crate::calls::{Callee, classify};
use crate::ir::{Block, Module, Opcode, Value};
use crate::mutants::{Mutant, off};

/// Where a pointer points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pointer {
    /// Into which object.
    pub object: ObjectId,
    /// At which byte, where known.
    pub offset: Option<Sym>,
    /// It may be null instead.
    pub maybe_null: bool,
}

/// A pointer that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble<'m> {
    /// The phi, select or load.
    pub at: Value<'m>,
    /// The objects that it may point into.
    pub objects: Vec<ObjectId>,
    /// It may also point to something that is no object.
    pub foreign: bool,
    /// It reads a slot (or holds an object of an earlier round); else it is a phi or select.
    pub slot: bool,
}

/// The pointers of a function that are followed.
pub(super) struct Pointers<'m> {
    known: FxHashMap<Value<'m>, Pointer>,
    order: Vec<Value<'m>>,
    /// What could not be followed.
    pub troubles: Vec<Trouble<'m>>,
}

/// What a pointer is made from.
enum Input<'m> {
    Value(Value<'m>),
    /// Read from a slot, where this store put it.
    Stored(Value<'m>, Value<'m>),
    Root(ObjectId),
    Null,
    Undefined,
    Foreign,
}

impl<'m> Pointers<'m> {
    /// Follows the pointers of `allocations`, whose index is the object's id.
    pub(super) fn follow(
        module: Module<'m>,
        flow: &Flow<'m>,
        slots: &Slots<'m>,
        allocations: &[Allocation<'m>],
        atoms: &mut Atoms<'m>,
    ) -> Self {
        let roots: FxHashMap<_, _> =
            allocations.iter().zip(0..).map(|(allocation, id)| (allocation.call, ObjectId(id))).collect();
        let mut pointers = Self { known: FxHashMap::default(), order: Vec::new(), troubles: Vec::new() };
        for (allocation, id) in allocations.iter().zip(0..) {
            if allocation.delivery == Delivery::Returned {
                pointers.learn(
                    allocation.call,
                    Pointer { object: ObjectId(id), offset: Some(Sym::default()), maybe_null: false },
                );
            }
        }
        let sources: Vec<_> = flow
            .blocks()
            .iter()
            .copied()
            .flat_map(Block::instructions)
            .filter(|instruction| instruction.ty().is_pointer())
            .filter_map(|instruction| Some((instruction, inputs(module, flow, slots, &roots, instruction)?)))
            .collect();
        while sources
            .iter()
            .fold(false, |changed, (value, inputs)| pointers.step(module, flow, *value, inputs, atoms) | changed)
        {
        }
        for (value, inputs) in &sources {
            pointers.check(flow, allocations, *value, inputs);
        }
        pointers
    }

    /// Where a value points, if it is followed.
    #[must_use]
    pub(super) fn get(&self, value: Value<'m>) -> Option<&Pointer> {
        self.known.get(&value)
    }

    /// Every followed pointer value, in the order in which they were found.
    pub(super) fn values(&self) -> impl Iterator<Item = (Value<'m>, &Pointer)> {
        self.order.iter().map(|value| (*value, &self.known[value]))
    }

    fn learn(&mut self, value: Value<'m>, pointer: Pointer) -> bool {
        match self.known.get_mut(&value) {
            None => {
                self.order.push(value);
                self.known.insert(value, pointer);
                true
            }
            Some(known) => {
                // Another object leaves the first one in place: `check` reports both.
                let offset = if known.object == pointer.object && known.offset == pointer.offset {
                    pointer.offset
                } else {
                    None
                };
                let joined =
                    Pointer { object: known.object, offset, maybe_null: known.maybe_null || pointer.maybe_null };
                let changed = joined != *known;
                *known = joined;
                changed
            }
        }
    }

    fn step(
        &mut self,
        module: Module<'m>,
        flow: &Flow<'m>,
        value: Value<'m>,
        inputs: &[Input<'m>],
        atoms: &mut Atoms<'m>,
    ) -> bool {
        let mut changed = false;
        let null = inputs.iter().any(|input| matches!(input, Input::Null));
        for input in inputs {
            let found = match input {
                Input::Value(input) | Input::Stored(_, input) => self.known.get(input).cloned(),
                Input::Root(object) => {
                    Some(Pointer { object: *object, offset: Some(Sym::default()), maybe_null: false })
                }
                Input::Null | Input::Undefined | Input::Foreign => None,
            };
            let Some(mut pointer) = found else { continue };
            pointer.maybe_null |= null;
            match value.opcode() {
                Some(Opcode::LLVMGetElementPtr) => {
                    let step = atoms.gep_offset(module, value);
                    pointer.offset = pointer.offset.zip(step).and_then(|(base, step)| base.add(&step));
                }
                // A call that returns its argument, or something near it.
                Some(Opcode::LLVMCall | Opcode::LLVMInvoke) if !keeps_address(value) => pointer.offset = None,
                Some(Opcode::LLVMPHI | Opcode::LLVMLoad) => {
                    pointer.offset =
                        pointer.offset.filter(|offset| is_of_this_round(flow, value, input, offset, atoms));
                }
                _ => {}
            }
            changed |= self.learn(value, pointer);
        }
        changed
    }

    fn check(&mut self, flow: &Flow<'m>, allocations: &[Allocation<'m>], value: Value<'m>, inputs: &[Input<'m>]) {
        let Some(pointer) = self.known.get(&value) else { return };
        let mut objects = vec![pointer.object];
        let mut foreign = false;
        let call = allocations[pointer.object.0 as usize].call;
        let phi_like = matches!(value.opcode(), Some(Opcode::LLVMPHI | Opcode::LLVMSelect | Opcode::LLVMLoad));
        let mut stale = phi_like && flow.repeats(call) && !flow.dominates(call, value);
        for input in inputs {
            let found = match input {
                Input::Value(input) | Input::Stored(_, input) if input.is_null() || input.is_undef() => continue,
                Input::Value(input) => self.known.get(input).map(|pointer| pointer.object),
                Input::Stored(store, input) => {
                    stale |= flow.repeats(call) && !flow.dominates(*store, value);
                    self.known.get(input).map(|pointer| pointer.object)
                }
                Input::Root(object) => Some(*object),
                Input::Null | Input::Undefined => continue,
                Input::Foreign => None,
            };
            match found {
                Some(object) if objects.contains(&object) => {}
                Some(object) => objects.push(object),
                None => foreign = true,
            }
        }
        stale &= !off(Mutant::LowerStalePointer);
        if stale || (foreign || objects.len() > 1) && !off(Mutant::LowerMixed) {
            objects.sort_unstable();
            let slot = stale || value.opcode() == Some(Opcode::LLVMLoad);
            self.troubles.push(Trouble { at: value, objects, foreign, slot });
        }
    }
}

/// What a pointer-valued instruction takes its value from; `None` if it makes a pointer that is never followed.
fn inputs<'m>(
    module: Module<'m>,
    flow: &Flow<'m>,
    slots: &Slots<'m>,
    roots: &FxHashMap<Value<'m>, ObjectId>,
    value: Value<'m>,
) -> Option<Vec<Input<'m>>> {
    let of = |input: Value<'m>| {
        if input.is_null() {
            Input::Null
        } else if input.is_undef() {
            Input::Undefined
        } else {
            Input::Value(input)
        }
    };
    Some(match value.opcode()? {
        Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast | Opcode::LLVMFreeze => {
            vec![of(value.operand(0)?)]
        }
        Opcode::LLVMPHI => {
            let block = value.block()?;
            value
                .incoming()
                .into_iter()
                .filter(|(_, from)| flow.takes(*from, block))
                .map(|(input, _)| of(input))
                .collect()
        }
        Opcode::LLVMSelect => vec![of(value.operand(1)?), of(value.operand(2)?)],
        Opcode::LLVMCall | Opcode::LLVMInvoke => vec![of(derived_from(value)?)],
        Opcode::LLVMLoad => slots
            .reaching(slots.cell(module, value.operand(0)?)?, POINTER_BYTES, value, flow)
            .into_iter()
            .map(|definition| match definition {
                Definition::Nothing => Input::Undefined,
                Definition::Zero(_) => Input::Null,
                Definition::Store(store) => store.operand(0).map_or(Input::Foreign, |stored| match of(stored) {
                    Input::Value(stored) => Input::Stored(store, stored),
                    other => other,
                }),
                Definition::Call(call) => roots.get(&call).map_or(Input::Foreign, |object| Input::Root(*object)),
                Definition::Unknown(_) => Input::Foreign,
            })
            .collect(),
        _ => return None,
    })
}

/// Does an offset that comes through a phi or a slot still mean the same? What comes from an earlier round of a loop was computed from that
/// round's numbers, and the same sum means others now.
fn is_of_this_round<'m>(flow: &Flow<'m>, value: Value<'m>, input: &Input<'m>, offset: &Sym, atoms: &Atoms<'m>) -> bool {
    if offset.as_constant().is_some() || off(Mutant::LowerStaleOffset) {
        return true;
    }
    match input {
        // Every way from a number's next value to the load passes the store again.
        Input::Stored(store, _) => flow.dominates(*store, value),
        // The same, of the phi. A phi of the same block changes with this one.
        _ => offset.atoms().all(|atom| {
            atoms.values().get(atom.0 as usize).is_some_and(|number| {
                !number.is_instruction() || number.block() != value.block() && flow.dominates(*number, value)
            })
        }),
    }
}

/// The argument that a call's result is derived from, by its model.
pub(super) fn derived_from(call: Value<'_>) -> Option<Value<'_>> {
    let callee = call.called_function()?;
    let name = callee.name();
    if matches!(intrinsic(&name), Intrinsic::PassesOn { .. }) {
        return call.argument(0);
    }
    match classify(&name) {
        Callee::Modelled(model) if callee.is_declaration() => call.argument(u32::from(model.returns?)),
        _ => None,
    }
}

/// Does the call return exactly the address that it was given?
fn keeps_address(call: Value<'_>) -> bool {
    call.called_function().is_some_and(|callee| {
        let name = callee.name();
        intrinsic(&name) == Intrinsic::PassesOn { same: true }
            || ["memcpy", "memmove", "memset"].iter().any(|start| name.starts_with(start))
    })
}
