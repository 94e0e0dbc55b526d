//! R3: the copies between h and d go.
//!
//! A copy that the host had to wait for leaves a wait, whose result becomes the copy's, so that checks still see errors of kernels. A copy
//! that nothing depended on becomes cudaSuccess. No copy between the two names may stay: it would copy a buffer onto itself.

use super::edit::{Editor, Int};
use super::waits;
use crate::analysis::verdict::{MergePlan, SyncAction};
use crate::lower::Lowered;
use crate::mutants::{Mutant, off};

pub(super) fn apply<'m>(editor: &mut Editor<'m>, lowered: &Lowered<'m>, plan: &MergePlan) {
    for (node, action) in plan.copies() {
        let Some(copy) = lowered.instruction(*node) else { continue };
        let copy = editor.as_call(copy);
        editor.before(copy);
        let result = match action {
            SyncAction::Nothing => editor.int(Int::I32, 0),
            SyncAction::Wait(_) if off(Mutant::R3Wait) => editor.int(Int::I32, 0),
            SyncAction::Wait(scope) => waits::wait(editor, *scope, copy),
        };
        editor.replace(copy, result);
    }
}

/// Copies that stay waited because their host side was pageable; of p they may not, so a wait follows them.
pub(super) fn wait_after_kept<'m>(editor: &mut Editor<'m>, lowered: &Lowered<'m>, plan: &MergePlan) {
    for (node, scope) in plan.waits().iter().filter(|_| !off(Mutant::R3KeptWait)) {
        let Some(copy) = lowered.instruction(*node) else { continue };
        let copy = editor.as_call(copy);
        editor.after(copy);
        waits::wait(editor, *scope, copy);
    }
}
