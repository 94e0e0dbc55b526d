//! Tests of the rewrite: IR in, the plans that `analysis` makes, IR out.

use inkwell::context::Context as LlvmContext;
use inkwell::values::AnyValue;

use super::apply;
use crate::analysis::verdict::{Decision, MergePlan};
use crate::analysis::{Options, analyse};
use crate::effects::EffectTable;
use crate::lower::tests::parse;
use crate::lower::tests::shapes::FIGURE_1;
use crate::lower::{Context, lower_function};

/// Merges what the analysis accepts in `@main`; gives the function's text. Panics if nothing is accepted.
#[track_caller]
fn rewritten(ir: &str, effects: EffectTable) -> String {
    let context = LlvmContext::create();
    let module = parse(&context, ir);
    // SAFETY: the module lives until the end of this function, and nobody else has it.
    let view = unsafe { crate::pass::ir::Module::new(module.as_mut_ptr()) };
    let context = Context::new(view, effects);
    let main = context.module.functions().find(|function| function.name() == "main").expect("main");
    let lowered = lower_function(&context, main).expect("a body");
    let verdicts = analyse(&lowered.program, &Options { theta_min: 0, ..Options::default() });
    let plans: Vec<&MergePlan> = verdicts
        .iter()
        .filter_map(|verdict| match &verdict.decision {
            Decision::Accept(plan) => Some(plan),
            Decision::Decline(_) => None,
        })
        .collect();
    assert!(!plans.is_empty(), "nothing accepted: {verdicts:#?}");
    apply(context.module, lowered, &plans);
    module.verify().unwrap_or_else(|error| panic!("{}\n{}", error.to_string_lossy(), module.print_to_string()));
    module.get_function("main").expect("main").print_to_string().to_string()
}

#[test]
fn figure_1_of_the_paper() {
    let text = rewritten(FIGURE_1, EffectTable::default());
    println!("{text}");
    panic!();
}
