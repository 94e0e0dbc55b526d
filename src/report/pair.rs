//! From a verdict to a description of plain data: names, places and sentences, no ids.

use crate::analysis::program::{Object, Program, Site, WaitScope};
use crate::analysis::verdict::{Decision, FreeAction, MergePlan, Reason, SyncAction, Verdict};

pub use echo_report::{Buffer, Outcome, PairReport, Place, ReasonReport, Step, Wait};

impl From<&Site> for Place {
    fn from(site: &Site) -> Self {
        Self { file: site.file.clone(), line: site.line, column: site.column }
    }
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
    copies
        .chain(frees)
        .chain(kept)
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
