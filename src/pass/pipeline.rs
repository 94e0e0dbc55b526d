//! The pass `echo-sr` over one host module: lower → analyse → report → rewrite, function by function.
//!
//! A function is left before anything is computed where it makes no device buffer, so that other code costs a look at its calls. Where a
//! device buffer has no partner in its own function, callers are tried with it spliced in (`splice`), callers before callees, so that a pair
//! is decided where most is known: in `main`, if it is there.

use std::collections::{BTreeSet, HashSet};

use super::diagnostics::{self, RemarkKind};
use super::prepare;
use super::splice::{Refusal, Scratch, Splicer, apart};
use crate::analysis;
use crate::analysis::program::Space;
use crate::analysis::verdict::{Decision, MergePlan, Verdict};
use crate::effects::host;
use crate::ir::{Module, Value};
use crate::lower::{self, Lowered};
use crate::mutants::{Mutant, off};
use crate::options::Options;
use crate::report::pair::{Outcome, PairReport, describe, is_about_the_same};
use crate::report::remark;
use crate::rewrite;

/// Runs the pass; true if the module changed. `level` is the pipeline's speed level, -1 where the pass was named.
pub fn run(module: Module<'_>, level: i32, options: &Options) -> bool {
    let device = ["nvptx", "amdgcn"].iter().any(|target| module.triple().starts_with(target));
    if device || !prepare::calls_cuda(module) {
        return false;
    }
    let unmarked = prepare::forget_single_calls(module);
    if level == 0 {
        diagnostics::warning(
            module,
            "echo-sr: this unit is compiled without optimisation (-O0), so no buffers are merged; use -O1 or higher",
        );
        return unmarked;
    }
    let mut run = Run {
        module,
        options,
        unknown_kernels: None,
        merges_left: options.merge_limit,
        reports: Vec::new(),
        earlier: 0,
        refusals: BTreeSet::new(),
        told: HashSet::new(),
        tried: HashSet::new(),
    };
    let changed = run.functions();
    run.deliver();
    changed && !options.analyse_only || unmarked
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
    /// How many of them are not of the function that is told about just now.
    earlier: usize,
    /// What stayed a call that was to be spliced.
    refusals: BTreeSet<Refusal>,
    /// Functions that were told about as parts of others: what they are by themselves is no news.
    told: HashSet<Value<'m>>,
    /// Functions that others were tried with.
    tried: HashSet<Value<'m>>,
}

/// A function that makes device buffers, judged as it stands.
struct Alone<'m> {
    function: Value<'m>,
    lowered: Lowered<'m>,
    verdicts: Vec<Verdict>,
}

impl Alone<'_> {
    fn accepted(&self) -> usize {
        self.verdicts.iter().filter_map(accepted).count()
    }

    /// Does it make a device buffer that is in no accepted pair?
    fn is_lonely(&self) -> bool {
        let devices = self.lowered.program.objects.iter().filter(|object| object.space == Space::Device).count();
        self.accepted() < devices
    }
}

impl<'m> Run<'_, 'm> {
    /// Judges each function alone, then with callees spliced into it where that may help, and rewrites.
    fn functions(&mut self) -> bool {
        let effects = host::effects_or_reason(self.module).unwrap_or_else(|reason| {
            // A module without kernels has nothing to know of them.
            self.unknown_kernels = (!host::kernels_of_module(self.module).is_empty()).then(|| reason.to_string());
            Default::default()
        });
        let context = lower::Context::new(self.module, effects);
        let makers: Vec<_> = self
            .module
            .functions()
            .filter(|function| !function.is_declaration() && lower::has_device_allocation(*function))
            .collect();
        let mut alone: Vec<_> = makers.into_iter().filter_map(|function| self.judge(&context, function)).collect();
        let lonely: HashSet<_> = alone.iter().filter(|alone| alone.is_lonely()).map(|alone| alone.function).collect();
        let mut changed = false;
        let mut left_over = HashSet::new();
        let mut apart = Vec::new();
        if !lonely.is_empty() {
            let splicer = Splicer::new(&context);
            for function in splicer.candidates(&lonely) {
                if !left_over.contains(&function) && self.with_callees(&splicer, function, &mut alone) {
                    changed = true;
                    left_over = splicer.left_over();
                }
            }
            alone.retain(|alone| !left_over.contains(&alone.function));
            for alone in &alone {
                let reports = apart::reports(&splicer, alone.function, &alone.lowered, &alone.verdicts, &self.refusals);
                apart.extend(reports.into_iter().map(|(at, report)| (alone.function, at, report)));
            }
        }
        for alone in alone {
            changed |= self.settle(alone.function, alone.lowered, &alone.verdicts);
        }
        for (function, at, report) in apart {
            self.tell_apart(function, at, report);
        }
        changed
    }

    fn judge(&self, context: &lower::Context<'m>, function: Value<'m>) -> Option<Alone<'m>> {
        let lowered = lower::lower_function(context, function)?;
        let verdicts = analysis::analyse(&lowered.program, &self.options.analysis);
        Some(Alone { function, lowered, verdicts })
    }

    /// Tries a function with callees spliced into it, on a copy. If that merges more than the functions do alone, the same is done to the
    /// function itself, which is then no longer in `alone`.
    fn with_callees(&mut self, splicer: &Splicer<'_, 'm>, function: Value<'m>, alone: &mut Vec<Alone<'m>>) -> bool {
        let own = alone.iter().position(|alone| alone.function == function);
        if !splicer.has_something_hidden(function, own.map(|index| &alone[index].lowered)) {
            return false;
        }
        let Some(scratch) = Scratch::of(self.module, function) else { return false };
        let trial = splicer.grow(scratch.function(), function);
        self.refusals.extend(trial.refusals);
        let Some(lowered) = trial.lowered else { return false };
        let verdicts = analysis::analyse(&lowered.program, &self.options.analysis);
        let accepted_alone =
            |function: &Value<'m>| alone.iter().find(|alone| alone.function == *function).map_or(0, Alone::accepted);
        let before: usize = trial.spliced.iter().chain([&function]).map(accepted_alone).sum();
        let gained = verdicts.iter().filter_map(accepted).count() > before;
        let under_limit = self.merges_left.is_none_or(|left| left > before);
        if !(gained && under_limit) && !off(Mutant::SpliceGain) {
            self.earlier = self.reports.len();
            for verdict in verdicts.iter().filter(|verdict| gained || accepted(verdict).is_none()) {
                self.tell(function, &lowered, verdict, Outcome::OverLimit);
            }
            self.tried.extend(trial.spliced.into_iter().filter(|_| !verdicts.is_empty()));
            let declined = |verdicts: &[Verdict]| verdicts.len() - verdicts.iter().filter_map(accepted).count();
            if own.is_some_and(|index| declined(&alone[index].verdicts) <= declined(&verdicts)) {
                self.told.insert(function);
            }
            return false;
        }
        if self.options.analyse_only {
            self.told.extend(trial.spliced);
            if let Some(own) = own {
                alone.remove(own);
            }
            return self.settle(function, lowered, &verdicts);
        }
        drop(lowered);
        drop(scratch);
        let growth = splicer.grow(function, function);
        let Some(lowered) = growth.lowered else { return true };
        self.told.extend(growth.spliced);
        if let Some(own) = own {
            alone.remove(own);
        }
        let verdicts = analysis::analyse(&lowered.program, &self.options.analysis);
        self.settle(function, lowered, &verdicts);
        true
    }

    /// Reports the verdicts on a function and rewrites it; true if it changed.
    fn settle(&mut self, function: Value<'m>, lowered: Lowered<'m>, verdicts: &[Verdict]) -> bool {
        self.earlier = self.reports.len();
        let limited = self.over_limit(verdicts).then(|| {
            let options = analysis::Options { max_merges: self.merges_left, ..self.options.analysis };
            analysis::analyse(&lowered.program, &options)
        });
        let plans = self.decide(function, &lowered, verdicts, limited.as_deref().unwrap_or(verdicts));
        if plans.is_empty() || self.options.analyse_only {
            return false;
        }
        let program = rewrite::apply(self.module, lowered, &plans, self.target());
        self.verify(&program.function);
        true
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
        function: Value<'m>,
        lowered: &Lowered<'m>,
        verdicts: &[Verdict],
        limited: &'v [Verdict],
    ) -> Vec<&'v MergePlan> {
        let plans: Vec<_> = limited.iter().filter_map(accepted).collect();
        if let Some(left) = &mut self.merges_left {
            *left = left.saturating_sub(plans.len());
        }
        for (verdict, limited) in verdicts.iter().zip(limited) {
            // What the limit alone keeps apart is told as such; a pair that is merged has the waits of the limited decision.
            let (shown, outcome) = match accepted(limited) {
                Some(_) if self.options.analyse_only => (limited, Outcome::Mergeable),
                Some(_) => (limited, Outcome::Merged),
                None => (verdict, Outcome::OverLimit),
            };
            self.tell(function, lowered, shown, outcome);
        }
        plans
    }

    /// Describes a verdict on a function. `accepted`: what becomes of the pair if it is accepted.
    fn tell(&mut self, function: Value<'m>, lowered: &Lowered<'m>, verdict: &Verdict, accepted: Outcome) {
        let mut report = describe(&lowered.program, verdict, accepted);
        // A pair that was told with callees spliced in is not told again of a callee that stays in the file.
        let again = report.outcome == Outcome::Declined && self.told.contains(&function);
        if again || self.reports[..self.earlier].iter().any(|told| is_about_the_same(told, &report)) {
            return;
        }
        if report.outcome == Outcome::Declined {
            let unknown = self.unknown_kernels.as_ref();
            report.notes.extend(unknown.map(|reason| format!("what kernels do is not known: {reason}")));
            let named = |refusal: &&Refusal| {
                let name = format!("`{}`", refusal.callee);
                report.reasons.iter().any(|reason| reason.message.contains(&name))
            };
            let refused: Vec<_> = self.refusals.iter().filter(named).map(ToString::to_string).collect();
            report.notes.extend(refused);
        }
        let at = lowered.allocations.get(verdict.host.0 as usize).map(|allocation| allocation.call);
        self.publish(function, at, report);
    }

    /// A device buffer whose partner, if it has one, is in another function; `at` is an instruction that no merge removes.
    fn tell_apart(&mut self, function: Value<'m>, at: Value<'m>, report: PairReport) {
        let known = if report.device.site.line == 0 {
            self.tried.contains(&function)
        } else {
            self.reports.iter().any(|told| told.device.site == report.device.site)
        };
        if !known && !self.told.contains(&function) {
            self.publish(function, Some(at), report);
        }
    }

    /// Keeps a report, and gives its remark, at the allocation of the host buffer. (It is given before the rewrite, which cannot fail, because
    /// the rewrite replaces that instruction.)
    fn publish(&mut self, function: Value<'m>, at: Option<Value<'m>>, report: PairReport) {
        if let Some(at) = at {
            let remark = remark::of(&report);
            let kind = if remark.passed { RemarkKind::Passed } else { RemarkKind::Missed };
            let pieces: Vec<_> = remark.pieces.iter().map(|piece| (piece.key, piece.text.as_str())).collect();
            diagnostics::remark(function, at, kind, &remark.name, &pieces);
        }
        self.reports.push(report);
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
