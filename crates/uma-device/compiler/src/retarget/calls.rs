//! What a call of an undefined function means, and the calls into the device library that replace it.

use crate::ir::{Builder, Module, Type, Value, is_intrinsic};
use crate::retarget::hidden_params::Hidden;
use crate::retarget::sregs;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The device library, as bitcode.
const LIBRARY: [&[u8]; 5] = [
    include_bytes!(concat!(env!("OUT_DIR"), "/atomics.bc")),
    include_bytes!(concat!(env!("OUT_DIR"), "/math.bc")),
    include_bytes!(concat!(env!("OUT_DIR"), "/rounding.bc")),
    include_bytes!(concat!(env!("OUT_DIR"), "/integer.bc")),
    include_bytes!(concat!(env!("OUT_DIR"), "/warp.bc")),
];

/// Prefix of a library function that waits for other threads.
const WAITS: &str = "uma_wait_";
const PLAIN: &str = "uma_";

/// What a call of an undefined function means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// LLVM knows what to do on any target.
    Generic,
    /// A special register.
    Register,
    /// The device library has it. A barrier besides: its number must be 0.
    Library,
    Barrier,
    /// Nothing can be done.
    Unknown,
}

/// The generic intrinsics that mean on the CPU what they mean on a GPU; a name stands for itself and, before a dot, for its overloads.
const GENERIC: &[&str] = &[
    "abs",
    "smax",
    "smin",
    "umax",
    "umin",
    "memcpy",
    "memmove",
    "memset",
    "sqrt",
    "powi",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "sincos",
    "pow",
    "exp",
    "exp2",
    "exp10",
    "log",
    "log10",
    "log2",
    "fma",
    "fmuladd",
    "fabs",
    "minnum",
    "maxnum",
    "minimum",
    "maximum",
    "minimumnum",
    "maximumnum",
    "copysign",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "nearbyint",
    "round",
    "roundeven",
    "lround",
    "llround",
    "lrint",
    "llrint",
    "ldexp",
    "frexp",
    "bitreverse",
    "bswap",
    "ctpop",
    "ctlz",
    "cttz",
    "fshl",
    "fshr",
    "sadd",
    "uadd",
    "ssub",
    "usub",
    "smul",
    "umul",
    "sshl",
    "ushl",
    "scmp",
    "ucmp",
    "fptosi.sat",
    "fptoui.sat",
    "is.fpclass",
    "lifetime.start",
    "lifetime.end",
    "invariant.start",
    "invariant.end",
    "launder.invariant.group",
    "strip.invariant.group",
    "assume",
    "expect",
    "objectsize",
    "experimental.noalias.scope.decl",
    "donothing",
    "sideeffect",
    "vector.reduce",
    "masked.load",
    "masked.store",
    "masked.gather",
    "masked.scatter",
    "annotation",
    "ptr.annotation",
    "var.annotation",
    "prefetch",
    "stacksave",
    "stackrestore",
    "is.constant",
    "canonicalize",
    "ptrmask",
];

/// What a call of the undefined function `name` means.
pub(crate) fn meaning(name: &str) -> Meaning {
    if sregs::is_register(name) {
        Meaning::Register
    } else if library_name(name).is_some() {
        if name.starts_with("llvm.nvvm.barrier.cta.") { Meaning::Barrier } else { Meaning::Library }
    } else if let Some(rest) = name.strip_prefix("llvm.")
        && GENERIC.iter().any(|g| rest.strip_prefix(g).is_some_and(|tail| tail.is_empty() || tail.starts_with('.')))
    {
        Meaning::Generic
    } else {
        Meaning::Unknown
    }
}

/// The library function that stands for `name`.
fn library_name(name: &str) -> Option<&'static str> {
    static NAMES: OnceLock<HashMap<String, String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let mut names = HashMap::new();
        for function in modules().iter().flat_map(Module::functions).filter(|function| !function.is_declaration()) {
            let name = function.name();
            if let Some(callee) = name.strip_prefix(WAITS).or(name.strip_prefix(PLAIN)) {
                names.insert(callee.to_owned(), name.clone());
            }
        }
        names
    });
    names.get(&name.replace('.', "_")).map(String::as_str)
}

fn modules() -> Vec<Module> {
    // The bitcode was made by the LLVM that reads it, so it can be read.
    LIBRARY.iter().map(|bitcode| Module::parse(bitcode, "device library").expect("readable device library")).collect()
}

/// Whether a function is one that waits for other threads.
pub(crate) fn waits(function: Value) -> bool {
    function.is_function() && function.name().starts_with(WAITS)
}

/// Sends the calls of undefined functions to the device library.
pub(crate) fn replace(module: &Module, hidden: &Hidden) -> Result<(), String> {
    let library = modules();
    let mut sites = 0;
    for declared in module.functions().into_iter().filter(|function| function.is_declaration()) {
        let name = declared.name();
        if !matches!(meaning(&name), Meaning::Library | Meaning::Barrier) {
            continue;
        }
        let Some(target) = library_name(&name) else { continue };
        let Some(defined) = library.iter().find_map(|module| module.function(target)) else { continue };
        let ty = defined.value_type();
        let replacement = module.function(target).unwrap_or_else(|| module.add_function(target, ty));
        for call in declared.users() {
            if !call.is_instruction() || call.callee() != declared {
                return Err(format!("the address of `{name}` is taken"));
            }
            let mut arguments = call.call_arguments();
            if name == "llvm.nvvm.activemask" {
                sites += 1;
                arguments.push(Type::int(32).constant(sites));
            }
            if arguments.len() + 1 == ty.params().len() {
                arguments.push(hidden.context(call.function()));
            }
            let builder = Builder::before(call);
            let arguments = fit(&builder, arguments, &ty.params())
                .ok_or_else(|| format!("`{name}` is called with other types than {ty}"))?;
            let result = builder.call(replacement, ty, &arguments, "");
            if call.ty() != result.ty() {
                return Err(format!(
                    "`{name}` is called as a function that returns {}, not {}",
                    call.ty(),
                    result.ty()
                ));
            }
            call.replace_all_uses_with(result);
            call.erase();
        }
        if !is_intrinsic(&name) || declared.users().is_empty() {
            declared.delete_function();
        }
    }
    Ok(())
}

/// Makes pointers generic where they are not; all else must fit as it is.
fn fit(builder: &Builder, arguments: Vec<Value>, params: &[Type]) -> Option<Vec<Value>> {
    if arguments.len() != params.len() {
        return None;
    }
    let fit = |(argument, &param): (Value, &Type)| {
        let pointers =
            [argument.ty().kind(), param.kind()].map(|kind| kind == crate::ir::TypeKind::LLVMPointerTypeKind);
        match pointers {
            _ if argument.ty() == param => Some(argument),
            [true, true] => Some(builder.cast(crate::ir::Opcode::LLVMAddrSpaceCast, argument, param)),
            _ => None,
        }
    };
    arguments.into_iter().zip(params).map(fit).collect()
}

/// What the library calls the rounding modes.
const ROUNDING_MODES: [&str; 4] = ["uma_round_nearest", "uma_round_down", "uma_round_up", "uma_round_zero"];

/// What the CPU's `fesetround` calls them: the bits of MXCSR's or FPCR's rounding field, as the C library's `fenv.h` has them.
fn rounding_modes(triple: &str) -> [u64; 4] {
    if triple.starts_with("aarch64") { [0, 0x80_0000, 0x40_0000, 0xC0_0000] } else { [0, 0x400, 0x800, 0xC00] }
}

/// Adds the library functions to a module that calls them, and what they call.
pub(crate) fn link_library(module: &Module, triple: &str, layout: &str) -> Result<(), String> {
    for part in modules() {
        part.set_target(triple, layout);
        for function in part.functions().into_iter().filter(|function| !function.is_declaration()) {
            for attribute in ["target-cpu", "target-features", "tune-cpu", "frame-pointer"] {
                function.remove_attribute(crate::ir::At::Function, attribute);
            }
        }
        module.link(part)?;
    }
    for (name, mode) in ROUNDING_MODES.into_iter().zip(rounding_modes(triple)) {
        if let Some(global) = module.global(name) {
            global.set_initializer(Type::int(32).constant(mode));
            global.set_internal();
        }
    }
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        if function.name().starts_with(PLAIN) {
            function.set_internal();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Meaning, meaning};

    #[test]
    fn names_have_meanings() {
        assert_eq!(meaning("llvm.fma.f32"), Meaning::Generic);
        assert_eq!(meaning("llvm.fptosi.sat.i32.f32"), Meaning::Generic);
        assert_eq!(meaning("llvm.fmax"), Meaning::Unknown);
        assert_eq!(meaning("__nv_sinf"), Meaning::Library);
        assert_eq!(meaning("__nv_erfinv"), Meaning::Unknown);
        assert_eq!(meaning("llvm.nvvm.barrier.cta.sync.aligned.all"), Meaning::Barrier);
        assert_eq!(meaning("llvm.nvvm.read.ptx.sreg.tid.x"), Meaning::Register);
        assert_eq!(meaning("llvm.nvvm.mapa.shared.cluster"), Meaning::Unknown);
    }
}
