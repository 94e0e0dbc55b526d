//! One program: what the prover says, and whether it is right.

use echo_sr::analysis::verdict::{Decision, Reason};
use echo_sr::analysis::{AccessMode, Options, Target, analyse};

use crate::case::{Case, Step};
use crate::count::{CAP, Counts, tally};
use crate::event;
use crate::judge::{Difference, judge};
use crate::original::could_link;
use crate::plan::Plan;

/// A program that the prover got wrong.
#[derive(Clone, Debug)]
pub struct Unsound {
    /// The program.
    pub case: Case,
    /// What the prover planned.
    pub plans: Vec<Plan>,
    /// What happens.
    pub difference: Difference,
}

/// What the prover says of a program.
pub struct Proof {
    /// Plans of the pairs that are merged.
    pub plans: Vec<Plan>,
    /// Host and device buffer of each pair that is not, and the codes against it.
    pub declined: Vec<(u8, u8, Vec<&'static str>)>,
}

/// Asks the prover.
#[must_use]
pub fn prove(case: &Case, access: AccessMode) -> Proof {
    let (program, nodes) = event::program(case);
    let options = Options { target: Target::Managed, access, repair: false, theta_min: 0, max_merges: None };
    let mut proof = Proof { plans: Vec::new(), declined: Vec::new() };
    for verdict in analyse(&program, &options) {
        match &verdict.decision {
            Decision::Accept(plan) => proof.plans.push(Plan::of(plan, &nodes)),
            Decision::Decline(reasons) => {
                proof.declined.push((verdict.host.0 as u8, verdict.device.0 as u8, codes(reasons)));
            }
        }
    }
    proof
}

fn codes(reasons: &[Reason]) -> Vec<&'static str> {
    let mut codes: Vec<&str> = reasons.iter().map(|reason| reason.decline.code()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Whether the program has a pair at all.
#[must_use]
pub fn has_link(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(*step, Step::Copy { dst, src, .. } if could_link(dst, src)))
}

/// The prover's plans are wrong.
#[must_use]
pub fn unsound(case: &Case, access: AccessMode) -> Option<Unsound> {
    let plans = prove(case, access).plans;
    if plans.is_empty() {
        return None;
    }
    let difference = judge(case, &plans).difference?;
    Some(Unsound { case: case.clone(), plans, difference })
}

/// Everything about one program, added to the counts (but how many programs it stands for).
pub fn examine(case: &Case, counts: &mut Counts) -> Option<Unsound> {
    if !has_link(&case.steps) {
        counts.without_pair += 1;
        return None;
    }
    let proof = prove(case, AccessMode::Concurrent);
    let found = if proof.plans.is_empty() { declined(case, &proof, counts) } else { accepted(case, proof, counts) };
    if found.is_none() && case.steps.iter().any(|step| matches!(step, Step::Alloc(buffer) if *buffer > 3)) {
        // With two pairs, which ones are chosen depends on what S5 allows.
        let found = unsound(case, AccessMode::Exclusive);
        counts.unsound += u128::from(found.is_some());
        return found;
    }
    found
}

fn accepted(case: &Case, proof: Proof, counts: &mut Counts) -> Option<Unsound> {
    let judgement = judge(case, &proof.plans);
    counts.states += u128::from(judgement.states);
    if let Some(difference) = judgement.difference {
        counts.unsound += 1;
        return Some(Unsound { case: case.clone(), plans: proof.plans, difference });
    }
    if judgement.inside == 0 {
        counts.outside += 1;
        return None;
    }
    counts.accepted += 1;
    counts.runs += u128::from(judgement.inside);
    counts.interleavings += judgement.interleavings;
    counts.merged_interleavings += judgement.merged_interleavings;
    counts.capped += (judgement.interleavings + judgement.merged_interleavings).min(CAP);
    if known(case)
        && let [plan] = proof.plans.as_slice()
        && !plan.exclusive
    {
        let claimed = Plan { exclusive: true, ..plan.clone() };
        if judge(case, &[claimed]).difference.is_none()
            && let [(_, _, codes)] = prove(case, AccessMode::Exclusive).declined.as_slice()
        {
            tally(&mut counts.exclusive, codes);
        }
    }
    None
}

fn declined(case: &Case, proof: &Proof, counts: &mut Counts) -> Option<Unsound> {
    let mut inside = false;
    for (host, device, codes) in &proof.declined {
        let Some(plan) = Plan::obvious(case, *host, *device) else { continue };
        let judgement = judge(case, &[plan]);
        counts.states += u128::from(judgement.states);
        inside |= judgement.inside > 0;
        if judgement.inside > 0 && judgement.difference.is_none() && known(case) {
            counts.declined_safe += 1;
            tally(&mut counts.reasons, codes);
            break;
        }
    }
    if inside {
        counts.declined += 1;
    } else {
        counts.outside += 1;
    }
    None
}

/// The prover was told all that is true of the program, so if it is safe the prover could know.
fn known(case: &Case) -> bool {
    let vague = |step: &Step| match step {
        Step::Host(touches) | Step::Launch { touches, .. } => touches.iter().flatten().any(|touch| touch.vague),
        _ => false,
    };
    case.vague_streams == 0 && !case.outside && !case.steps.iter().any(vague)
}
