//! R4: of the frees of h and d, the plan says which one releases p; the others go.
//!
//! The pointer that a free was given is p, so releasing is `cudaFree` (`echo_rt_release` where the runtime made p) of the same value (of
//! null it does nothing, as free did). A free that goes leaves the wait that the plan says, for a cudaFree waited. Where h has kept a buffer
//! of its own (`names`), its free stays and is given that one, and p is released only if h is not it.

use super::edit::{Editor, Int};
use super::guard::Guard;
use super::names::Names;
use super::{Target, waits};
use crate::analysis::program::Event;
use crate::analysis::verdict::{FreeAction, MergePlan};
use crate::ir::Value;
use crate::lower::Lowered;
use crate::mutants::{Mutant, off};

pub(super) fn apply<'m>(
    editor: &mut Editor<'m>,
    lowered: &Lowered<'m>,
    plan: &MergePlan,
    target: Target,
    guard: Guard<'m>,
    names: &Names<'m>,
) {
    for (node, action) in plan.frees() {
        let Some(free) = lowered.instruction(*node) else { continue };
        let Some(pointer) = free.argument(0) else { continue };
        let site = guard.open(editor, free);
        let (wait, releases) = match action {
            FreeAction::Drop { wait } => (*wait, false),
            FreeAction::Release { wait } | FreeAction::Count { wait } => (*wait, true),
        };
        let waited = wait.filter(|_| !off(Mutant::R4Wait)).map(|scope| waits::wait(editor, scope, site.call));
        let mut released = (releases && !off(Mutant::R4Release)).then(|| names.release(editor, pointer));
        let of_host = matches!(lowered.program.node(*node).event, Event::Free { object, .. } if object == plan.host());
        if let (true, Some(own)) = (of_host && !off(Mutant::R4OwnBuffer), names.own) {
            let is_own = free_own(editor, own, site.call, pointer);
            let null = editor.null();
            released = released.map(|p| editor.select(is_own, null, p));
        }
        let release = match target {
            Target::Managed => "cudaFree",
            Target::Adaptive { .. } => "echo_rt_release",
        };
        let released = released.map(|p| editor.cuda(release, &[p]));
        // free and operator delete have no result.
        let has_result = site.call.ty().int_width().is_some();
        let result = has_result.then(|| released.or(waited).unwrap_or_else(|| editor.int(Int::I32, 0)));
        site.close(editor, result);
    }
}

/// Frees the host buffer that was kept; says whether h is that buffer. Of null nothing is freed.
fn free_own<'m>(editor: &mut Editor<'m>, own: Value<'m>, free: Value<'m>, pointer: Value<'m>) -> Value<'m> {
    let own = editor.load(own, "echo.host.pointer");
    let (is_own, null) = (editor.equal(pointer, own), editor.null());
    let is_null = editor.equal(pointer, null);
    let freed = editor.select(is_null, null, own);
    let mut arguments = vec![(0, freed)];
    // `operator delete(void *, size_t, …)` is told the size: one byte, if p was made.
    let sized = free
        .called_function()
        .is_some_and(|callee| ["_ZdlPvm", "_ZdaPvm"].iter().any(|name| callee.name().starts_with(name)));
    if let Some(size) = free.argument(1).filter(|_| sized) {
        let one = editor.int(Int::I64, 1);
        arguments.push((1, editor.select(is_own, size, one)));
    }
    editor.call_again(free, &arguments);
    is_own
}
