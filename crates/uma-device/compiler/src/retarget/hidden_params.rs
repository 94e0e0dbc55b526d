//! Gives every device function four more parameters: the context and the three coordinates of threadIdx.
//!
//! So the same function body serves both ways to run a block: in a loop over threads the coordinates are loop variables, on a coroutine
//! they come from the context. Functions whose address is taken get them too, and so do calls through pointers, hence all agree.

use crate::ir::{At, Attribute, Block, Builder, Module, Opcode, Type, Value};
use std::collections::HashMap;
use std::mem::size_of;
use uma_abi::ThreadContext;

/// Number of added parameters.
const ADDED: usize = 4;

/// Which functions have the added parameters.
pub(crate) struct Hidden {
    first: HashMap<Value, usize>,
}

impl Hidden {
    fn param(&self, function: Value, index: usize) -> Value {
        function.params()[self.first[&function] + index]
    }

    /// The context in a device function.
    pub(crate) fn context(&self, function: Value) -> Value {
        self.param(function, 0)
    }

    /// threadIdx in a device function, by dimension.
    pub(crate) fn thread(&self, function: Value, dimension: usize) -> Value {
        self.param(function, 1 + dimension)
    }
}

/// The types of the added parameters.
pub(crate) fn added_types() -> [Type; ADDED] {
    [Type::pointer(), Type::int(32), Type::int(32), Type::int(32)]
}

/// Replaces each defined function by one with the added parameters.
pub(crate) fn add(module: &Module) -> Hidden {
    let old: Vec<_> = module.functions().into_iter().filter(|function| !function.is_declaration()).collect();
    let mut hidden = Hidden { first: HashMap::new() };
    for &function in &old {
        let new = clone(module, function);
        hidden.first.insert(new, function.params().len());
        function.replace_all_uses_with(new);
    }
    for function in old {
        function.delete_function();
    }
    hidden
}

/// The function with added parameters. It has the attributes of the parameters; those of the function itself described another target
/// or no longer hold (a body without memory accesses will read the context), so LLVM infers them anew.
fn clone(module: &Module, old: Value) -> Value {
    let old_type = old.value_type();
    let mut params = old_type.params();
    let first = params.len() as u32;
    params.extend(added_types());
    let new = module.add_function("", Type::function(old_type.return_type(), &params));
    let name = old.name();
    old.set_name("");
    new.set_name(&name);
    new.set_internal();
    for at in std::iter::once(At::Return).chain((0..first).map(At::Param)) {
        for attribute in old.attributes(at) {
            new.add_attribute(at, attribute);
        }
    }
    for name in ["alwaysinline", "nounwind"] {
        if old.has_attribute(At::Function, name) {
            new.add_attribute(At::Function, Attribute::known(name, 0));
        }
    }
    for name in ["noundef", "nonnull"] {
        new.add_attribute(At::Param(first), Attribute::known(name, 0));
    }
    new.add_attribute(At::Param(first), Attribute::known("align", 8));
    new.add_attribute(At::Param(first), Attribute::known("dereferenceable", size_of::<ThreadContext>() as u64));
    for index in 1..ADDED as u32 {
        new.add_attribute(At::Param(first + index), Attribute::known("noundef", 0));
    }
    old.move_subprogram_to(new);
    copy_body(old, new);
    new
}

fn copy_body(old: Value, new: Value) {
    let mut map: HashMap<Value, Value> = old.params().into_iter().zip(new.params()).collect();
    let added = new.params().split_off(old.params().len());
    let blocks: Vec<_> = old.blocks().into_iter().map(|block| (block, Block::append(new, ""))).collect();
    map.extend(blocks.iter().map(|(from, to)| (from.as_value(), to.as_value())));
    let block_map: HashMap<Block, Block> = blocks.iter().copied().collect();
    let mut copies = Vec::new();
    for &(from, to) in &blocks {
        let builder = Builder::at_end(to);
        for instruction in from.instructions() {
            let copy = match instruction.opcode() {
                Opcode::LLVMPHI => builder.phi(instruction.ty(), ""),
                Opcode::LLVMCall if takes_hidden(instruction) => extended_call(&builder, instruction, &added),
                _ => {
                    let copy = instruction.clone_instruction();
                    builder.insert(copy, "");
                    if copy.opcode() == Opcode::LLVMCall {
                        copy.clear_call_site_claims();
                    }
                    copy
                }
            };
            map.insert(instruction, copy);
            copies.push((instruction, copy));
        }
    }
    for (original, copy) in copies {
        if original.opcode() == Opcode::LLVMPHI {
            for (value, block) in original.incoming() {
                copy.add_incoming(map.get(&value).copied().unwrap_or(value), block_map[&block]);
            }
            continue;
        }
        for index in 0..copy.operand_count() {
            if let Some(mapped) = copy.operand(index).and_then(|operand| map.get(&operand)) {
                copy.set_operand(index, *mapped);
            }
        }
    }
}

/// Calls of device functions and through pointers; not of intrinsics and other undefined functions.
fn takes_hidden(call: Value) -> bool {
    let callee = call.callee();
    callee.inline_assembly().is_none() && !(callee.is_function() && callee.is_declaration())
}

/// The call with the added arguments; its other operands are still those of the original.
fn extended_call(builder: &Builder, call: Value, added: &[Value]) -> Value {
    let ty = call.callee_type();
    let mut params = ty.params();
    let count = params.len() as u32;
    params.extend(added_types());
    let mut arguments = call.call_arguments();
    arguments.extend_from_slice(added);
    let copy = builder.call(call.callee(), Type::function(ty.return_type(), &params), &arguments, "");
    call.copy_call_properties_to(copy, count);
    copy
}
