//! Gives a device module (nvptx64) the CPU's meaning of what is CUDA's.
//!
//! Address spaces stay in the IR: on the CPU they are all the one flat memory, and casts between them do nothing. Atomics and fences are
//! LLVM's own and stay too. What changes: special registers ([`sregs`]), shared memory ([`shared`]), device variables ([`globals`]), and
//! every call of a function that the module does not define ([`calls`]). What can't be changed is refused first ([`refuse`]).

mod assembly;
mod calls;
mod constants;
mod globals;
mod hidden_params;
mod reach;
pub(crate) mod refuse;
mod shared;
mod sregs;

use crate::codegen::Target;
use crate::ir::{At, Block, Builder, Module, Type, Value};
use reach::Reach;
use refuse::Refusal;
use uma_abi::{GlobalInfo, ParamInfo, ThreadMode};

pub(crate) use hidden_params::added_types;
pub(crate) use sregs::context_field;

/// A kernel after retargeting.
pub(crate) struct KernelBody {
    /// Mangled name.
    pub(crate) name: String,
    /// The body: the kernel's parameters, then the added ones.
    pub(crate) function: Value,
    /// Size and alignment of each parameter, in order; for a structure passed by value those of the structure.
    pub(crate) params: Vec<ParamInfo>,
    /// Whether each parameter is a structure passed by value (the function takes a pointer).
    pub(crate) by_value: Vec<bool>,
    pub(crate) static_shared: u64,
    pub(crate) mode: ThreadMode,
    pub(crate) max_threads: u32,
}

/// Why a module did not get through.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RetargetError {
    /// It uses what the device does not have.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Refused(Vec<Refusal>),
    /// The compiler is wrong, or the module is not what clang makes.
    #[error("error: the kernel compiler failed: {0}")]
    Failed(String),
}

impl From<Refusal> for RetargetError {
    fn from(refusal: Refusal) -> Self {
        RetargetError::Refused(vec![refusal])
    }
}

impl From<String> for RetargetError {
    fn from(message: String) -> Self {
        RetargetError::Failed(message)
    }
}

/// Retargets a module; its kernels and device variables.
pub(crate) fn retarget(module: &Module, target: &Target) -> Result<(Vec<KernelBody>, Vec<GlobalInfo>), RetargetError> {
    define_pure_virtual(module);
    let names = prune(module, target)?;
    globals::check(module)?;
    assembly::translate(module);
    let refusals = refuse::check(module);
    if !refusals.is_empty() {
        return Err(RetargetError::Refused(refusals));
    }
    let kernels = || names.iter().filter_map(|name| module.function(name));
    let bounds: Vec<_> = kernels().map(launch_bounds).collect();
    module.set_target(target.triple(), &target.layout());

    let hidden = hidden_params::add(module);
    let bodies: Vec<_> = kernels().collect();
    sregs::replace(module, &hidden);
    calls::replace(module, &hidden)?;
    let reach = Reach::of(&bodies);
    let shared = shared::replace(module, target, &bodies, &reach, &hidden)?;
    let globals = globals::replace(module, target)?;

    let mut kernels = Vec::new();
    for ((name, function), max_threads) in names.into_iter().zip(bodies).zip(bounds) {
        let count = function.params().len() - added_types().len();
        let (params, by_value) = (0..count as u32).map(|index| param(function, index, target)).unzip();
        // Until its entry calls it, nobody does.
        function.set_exported();
        let waits = reach.any(function, calls::waits);
        kernels.push(KernelBody {
            name,
            function,
            params,
            by_value,
            static_shared: shared[&function],
            mode: if waits { ThreadMode::Thread } else { ThreadMode::Block },
            max_threads,
        });
    }
    calls::link_library(module, target.triple(), &target.layout())?;
    module.verify().map_err(|problem| format!("the retargeted module is broken: {problem}"))?;
    Ok((kernels, globals))
}

/// Tables of virtual functions name a function of the C++ runtime where a class has none of its own; calling it is an error.
fn define_pure_virtual(module: &Module) {
    for name in ["__cxa_pure_virtual", "__cxa_deleted_virtual"] {
        if let Some(function) = module.function(name).filter(|function| function.is_declaration()) {
            let builder = Builder::at_end(Block::append(function, ""));
            let ty = Type::function(Type::void(), &[]);
            let trap = module.function("llvm.trap").unwrap_or_else(|| module.add_function("llvm.trap", ty));
            builder.call(trap, ty, &[], "");
            builder.unreachable();
        }
    }
}

/// Removes what no kernel can reach; the names of the kernels.
fn prune(module: &Module, target: &Target) -> Result<Vec<String>, String> {
    /// The calling convention of kernels.
    const PTX_KERNEL: u32 = 71;
    for alias in module.aliases() {
        alias.replace_all_uses_with(alias.aliasee());
        alias.set_internal();
    }
    let kept = globals::release_used(module);
    let mut kernels = Vec::new();
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        function.clear_comdat();
        if function.call_convention() == PTX_KERNEL {
            function.set_exported();
            kernels.push(function.name());
        } else {
            function.set_internal();
        }
    }
    for global in module.globals().into_iter().filter(|global| !global.is_declaration()) {
        global.clear_comdat();
        if globals::is_root(global) {
            global.set_exported();
        } else if !kept.contains(&global) && !global.name().starts_with("llvm.") {
            global.set_internal();
        }
    }
    target.run_passes(module, "globaldce")?;
    Ok(kernels)
}

/// `__launch_bounds__`, else the most that the device takes.
fn launch_bounds(kernel: Value) -> u32 {
    const MOST: u32 = 1024;
    let bounds = kernel.text_attribute("nvvm.maxntid").and_then(|text| {
        text.split(',')
            .map(|number| number.trim().parse::<u32>().ok())
            .try_fold(1u32, |product, n| product.checked_mul(n?))
    });
    bounds.unwrap_or(MOST).clamp(1, MOST)
}

/// Size and alignment of a parameter, and whether it is a structure passed by value. Such a parameter is a plain pointer from here on.
fn param(function: Value, index: u32, target: &Target) -> (ParamInfo, bool) {
    let Some(ty) = function.by_value_type(index) else {
        let ty = function.params()[index as usize].ty();
        return (ParamInfo { size: target.size_of(ty) as u32, align: target.align_of(ty) as u32 }, false);
    };
    let align = function.param_attribute_number(index, "align").unwrap_or(target.align_of(ty));
    function.remove_attribute(At::Param(index), "byval");
    (ParamInfo { size: target.size_of(ty) as u32, align: align as u32 }, true)
}
