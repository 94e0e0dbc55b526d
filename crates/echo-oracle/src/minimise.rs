//! Makes a counterexample small: whatever can be left out or made simpler while the prover is still wrong, is.

use crate::case::{Case, HostKind, Region, Step, Touch};
use crate::examine::{Unsound, Wanted, unsound};

/// A smallest program, in the sense that no single change below makes it smaller, that the prover gets wrong.
#[must_use]
pub fn minimise(found: Unsound) -> Unsound {
    let mut best = found;
    while let Some(smaller) = simpler(&best.case).into_iter().find_map(|case| wrong(&case)) {
        best = smaller;
    }
    best
}

fn wrong(case: &Case) -> Option<Unsound> {
    Wanted::ALL.into_iter().find_map(|wanted| unsound(case, wanted))
}

/// Every change that makes the case a little simpler.
fn simpler(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let mut change = |edit: &dyn Fn(&mut Case)| {
        let mut changed = case.clone();
        edit(&mut changed);
        if changed != *case {
            all.push(changed);
        }
    };
    for index in 0..case.regions.len() {
        change(&|case| {
            case.regions.remove(index);
        });
    }
    for place in 0..case.steps.len() {
        change(&|case| without(case, place as u8));
    }
    change(&|case| case.outside = false);
    change(&|case| case.vague_streams = 0);
    change(&|case| case.host = HostKind::Malloc);
    for place in 0..case.steps.len() {
        for simple in simpler_steps(&case.steps[place]) {
            change(&|case| case.steps[place] = simple);
        }
    }
    all
}

fn without(case: &mut Case, place: u8) {
    case.steps.remove(usize::from(place));
    let moved = |region: &Region| {
        let first = region.first - u8::from(place < region.first);
        let last = region.last.checked_sub(u8::from(place <= region.last))?;
        (first <= last && usize::from(last) < case.steps.len()).then_some(Region { first, last, ..*region })
    };
    case.regions = case.regions.iter().filter_map(moved).collect();
}

fn simpler_steps(step: &Step) -> Vec<Step> {
    let fewer = |touches: &[Option<Touch>; 2]| match touches {
        [Some(first), Some(second)] => vec![[Some(*first), None], [Some(*second), None]],
        [Some(one), None] if one.may || one.vague => vec![[Some(Touch { may: false, vague: false, ..*one }), None]],
        _ => Vec::new(),
    };
    match *step {
        Step::FreeUnlessNull(buffer) => vec![Step::Free(buffer)],
        Step::Host(touches) => fewer(&touches).into_iter().map(Step::Host).collect(),
        Step::Launch { stream, touches, keeps, uses_kept } => {
            let with = |touches| Step::Launch { stream, touches, keeps, uses_kept };
            let mut all: Vec<Step> = fewer(&touches).into_iter().map(with).collect();
            if keeps || uses_kept {
                all.push(Step::Launch { stream, touches, keeps: false, uses_kept: false });
            }
            all
        }
        _ => Vec::new(),
    }
}
