//! R1–R4: makes a program merge its buffers, as plans say.
//!
//! `analysis` decides, and only it makes a [`MergePlan`]; here nothing is decided and nothing can fail. In P' h and d are two names of one
//! allocation p:
//! - R1 (`r1_allocation`): the allocation that comes first makes p;
//! - R2 (`r2_renaming`): the other yields p, so that every use of h and d is one of p;
//! - R3 (`r3_copies`): each copy between h and d goes, and leaves the wait that the plan says;
//! - R4 (`r4_deallocation`): the frees of h and d become one release of p; where the path decides which, p counts (`names`).
//!
//! Under [`Target::Adaptive`] the runtime decides whether p exists, and each of these calls keeps its own way for where it does not
//! (`guard`).
//!
//! Premise, as everywhere: allocations succeed. Where one fails all the same, p is null, the call that made it reports the failure in its
//! own way, and the other yields null. Where P may never call CUDA (S4: the program comes to use h and perhaps never allocates d), h is then
//! the host buffer that it was, and the device's allocation reports the failure, as it would have in P.
//!
//! Two facts about P stop being facts of P': that a `__restrict__` host pointer is apart from what a call (a launch) touches, which the
//! inliner wrote down as `!noalias` of the calls; so that is taken away (`Editor::forget_call_scopes`). And that malloc's result is apart
//! from all else, which went with malloc.
//!
//! The module is left as LLVM's verifier wants it, with debug locations kept.

mod edit;
mod guard;
mod names;
mod r1_allocation;
mod r2_renaming;
mod r3_copies;
mod r4_deallocation;
#[cfg(test)]
mod tests;
mod waits;

use crate::analysis::program::{ObjectId, Program};
use crate::analysis::verdict::MergePlan;
use crate::ir::Module;
use crate::lower::{Allocation, Lowered};
use crate::mutants::{Mutant, off};
use edit::Editor;
use guard::Guard;
use names::Names;

/// What p is made of; the same choice as [`crate::analysis::Target`], with what the edits need of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `cudaMallocManaged`.
    Managed,
    /// What `echo-rt` decides at run time.
    Adaptive {
        /// θ_min in bytes: smaller buffers stay two.
        threshold: u64,
    },
}

/// Applies the plans of one function, which were made from its `lowered` program and for this target. The program is given back for
/// reports; the handles of instructions are gone, because some of the instructions are.
pub fn apply<'m>(module: Module<'m>, lowered: Lowered<'m>, plans: &[&MergePlan], target: Target) -> Program {
    let somewhere = lowered.origins.iter().flatten().next().copied();
    if let Some(mut editor) = somewhere.and_then(|instruction| Editor::new(module, instruction)) {
        // Waits after copies that stay come first: they are placed next to instructions that no plan removes.
        for plan in plans {
            r3_copies::wait_after_kept(&mut editor, &lowered, plan);
            waits::repair(&mut editor, &lowered, plan);
        }
        if target != Target::Managed {
            r3_copies::infer_directions(&mut editor, &lowered, plans);
        }
        for plan in plans {
            let (guard, names) = match target {
                Target::Managed => (Guard::Always, Names::new(&mut editor, &lowered, plan)),
                Target::Adaptive { .. } => {
                    let guard = Guard::WhereMerged(editor.null_variable("echo.pair"));
                    (guard, Names::of_guarded(&mut editor, &lowered, plan))
                }
            };
            r4_deallocation::apply(&mut editor, &lowered, plan, target, guard, &names);
            r3_copies::apply(&mut editor, &lowered, plan, guard);
            let merged = r1_allocation::apply(&mut editor, &lowered, plan, target, guard, &names);
            r2_renaming::apply(&mut editor, &lowered, plan, guard, &merged);
        }
        if !off(Mutant::R2ForgetScopes) {
            editor.forget_call_scopes();
        }
    }
    lowered.program
}

/// The allocation of an object.
fn allocation<'a, 'm>(lowered: &'a Lowered<'m>, object: ObjectId) -> &'a Allocation<'m> {
    &lowered.allocations[object.0 as usize]
}
