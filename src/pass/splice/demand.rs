//! Which calls hide something of a buffer: where a pointer that is copied comes from, and where a buffer's pointer goes.
//!
//! The lowering says what it could not follow: copies whose pointer is not resolved, pointers that are stored to memory, given to a call,
//! or read from a variable that holds this or that. From there the values are followed backwards to the calls of functions of the module
//! that made them or that see the variable. Nothing is concluded here but what is worth splicing, so a way that is missed costs reach only.

use std::collections::HashSet;

use super::globals;
use super::graph::CallGraph;
use crate::analysis::program::{BlemishKind, Event, NodeId, ObjectId, UseKind};
use crate::calls::cuda::Meaning;
use crate::calls::{Callee, classify};
use crate::ir::{Opcode, Value};
use crate::lower::{Delivery, Lowered};

/// Calls of defined functions that hide something of a buffer of the function, in the order in which they stand there.
pub(super) fn calls<'m>(lowered: &Lowered<'m>, function: Value<'m>, graph: &CallGraph<'m>) -> Vec<Value<'m>> {
    let mut search = Search::new(graph);
    for side in unresolved_sides(lowered) {
        search.value(Some(side.pointer));
    }
    for (usage, at) in lowered.program.uses.iter().zip(&lowered.uses) {
        match usage.kind {
            UseKind::PassedTo(_) => search.call(*at),
            UseKind::Stored if at.opcode() == Some(Opcode::LLVMStore) => search.variable(at.operand(1)),
            _ => {}
        }
    }
    for (blemish, at) in lowered.program.blemishes.iter().zip(&lowered.blemishes) {
        if blemish.kind == BlemishKind::AmbiguousSlot {
            search.value(Some(*at));
        }
    }
    for allocation in &lowered.allocations {
        if allocation.delivery == Delivery::Memory {
            allocation.call.arguments().into_iter().for_each(|argument| search.variable(Some(argument)));
        }
        allocation.size_operands.iter().for_each(|size| search.number(*size));
    }
    for node in lowered.program.graph.node_indices() {
        if let (Event::Copy(_), Some(call)) = (&lowered.program.node(node).event, lowered.instruction(node)) {
            let numbers = call.arguments().into_iter().filter(|argument| !argument.ty().is_pointer());
            numbers.for_each(|number| search.number(number));
        }
    }
    // Variables of the module can become variables of the function if nobody else sees them.
    let seeing = graph.reaching(search.globals.iter().flat_map(|global| globals::users(*global)));
    let sees = |call: &Value<'m>| graph.callee(*call).is_some_and(|callee| seeing.contains(&callee));
    function.instructions().filter(|call| search.calls.contains(call) || sees(call)).collect()
}

/// A pointer that a copy is given and that is not resolved.
pub(super) struct Side<'m> {
    pub(super) pointer: Value<'m>,
    pub(super) call: Value<'m>,
    pub(super) node: NodeId,
    /// The buffer on the other side.
    pub(super) partner: Option<ObjectId>,
}

/// The pointers of copies that are not resolved.
pub(super) fn unresolved_sides<'m>(lowered: &Lowered<'m>) -> Vec<Side<'m>> {
    let mut found = Vec::new();
    for node in lowered.program.graph.node_indices() {
        let Event::Copy(copy) = &lowered.program.node(node).event else { continue };
        let Some(call) = lowered.instruction(node) else { continue };
        let Some(Callee::Cuda { row, .. }) = call.called_function().map(|callee| classify(&callee.name())) else {
            continue;
        };
        let Meaning::Copy { dst, src, .. } = row.meaning else { continue };
        for (place, other, argument) in [(&copy.dst, &copy.src, dst), (&copy.src, &copy.dst, src)] {
            if let Some(pointer) = call.argument(u32::from(argument)).filter(|_| place.object.is_none()) {
                found.push(Side { pointer, call, node, partner: other.object });
            }
        }
    }
    found
}

/// Does the pointer come from outside of the function: an argument, a global variable, or what a function of the module returns or stores?
/// (Else it is the address of a variable, or what an unknown function gave.)
pub(super) fn is_from_elsewhere<'m>(pointer: Value<'m>, graph: &CallGraph<'m>) -> bool {
    let mut search = Search::new(graph);
    search.value(Some(pointer));
    search.outside || !search.calls.is_empty()
}

struct Search<'a, 'm> {
    graph: &'a CallGraph<'m>,
    calls: HashSet<Value<'m>>,
    /// Global variables that hold something of a buffer and that only this module knows.
    globals: HashSet<Value<'m>>,
    /// Values and addresses that were looked at.
    seen: HashSet<(Value<'m>, bool)>,
    /// An argument or the content of a global variable was met.
    outside: bool,
}

impl<'a, 'm> Search<'a, 'm> {
    fn new(graph: &'a CallGraph<'m>) -> Self {
        Self { graph, calls: HashSet::new(), globals: HashSet::new(), seen: HashSet::new(), outside: false }
    }

    fn call(&mut self, call: Value<'m>) {
        if self.graph.callee(call).is_some() {
            self.calls.insert(call);
        }
    }

    /// What a value was made from.
    fn value(&mut self, value: Option<Value<'m>>) {
        let mut open: Vec<_> = value.into_iter().collect();
        while let Some(value) = open.pop() {
            if !self.seen.insert((value, false)) {
                continue;
            }
            self.outside |= value.is_argument();
            match value.opcode() {
                Some(Opcode::LLVMLoad) => self.variable(value.operand(0)),
                Some(Opcode::LLVMCall | Opcode::LLVMInvoke) => self.call(value),
                Some(
                    Opcode::LLVMGetElementPtr
                    | Opcode::LLVMBitCast
                    | Opcode::LLVMAddrSpaceCast
                    | Opcode::LLVMFreeze
                    | Opcode::LLVMPHI
                    | Opcode::LLVMSelect
                    | Opcode::LLVMExtractValue
                    | Opcode::LLVMInsertValue,
                ) => open.extend(value.operands()),
                _ => {}
            }
        }
    }

    /// The variables that a number is computed from.
    fn number(&mut self, number: Value<'m>) {
        let mut open = vec![number];
        while let Some(number) = open.pop().filter(|number| number.is_instruction()) {
            match number.opcode() {
                Some(Opcode::LLVMLoad) => self.variable(number.operand(0)),
                Some(Opcode::LLVMPHI | Opcode::LLVMCall | Opcode::LLVMInvoke) => {}
                _ if self.seen.insert((number, false)) => open.extend(number.operands()),
                _ => {}
            }
        }
    }

    /// Who may write, or keep, the memory at an address.
    fn variable(&mut self, address: Option<Value<'m>>) {
        let mut open: Vec<_> = address.into_iter().collect();
        while let Some(address) = open.pop() {
            if !self.seen.insert((address, true)) {
                continue;
            }
            match address.opcode() {
                Some(Opcode::LLVMAlloca) => self.users(address),
                Some(Opcode::LLVMLoad | Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMExtractValue) => {
                    self.value(Some(address));
                }
                Some(
                    Opcode::LLVMGetElementPtr
                    | Opcode::LLVMBitCast
                    | Opcode::LLVMAddrSpaceCast
                    | Opcode::LLVMPHI
                    | Opcode::LLVMSelect,
                ) => open.extend(address.operands()),
                _ => {
                    self.outside |= address.is_argument() || address.is_global_variable();
                    if globals::may_be_local(address) {
                        self.globals.insert(address);
                    }
                }
            }
        }
    }

    /// Calls that are given the address of a variable, or of a part of it, and what is stored there.
    fn users(&mut self, variable: Value<'m>) {
        let mut open = vec![variable];
        while let Some(address) = open.pop() {
            for usage in address.uses() {
                match usage.user.opcode() {
                    Some(Opcode::LLVMCall | Opcode::LLVMInvoke) => self.call(usage.user),
                    Some(Opcode::LLVMStore) if usage.operand == 1 => self.value(usage.user.operand(0)),
                    Some(Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast) => {
                        open.push(usage.user);
                    }
                    _ => {}
                }
            }
        }
    }
}
