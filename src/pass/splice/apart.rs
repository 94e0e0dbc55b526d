//! Device buffers that are copied from or to a pointer of another function: what keeps the two functions apart.

use std::collections::BTreeSet;

use super::{Refusal, Splicer, demand};
use crate::analysis::program::{ObjectId, Space};
use crate::analysis::verdict::{Decline, Reason, Verdict};
use crate::ir::Value;
use crate::lower::Lowered;
use crate::report::pair::PairReport;

/// One report for each device buffer of a function that is in no pair and is copied from or to a pointer that comes from elsewhere; with the
/// copy that it is told at.
pub(in super::super) fn reports<'m>(
    splicer: &Splicer<'_, 'm>,
    function: Value<'m>,
    lowered: &Lowered<'m>,
    verdicts: &[Verdict],
    refusals: &BTreeSet<Refusal>,
) -> Vec<(Value<'m>, PairReport)> {
    let program = &lowered.program;
    let sides = demand::unresolved_sides(lowered);
    let mut reports = Vec::new();
    for (object, id) in program.objects.iter().zip((0..).map(ObjectId)) {
        if object.space != Space::Device || verdicts.iter().any(|verdict| verdict.device == id) {
            continue;
        }
        let copies: Vec<_> = sides
            .iter()
            .filter(|side| side.partner == Some(id) && demand::is_from_elsewhere(side.pointer, splicer.graph()))
            .collect();
        let Some(first) = copies.first() else { continue };
        let decline = Decline::DifferentFunctions {
            buffer: object.name.clone(),
            function: program.function.clone(),
            why: why(splicer, function, refusals),
        };
        let sites: Vec<_> = copies.iter().map(|side| program.node(side.node).site.clone()).collect();
        let reason = Reason { decline, at: sites[0].clone(), witness: Vec::new(), suggestion: None };
        let name = name(function, first.pointer);
        reports.push((first.call, PairReport::without_partner(program, name, id, &sites, &reason)));
    }
    reports
}

/// Why a function was not joined with those that call it or that it calls.
fn why(splicer: &Splicer<'_, '_>, function: Value<'_>, refusals: &BTreeSet<Refusal>) -> String {
    let name = function.name();
    let concerned = |refusal: &&Refusal| refusal.callee == name || refusal.caller == name;
    let told: Vec<_> = refusals.iter().filter(concerned).map(ToString::to_string).collect();
    if !told.is_empty() {
        told.join("; ")
    } else if splicer.graph().callers(function).is_empty() {
        "no function of this file calls it by name".to_owned()
    } else {
        "its callers in this file do not show where the other buffer comes from".to_owned()
    }
}

/// The variable that holds a pointer; empty where debug information has none.
fn name<'m>(function: Value<'m>, pointer: Value<'m>) -> String {
    let mut variables = function.instructions().flat_map(Value::debug_variables);
    variables.find(|variable| variable.value == pointer && !variable.is_address).map(|variable| variable.name).unwrap_or_default()
}
