//! One program: what the prover says, and whether it is right.

use echo_sr::analysis::verdict::{Decision, Reason};
use echo_sr::analysis::{AccessMode, Options, Target, analyse};

use crate::case::{Case, Step};
use crate::count::{CAP, Counts, tally};
use crate::event;
use crate::judge::{Difference, judge, premises};
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

/// What p is to be made of, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Managed memory, where host and GPU may touch it at the same time.
    Concurrent,
    /// Managed memory, where they may not.
    Exclusive,
    /// What is decided at run time, for each pair.
    Adaptive,
    /// Managed memory where host and GPU may not touch it at the same time, with waits put in where only an order is missing.
    Repaired,
}

impl Wanted {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Concurrent, Self::Exclusive, Self::Adaptive, Self::Repaired];
}

impl Proof {
    /// The adaptive target may merge something: it differs from the managed one in what it makes of order alone.
    fn could_be_adaptive(&self) -> bool {
        !self.plans.is_empty() || self.only_order_missing()
    }

    /// Some pair is declined for nothing but order, or because of its rival.
    fn only_order_missing(&self) -> bool {
        let order = |code: &str| code.starts_with("S2") || code.starts_with("S5") || code == "CAND-better-partner";
        self.declined.iter().any(|(_, _, codes)| codes.iter().all(|code| order(code)))
    }
}

/// Asks the prover.
#[must_use]
pub fn prove(case: &Case, wanted: Wanted) -> Proof {
    let (program, nodes) = event::program(case);
    let (target, access) = match wanted {
        Wanted::Concurrent => (Target::Managed, AccessMode::Concurrent),
        Wanted::Exclusive | Wanted::Repaired => (Target::Managed, AccessMode::Exclusive),
        Wanted::Adaptive => (Target::Adaptive, AccessMode::Exclusive),
    };
    let options = Options { target, access, repair: wanted == Wanted::Repaired, theta_min: 0, max_merges: None };
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

/// Where the prover's plans are wrong.
#[must_use]
pub fn unsound(case: &Case, wanted: Wanted) -> Option<Unsound> {
    let plans = prove(case, wanted).plans;
    members(&plans, wanted).into_iter().find_map(|plans| {
        let difference = judge(case, &plans).difference?;
        Some(Unsound { case: case.clone(), plans, difference })
    })
}

/// The programs that P' may be: all pairs merged, or any of them where the run time decides.
fn members(plans: &[Plan], wanted: Wanted) -> Vec<Vec<Plan>> {
    if plans.is_empty() {
        return Vec::new();
    }
    let all = (1_u32 << plans.len()) - 1;
    let sets = if wanted == Wanted::Adaptive { 1..=all } else { all..=all };
    let of = |set: u32| -> Vec<Plan> {
        let member = |(index, plan): (usize, &Plan)| Plan { separate: set & (1 << index) == 0, ..plan.clone() };
        plans.iter().enumerate().map(member).collect()
    };
    sets.map(of).collect()
}

/// Everything about one program, added to the counts (but how many programs it stands for).
pub fn examine(case: &Case, counts: &mut Counts) -> Option<Unsound> {
    if !has_link(&case.steps) {
        counts.without_pair += 1;
        return None;
    }
    // Running P costs less than asking the prover.
    if premises(case).inside == 0 {
        counts.outside += 1;
        return None;
    }
    let proof = prove(case, Wanted::Concurrent);
    let mut found = None;
    if proof.could_be_adaptive() {
        let adaptive = prove(case, Wanted::Adaptive).plans;
        if adaptive.len() > 1 || adaptive != proof.plans {
            found = unsound(case, Wanted::Adaptive);
        }
    }
    if proof.plans.len() + proof.declined.len() > 1 {
        // Which pairs are chosen depends on what S5 allows.
        found = found.or_else(|| unsound(case, Wanted::Exclusive));
    }
    if proof.only_order_missing() || proof.plans.iter().any(|plan| !plan.exclusive) {
        // Where nothing but an order is missing, S5 included, a wait supplies it.
        let repaired = prove(case, Wanted::Repaired).plans.iter().any(|plan| !plan.repairs.is_empty());
        found = found.or_else(|| if repaired { unsound(case, Wanted::Repaired) } else { None });
    }
    if proof.plans.is_empty() {
        declined(case, &proof, counts);
    } else {
        let wrong = accepted(case, proof, counts);
        found = found.or(wrong);
    }
    counts.unsound += u128::from(found.is_some());
    found
}

fn accepted(case: &Case, proof: Proof, counts: &mut Counts) -> Option<Unsound> {
    let judgement = judge(case, &proof.plans);
    counts.states += u128::from(judgement.states);
    if let Some(difference) = judgement.difference {
        return Some(Unsound { case: case.clone(), plans: proof.plans, difference });
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
            && let [(_, _, codes)] = prove(case, Wanted::Exclusive).declined.as_slice()
        {
            tally(&mut counts.exclusive, codes);
        }
    }
    None
}

fn declined(case: &Case, proof: &Proof, counts: &mut Counts) {
    counts.declined += 1;
    if !known(case) {
        return;
    }
    for (host, device, codes) in &proof.declined {
        let Some(plan) = Plan::obvious(case, *host, *device) else { continue };
        let judgement = judge(case, &[plan]);
        counts.states += u128::from(judgement.states);
        // A program that some input breaks need not be merged for the others' sake.
        if judgement.difference.is_none() && judgement.outside == 0 {
            counts.declined_safe += 1;
            tally(&mut counts.reasons, codes);
            break;
        }
    }
}

/// The prover was told all that is true of the program, so if it is safe the prover could know.
fn known(case: &Case) -> bool {
    let vague = |step: &Step| match step {
        Step::Host(touches) | Step::Launch { touches, .. } => touches.iter().flatten().any(|touch| touch.vague),
        _ => false,
    };
    case.vague_streams == 0 && !case.outside && !case.steps.iter().any(vague)
}
