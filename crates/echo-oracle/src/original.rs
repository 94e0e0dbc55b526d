//! The trace of P on a path.

use crate::build::{Build, CopyCall};
use crate::case::{Buffer, Case, D, D2, H, H2, HostKind, Path, Step, is_host};
use crate::machine::Machine;
use crate::trace::Trace;

/// P on a path.
#[must_use]
pub fn original(case: &Case, path: &Path, machine: Machine) -> Trace {
    let mut build = Build::new(case, machine);
    for visit in &path.visits {
        let (place, step) = (visit.step, &case.steps[usize::from(visit.step)]);
        match *step {
            Step::Alloc(buffer) => {
                let instance = build.begin(place);
                build.pointers[usize::from(buffer)] = Some(instance);
                if is_host(buffer) && case.host == HostKind::Calloc {
                    build.zero(place, instance);
                }
            }
            Step::Free(buffer) => build.free(place, buffer),
            Step::FreeUnlessNull(buffer) => build.free_unless_null(place, buffer),
            Step::Reset => build.reset(place, |_| false),
            _ => match CopyCall::of(step, could_link) {
                Some((stream, call)) => build.copy(place, stream, &call),
                None => build.common(*visit, step),
            },
        }
    }
    build.done(path)
}

/// The two could be a pair: a copy between them may move what was never written.
#[must_use]
pub fn could_link(one: Buffer, other: Buffer) -> bool {
    let pair = |host, device| matches!((host, device), (H | H2, D | D2));
    pair(one, other) || pair(other, one)
}
