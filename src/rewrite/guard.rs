//! Where the runtime decides whether a buffer is merged (`target=adaptive`), each call of the pair has two ways: what the plan makes of it
//! if p exists, and the call as P had it if not.
//!
//! ```text
//! %p = load ptr, ptr %echo.pair          ; null until `echo_rt_create` gave a merged buffer
//! br i1 (%p != null), %merged, %own
//! own:    %r = call i32 @cudaMemcpy(...)  ; P's call, untouched
//! merged: %w = call i32 @cudaStreamSynchronize(...)
//! join:   phi i32 [ %r, %own ], [ %w, %merged ]
//! ```
//!
//! So h and d stay two values, which are equal where p exists, and a pair that is not merged costs a load and a branch a call.

use super::edit::Editor;
use crate::ir::Value;

/// Whether a pair's edits hold always or only where p exists.
#[derive(Clone, Copy)]
pub(super) enum Guard<'m> {
    /// The pair is merged.
    Always,
    /// The pair is merged where this variable holds a pointer; it holds p then.
    WhereMerged(Value<'m>),
}

/// A call that is being replaced. New instructions stand for it until [`Site::close`].
pub(super) struct Site<'m> {
    /// The call, still there: its arguments can be used.
    pub(super) call: Value<'m>,
    /// The end of the way on which p exists.
    end: Option<Value<'m>>,
}

impl<'m> Guard<'m> {
    /// Begins the replacement of `instruction`, a call or an invoke.
    pub(super) fn open(self, editor: &mut Editor<'m>, instruction: Value<'m>) -> Site<'m> {
        match self {
            Self::Always => {
                let call = editor.as_call(instruction);
                editor.before(call);
                Site { call, end: None }
            }
            Self::WhereMerged(variable) => {
                let call = editor.current(instruction);
                editor.before(call);
                let pointer = editor.load(variable, "echo.pair.pointer");
                let merged = editor.not_null(pointer);
                let end = editor.guard(call, merged);
                Site { call, end: Some(end) }
            }
        }
    }
}

impl<'m> Site<'m> {
    /// Ends the replacement: `result` is what the call's users see; `None` where the call has no result.
    pub(super) fn close(self, editor: &mut Editor<'m>, result: Option<Value<'m>>) {
        match (self.end, result) {
            (None, Some(result)) => editor.replace(self.call, result),
            (None, None) => editor.erase(self.call),
            (Some(end), Some(result)) => editor.join(self.call, end, result),
            (Some(_), None) => {}
        }
    }
}
