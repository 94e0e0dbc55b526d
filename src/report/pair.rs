//! From a verdict to a description of plain data: names, places and sentences, no ids.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::analysis::program::{Object, Program, Site, WaitScope};
use crate::analysis::verdict::{Decision, FreeAction, MergePlan, Reason, SyncAction, Verdict};

/// All that is said of one pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairReport {
    /// The function that both buffers are in.
    pub function: String,
    /// The host buffer.
    pub host: Buffer,
    /// The device buffer.
    pub device: Buffer,
    /// Size of each in bytes, where it is a constant.
    pub bytes: Option<u64>,
    /// What became of the pair.
    pub outcome: Outcome,
    /// The copies between the two.
    pub copies: Vec<Place>,
    /// Waits that stay where copies or frees were (merged pairs).
    pub waits: Vec<Wait>,
    /// What a reader should know of an accepted pair.
    pub notes: Vec<String>,
    /// The broken conditions (declined pairs).
    pub reasons: Vec<ReasonReport>,
}

/// What became of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is one buffer now.
    Merged,
    /// It was accepted, but `merge-limit` was reached before it.
    OverLimit,
    /// Some condition is broken.
    Declined,
}

/// One of the two buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// What a user calls it.
    pub name: String,
    /// Where it is allocated.
    pub site: Place,
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Path as the compiler knows it; empty without debug information.
    pub file: String,
    /// 1-based; 0 without debug information.
    pub line: u32,
    /// 1-based; 0 without debug information.
    pub column: u32,
}

/// A wait that stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Where.
    pub site: Place,
    /// What it waits for: `device`, `stream` or `event`.
    pub scope: String,
}

/// One broken condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonReport {
    /// Number of its page in the documentation (`ESR210`).
    pub number: String,
    /// Stable code (`S1-device-value-overwritten`).
    pub code: String,
    /// The sentence.
    pub message: String,
    /// What would help.
    pub help: String,
    /// The event that breaks it.
    pub at: Place,
    /// A path that shows it.
    pub witness: Vec<Step>,
    /// A wait that would make the pair acceptable.
    pub suggestion: Option<String>,
}

/// One step of a witness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Where.
    pub site: Place,
    /// A few words.
    pub text: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 { f.write_str("<no debug location>") } else { write!(f, "{}:{}", self.file, self.line) }
    }
}

impl From<&Site> for Place {
    fn from(site: &Site) -> Self {
        Self { file: site.file.clone(), line: site.line, column: site.column }
    }
}

impl PairReport {
    /// Describes a verdict of `program`. `applied`: an accepted pair was merged (else `merge-limit` kept it).
    #[must_use]
    pub fn new(program: &Program, verdict: &Verdict, applied: bool) -> Self {
        let (host, device) = (program.object(verdict.host), program.object(verdict.device));
        let mut report = Self {
            function: program.function.clone(),
            host: buffer(host),
            device: buffer(device),
            bytes: constant_size(host).or_else(|| constant_size(device)),
            outcome: Outcome::Declined,
            copies: verdict.copies.iter().map(Place::from).collect(),
            waits: Vec::new(),
            notes: verdict.notes.iter().map(ToString::to_string).collect(),
            reasons: Vec::new(),
        };
        match &verdict.decision {
            Decision::Accept(plan) => {
                report.outcome = if applied { Outcome::Merged } else { Outcome::OverLimit };
                report.waits = waits(program, plan);
            }
            Decision::Decline(reasons) => report.reasons = reasons.iter().map(reason_report).collect(),
        }
        report
    }
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

#[cfg(test)]
pub(super) mod samples {
    //! Descriptions that the tests of the forms share.
    use super::*;

    fn place(line: u32) -> Place {
        Place { file: "a.cu".to_owned(), line, column: 5 }
    }

    fn pair(outcome: Outcome) -> PairReport {
        PairReport {
            function: "main".to_owned(),
            host: Buffer { name: "h".to_owned(), site: place(3) },
            device: Buffer { name: "d".to_owned(), site: place(4) },
            bytes: None,
            outcome,
            copies: vec![place(7)],
            waits: Vec::new(),
            notes: Vec::new(),
            reasons: Vec::new(),
        }
    }

    pub(in super::super) fn merged() -> PairReport {
        PairReport {
            bytes: Some(4096),
            copies: vec![place(7), place(9)],
            waits: vec![Wait { site: place(9), scope: "device".to_owned() }],
            notes: vec!["right only on devices with concurrentManagedAccess".to_owned()],
            ..pair(Outcome::Merged)
        }
    }

    pub(in super::super) fn declined() -> PairReport {
        let reasons = vec![
            ReasonReport {
                number: "ESR210".to_owned(),
                code: "S1-device-value-overwritten".to_owned(),
                message: "`h` is written while `d` is needed".to_owned(),
                help: "write another buffer".to_owned(),
                at: place(8),
                witness: vec![
                    Step { site: place(8), text: "writes `h`".to_owned() },
                    Step { site: place(9), text: "kernel reads `d`".to_owned() },
                ],
                suggestion: None,
            },
            ReasonReport {
                number: "ESR220".to_owned(),
                code: "S2-kernel-pending".to_owned(),
                message: "a kernel may be running".to_owned(),
                help: "wait for the work".to_owned(),
                at: place(10),
                witness: Vec::new(),
                suggestion: Some("wait for the stream before a.cu:10".to_owned()),
            },
        ];
        PairReport { reasons, ..pair(Outcome::Declined) }
    }
}
