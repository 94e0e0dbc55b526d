//! Slots: memory of the function's own that only ever holds pointers, handles and arguments in plain sight.
//!
//! `float *d; cudaMalloc(&d, n);` leaves `d` in memory, because the call gets its address. Such an alloca is *private* if its address goes
//! only to loads, stores, lifetime markers, memory intrinsics, and calls that are known to write it and not to keep it. What a load of a
//! private alloca yields is then known from the writes that reach it ([`Slots::reaching`]).
//!
//! The same holds for the arrays of argument addresses that a kernel launch takes (`void *args[] = {&d, &n}`): an alloca whose address is
//! stored in such an array is still private, and the launch is one more reader of it.
//!
//! What is not private is not a slot: a pointer stored there has escaped, and a load from there is unknown.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Context;
use super::allocations::POINTER_BYTES;
use super::flow::{Flow, Marks};
use super::intrinsics::{Intrinsic, intrinsic};
use super::launches::placed;
use crate::calls::cuda::Meaning;
use crate::calls::models::{Action, Library};
use crate::calls::{Callee, classify};
use crate::ir::{Block, Module, Opcode, Value};
use crate::mutants::{Mutant, off};

/// Bytes of a private alloca.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cell<'m> {
    /// The alloca.
    pub alloca: Value<'m>,
    /// First byte.
    pub offset: u64,
}

/// A write that reaches a point.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Definition<'m> {
    /// None: the bytes are indeterminate.
    Nothing,
    /// Zeroes.
    Zero(Value<'m>),
    /// This store, of exactly these bytes.
    Store(Value<'m>),
    /// This call, through the address it was given (cudaMalloc, cudaStreamCreate …).
    Call(Value<'m>),
    /// Something else.
    Unknown(Value<'m>),
}

/// One thing that is done with a private alloca.
#[derive(Clone, Copy, Debug)]
struct Touch<'m> {
    instruction: Value<'m>,
    offset: u64,
    length: u64,
    kind: TouchKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TouchKind {
    /// Lifetime starts or ends.
    Undefine,
    Zero,
    Store,
    CallWrites,
    UnknownWrite,
    /// Loaded as a pointer.
    LoadPointer,
    /// Read as anything else: what a stored pointer turns into is not followed.
    Leak,
    /// The address itself is stored in an argument array.
    AddressStored,
    /// It is the argument array of a launch.
    ArgumentArray,
}

impl TouchKind {
    fn writes(self) -> bool {
        matches!(self, Self::Undefine | Self::Zero | Self::Store | Self::CallWrites | Self::UnknownWrite)
    }
}

/// The private allocas of a function.
pub(super) struct Slots<'m> {
    slots: FxHashMap<Value<'m>, Slot<'m>>,
}

/// What is done with one private alloca.
struct Slot<'m> {
    touches: Vec<Touch<'m>>,
    /// Those of them that write, by instruction.
    writes: FxHashMap<Value<'m>, Vec<Touch<'m>>>,
    /// The same instructions, to search for.
    writing: Marks<'m>,
}

impl<'m> Slot<'m> {
    fn new(touches: Vec<Touch<'m>>) -> Self {
        let mut writes: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for touch in touches.iter().filter(|touch| touch.kind.writes()) {
            writes.entry(touch.instruction).or_default().push(*touch);
        }
        let writing = writes.keys().copied().collect();
        Self { touches, writes, writing }
    }
}

impl<'m> Slots<'m> {
    /// Finds the private allocas of a function.
    #[must_use]
    pub(super) fn of(context: &Context<'m>, flow: &Flow<'m>) -> Self {
        let module = context.module;
        // An alloca outside of the entry block may be made many times.
        let allocas: Vec<_> = flow
            .blocks()
            .iter()
            .take(if off(Mutant::LowerSlotInLoop) { usize::MAX } else { 1 })
            .copied()
            .flat_map(Block::instructions)
            .filter(|instruction| instruction.opcode() == Some(Opcode::LLVMAlloca))
            .collect();
        let mut touches: FxHashMap<_, _> =
            allocas.iter().filter_map(|alloca| Some((*alloca, alloca_touches(context, flow, *alloca)?))).collect();
        // Addresses may be stored in argument arrays only, and only in those that are private themselves.
        let arrays: FxHashSet<_> =
            touches.iter().filter(|(_, list)| is_argument_array(list)).map(|(alloca, _)| *alloca).collect();
        touches.retain(|_, list: &mut Vec<Touch<'_>>| {
            list.iter().filter(|touch| touch.kind == TouchKind::AddressStored).all(|touch| {
                touch
                    .instruction
                    .operand(1)
                    .and_then(|address| cell(module, address))
                    .is_some_and(|cell| arrays.contains(&cell.alloca))
            })
        });
        Self { slots: touches.into_iter().map(|(alloca, touches)| (alloca, Slot::new(touches))).collect() }
    }

    /// The bytes that an address names, if they are private.
    #[must_use]
    pub(super) fn cell(&self, module: Module<'m>, address: Value<'m>) -> Option<Cell<'m>> {
        cell(module, address).filter(|cell| self.slots.contains_key(&cell.alloca))
    }

    /// Is a pointer that is stored in these bytes ever read back as anything but a pointer?
    #[must_use]
    pub(super) fn leaks(&self, cell: Cell<'m>, length: u64) -> bool {
        self.slots[&cell.alloca].touches.iter().any(|touch| match touch.kind {
            TouchKind::Leak => overlap(touch, cell.offset, length) != Overlap::None && !off(Mutant::LowerSlotLeaks),
            TouchKind::LoadPointer => overlap(touch, cell.offset, length) == Overlap::Partial,
            // The launch reads all that the parameter's type has, from there on; only its first pointer is followed.
            TouchKind::AddressStored => cell.offset > touch.offset,
            _ => false,
        })
    }

    /// Is it the argument array of a launch? Pointers stored in it are addresses of arguments.
    #[must_use]
    pub(super) fn is_argument_array(&self, alloca: Value<'m>) -> bool {
        self.slots.get(&alloca).is_some_and(|slot| is_argument_array(&slot.touches))
    }

    /// The pointers that are loaded from a private alloca.
    pub(super) fn loads(&self, alloca: Value<'m>) -> impl Iterator<Item = Value<'m>> + '_ {
        self.slots
            .get(&alloca)
            .into_iter()
            .flat_map(|slot| &slot.touches)
            .filter(|touch| touch.kind == TouchKind::LoadPointer)
            .map(|touch| touch.instruction)
    }

    /// The values that are loaded from exactly these bytes; `None` if other reads of them exist.
    #[must_use]
    pub(super) fn values_of(&self, cell: Cell<'m>, length: u64) -> Option<Vec<Value<'m>>> {
        let reads = self.slots[&cell.alloca].touches.iter().filter(|touch| {
            !touch.kind.writes()
                && touch.kind != TouchKind::ArgumentArray
                && overlap(touch, cell.offset, length) != Overlap::None
        });
        reads
            .map(|touch| {
                let exact = overlap(touch, cell.offset, length) == Overlap::Exact;
                (exact && touch.instruction.opcode() == Some(Opcode::LLVMLoad)).then_some(touch.instruction)
            })
            .collect()
    }

    /// Is the alloca's address in an argument array?
    #[must_use]
    pub(super) fn is_argument(&self, alloca: Value<'m>) -> bool {
        self.slots
            .get(&alloca)
            .is_some_and(|slot| slot.touches.iter().any(|touch| touch.kind == TouchKind::AddressStored))
    }

    /// How many bytes are written at a time at the start of the cell; `None` if that differs.
    #[must_use]
    pub(super) fn width_at(&self, cell: Cell<'m>) -> Option<u64> {
        let mut widths = self.slots[&cell.alloca]
            .touches
            .iter()
            .filter(|touch| {
                matches!(touch.kind, TouchKind::Store | TouchKind::CallWrites) && touch.offset == cell.offset
            })
            .map(|touch| touch.length);
        let first = widths.next()?;
        widths.all(|width| width == first).then_some(first)
    }

    /// Byte offsets of an argument array that are written.
    #[must_use]
    pub(super) fn stored_offsets(&self, alloca: Value<'m>) -> Vec<u64> {
        let mut offsets: Vec<_> = self
            .slots
            .get(&alloca)
            .into_iter()
            .flat_map(|slot| &slot.touches)
            .filter(|touch| touch.kind == TouchKind::Store)
            .map(|touch| touch.offset)
            .collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }

    /// The writes that may have made the bytes what they are just before `at`, each once.
    #[must_use]
    pub(super) fn reaching(&self, cell: Cell<'m>, length: u64, at: Value<'m>, flow: &Flow<'m>) -> Vec<Definition<'m>> {
        let slot = &self.slots[&cell.alloca];
        let definition = |instruction: Value<'m>| {
            slot.writes.get(&instruction).into_iter().flatten().find_map(|touch| {
                match (overlap(touch, cell.offset, length), touch.kind) {
                    (Overlap::None, _) => None,
                    (Overlap::Exact | Overlap::Covers, TouchKind::Undefine) => Some(Definition::Nothing),
                    (Overlap::Exact | Overlap::Covers, TouchKind::Zero) => Some(Definition::Zero(instruction)),
                    (Overlap::Exact, TouchKind::Store) => Some(Definition::Store(instruction)),
                    (Overlap::Exact, TouchKind::CallWrites) => Some(Definition::Call(instruction)),
                    _ => Some(Definition::Unknown(instruction)),
                }
            })
        };
        flow.backwards(at, &slot.writing, definition, Definition::Nothing)
    }
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Overlap {
    None,
    Partial,
    /// More bytes than asked for.
    Covers,
    Exact,
}

fn overlap(touch: &Touch<'_>, offset: u64, length: u64) -> Overlap {
    let (start, end) = (touch.offset, touch.offset.saturating_add(touch.length));
    let asked = offset.saturating_add(length);
    if end <= offset || asked <= start {
        Overlap::None
    } else if start == offset && end == asked {
        Overlap::Exact
    } else if start <= offset && asked <= end {
        Overlap::Covers
    } else {
        Overlap::Partial
    }
}

fn is_argument_array(touches: &[Touch<'_>]) -> bool {
    touches.iter().any(|touch| touch.kind == TouchKind::ArgumentArray)
        && touches.iter().all(|touch| {
            matches!(touch.kind, TouchKind::ArgumentArray | TouchKind::Store | TouchKind::Undefine | TouchKind::Zero)
        })
}

/// The alloca and constant offset that an address names.
fn cell<'m>(module: Module<'m>, address: Value<'m>) -> Option<Cell<'m>> {
    let mut offset: i64 = 0;
    let mut base = address;
    loop {
        match base.opcode()? {
            Opcode::LLVMAlloca => return Some(Cell { alloca: base, offset: u64::try_from(offset).ok()? }),
            Opcode::LLVMGetElementPtr => offset = offset.checked_add(constant_offset(module, base)?)?,
            Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast => {}
            _ => return None,
        }
        base = base.operand(0)?;
    }
}

fn constant_offset<'m>(module: Module<'m>, gep: Value<'m>) -> Option<i64> {
    let offset = super::symbolic::Atoms::default().gep_offset(module, gep)?.as_constant()?;
    i64::try_from(offset).ok()
}

/// Does a function only read and write a global variable while it runs, so that its address stays in the function? (Other functions are not
/// looked at, nor uses in constant expressions.) What an asynchronous copy writes may be written when the function has returned.
#[must_use]
pub fn is_private_variable<'m>(context: &Context<'m>, function: Value<'m>, variable: Value<'m>) -> bool {
    let size = variable.value_type().and_then(|ty| context.module.alloc_size(ty));
    Flow::of(function).zip(size).and_then(|(flow, size)| touches(context, &flow, variable, size)).is_some_and(
        |touches| {
            touches.iter().all(|touch| {
                let escapes = matches!(touch.kind, TouchKind::AddressStored | TouchKind::ArgumentArray);
                !escapes && (!is_asynchronous_copy(touch.instruction) || off(Mutant::SpliceWrittenLater))
            })
        },
    )
}

fn is_asynchronous_copy(call: Value<'_>) -> bool {
    let callee = call.called_function().filter(|callee| callee.is_declaration());
    callee.is_some_and(|callee| match classify(&callee.name()) {
        Callee::Cuda { row, .. } => match row.meaning {
            Meaning::Copy { asynchronous, .. } | Meaning::SymbolCopy { asynchronous, .. } => asynchronous,
            _ => false,
        },
        _ => false,
    })
}

/// A pointer or handle in a larger private variable: an out-parameter of a call that is used as a variable of its own.
pub struct Part<'m> {
    /// Where it is.
    pub cell: Cell<'m>,
    /// The instructions that touch just these bytes, each with the operand that is their address.
    pub uses: Vec<(Value<'m>, u32)>,
    /// The instructions that set more bytes, these among them, to zero.
    pub zeroed: Vec<Value<'m>>,
}

impl Part<'_> {
    /// Its size.
    pub const BYTES: u64 = POINTER_BYTES;
}

/// Parts of a function's private variables that calls write (`cudaMalloc(&buffers.d, n)`) and that could be variables of their own. As it is,
/// the call keeps LLVM from seeing that it leaves the rest of the variable alone.
#[must_use]
pub fn separable_parts<'m>(context: &Context<'m>, function: Value<'m>) -> Vec<Part<'m>> {
    let module = context.module;
    let Some(flow) = Flow::of(function) else { return Vec::new() };
    let slots = Slots::of(context, &flow);
    let mut parts: Vec<Part<'m>> = Vec::new();
    for alloca in function.instructions() {
        let Some(Slot { touches, .. }) = slots.slots.get(&alloca) else { continue };
        let larger =
            alloca.allocated_type().and_then(|ty| module.alloc_size(ty)).is_some_and(|size| size > POINTER_BYTES);
        for written in touches.iter().filter(|touch| larger && touch.kind == TouchKind::CallWrites) {
            let cell = Cell { alloca, offset: written.offset };
            if parts.iter().all(|part| part.cell != cell) {
                parts.extend(separate(module, cell, touches));
            }
        }
    }
    parts
}

fn separate<'m>(module: Module<'m>, at: Cell<'m>, touches: &[Touch<'m>]) -> Option<Part<'m>> {
    let mut part = Part { cell: at, uses: Vec::new(), zeroed: Vec::new() };
    for touch in touches {
        match (overlap(touch, at.offset, POINTER_BYTES), touch.kind) {
            (Overlap::None, _) | (Overlap::Covers, TouchKind::Undefine) => {}
            (Overlap::Covers, TouchKind::Zero) => part.zeroed.push(touch.instruction),
            (Overlap::Exact, TouchKind::AddressStored | TouchKind::ArgumentArray) => return None,
            (Overlap::Exact, _) => {
                let operands = touch.instruction.operands().into_iter().zip(0..);
                let uses = operands.filter(|(operand, _)| cell(module, *operand) == Some(at));
                part.uses.extend(uses.map(|(_, index)| (touch.instruction, index)));
            }
            _ => return None,
        }
    }
    Some(part)
}

/// All that is done with an alloca, or `None` if it is not private.
fn alloca_touches<'m>(context: &Context<'m>, flow: &Flow<'m>, alloca: Value<'m>) -> Option<Vec<Touch<'m>>> {
    let module = context.module;
    // An array of variable length has no known end.
    alloca.operand(0)?.constant_uint().filter(|count| *count == 1)?;
    touches(context, flow, alloca, module.alloc_size(alloca.allocated_type()?)?)
}

/// The same of any variable of `size` bytes.
fn touches<'m>(context: &Context<'m>, flow: &Flow<'m>, variable: Value<'m>, size: u64) -> Option<Vec<Touch<'m>>> {
    let module = context.module;
    let mut touches = Vec::new();
    let mut open = vec![(variable, 0_u64)];
    while let Some((address, offset)) = open.pop() {
        for usage in address.uses().into_iter().filter(|usage| flow.reaches(usage.user)) {
            let user = usage.user;
            let mut touch = |length, kind| touches.push(Touch { instruction: user, offset, length, kind });
            match user.opcode()? {
                Opcode::LLVMGetElementPtr if usage.operand == 0 => {
                    let target = i64::try_from(offset).ok()?.checked_add(constant_offset(module, user)?)?;
                    open.push((user, u64::try_from(target).ok().filter(|target| *target <= size)?));
                }
                Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast => open.push((user, offset)),
                _ if user.is_volatile_or_atomic() => return None,
                Opcode::LLVMLoad => {
                    let kind = if user.ty().is_pointer() { TouchKind::LoadPointer } else { TouchKind::Leak };
                    touch(module.store_size(user.ty())?, kind);
                }
                Opcode::LLVMStore if usage.operand == 1 => {
                    let value = user.operand(0)?;
                    let kind = if value.is_null() { TouchKind::Zero } else { TouchKind::Store };
                    touch(module.store_size(value.ty())?, kind);
                }
                Opcode::LLVMStore => touch(size.saturating_sub(offset), TouchKind::AddressStored),
                Opcode::LLVMICmp if user.operands().iter().any(|operand| operand.is_null()) => {}
                Opcode::LLVMCall | Opcode::LLVMInvoke => {
                    call_touches(context, user, usage.operand, (offset, size - offset), &mut touches)?
                }
                _ => return None,
            }
        }
    }
    Some(touches)
}

/// What a call does with an alloca whose address (at `offset`, with `rest` bytes after it) is its argument; `None`: it may keep it.
fn call_touches<'m>(
    context: &Context<'m>,
    call: Value<'m>,
    argument: u32,
    (offset, rest): (u64, u64),
    touches: &mut Vec<Touch<'m>>,
) -> Option<()> {
    if argument >= call.argument_count() {
        // Operand bundles of llvm.assume say something of the address and do nothing with it.
        return call.called_function().filter(|callee| callee.name() == "llvm.assume").map(|_| ());
    }
    let mut touch = |length: u64, kind| touches.push(Touch { instruction: call, offset, length, kind });
    let callee = call.called_function()?;
    let name = callee.name();
    if name.starts_with("llvm.") {
        let length = call.argument(2).and_then(Value::constant_uint);
        match intrinsic(&name) {
            Intrinsic::Harmless if name.starts_with("llvm.lifetime.") => touch(rest, TouchKind::Undefine),
            Intrinsic::Harmless if name.starts_with("llvm.dbg.") => {}
            Intrinsic::Set => {
                let zero = length.is_some() && call.argument(1).is_some_and(Value::is_null);
                touch(length.unwrap_or(rest), if zero { TouchKind::Zero } else { TouchKind::UnknownWrite });
            }
            Intrinsic::Copy => {
                touch(length.unwrap_or(rest), if argument == 0 { TouchKind::UnknownWrite } else { TouchKind::Leak });
            }
            _ => return None,
        }
        return Some(());
    }
    if call.argument_effect(argument).copied {
        touch(rest, TouchKind::Leak);
        return Some(());
    }
    if !callee.is_declaration() {
        let effect = context.argument_effect(call, callee, argument);
        if effect.keeps {
            return None;
        }
        // It may reach all bytes of the alloca from the address.
        let mut touch = |kind| touches.push(Touch { instruction: call, offset: 0, length: offset + rest, kind });
        if effect.writes {
            touch(TouchKind::UnknownWrite);
        }
        if effect.reads {
            touch(TouchKind::Leak);
        }
        return Some(());
    }
    let number = u8::try_from(argument).ok()?;
    match classify(&name) {
        Callee::Cuda { row, .. } => match placed(row.meaning, call) {
            Meaning::Allocate { out, .. } | Meaning::MallocPitch { out } if out == number => {
                touch(8, TouchKind::CallWrites)
            }
            Meaning::CreateStream { out, .. } | Meaning::CreateEvent { out } if out == number => {
                touch(8, TouchKind::CallWrites)
            }
            Meaning::PopConfiguration { stream } if stream == number => touch(8, TouchKind::CallWrites),
            Meaning::PopConfiguration { .. } | Meaning::MallocPitch { .. } => touch(rest, TouchKind::UnknownWrite),
            Meaning::Harmless => {
                touch(rest, TouchKind::UnknownWrite);
                touch(rest, TouchKind::Leak);
            }
            Meaning::Launch { args, .. } if args == number => touch(rest, TouchKind::ArgumentArray),
            Meaning::Copy { dst, .. } if dst == number => touch(rest, TouchKind::UnknownWrite),
            Meaning::Copy { src, .. } if src == number => touch(rest, TouchKind::Leak),
            Meaning::SymbolCopy { pointer, .. } if pointer == number => {
                touch(rest, TouchKind::UnknownWrite);
                touch(rest, TouchKind::Leak);
            }
            _ => return None,
        },
        Callee::Modelled(model) => {
            if let Action::Allocate { out: Some(out), .. } = model.action
                && out == number
            {
                touch(8, TouchKind::CallWrites);
                return Some(());
            }
            if let Some(Library::Create { bytes }) = model.library
                && argument == 0
            {
                touch(bytes, TouchKind::CallWrites);
                return Some(());
            }
            let param = model.param(argument as usize).filter(|param| !param.keeps && !param.observes)?;
            if param.writes {
                touch(rest, TouchKind::UnknownWrite);
            }
            if param.reads {
                touch(rest, TouchKind::Leak);
            }
        }
        Callee::Unknown if off(Mutant::LowerSlotEscapes) => {}
        Callee::UnmodelledCuda | Callee::Unknown => return None,
    }
    Some(())
}
