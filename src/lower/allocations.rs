//! Allocation sites: the calls of a function that make buffers, and how each hands out its pointer.

use super::flow::Flow;
use super::slots::{Cell, Slots};
use super::symbolic::Atoms;
use crate::analysis::program::{Allocator, Space};
use crate::analysis::symbolic::Sym;
use crate::calls::cuda::Meaning;
use crate::calls::models::Action;
use crate::calls::{Callee, classify};
use crate::ir::{Block, Module, Value};

/// A call that makes a buffer.
#[derive(Clone, Debug)]
pub struct Allocation<'m> {
    /// The call.
    pub call: Value<'m>,
    /// Which allocator.
    pub allocator: Allocator,
    /// How the pointer comes out.
    pub delivery: Delivery<'m>,
    /// The operands whose product is the size; empty where only the runtime knows.
    pub size_operands: Vec<Value<'m>>,
    /// The same as a sum.
    pub size: Option<Sym>,
    /// Where the allocation is left out if it has no bytes: the pointer, or null, behind both ways. See `empty`.
    pub joined: Option<Value<'m>>,
    /// The alignment that was asked for; 0 if none was, `u64::MAX` if it is not constant.
    pub alignment: u64,
}

impl<'m> Allocation<'m> {
    /// The size that is asked for, as a sum.
    pub(super) fn size_in(&self, atoms: &mut Atoms<'m>) -> Option<Sym> {
        self.size_operands.split_first().and_then(|(first, rest)| {
            rest.iter().try_fold(atoms.allocation_size(*first), |product, next| product.mul(&atoms.length(*next)))
        })
    }
}

/// How an allocation hands out its pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery<'m> {
    /// It is the call's result.
    Returned,
    /// The call stores it in a slot.
    Slot(Cell<'m>),
    /// The call stores it in other memory: it has escaped.
    Memory,
}

/// Which side an allocator's memory belongs to.
#[must_use]
pub(super) fn space(allocator: Allocator) -> Space {
    match allocator {
        Allocator::Malloc
        | Allocator::Calloc
        | Allocator::AlignedAlloc
        | Allocator::OperatorNew
        | Allocator::PinnedHost => Space::Host,
        Allocator::CudaMalloc | Allocator::CudaMallocAsync => Space::Device,
        Allocator::CudaMallocManaged | Allocator::Foreign => Space::Both,
    }
}

/// All allocation sites that control can reach, in block order.
pub(super) fn allocations<'m>(
    module: Module<'m>,
    flow: &Flow<'m>,
    slots: &Slots<'m>,
    atoms: &mut Atoms<'m>,
) -> Vec<Allocation<'m>> {
    flow.blocks()
        .iter()
        .copied()
        .flat_map(Block::instructions)
        .filter_map(|call| allocation(module, slots, atoms, call))
        .collect()
}

fn allocation<'m>(
    module: Module<'m>,
    slots: &Slots<'m>,
    atoms: &mut Atoms<'m>,
    call: Value<'m>,
) -> Option<Allocation<'m>> {
    let callee = call.called_function().filter(|callee| callee.is_declaration())?;
    let mut alignment = 0;
    let (allocator, out, size) = match classify(&callee.name()) {
        Callee::Cuda { row, .. } => match row.meaning {
            Meaning::Allocate { out, bytes, allocator } => (allocator, Some(out), vec![bytes]),
            Meaning::MallocPitch { out } => (Allocator::CudaMalloc, Some(out), vec![]),
            _ => return None,
        },
        Callee::Modelled(model) => match &model.action {
            Action::Allocate { allocator, size, align, out } => {
                if let Some(align) = align {
                    alignment = call.argument(u32::from(*align)).and_then(Value::constant_uint).unwrap_or(u64::MAX);
                }
                (*allocator, *out, size.clone())
            }
            _ => return None,
        },
        Callee::UnmodelledCuda | Callee::Unknown => return None,
    };
    let delivery = match out {
        None => Delivery::Returned,
        Some(out) => call
            .argument(u32::from(out))
            .and_then(|address| slots.cell(module, address))
            .filter(|cell| !slots.leaks(*cell, POINTER_BYTES))
            .map_or(Delivery::Memory, Delivery::Slot),
    };
    let size_operands: Vec<_> = size.iter().filter_map(|argument| call.argument(u32::from(*argument))).collect();
    let mut allocation = Allocation { call, allocator, delivery, size_operands, size: None, joined: None, alignment };
    allocation.size = allocation.size_in(atoms);
    Some(allocation)
}

/// Echo supports 64-bit hosts only, as CUDA does.
pub(super) const POINTER_BYTES: u64 = 8;
