//! A panic of Echo's never reaches the program: C cannot unwind, and an abort would end a program that did nothing wrong.
//!
//! Around what could panic by a mistake: the engine, the walk of the stack, the writer. After a panic the library is off, and the program goes
//! on with real calls; but merged blocks that it has stay what they are to the end, since a real cudaFree would end both of their views.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::phase::Phase;
use crate::session::{self, Session};
use crate::{recorder, say};

/// The result of `f`, or `otherwise` if it panics.
#[inline]
pub(crate) fn contain<T>(otherwise: T, f: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result,
        Err(_) => {
            off();
            otherwise
        }
    }
}

#[cold]
fn off() {
    static SAY: say::Once = say::Once::new();
    give_up();
    SAY.say("an internal error, told above; Echo is off and the program goes on without");
}

/// Observes and merges nothing more. Allocates nothing.
pub(crate) fn give_up() {
    match session::get() {
        Some(Session::Merge(merge)) => merge.unifier().stop(),
        _ => {
            // A trace that misses calls is no basis for a merge.
            recorder::lose();
            Phase::Off.enter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_the_other_result() {
        assert_eq!(contain(1, || 2), 2);
        // The phase is the process's: nothing else in this test program reads it as live.
        assert_eq!(contain(1, || -> i32 { panic!("on purpose") }), 1);
        assert_eq!(Phase::now(), Phase::Off);
    }
}
