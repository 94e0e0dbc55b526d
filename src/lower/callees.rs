//! What a function of the module that stays a call does with the memory behind its parameters.
//!
//! LLVM infers the same for its own use, but not for functions of which the linker may choose another copy (every template and inline
//! function), and gives up where one calls `printf`. Here a parameter is followed through its function by the rule of the whole
//! lowering: every use is an access, or it keeps the pointer. So a callee that is given a buffer either touches it while it runs and in no
//! other way, or the buffer's pointer has escaped.
//!
//! *Another copy may run* of such a function. All copies are compiled from one source, so they differ only by accesses without effect, which
//! one optimiser dropped: reads whose value is not used and writes of what is there already. What is known of such a parameter is at least
//! that its memory is read: then work that writes the memory conflicts, which is all that these accesses could disturb.

use std::collections::HashSet;

use super::Context;
use super::intrinsics::{Intrinsic, intrinsic};
use crate::calls::models::Action;
use crate::calls::{Callee, classify};
use crate::ir::{Linkage, Opcode, Use, Value};
use crate::mutants::{Mutant, off};

/// Calls inside calls that are followed. Host code of the programs surveyed needs 3.
const MAX_DEPTH: u32 = 16;
/// Values derived from one parameter. A function that makes more of them is taken to keep the pointer, so that the work stays linear.
const MAX_VALUES: usize = 4_000;

/// What a function does with the memory behind one parameter while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ParameterEffect {
    /// It may read it.
    pub reads: bool,
    /// It may write it.
    pub writes: bool,
    /// It may do anything else with the pointer: keep, compare, return, free it.
    pub keeps: bool,
}

impl ParameterEffect {
    const KEEPS: Self = Self { reads: true, writes: true, keeps: true };

    fn add(&mut self, other: Self) {
        self.reads |= other.reads;
        self.writes |= other.writes;
        self.keeps |= other.keeps;
    }
}

impl<'m> Context<'m> {
    /// What a call of a defined function does with the memory behind an argument.
    #[must_use]
    pub(super) fn argument_effect(&self, call: Value<'m>, callee: Value<'m>, index: u32) -> ParameterEffect {
        let promised = call.argument_effect(index);
        if promised.copied || callee.is_interposable() {
            return ParameterEffect::KEEPS;
        }
        if !promised.captures && (call.does_not_free(index) || off(Mutant::LowerCalleeFrees)) {
            return ParameterEffect { reads: promised.reads, writes: promised.writes, keeps: false };
        }
        self.parameter_effect(callee, index, 0)
    }

    fn parameter_effect(&self, function: Value<'m>, index: u32, depth: u32) -> ParameterEffect {
        if depth > MAX_DEPTH {
            return ParameterEffect::KEEPS;
        }
        let key = (function, index);
        if let Some(known) = self.parameters.borrow().get(&key) {
            return *known;
        }
        // What a recursion asks for is not known yet.
        self.parameters.borrow_mut().insert(key, ParameterEffect::KEEPS);
        let effect = match function.parameters().get(index as usize) {
            Some(parameter) if function.byval_size(index as usize).is_none() => {
                self.follow(function, *parameter, depth)
            }
            _ => ParameterEffect::KEEPS,
        };
        self.parameters.borrow_mut().insert(key, effect);
        effect
    }

    fn follow(&self, function: Value<'m>, parameter: Value<'m>, depth: u32) -> ParameterEffect {
        let mut effect = ParameterEffect::default();
        let mut derived = HashSet::from([parameter]);
        let mut open = vec![parameter];
        let mut uses = Vec::new();
        while let Some(value) = open.pop() {
            for usage in value.uses() {
                if yields_pointer(usage) && derived.insert(usage.user) {
                    open.push(usage.user);
                }
                uses.push((value, usage));
            }
            if derived.len() > MAX_VALUES {
                return ParameterEffect::KEEPS;
            }
        }
        for (value, usage) in uses {
            effect.add(self.use_effect(value, usage, &derived, depth));
            if effect.keeps {
                return ParameterEffect::KEEPS;
            }
        }
        let copied = matches!(
            function.linkage(),
            Some(
                Linkage::LLVMWeakODRLinkage | Linkage::LLVMLinkOnceODRLinkage | Linkage::LLVMAvailableExternallyLinkage
            )
        );
        effect.reads |= copied;
        effect
    }

    /// What one use of a pointer derived from a parameter does; `derived`: all of those.
    fn use_effect(
        &self,
        value: Value<'m>,
        usage: Use<'m>,
        derived: &HashSet<Value<'m>>,
        depth: u32,
    ) -> ParameterEffect {
        const NOTHING: ParameterEffect = ParameterEffect { reads: false, writes: false, keeps: false };
        const READS: ParameterEffect = ParameterEffect { reads: true, ..NOTHING };
        const WRITES: ParameterEffect = ParameterEffect { writes: true, ..NOTHING };
        let user = usage.user;
        if user.is_volatile_or_atomic() {
            return ParameterEffect::KEEPS;
        }
        let ours = |other: Value<'m>| other.is_null() || other.is_undef() || derived.contains(&other);
        match user.opcode() {
            Some(Opcode::LLVMLoad) => READS,
            Some(Opcode::LLVMStore) if usage.operand == 1 => WRITES,
            Some(Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast | Opcode::LLVMFreeze)
                if yields_pointer(usage) =>
            {
                NOTHING
            }
            // A pointer that may be another buffer's as well would make comparisons below say something of both.
            Some(Opcode::LLVMPHI) if user.incoming().into_iter().all(|(input, _)| ours(input)) => NOTHING,
            Some(Opcode::LLVMSelect) if (1..3).all(|index| user.operand(index).is_some_and(ours)) => NOTHING,
            Some(Opcode::LLVMICmp) if user.operand(1 - usage.operand).is_some_and(ours) => NOTHING,
            Some(Opcode::LLVMPtrToInt) if is_difference_only(user, derived) => NOTHING,
            Some(Opcode::LLVMCall | Opcode::LLVMInvoke) if usage.operand < user.argument_count() => {
                self.call_effect(user, value, usage.operand, depth)
            }
            _ => ParameterEffect::KEEPS,
        }
    }

    fn call_effect(&self, call: Value<'m>, pointer: Value<'m>, index: u32, depth: u32) -> ParameterEffect {
        let Some(callee) = call.called_function() else { return ParameterEffect::KEEPS };
        let name = callee.name();
        if name.starts_with("llvm.") {
            let constant_length_is_last = call.argument(3).is_some_and(Value::is_null);
            return match intrinsic(&name) {
                Intrinsic::Harmless | Intrinsic::PassesOn { .. } => ParameterEffect::default(),
                Intrinsic::Copy if constant_length_is_last => {
                    ParameterEffect { reads: index == 1, writes: index == 0, keeps: false }
                }
                Intrinsic::Set if constant_length_is_last => {
                    ParameterEffect { writes: true, ..ParameterEffect::default() }
                }
                Intrinsic::MaskedLoad => ParameterEffect { reads: true, ..ParameterEffect::default() },
                Intrinsic::MaskedStore if call.argument(0) != Some(pointer) => {
                    ParameterEffect { writes: true, ..ParameterEffect::default() }
                }
                _ => ParameterEffect::KEEPS,
            };
        }
        if !callee.is_declaration() {
            let promised = call.argument_effect(index);
            if promised.copied || callee.is_interposable() {
                return ParameterEffect::KEEPS;
            }
            return self.parameter_effect(callee, index, depth + 1);
        }
        match classify(&name) {
            Callee::Modelled(model) if model.action == Action::None && model.library.is_none() => {
                match model.param(index as usize) {
                    Some(param) if !param.keeps && !param.observes && (param.reads || param.writes) => {
                        ParameterEffect { reads: param.reads, writes: param.writes, keeps: false }
                    }
                    _ => ParameterEffect::KEEPS,
                }
            }
            Callee::Unknown => {
                let promised = call.argument_effect(index);
                if promised.captures || promised.copied || !call.does_not_free(index) {
                    ParameterEffect::KEEPS
                } else {
                    ParameterEffect { reads: promised.reads, writes: promised.writes, keeps: false }
                }
            }
            _ => ParameterEffect::KEEPS,
        }
    }
}

/// Is what the user yields a pointer near the one that is used?
fn yields_pointer(usage: Use<'_>) -> bool {
    let user = usage.user;
    user.ty().is_pointer()
        && match user.opcode() {
            Some(Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast | Opcode::LLVMFreeze) => {
                usage.operand == 0
            }
            Some(Opcode::LLVMPHI) => true,
            Some(Opcode::LLVMSelect) => usage.operand > 0,
            Some(Opcode::LLVMCall | Opcode::LLVMInvoke) => super::pointers::derived_from(user).is_some(),
            _ => false,
        }
}

/// Is the integer used only to subtract pointers derived from the same parameter?
fn is_difference_only<'m>(cast: Value<'m>, derived: &HashSet<Value<'m>>) -> bool {
    let same = |other: Value<'m>| {
        other.opcode() == Some(Opcode::LLVMPtrToInt)
            && other.operand(0).is_some_and(|pointer| derived.contains(&pointer))
    };
    cast.uses().iter().all(|usage| {
        usage.user.opcode() == Some(Opcode::LLVMSub) && usage.user.operand(1 - usage.operand).is_some_and(same)
    })
}
