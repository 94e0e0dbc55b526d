//! R4: of the frees of h and d, the plan says which one releases p; the others go.
//!
//! The pointer that a free was given is p, so releasing is `cudaFree` of the same value (of null it does nothing, as free did). A free
//! that goes leaves the wait that the plan says, for a cudaFree waited.

use super::edit::{Editor, Int};
use super::waits;
use crate::analysis::verdict::{FreeAction, MergePlan};
use crate::lower::Lowered;
use crate::mutants::{Mutant, off};

pub(super) fn apply<'m>(editor: &mut Editor<'m>, lowered: &Lowered<'m>, plan: &MergePlan) {
    for (node, action) in plan.frees() {
        let Some(free) = lowered.instruction(*node) else { continue };
        let free = editor.as_call(free);
        let Some(pointer) = free.argument(0) else { continue };
        editor.before(free);
        let (wait, releases) = match action {
            FreeAction::Drop { wait } => (*wait, false),
            FreeAction::Release { wait } => (*wait, true),
        };
        let waited = wait.filter(|_| !off(Mutant::R4Wait)).map(|scope| waits::wait(editor, scope, free));
        let released = (releases && !off(Mutant::R4Release)).then(|| editor.cuda("cudaFree", &[pointer]));
        if free.ty().int_width().is_none() {
            // free, operator delete: no result.
            editor.erase(free);
        } else {
            let result = released.or(waited).unwrap_or_else(|| editor.int(Int::I32, 0));
            editor.replace(free, result);
        }
    }
}
