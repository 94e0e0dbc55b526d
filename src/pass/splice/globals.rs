//! Global variables that only a spliced `main` uses become variables of `main`: `static float *h, *d;` of a program whose functions share
//! their buffers.
//!
//! A local variable of `main` lives from before the first to after the last thing that `main` does, and `main` runs once. So it can take the
//! place of a global variable if nothing else uses that one: every use is in `main`, or in a function that nothing can call any more (all its
//! calls were spliced, and the linker does not know its name); its address stays in `main`; and it is not seen in another way (its section,
//! threads of their own, an initialiser from outside). Otherwise the function that still sees it may run between any two uses.

use std::collections::HashSet;

use super::edit;
use crate::ir::{Linkage, Module, Value};
use crate::lower::{Context, is_private_variable};
use crate::mutants::{Mutant, off};

/// Larger variables stay where they are: what is wanted are pointers and structures of pointers, and a stack is small.
const MAX_BYTES: u64 = 256;

/// Makes them local to `main`, which is `target` now; `original` is the function that `target` is going to replace (or is). True if there
/// were any.
pub(super) fn localise<'m>(context: &Context<'m>, target: Value<'m>, original: Value<'m>) -> bool {
    let mut changed = false;
    for global in only_here(context.module, target, original) {
        edit::expand_constants(global, target);
        if is_private_variable(context, target, global) || off(Mutant::SpliceAddressStays) {
            edit::make_local(global, target);
            changed = true;
        }
    }
    changed
}

/// The global variables that `target` uses and that nothing else can see once it stands in the place of `original`, which is `main`.
pub(super) fn only_here<'m>(
    module: Module<'m>,
    target: Value<'m>,
    original: Value<'m>,
) -> impl Iterator<Item = Value<'m>> {
    let is_main = original.name() == "main" && !original.is_used() || off(Mutant::SpliceMainOnce);
    let candidates: Vec<_> = module.globals().filter(|global| is_main && is_candidate(module, *global)).collect();
    let dead = if candidates.is_empty() { HashSet::new() } else { unreachable(module, target, original) };
    candidates.into_iter().filter(move |global| {
        let users = users(*global);
        let is_here = |user: &Value<'m>| *user == target || *user == original || dead.contains(user);
        users.contains(&target) && (users.iter().all(is_here) || off(Mutant::SpliceSeenElsewhere))
    })
}

/// Can it hold a pointer? (LLVM finds the numbers that only `main` uses by itself.)
pub(super) fn may_hold_pointers(global: Value<'_>) -> bool {
    global.value_type().is_some_and(|ty| ty.is_pointer() || ty.is_struct() || ty.element().is_some())
}

/// The functions that use a global variable; none, where more than functions do.
pub(super) fn users<'m>(global: Value<'m>) -> HashSet<Value<'m>> {
    let mut users = HashSet::new();
    if functions_using(global, &mut users) { users } else { HashSet::new() }
}

fn is_candidate<'m>(module: Module<'m>, global: Value<'m>) -> bool {
    may_be_local(global)
        && global.value_type().and_then(|ty| module.alloc_size(ty)).is_some_and(|size| size <= MAX_BYTES)
}

/// Is it a global variable that only this module knows, and that is an ordinary one?
pub(super) fn may_be_local(global: Value<'_>) -> bool {
    if off(Mutant::SpliceOrdinaryVariable) {
        return global.initializer().is_some();
    }
    matches!(global.linkage(), Some(Linkage::LLVMInternalLinkage | Linkage::LLVMPrivateLinkage))
        && !global.is_global_constant()
        && global.initializer().is_some()
        && global.section().is_empty()
        && !global.is_thread_local()
        && !global.is_initialised_elsewhere()
}

/// Functions that nothing can call once `target` stands in the place of `original`: the linker does not need them, and every use is in
/// `original` or in another of them.
fn unreachable<'m>(module: Module<'m>, target: Value<'m>, original: Value<'m>) -> HashSet<Value<'m>> {
    let is_local = |function: Value<'m>| {
        matches!(function.linkage(), Some(Linkage::LLVMInternalLinkage | Linkage::LLVMPrivateLinkage))
            && function != target
    };
    unused(module, is_local, |user| user == original && original != target)
}

/// Functions that are left out of the object file: nothing uses them but others of them, and the linker does not ask for them.
pub(super) fn left_over<'m>(module: Module<'m>) -> HashSet<Value<'m>> {
    use Linkage::{
        LLVMAvailableExternallyLinkage, LLVMInternalLinkage, LLVMLinkOnceAnyLinkage, LLVMLinkOnceODRLinkage,
        LLVMPrivateLinkage,
    };
    let is_discardable = |function: Value<'m>| {
        matches!(
            function.linkage(),
            Some(
                LLVMInternalLinkage
                    | LLVMPrivateLinkage
                    | LLVMLinkOnceAnyLinkage
                    | LLVMLinkOnceODRLinkage
                    | LLVMAvailableExternallyLinkage
            )
        )
    };
    unused(module, is_discardable, |_| false)
}

/// The largest set of functions that `may_go` and whose uses are all in functions that are `gone` or in the set.
fn unused<'m>(
    module: Module<'m>,
    may_go: impl Fn(Value<'m>) -> bool,
    gone: impl Fn(Value<'m>) -> bool,
) -> HashSet<Value<'m>> {
    let mut set: HashSet<_> =
        module.functions().filter(|function| !function.is_declaration() && may_go(*function)).collect();
    let users: Vec<_> = set
        .iter()
        .map(|function| {
            let mut users = HashSet::new();
            (*function, functions_using(*function, &mut users).then_some(users))
        })
        .collect();
    loop {
        let before = set.len();
        for (function, users) in &users {
            let unused = users.as_ref().is_some_and(|users| users.iter().all(|user| gone(*user) || set.contains(user)));
            if !unused {
                set.remove(function);
            }
        }
        if set.len() == before {
            return set;
        }
    }
}

/// The functions whose instructions use a value, through constant expressions too; false if something else does (the initialiser of a
/// variable, a list of constructors, an alias).
fn functions_using<'m>(value: Value<'m>, users: &mut HashSet<Value<'m>>) -> bool {
    let mut open = vec![value];
    let mut seen = HashSet::new();
    while let Some(value) = open.pop() {
        for usage in value.uses() {
            if let Some(function) = usage.user.function() {
                users.insert(function);
            } else if usage.user.is_constant_expression() {
                if seen.insert(usage.user) {
                    open.push(usage.user);
                }
            } else {
                return false;
            }
        }
    }
    true
}
