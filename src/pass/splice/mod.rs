//! Callees spliced into their callers: pairs that cross functions.
//!
//! `main` allocates and fills `h` and calls `solve(h, n)`, which makes `d`, copies, launches and frees: no function holds both buffers until
//! `solve` stands in the place of its call. LLVM's inliner goes by speed and leaves such functions apart. So, where a function or what it
//! calls makes a device buffer that has no partner yet, a copy of the function is made on trial (`edit::Scratch`), the callees that hide
//! something of a buffer are put into it, and the analysis looks at that. If it merges pairs that the functions alone do not, the same is done
//! to the function itself, and the rewrite follows; else the copy goes, and the module is what it was. (The decision and the order of work are
//! in `pipeline`.)
//!
//! Why it is sound: putting a callee in the place of its call keeps what a program does, whatever LLVM's inliner would gain by it; so do the
//! passes that tidy up behind it, and local variables in place of global ones under the conditions of `globals`. What is merged then is decided
//! by the same proof as ever, on the function as it is then.
//!
//! What is spliced:
//! - calls of functions that work with the CUDA runtime, themselves or through others (`graph`), because the proof has to see each event;
//! - then, as long as something is hidden, calls that made a pointer which is copied or that may keep a buffer's pointer (`demand`): a function
//!   that allocates the host buffers, fills a structure of them, or checks the result.
//!
//! What stays a call, and is told to the reader (`Refusal`): recursive, variadic and naked functions, such as the linker may replace, that return
//! twice, are coroutines, are not to be optimised (`noinline` is not in the way), or are compiled for another target; and what is over a limit.

pub(super) mod apart;
mod demand;
mod edit;
mod globals;
mod graph;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::fmt;

pub(super) use self::edit::Scratch;
use self::graph::CallGraph;
use crate::ir::Value;
use crate::lower::{self, Context, Lowered};
use crate::mutants::{Mutant, off};

/// Instructions that one function may take in. The programs that this is for, benchmarks and samples in one file, have a few thousand in all;
/// LLVM's own inliner lets a function that is called once have 15,000.
pub const FUNCTION_BUDGET: usize = 20_000;

/// Instructions that are spliced in all of a module, trials included. At some microseconds an instruction for splicing, tidying up and looking
/// at it, it bounds what a module costs to about a second.
pub const MODULE_BUDGET: usize = 200_000;

/// Calls within calls that are followed. Helpers of helpers are four deep in the deepest program of the survey.
pub const MAX_DEPTH: usize = 12;

/// How often something hidden is looked for. Each round lays open one more level of functions that do not work with CUDA themselves.
const MAX_ROUNDS: usize = 6;

/// What tidies up behind splicing: variables whose address was passed dissolve, values and conditions that are known now fold.
/// (Nothing here makes two calls of one, which would be two allocation sites.)
const TIDY: &str = "sroa<modify-cfg>,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,gvn,sroa<modify-cfg>,\
                    early-cse<memssa>,simplifycfg";

/// A function with callees in it.
pub(super) struct Growth<'m> {
    /// What the lowering makes of it; `None` if there was nothing to do.
    pub(super) lowered: Option<Lowered<'m>>,
    /// The functions that were spliced, one entry a call.
    pub(super) spliced: Vec<Value<'m>>,
    /// What stays a call.
    pub(super) refusals: BTreeSet<Refusal>,
    /// Levels of calls that were spliced.
    depth: usize,
}

/// A call that was not spliced.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Refusal {
    /// The function that was to take it in.
    pub(super) caller: String,
    /// The function that is called.
    pub(super) callee: String,
    /// Why.
    pub(super) why: Why,
}

/// Why a call stays one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// It calls itself, directly or through others.
    Recursive,
    /// It takes more arguments than it names.
    Variadic,
    /// Another definition may take its place when the program is linked.
    Replaceable,
    /// It has this attribute.
    Attribute(&'static str),
    /// Target or sanitizers differ.
    OtherTarget,
    /// More instructions than a function, or all functions of a module, may take in.
    OverBudget { instructions: usize, limit: usize },
    /// Calls within calls.
    TooDeep,
    /// LLVM can't.
    Llvm(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` stays a call in `{}`: {}", self.callee, self.caller, self.why)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recursive => f.write_str("it is recursive"),
            Self::Variadic => f.write_str("it is variadic"),
            Self::Replaceable => f.write_str("the linker may replace it"),
            Self::Attribute(name) => write!(f, "it is marked {name}"),
            Self::OtherTarget => f.write_str("it is compiled for another target or with other sanitizers"),
            Self::OverBudget { instructions, limit } => {
                write!(f, "it is over the budget ({instructions} instructions, with a limit of {limit} in all)")
            }
            Self::TooDeep => write!(f, "it is more than {MAX_DEPTH} calls deep"),
            Self::Llvm(reason) => write!(f, "LLVM can't inline it ({reason})"),
        }
    }
}

/// Splices calls of one module.
pub(super) struct Splicer<'a, 'm> {
    context: &'a Context<'m>,
    graph: CallGraph<'m>,
    /// What is left of [`MODULE_BUDGET`].
    left: Cell<usize>,
}

impl<'a, 'm> Splicer<'a, 'm> {
    pub(super) fn new(context: &'a Context<'m>) -> Self {
        Self { context, graph: CallGraph::of(context), left: Cell::new(MODULE_BUDGET) }
    }

    fn graph(&self) -> &CallGraph<'m> {
        &self.graph
    }

    /// Functions that may gain from splicing, callers before callees: a device buffer without a partner is in them or in what they call.
    /// `lonely`: the functions that make such a buffer.
    pub(super) fn candidates(&self, lonely: &HashSet<Value<'m>>) -> Vec<Value<'m>> {
        let reaching = self.graph.reaching(lonely.iter().copied());
        let calls_one = |function: &Value<'m>| self.graph.callees(*function).any(|callee| reaching.contains(&callee));
        let order = self.graph.top_down().iter().copied();
        order
            .filter(|function| !function.has_attribute("optnone"))
            .filter(|function| lonely.contains(function) || calls_one(function))
            .collect()
    }

    /// Is there something to do in the function? `lowered` is what the lowering makes of it, if it makes device buffers.
    pub(super) fn has_something_hidden(&self, function: Value<'m>, lowered: Option<&Lowered<'m>>) -> bool {
        let module = self.context.module;
        let hides = |lowered| {
            !demand::calls(lowered, function, &self.graph).is_empty()
                || !lower::separable_parts(self.context, function).is_empty()
                || globals::only_here(module, function, function).any(|global| globals::may_hold_pointers(global))
        };
        function.instructions().any(|call| self.is_work(call)) || lowered.is_some_and(hides)
    }

    /// Splices into `target`, which is a copy of `original` or that one itself.
    pub(super) fn grow(&self, target: Value<'m>, original: Value<'m>) -> Growth<'m> {
        let mut growth = Growth { lowered: None, spliced: Vec::new(), refusals: BTreeSet::new(), depth: 0 };
        let name = original.name();
        for _ in 0..MAX_ROUNDS {
            let hidden = match &growth.lowered {
                None => {
                    let lowered = lower::lower_as(self.context, target, &name);
                    lowered.map_or_else(Vec::new, |lowered| demand::calls(&lowered, target, &self.graph))
                }
                Some(lowered) => demand::calls(lowered, target, &self.graph),
            };
            if !self.round(target, original, hidden.into_iter().collect(), &mut growth) {
                break;
            }
            growth.lowered = lower::lower_as(self.context, target, &name);
        }
        growth
    }

    /// One round of splicing and tidying up; true if it changed something.
    fn round(
        &self,
        target: Value<'m>,
        original: Value<'m>,
        hidden: HashSet<Value<'m>>,
        growth: &mut Growth<'m>,
    ) -> bool {
        let module = self.context.module;
        let before = growth.spliced.len();
        self.splice(target, original, hidden, growth);
        let mut changed = growth.spliced.len() > before;
        if target.instructions().all(keeps_local_variables) {
            changed |= globals::localise(self.context, target, original);
        }
        if changed {
            edit::simplify(target, TIDY);
        }
        // Members of structures that calls write become variables, so that the rest of the structure dissolves.
        let parts = lower::separable_parts(self.context, target);
        parts.iter().for_each(|part| edit::separate(module, target, part));
        if !parts.is_empty() {
            edit::simplify(target, TIDY);
        }
        changed || !parts.is_empty()
    }

    /// Splices `hidden` and the calls that work with CUDA, with those in what was spliced.
    fn splice(&self, target: Value<'m>, original: Value<'m>, hidden: HashSet<Value<'m>>, growth: &mut Growth<'m>) {
        // What was done on trial is done again, whatever other trials cost.
        let trial = target != original;
        let mut hidden = Some(hidden);
        loop {
            // Handles of calls that are gone may be those of others later, so what is hidden is looked up once, before the first edit.
            let hidden = hidden.take().unwrap_or_default();
            let calls: Vec<_> =
                target.instructions().filter(|call| self.is_work(*call) || hidden.contains(call)).collect();
            let mut progress = false;
            for call in calls {
                let Some(callee) = self.graph.callee(call) else { continue };
                let size = self.graph.size(callee);
                let admitted = self.admit(target, callee, growth, trial);
                match admitted.and_then(|()| edit::inline(call).map_err(Why::Llvm)) {
                    Ok(()) => {
                        progress = true;
                        growth.spliced.push(callee);
                        if trial {
                            self.left.set(self.left.get().saturating_sub(size));
                        }
                    }
                    Err(why) => {
                        growth.refusals.insert(Refusal { caller: original.name(), callee: callee.name(), why });
                    }
                }
            }
            if !progress {
                break;
            }
            growth.depth += 1;
        }
    }

    /// A call whose callee works with the CUDA runtime, and is no launch stub.
    fn is_work(&self, call: Value<'m>) -> bool {
        self.graph
            .callee(call)
            .is_some_and(|callee| self.graph.works_with_cuda(callee) && !self.context.is_stub(callee))
    }

    fn admit(&self, target: Value<'m>, callee: Value<'m>, growth: &Growth<'m>, trial: bool) -> Result<(), Why> {
        const KEPT: [&str; 4] = ["optnone", "naked", "returns_twice", "presplitcoroutine"];
        if self.graph.is_recursive(callee) && !off(Mutant::SpliceRecursive) {
            return Err(Why::Recursive);
        }
        if callee.is_variadic() && !off(Mutant::SpliceVariadic) {
            return Err(Why::Variadic);
        }
        if callee.is_interposable() && !off(Mutant::SpliceReplaceable) {
            return Err(Why::Replaceable);
        }
        if let Some(name) = KEPT.into_iter().find(|name| callee.has_attribute(name) && !off(Mutant::SpliceAttribute)) {
            return Err(Why::Attribute(name));
        }
        if !target.may_inline(callee) && !off(Mutant::SpliceOtherTarget) {
            return Err(Why::OtherTarget);
        }
        if growth.depth >= MAX_DEPTH && !off(Mutant::SpliceDepth) {
            return Err(Why::TooDeep);
        }
        let instructions = self.graph.size(callee);
        let taken: usize = growth.spliced.iter().map(|callee| self.graph.size(*callee)).sum();
        if taken + instructions > FUNCTION_BUDGET && !off(Mutant::SpliceBudget) {
            return Err(Why::OverBudget { instructions, limit: FUNCTION_BUDGET });
        }
        if trial && instructions > self.left.get() {
            return Err(Why::OverBudget { instructions, limit: MODULE_BUDGET });
        }
        Ok(())
    }

    /// Functions that nothing needs any more, because all their calls were spliced and the linker does not ask for them.
    pub(super) fn left_over(&self) -> HashSet<Value<'m>> {
        globals::left_over(self.context.module)
    }
}

/// Are local variables what global ones are, as far as this instruction goes? Not behind a call that returns twice (setjmp, vfork), nor
/// in one that gives the caller's frame away.
fn keeps_local_variables(instruction: Value<'_>) -> bool {
    let twice = instruction.called_function().is_some_and(|callee| callee.has_attribute("returns_twice"));
    (!twice || off(Mutant::SpliceReturnsTwice)) && !instruction.is_must_tail()
}
