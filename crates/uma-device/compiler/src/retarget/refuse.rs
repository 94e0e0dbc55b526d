//! Finds what the CPU device cannot run, and says where the user wrote it.
//!
//! The check runs after unreachable code is gone, and before anything else: what passes it, the later passes can translate. It knows
//! what is allowed, not what is forbidden, so that a construct that nobody thought of is refused.

use crate::ir::{Module, Opcode, Value};
use crate::retarget::calls::{self, Meaning};
use std::collections::HashSet;
use std::fmt;

/// One construct that the device cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Refusal {
    /// File as clang was given it, and line.
    place: Option<(String, u32)>,
    /// What it is, as a noun phrase.
    construct: String,
}

impl Refusal {
    pub(crate) fn at(instruction: Value, construct: impl Into<String>) -> Refusal {
        Refusal { place: Locator::default().locate(instruction, 0), construct: construct.into() }
    }

    /// Of something that has no place in a function.
    pub(crate) fn of_global(global: Value, construct: &str) -> Refusal {
        Refusal { place: None, construct: format!("{construct} (`{}`)", global.name()) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line)) = &self.place {
            write!(f, "{file}:{line}: ")?;
        }
        write!(f, "error: {} is not supported by the CPU device", self.construct)
    }
}

/// All that is wrong with a module whose unreachable code is gone, in source order.
pub(crate) fn check(module: &Module) -> Vec<Refusal> {
    let mut found = HashSet::new();
    if !module.inline_assembly().trim().is_empty() {
        found.insert(Refusal { place: None, construct: "inline PTX outside a function".into() });
    }
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        if function.value_type().is_variadic() {
            let place = function.instructions().next();
            found.extend(place.map(|first| Refusal::at(first, "a variadic device function")));
        }
        for instruction in function.instructions() {
            if let Some(construct) = problem(instruction) {
                found.insert(Refusal::at(instruction, construct));
            }
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort();
    found
}

/// What is wrong with an instruction.
fn problem(instruction: Value) -> Option<String> {
    match instruction.opcode() {
        Opcode::LLVMCall => problem_of_call(instruction),
        Opcode::LLVMInvoke | Opcode::LLVMLandingPad | Opcode::LLVMResume => Some("an exception".into()),
        Opcode::LLVMIndirectBr | Opcode::LLVMCallBr => Some("a computed goto".into()),
        Opcode::LLVMVAArg => Some("a variadic device function".into()),
        _ if instruction.operands().into_iter().any(Value::is_block_address) => Some("the address of a label".into()),
        _ => instruction.operands().into_iter().find_map(undefined_function).map(address_of_undefined),
    }
}

/// A function without definition whose address is in a constant.
pub(crate) fn undefined_function(constant: Value) -> Option<Value> {
    if constant.is_function() {
        return constant.is_declaration().then_some(constant);
    }
    if !constant.is_constant() || constant.is_global_variable() {
        return None;
    }
    constant.operands().into_iter().find_map(undefined_function)
}

/// What such an address is called.
pub(crate) fn address_of_undefined(function: Value) -> String {
    format!("the address of `{}`, which this file does not define,", function.name())
}

fn problem_of_call(call: Value) -> Option<String> {
    let callee = call.callee();
    if let Some(assembly) = callee.inline_assembly() {
        let in_groups = call.source_locations().first().is_some_and(|(file, _)| file.contains("/cooperative_groups/"));
        return problem_of_assembly(&assembly, call.call_arguments().is_empty(), in_groups);
    }
    if let Some(function) = call.call_arguments().into_iter().find_map(undefined_function) {
        return Some(address_of_undefined(function));
    }
    if !callee.is_function() {
        return None; // Through a pointer: to one of the functions of this module, all of which are checked.
    }
    if !callee.is_declaration() {
        return None;
    }
    match calls::meaning(&callee.name()) {
        Meaning::Barrier if call.operand(0).and_then(Value::as_constant_int) != Some(0) => {
            Some("a barrier other than number 0".into())
        }
        Meaning::Unknown => Some(name_of_unknown(&callee.name())),
        _ => None,
    }
}

/// `asm("" ::: "memory")` only tells the compiler not to move things, and is as good on the CPU. `in_groups`: it stands in the header of
/// cooperative groups, so the user knows it by that name.
fn problem_of_assembly(assembly: &str, no_operands: bool, in_groups: bool) -> Option<String> {
    let text = assembly.trim();
    if text.is_empty() && no_operands {
        return None;
    }
    let statement = text.trim_start_matches('{').trim_start();
    let mnemonic = statement.split([' ', '\t', ';', '\n']).next().unwrap_or_default();
    let family = mnemonic.split('.').next().unwrap_or_default();
    Some(match family {
        _ if in_groups && (mnemonic.contains(".gpu") || text.contains("%envreg")) => {
            format!("grid-wide cooperative groups (`{mnemonic}`)")
        }
        _ if in_groups => format!("a cooperative group of several warps (`{mnemonic}`)"),
        "tex" | "tld4" | "txq" => format!("a texture (`{mnemonic}`)"),
        "suld" | "sust" | "sured" | "suq" => format!("a surface (`{mnemonic}`)"),
        _ => format!("inline PTX (`{mnemonic}`)"),
    })
}

fn name_of_unknown(name: &str) -> String {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if starts(&["llvm.nvvm.tex", "llvm.nvvm.tld4", "llvm.nvvm.txq", "__nv_tex"]) {
        format!("a texture (`{name}`)")
    } else if starts(&["llvm.nvvm.suld", "llvm.nvvm.sust", "llvm.nvvm.suq", "__nv_surf"]) {
        format!("a surface (`{name}`)")
    } else if starts(&["cudaCG"]) {
        format!("grid-wide cooperative groups (`{name}`)")
    } else if starts(&["cudaLaunchDevice", "cudaGetParameterBuffer", "__cudaPushCallConfiguration", "cudaLaunchKernel"])
    {
        format!("dynamic parallelism (`{name}`)")
    } else if starts(&["malloc", "free", "_Znw", "_Zna", "_Zdl", "_Zda"]) {
        format!("memory allocation in a kernel (`{name}`)")
    } else if crate::ir::is_intrinsic(name) {
        format!("the intrinsic `{name}`")
    } else {
        format!("a call of `{name}`, which this file does not define,")
    }
}

/// Finds the place in the user's own files that leads to an instruction.
#[derive(Default)]
struct Locator {
    seen: HashSet<Value>,
}

impl Locator {
    /// Of the places that inlining left on the instruction, the innermost outside the toolchain's headers; else that of a caller.
    fn locate(&mut self, instruction: Value, depth: u32) -> Option<(String, u32)> {
        const MOST_CALLERS: u32 = 16;
        let places = instruction.source_locations();
        if let Some(place) = places.iter().find(|(file, _)| !is_toolchain_header(file)) {
            return Some(place.clone());
        }
        let function = instruction.function();
        if depth < MOST_CALLERS && self.seen.insert(function) {
            for caller in function.users().into_iter().filter(|user| user.is_instruction()) {
                if let Some(place) = self.locate(caller, depth + 1)
                    && !is_toolchain_header(&place.0)
                {
                    return Some(place);
                }
            }
        }
        places.into_iter().next()
    }
}

fn is_toolchain_header(file: &str) -> bool {
    ["/lib/clang/", "/cuda/include/", "/include/c++/", "/usr/include/"].iter().any(|part| file.contains(part))
}

#[cfg(test)]
mod tests {
    use super::{name_of_unknown, problem_of_assembly};

    #[test]
    fn assembly_is_named_by_its_first_word() {
        assert_eq!(problem_of_assembly("", true, false), None);
        assert_eq!(problem_of_assembly("mov.u32 $0, %laneid;", false, false), Some("inline PTX (`mov.u32`)".into()));
        assert_eq!(
            problem_of_assembly("tex.2d.v4.f32.f32 {$0}, [$1];", false, false),
            Some("a texture (`tex.2d.v4.f32.f32`)".into())
        );
        assert_eq!(problem_of_assembly("", false, false), Some("inline PTX (``)".into()));
        let grid = problem_of_assembly("ld.acquire.gpu.u32 $0,[$1];", false, true);
        assert_eq!(grid, Some("grid-wide cooperative groups (`ld.acquire.gpu.u32`)".into()));
    }

    #[test]
    fn unknown_callees_are_named() {
        assert_eq!(name_of_unknown("cudaCGSynchronize"), "grid-wide cooperative groups (`cudaCGSynchronize`)");
        assert_eq!(name_of_unknown("llvm.nvvm.mapa"), "the intrinsic `llvm.nvvm.mapa`");
        assert_eq!(name_of_unknown("f"), "a call of `f`, which this file does not define,");
    }
}
