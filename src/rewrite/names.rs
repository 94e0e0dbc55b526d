//! What P' keeps account of while it runs, in variables of one pair (S4): how many names p has, and the host buffer of its own that P'
//! falls back to.
//!
//! *Names.* Where the plan counts, a number goes to one where p is made, up by one at the other allocation, and down by one at each free of a
//! pointer that is not null. p is released where it gets to zero. It starts at zero: a free that comes before any allocation is given null.
//!
//! *The own buffer.* Where the plan keeps the host buffer, its allocation stays: of one byte if p was made, and of all bytes if not. So h is p
//! or the own buffer, and what freed h frees the own buffer. Its address tells at a free which of the two h is.

use super::allocation;
use super::edit::{Editor, Int};
use crate::analysis::verdict::MergePlan;
use crate::ir::Value;
use crate::lower::Lowered;
use crate::mutants::{Mutant, off};

/// The variables of one pair.
#[derive(Clone, Copy, Default)]
pub(super) struct Names<'m> {
    /// How many names p has.
    count: Option<Value<'m>>,
    /// The pointer of the host buffer that stays.
    pub(super) own: Option<Value<'m>>,
}

impl<'m> Names<'m> {
    /// Makes the variables that the plan needs, and counts at both allocations.
    pub(super) fn new(editor: &mut Editor<'m>, lowered: &Lowered<'m>, plan: &MergePlan) -> Self {
        let own = plan.keeps_host().then(|| editor.variable("echo.host"));
        Self { own, ..Self::of_guarded(editor, lowered, plan) }
    }

    /// The same where each call keeps its own way: there h is the program's own buffer where p cannot be made.
    pub(super) fn of_guarded(editor: &mut Editor<'m>, lowered: &Lowered<'m>, plan: &MergePlan) -> Self {
        if !plan.counted() {
            return Self::default();
        }
        let count = editor.counter("echo.names");
        for object in [plan.host(), plan.device()] {
            let call = allocation(lowered, object).call;
            editor.before(call);
            let one = editor.int(Int::I64, 1);
            let names = if lowered.instruction(plan.creates()) == Some(call) || off(Mutant::R4CountsBoth) {
                one
            } else {
                let names = editor.load_count(count);
                editor.add(names, one)
            };
            editor.store(names, count);
        }
        Self { count: Some(count), own: None }
    }

    /// One name less, if the pointer is one: gives p where it is to be released, else null.
    pub(super) fn release(&self, editor: &mut Editor<'m>, pointer: Value<'m>) -> Value<'m> {
        let null = editor.null();
        let Some(count) = self.count else { return pointer };
        let (names, minus_one, zero) =
            (editor.load_count(count), editor.int(Int::I64, u64::MAX), editor.int(Int::I64, 0));
        let (fewer, is_null) = (editor.add(names, minus_one), editor.equal(pointer, null));
        let left = if off(Mutant::R4NullIsNoName) { fewer } else { editor.select(is_null, names, fewer) };
        editor.store(left, count);
        let last = editor.equal(left, zero);
        editor.select(last, pointer, null)
    }
}
