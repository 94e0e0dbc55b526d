//! The pass `echo-sr` over one host module: lower → analyse → report → rewrite, function by function.
//!
//! A function is left before anything is computed where it makes no device buffer, so that other code costs a look at its calls.

use super::diagnostics::{self, RemarkKind};
use super::prepare;
use crate::analysis;
use crate::analysis::verdict::{Decision, MergePlan, Verdict};
use crate::effects::host;
use crate::ir::Module;
use crate::lower::{self, Lowered};
use crate::options::Options;
use crate::report::pair::{Outcome, PairReport, describe};
use crate::report::remark;
use crate::rewrite;

/// Runs the pass; true if the module changed. `level` is the pipeline's speed level, -1 where the pass was named.
pub fn run(module: Module<'_>, level: i32, options: &Options) -> bool {
    let device = ["nvptx", "amdgcn"].iter().any(|target| module.triple().starts_with(target));
    if device || !prepare::calls_cuda(module) {
        return false;
    }
    if level == 0 {
        diagnostics::warning(
            module,
            "echo-sr: this unit is compiled without optimisation (-O0), so no buffers are merged; use -O1 or higher",
        );
        return false;
    }
    let mut run = Run { module, options, unknown_kernels: None, merges_left: options.merge_limit, reports: Vec::new() };
    let changed = run.functions();
    run.deliver();
    changed
}

/// The pass on one module.
struct Run<'a, 'm> {
    module: Module<'m>,
    options: &'a Options,
    /// Why nothing is known of the module's kernels.
    unknown_kernels: Option<String>,
    /// What `merge-limit` leaves.
    merges_left: Option<usize>,
    reports: Vec<PairReport>,
}

impl Run<'_, '_> {
    fn functions(&mut self) -> bool {
        let effects = host::effects_or_reason(self.module).unwrap_or_else(|reason| {
            // A module without kernels has nothing to know of them.
            self.unknown_kernels = (!host::kernels_of_module(self.module).is_empty()).then(|| reason.to_string());
            Default::default()
        });
        let context = lower::Context::new(self.module, effects);
        let functions: Vec<_> = context.module.functions().filter(|function| !function.is_declaration()).collect();
        let mut changed = false;
        for function in functions {
            if !lower::has_device_allocation(function) {
                continue;
            }
            let Some(lowered) = lower::lower_function(&context, function) else { continue };
            let verdicts = analysis::analyse(&lowered.program, &self.options.analysis);
            let limited = self.over_limit(&verdicts).then(|| {
                let options = analysis::Options { max_merges: self.merges_left, ..self.options.analysis };
                analysis::analyse(&lowered.program, &options)
            });
            let plans = self.decide(&lowered, &verdicts, limited.as_deref().unwrap_or(&verdicts));
            if !plans.is_empty() && !self.options.analyse_only {
                let program = rewrite::apply(context.module, lowered, &plans, self.target());
                self.verify(&program.function);
                changed = true;
            }
        }
        changed
    }

    /// What the rewrite makes p of.
    fn target(&self) -> rewrite::Target {
        match self.options.analysis.target {
            analysis::Target::Managed => rewrite::Target::Managed,
            analysis::Target::Adaptive => rewrite::Target::Adaptive { threshold: self.options.analysis.theta_min },
        }
    }

    /// Whether more pairs are accepted than `merge-limit` leaves.
    fn over_limit(&self, verdicts: &[Verdict]) -> bool {
        let accepted = verdicts.iter().filter_map(accepted).count();
        self.merges_left.is_some_and(|left| left < accepted)
    }

    /// Describes each verdict, and gives the plans that are carried out: those of `limited`, which has the same pairs in the same order,
    /// decided under `merge-limit`.
    fn decide<'v>(
        &mut self,
        lowered: &Lowered<'_>,
        verdicts: &[Verdict],
        limited: &'v [Verdict],
    ) -> Vec<&'v MergePlan> {
        let plans: Vec<_> = limited.iter().filter_map(accepted).collect();
        if let Some(left) = &mut self.merges_left {
            *left = left.saturating_sub(plans.len());
        }
        for (verdict, limited) in verdicts.iter().zip(limited) {
            // What the limit alone keeps apart is told as such; a pair that is merged has the waits of the limited decision.
            let (verdict_shown, outcome) = match accepted(limited) {
                Some(_) if self.options.analyse_only => (limited, Outcome::Mergeable),
                Some(_) => (limited, Outcome::Merged),
                None => (verdict, Outcome::OverLimit),
            };
            let mut report = describe(&lowered.program, verdict_shown, outcome);
            if report.outcome == Outcome::Declined {
                let unknown = self.unknown_kernels.as_ref();
                report.notes.extend(unknown.map(|reason| format!("what kernels do is not known: {reason}")));
            }
            self.remark(lowered, verdict, &report);
            self.reports.push(report);
        }
        plans
    }

    /// The remark of a pair, at the allocation of its host buffer. (It is given before the rewrite, which cannot fail, because the
    /// rewrite replaces that instruction.)
    fn remark(&self, lowered: &Lowered<'_>, verdict: &Verdict, report: &PairReport) {
        let Some(allocation) = lowered.allocations.get(verdict.host.0 as usize) else { return };
        let remark = remark::of(report);
        let kind = if remark.passed { RemarkKind::Passed } else { RemarkKind::Missed };
        let pieces: Vec<_> = remark.pieces.iter().map(|piece| (piece.key, piece.text.as_str())).collect();
        diagnostics::remark(allocation.call, kind, &remark.name, &pieces);
    }

    /// In debug builds, an invalid module is an error here and not a crash later.
    fn verify(&self, function: &str) {
        if !cfg!(debug_assertions) {
            return;
        }
        if let Err(reason) = self.module.verify() {
            let text = format!("echo-sr: internal error: the rewrite of {function} is not valid: {reason}");
            diagnostics::error(self.module, &text);
        }
    }

    /// Gives the reports to whom they were asked for.
    fn deliver(&self) {
        if self.options.verbose {
            for report in &self.reports {
                eprint!("{report}");
            }
        }
        if let Some(path) = &self.options.report
            && let Err(reason) = echo_report::append(path, &self.reports)
        {
            let text = format!("echo-sr: the report can't be written to {}: {reason}", path.display());
            diagnostics::error(self.module, &text);
        }
    }
}

/// The plan of an accepted pair.
fn accepted(verdict: &Verdict) -> Option<&MergePlan> {
    match &verdict.decision {
        Decision::Accept(plan) => Some(plan),
        Decision::Decline(_) => None,
    }
}
