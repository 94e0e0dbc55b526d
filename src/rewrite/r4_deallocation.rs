//! R4: of the frees of h and d, the plan says which one releases p; the others go.
//!
//! The pointer that a free was given is p, so releasing is `cudaFree` (`echo_rt_release` where the runtime made p) of the same value (of
//! null it does nothing, as free did). A free
//! that goes leaves the wait that the plan says, for a cudaFree waited.

use super::edit::{Editor, Int};
use super::guard::Guard;
use super::{Target, waits};
use crate::analysis::verdict::{FreeAction, MergePlan};
use crate::lower::Lowered;

pub(super) fn apply<'m>(
    editor: &mut Editor<'m>,
    lowered: &Lowered<'m>,
    plan: &MergePlan,
    target: Target,
    guard: Guard<'m>,
) {
    for (node, action) in plan.frees() {
        let Some(free) = lowered.instruction(*node) else { continue };
        let Some(pointer) = free.argument(0) else { continue };
        let site = guard.open(editor, free);
        let (wait, releases) = match action {
            FreeAction::Drop { wait } => (*wait, false),
            FreeAction::Release { wait } => (*wait, true),
        };
        let waited = wait.map(|scope| waits::wait(editor, scope, site.call));
        let release = match target {
            Target::Managed => "cudaFree",
            Target::Adaptive { .. } => "echo_rt_release",
        };
        let released = releases.then(|| editor.cuda(release, &[pointer]));
        // free and operator delete have no result.
        let has_result = site.call.ty().int_width().is_some();
        let result = has_result.then(|| released.or(waited).unwrap_or_else(|| editor.int(Int::I32, 0)));
        site.close(editor, result);
    }
}
