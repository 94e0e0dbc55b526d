//! R3: the copies between h and d go.
//!
//! A copy that the host had to wait for leaves a wait, whose result becomes the copy's, so that checks still see errors of kernels. A copy
//! that nothing depended on becomes cudaSuccess. No copy between the two names may stay: it would copy a buffer onto itself.
//!
//! A copy between p and a third buffer stays. Under `target=adaptive` p may be mapped host memory or system memory even where the copy's
//! direction says that the buffer is on the device, so the direction becomes `cudaMemcpyDefault`: the runtime looks at the addresses.

use super::edit::{Editor, Int};
use super::guard::Guard;
use super::waits;
use crate::analysis::program::{Event, ObjectId};
use crate::analysis::verdict::{MergePlan, SyncAction};
use crate::lower::Lowered;
use crate::mutants::{Mutant, off};

/// `cudaMemcpyDefault` of driver_types.h.
const MEMCPY_DEFAULT: u64 = 4;

pub(super) fn apply<'m>(editor: &mut Editor<'m>, lowered: &Lowered<'m>, plan: &MergePlan, guard: Guard<'m>) {
    for (node, action) in plan.copies() {
        let Some(copy) = lowered.instruction(*node) else { continue };
        let site = guard.open(editor, copy);
        let result = match action {
            SyncAction::Nothing => editor.int(Int::I32, 0),
            SyncAction::Wait(_) if off(Mutant::R3Wait) => editor.int(Int::I32, 0),
            SyncAction::Wait(scope) => waits::wait(editor, *scope, site.call),
        };
        site.close(editor, Some(result));
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

/// The direction of copies between merged buffers and others is what the addresses say.
pub(super) fn infer_directions<'m>(editor: &mut Editor<'m>, lowered: &Lowered<'m>, plans: &[&MergePlan]) {
    let merged = |object: ObjectId| plans.iter().any(|plan| plan.host() == object || plan.device() == object);
    for node in lowered.program.graph.node_indices() {
        let Event::Copy(copy) = &lowered.program.node(node).event else { continue };
        let stays = !plans.iter().any(|plan| plan.copies().iter().any(|(linking, _)| *linking == node));
        let touches = [&copy.dst, &copy.src].iter().any(|side| side.object.is_some_and(merged));
        if let (true, true, Some(call)) = (stays, touches && !off(Mutant::AdaptiveDirection), lowered.instruction(node))
            && let call = editor.current(call)
            && let Some(argument) = waits::direction(call)
        {
            let inferred = editor.int(Int::I32, MEMCPY_DEFAULT);
            editor.set_argument(call, argument, inferred);
        }
    }
}
