//! From a verdict to a description of plain data: names, places and sentences, no ids.

use crate::analysis::program::{Object, ObjectId, Program, Site, WaitScope};
use crate::analysis::verdict::{Decision, FreeAction, MergePlan, Reason, SyncAction, Verdict};

pub use echo_report::{Buffer, Outcome, PairReport, Place, ReasonReport, Step, Wait};

impl From<&Site> for Place {
    fn from(site: &Site) -> Self {
        Self { file: site.file.clone(), line: site.line, column: site.column }
    }
}

/// Describes a device buffer whose partner is not in its function. `host`: what the other side of its copies is called there, if it is known.
#[must_use]
pub fn without_partner(
    program: &Program,
    host: String,
    device: ObjectId,
    copies: &[Site],
    reason: &Reason,
) -> PairReport {
    let device = program.object(device);
    PairReport {
        function: program.function.clone(),
        host: Buffer { name: host, site: (&reason.at).into() },
        device: buffer(device),
        bytes: constant_size(device),
        outcome: Outcome::Declined,
        copies: copies.iter().map(Place::from).collect(),
        saved_per_iteration: None,
        waits: Vec::new(),
        notes: Vec::new(),
        reasons: vec![reason_report(reason)],
    }
}

/// Are both of the same two allocations in the source? (Without debug information that is not known.)
#[must_use]
pub fn is_about_the_same(one: &PairReport, other: &PairReport) -> bool {
    let known = one.host.site.line != 0 && one.device.site.line != 0;
    known && one.host == other.host && one.device == other.device
}

/// Describes a verdict of `program`. `accepted`: what became of the pair if the verdict accepts it.
#[must_use]
pub fn describe(program: &Program, verdict: &Verdict, accepted: Outcome) -> PairReport {
    let (host, device) = (program.object(verdict.host), program.object(verdict.device));
    let mut report = PairReport {
        function: program.function.clone(),
        host: buffer(host),
        device: buffer(device),
        bytes: constant_size(host).or_else(|| constant_size(device)),
        outcome: Outcome::Declined,
        copies: verdict.copies.iter().map(Place::from).collect(),
        saved_per_iteration: verdict.saved_per_iteration,
        waits: Vec::new(),
        notes: verdict.notes.iter().map(ToString::to_string).collect(),
        reasons: Vec::new(),
    };
    match &verdict.decision {
        Decision::Accept(plan) => {
            report.outcome = accepted;
            report.waits = waits(program, plan);
        }
        Decision::Decline(reasons) => report.reasons = reasons.iter().map(reason_report).collect(),
    }
    report
}

fn buffer(object: &Object) -> Buffer {
    Buffer { name: object.name.clone(), site: (&object.site).into() }
}

fn constant_size(object: &Object) -> Option<u64> {
    u64::try_from(object.size.as_ref()?.as_constant()?).ok()
}

fn waits(program: &Program, plan: &MergePlan) -> Vec<Wait> {
    let copies = plan.copies().iter().filter_map(|(node, action)| match action {
        SyncAction::Nothing => None,
        SyncAction::Wait(scope) => Some((*node, *scope)),
    });
    let frees = plan.frees().iter().filter_map(|(node, action)| match action {
        FreeAction::Drop { wait } | FreeAction::Release { wait } | FreeAction::Count { wait } => {
            Some((*node, (*wait)?))
        }
    });
    let kept = plan.waits().iter().copied();
    let repairs = plan.repairs().iter().map(|(node, _)| (*node, WaitScope::Device));
    copies
        .chain(frees)
        .chain(kept)
        .chain(repairs)
        .map(|(node, scope)| Wait { site: (&program.node(node).site).into(), scope: scope_name(scope).to_owned() })
        .collect()
}

fn scope_name(scope: WaitScope) -> &'static str {
    match scope {
        WaitScope::Device => "device",
        WaitScope::Stream(_) => "stream",
        WaitScope::Event(_) => "event",
    }
}

fn reason_report(reason: &Reason) -> ReasonReport {
    ReasonReport {
        number: reason.decline.number().to_owned(),
        code: reason.decline.code().to_owned(),
        message: reason.decline.to_string(),
        help: reason.decline.help().to_owned(),
        at: (&reason.at).into(),
        witness: reason.witness.iter().map(|(site, text)| Step { site: site.into(), text: text.clone() }).collect(),
        suggestion: reason.suggestion.clone(),
    }
}
