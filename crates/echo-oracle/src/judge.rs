//! Runs P and P' in every world, on every machine, in every order, and compares.

use crate::case::{Case, Path, STREAMS, Step, is_host};
use crate::explore::{Trouble, explore};
use crate::machine::{MACHINES, Machine};
use crate::merged::merged;
use crate::original::original;
use crate::plan::Plan;
use crate::trace::Flaw;
use echo_sr::analysis::program::Stream;

/// What is wrong with P'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing orders two conflicting operations of these steps.
    Race(u8, u8),
    /// Some order of P' outputs what no order of P does.
    Output,
    /// The step touches or frees what is not alive.
    Dead(u8),
    /// P freed both halves, and p is never freed.
    Leak,
    /// The step touches p on the host, or makes it, while work may be running, and the plan says that this does not happen.
    Exclusive(u8),
}

/// Where it is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The world.
    pub path: Path,
    /// The reading of CUDA.
    pub machine: Machine,
    /// What is wrong.
    pub fault: Fault,
}

/// What was run.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// Runs (world and machine) in which P keeps the theorem's premises.
    pub inside: u64,
    /// Runs in which it does not: nothing can be said.
    pub outside: u64,
    /// Interleavings of P in the runs inside.
    pub interleavings: u128,
    /// Interleavings of P' in the runs inside.
    pub merged_interleavings: u128,
    /// States of both.
    pub states: u64,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// Runs P alone.
#[must_use]
pub fn premises(case: &Case) -> Judgement {
    run(case, None)
}

/// Runs P and P' and stops at the first difference.
#[must_use]
pub fn judge(case: &Case, plans: &[Plan]) -> Judgement {
    run(case, Some(plans))
}

fn run(case: &Case, plans: Option<&[Plan]>) -> Judgement {
    let mut judgement = Judgement::default();
    let paths = case.paths();
    for machine in machines(case) {
        for path in &paths {
            if let Some(fault) = compare(case, path, machine, plans, &mut judgement) {
                judgement.difference = Some(Difference { path: path.clone(), machine, fault });
                return judgement;
            }
        }
    }
    judgement
}

fn compare(
    case: &Case,
    path: &Path,
    machine: Machine,
    plans: Option<&[Plan]>,
    judgement: &mut Judgement,
) -> Option<Fault> {
    let trace = original(case, path, machine);
    let before = explore(&trace, true);
    judgement.states += before.states;
    if trace.fault.is_some() || before.trouble.is_some() {
        judgement.outside += 1;
        return None;
    }
    judgement.inside += 1;
    judgement.interleavings = judgement.interleavings.saturating_add(before.interleavings);
    let finals: Vec<u32> = trace.finals.iter().map(|(_, label)| *label).collect();
    let mut trace = merged(case, path, machine, plans?);
    if let Some((place, flaw)) = trace.fault {
        return Some(match flaw {
            Flaw::Missing => Fault::Dead(place),
            Flaw::Leak => Fault::Leak,
            Flaw::Exclusive => Fault::Exclusive(place),
        });
    }
    // Nobody looks at what P leaves unwritten, or not alive.
    let looked_at = |label: &u32| finals.contains(label) && !before.unwritten.contains(label);
    trace.finals.retain(|(_, label)| looked_at(label));
    let after = explore(&trace, false);
    judgement.states += after.states;
    judgement.merged_interleavings = judgement.merged_interleavings.saturating_add(after.interleavings);
    match after.trouble {
        Some(Trouble::Race(first, second)) => Some(Fault::Race(first, second)),
        Some(Trouble::Dead(place) | Trouble::Undefined(place)) => Some(Fault::Dead(place)),
        None => {
            let known = |output| before.outputs.binary_search(output).is_ok();
            (!after.outputs.iter().all(known)).then_some(Fault::Output)
        }
    }
}

/// The readings of CUDA that can differ for the case.
pub fn machines(case: &Case) -> impl Iterator<Item = Machine> {
    let mut streams = 0_u8;
    let mut may_wait = false;
    for step in &case.steps {
        match *step {
            Step::Launch { stream, .. } | Step::WaitStream(stream) | Step::Record(_, stream) => streams |= 1 << stream,
            Step::StreamWait(stream, _) => streams |= 1 << stream,
            Step::Memset { stream, .. } => {
                streams |= 1 << stream;
                may_wait = true;
            }
            Step::Copy { dst, src, stream, sync, .. } => {
                streams |= 1 << stream;
                let row = case.row(dst, src, sync);
                may_wait |= !row.after && (!is_host(dst) && !is_host(src) || case.pageable(dst) || case.pageable(src));
            }
            Step::Shifted { .. } => streams |= 1,
            _ => {}
        }
    }
    let uses = |kind: fn(Stream) -> bool| (0..STREAMS.len()).any(|s| streams & (1 << s) != 0 && kind(STREAMS[s]));
    let barrier = uses(|stream| stream == Stream::LegacyDefault)
        && uses(|stream| matches!(stream, Stream::Blocking | Stream::PerThreadDefault));
    MACHINES.into_iter().filter(move |machine| (!machine.wide_barrier || barrier) && (!machine.synchronous || may_wait))
}
