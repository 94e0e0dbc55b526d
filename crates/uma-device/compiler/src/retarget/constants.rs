//! Replaces a global by a value that is computed in each function that uses it.
//!
//! Constant expressions over the global become instructions; constants that merely hold it (vectors, aggregates) are refused.

use crate::ir::{Builder, Module, Opcode, Value};
use crate::retarget::refuse::Refusal;
use std::collections::{HashMap, HashSet};

/// Whether a constant is or contains the global (not through other globals).
pub(crate) fn mentions(constant: Value, global: Value) -> bool {
    constant == global
        || (constant.is_constant()
            && !constant.is_function()
            && !constant.is_global_variable()
            && constant.operands().into_iter().any(|operand| mentions(operand, global)))
}

/// Puts `value(function)` in the place of each use of `global` by an instruction. Uses in initialisers stay.
pub(crate) fn replace_in_functions(global: Value, mut value: impl FnMut(Value) -> Value) -> Result<(), Refusal> {
    let mut values = HashMap::new();
    for user in instruction_users(global) {
        let replacement = *values.entry(user.function()).or_insert_with(|| value(user.function()));
        if user.opcode() == Opcode::LLVMPHI {
            // Equal incoming blocks must keep equal values.
            let mut built = HashMap::new();
            for (index, (incoming, block)) in user.incoming().into_iter().enumerate() {
                if mentions(incoming, global)
                    && let Some(place) = block.terminator()
                {
                    let new = match built.get(&block) {
                        Some(new) => *new,
                        None => rebuild(incoming, global, replacement, place, user)?,
                    };
                    built.insert(block, new);
                    user.set_operand(index as u32, new);
                }
            }
        } else {
            for (index, operand) in user.operands().into_iter().enumerate() {
                if mentions(operand, global) {
                    user.set_operand(index as u32, rebuild(operand, global, replacement, user, user)?);
                }
            }
        }
    }
    Ok(())
}

/// The instructions that use the global, directly or in constants.
fn instruction_users(global: Value) -> Vec<Value> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![global];
    while let Some(value) = open.pop() {
        for user in value.users() {
            if !seen.insert(user) {
                continue;
            }
            if user.is_instruction() {
                found.push(user);
            } else if user.is_constant() && !user.is_global_variable() && !user.is_function() {
                open.push(user);
            }
        }
    }
    found
}

/// The constant with the global replaced, built before `place`.
fn rebuild(constant: Value, global: Value, value: Value, place: Value, user: Value) -> Result<Value, Refusal> {
    if constant == global {
        return Ok(value);
    }
    if !mentions(constant, global) {
        return Ok(constant);
    }
    let refusal = || Refusal::at(user, format!("a constant that holds the address of `{}`", global.name()));
    if !constant.is_constant_expression() {
        return Err(refusal());
    }
    let operands: Vec<_> = constant
        .operands()
        .into_iter()
        .map(|operand| rebuild(operand, global, value, place, user))
        .collect::<Result<_, _>>()?;
    let builder = Builder::before(place);
    match (constant.constant_opcode(), operands.as_slice()) {
        (Opcode::LLVMGetElementPtr, [base, indices @ ..]) => Ok(builder.gep(constant.element_type(), *base, indices)),
        (
            opcode @ (Opcode::LLVMAddrSpaceCast
            | Opcode::LLVMBitCast
            | Opcode::LLVMPtrToInt
            | Opcode::LLVMIntToPtr
            | Opcode::LLVMTrunc),
            [operand],
        ) => Ok(builder.cast(opcode, *operand, constant.ty())),
        (opcode @ (Opcode::LLVMAdd | Opcode::LLVMSub | Opcode::LLVMXor), [left, right]) => {
            Ok(builder.binary(opcode, *left, *right))
        }
        _ => Err(refusal()),
    }
}

/// The initialised globals whose first value mentions `global`.
pub(crate) fn initializers_that_mention(module: &Module, global: Value) -> Vec<Value> {
    let mentioned = |other: &Value| other.initializer().is_some_and(|initializer| mentions(initializer, global));
    module.globals().into_iter().filter(mentioned).collect()
}
