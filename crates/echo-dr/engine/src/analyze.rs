//! From a trace to a plan.

use echo_dr_format::plan::Plan;
use echo_dr_format::trace::Trace;

/// What the analysis asks of a pair.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// θ_min in bytes; the trace's own if that is larger.
    pub threshold: u64,
    /// k_min: how many copies at the dominant site.
    pub recurrences: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { threshold: DEFAULT_THRESHOLD, recurrences: 2 }
    }
}

/// θ_min where the user says nothing: copies of smaller buffers cost too little to matter.
pub const DEFAULT_THRESHOLD: u64 = 200_000;

/// The plan for the program of a trace: its pairs as candidates, everything else with its reasons.
#[must_use]
pub fn analyze(trace: &Trace, options: Options) -> Plan {
    let threshold = options.threshold.max(trace.header.threshold);
    Plan {
        context: trace.header.context.clone(),
        threshold,
        loop_site: None,
        pairs: Vec::new(),
        ineligible: Vec::new(),
        notes: Vec::new(),
        together: None,
    }
}

/// Why a validation run says nothing about a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the validation run was of another program, argument list or machine than the plan")]
pub struct OtherRun;

/// Puts what a validation run saw into the plan: candidates become validated or rejected.
///
/// # Errors
/// If the run was not of the plan's context.
pub fn judge(plan: &mut Plan, validation: &Trace) -> Result<(), OtherRun> {
    plan.context.process.admits(&validation.header.context.process).map_err(|_| OtherRun)
}
