//! The host half's view of the kernels: which launch stub stands for which kernel, and what the embedded device code says of them.

use std::collections::{BTreeMap, HashSet};

use super::EffectTable;
use super::fatbin::{self, FatbinError};
use crate::ir::{Module, Value};

/// Name of the kernel that each launch stub stands for. The stub is what `cudaLaunchKernel` gets as its first argument.
///
/// A stub is known from the call of `__cudaRegisterFunction` that clang and nvcc write into the module's constructor, or, with relocatable
/// device code, from its entry in the table that the linker gathers.
#[must_use]
pub fn kernels_of_module(module: Module<'_>) -> BTreeMap<String, String> {
    let mut kernels = BTreeMap::new();
    let mut add = |stub: Value<'_>, kernel: Option<String>| {
        if let Some(kernel) = kernel.filter(|_| stub.is_function()) {
            kernels.insert(stub.name(), kernel);
        }
    };
    if let Some(register) = module.function("__cudaRegisterFunction") {
        for usage in register.uses() {
            if let [_, stub, _, name, ..] = usage.user.arguments()[..] {
                add(stub.strip_casts(), string(name));
            }
        }
    }
    for entry in module.globals().filter(|global| is_offload_entry(*global)) {
        let fields = entry.initializer().map(Value::operands).unwrap_or_default();
        let pointers: Vec<_> = fields.iter().map(|field| field.strip_casts()).collect();
        if let Some(at) = pointers.iter().position(|pointer| pointer.is_function()) {
            add(pointers[at], pointers[at + 1..].iter().find_map(|next| string(*next)));
        }
    }
    kernels
}

/// Effects of the kernels that the module can launch. A kernel that is not in the table may do anything with what it is given.
#[must_use]
pub fn effects_of_module(module: Module<'_>) -> EffectTable {
    effects_or_reason(module).unwrap_or_default()
}

/// The same, with the reason why nothing is known.
///
/// # Errors
/// Some device code of the module carries no record that can be believed. A module may hold several (link-time optimisation); a kernel
/// of one may be a copy of another's (a template), so one without a record makes all unknown. Kernels of several units that only share
/// their name (`static`) have a stub each, and are left out.
pub fn effects_or_reason(module: Module<'_>) -> Result<EffectTable, FatbinError> {
    let mut tables = Vec::new();
    for global in module.globals() {
        if is_fatbin_wrapper(global) {
            // { magic, version, data, unused }
            let data = global.initializer().and_then(|wrapper| wrapper.operands().get(2).copied());
            tables.push(effects_of_global(data.ok_or(FatbinError::NoImage)?)?);
        } else if is_embedded_object(global) {
            tables.push(effects_of_global(global)?);
        }
    }
    let mut table = tables.into_iter().reduce(fatbin::union).ok_or(FatbinError::NoImage)?;
    let mut seen = HashSet::new();
    for kernel in kernels_of_module(module).values() {
        if !seen.insert(kernel) {
            table.kernels.remove(kernel);
        }
    }
    Ok(table)
}

fn effects_of_global(data: Value<'_>) -> Result<EffectTable, FatbinError> {
    // nvcc writes the bytes as assembly, so that there is no initialiser; its device compiler leaves no record in them anyway.
    let bytes = data.strip_casts().initializer().and_then(Value::as_bytes).ok_or(FatbinError::NoImage)?;
    fatbin::effects_of_container(&bytes)
}

fn is_fatbin_wrapper(global: Value<'_>) -> bool {
    global.section().contains("nvFatBinSegment") || global.name().starts_with("__cuda_fatbin_wrapper")
}

fn is_embedded_object(global: Value<'_>) -> bool {
    global.section().contains(".llvm.offloading")
}

fn is_offload_entry(global: Value<'_>) -> bool {
    let section = global.section();
    section.contains("offload_entries") || section.contains("offloading_entries")
}

/// The C string in a constant.
fn string(pointer: Value<'_>) -> Option<String> {
    let global = pointer.strip_casts();
    let mut bytes = global.initializer().filter(|_| global.is_global_constant())?.as_bytes()?;
    bytes.truncate(bytes.iter().position(|byte| *byte == 0)?);
    String::from_utf8(bytes).ok()
}
