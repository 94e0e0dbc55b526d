//! Device buffers that are copied from or to a pointer of another function: what keeps the two functions apart.

use std::collections::BTreeSet;

use super::{Refusal, Splicer, demand};
use crate::analysis::program::{ObjectId, Space, UseKind};
use crate::analysis::verdict::{Decline, Reason, Verdict};
use crate::ir::{Opcode, Value};
use crate::lower::Lowered;
use crate::report::pair::{PairReport, without_partner};

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
        let kept = kept_in(lowered, id);
        if copies.is_empty() && kept.is_none() {
            continue;
        }
        let allocation = &lowered.allocations[id.0 as usize];
        let (at, site) = match copies.first() {
            Some(side) => (side.call, program.node(side.node).site.clone()),
            None => (allocation.call, object.site.clone()),
        };
        let decline = Decline::DifferentFunctions {
            buffer: object.name.clone(),
            function: program.function.clone(),
            why: kept.unwrap_or_else(|| why(splicer, function, refusals)),
        };
        let reason = Reason { decline, at: site, witness: Vec::new(), suggestion: None, order: None };
        let host = copies.first().map(|side| name(function, side.pointer)).unwrap_or_default();
        let sites: Vec<_> = copies.iter().map(|side| program.node(side.node).site.clone()).collect();
        reports.push((at, without_partner(program, host, id, &sites, &reason)));
    }
    reports
}

/// What holds a buffer's pointer beyond the function: a global variable, or its caller.
fn kept_in(lowered: &Lowered<'_>, buffer: ObjectId) -> Option<String> {
    let uses = lowered.program.uses.iter().zip(&lowered.uses).filter(|(usage, _)| usage.object == buffer);
    uses.filter_map(|(usage, at)| match usage.kind {
        UseKind::Returned => Some("its pointer is returned".to_owned()),
        UseKind::Stored => {
            let mut addresses = at.operands().into_iter().map(base);
            let global = addresses.find(|address| address.is_global_variable())?;
            Some(format!("its pointer is kept in the global variable `{}`, which other code may use", global.name()))
        }
        _ => None,
    })
    .next()
}

/// What an address is computed from.
fn base(mut address: Value<'_>) -> Value<'_> {
    while let (Some(Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast), Some(inner)) =
        (address.opcode(), address.operand(0))
    {
        address = inner;
    }
    address
}

/// Why a function was not joined with those that call it or that it calls.
fn why(splicer: &Splicer<'_, '_>, function: Value<'_>, refusals: &BTreeSet<Refusal>) -> String {
    let name = function.name();
    let concerned =
        |refusal: &&Refusal| (refusal.callee == name || refusal.caller == name) && refusal.callee != refusal.caller;
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
    variables
        .find(|variable| variable.value == pointer && !variable.is_address)
        .map(|variable| variable.name)
        .unwrap_or_default()
}
