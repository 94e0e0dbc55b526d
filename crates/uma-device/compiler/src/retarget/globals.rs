//! Device variables: each is reached through a pointer variable that the loader sets (see uma-abi).
//!
//! Constants that only the compiler knows (strings, tables, the records that other passes add to `llvm.used`) stay ordinary data of the
//! image.

use crate::codegen::Target;
use crate::ir::{Builder, Module, Type, Value, invariant_load, pointer_array};
use crate::retarget::constants::{initializers_that_mention, replace_in_functions};
use crate::retarget::refuse::{Refusal, address_of_undefined, undefined_function};
use uma_abi::GlobalInfo;

/// Whether a global is one that a `__device__` or `__constant__` declaration made, or another variable that kernels can change.
fn is_device_variable(global: Value) -> bool {
    const SHARED: u32 = 3;
    !global.name().starts_with("llvm.")
        && global.ty().address_space() != SHARED
        && (global.is_externally_initialized() || !global.is_global_constant())
}

/// What no pass can translate among the globals.
pub(crate) fn check(module: &Module) -> Result<(), Refusal> {
    for global in module.globals() {
        if global.is_thread_local() {
            return Err(Refusal::of_global(global, "a thread-local variable"));
        }
        if is_device_variable(global) && global.is_declaration() {
            return Err(Refusal::of_global(global, "a device variable of another file"));
        }
        if global.name() == "llvm.global_ctors" || global.name() == "llvm.global_dtors" {
            return Err(Refusal::of_global(global, "a device variable with a constructor"));
        }
        if let Some(function) = global.initializer().and_then(undefined_function) {
            return Err(Refusal::of_global(global, &format!("{} in a variable", address_of_undefined(function))));
        }
    }
    Ok(())
}

/// Frees the module of the lists that keep globals alive. Constants of the image that were on such a list stay, exported; device variables
/// stay anyway. Returns those constants.
pub(crate) fn release_used(module: &Module) -> Vec<Value> {
    let mut kept = Vec::new();
    for list in ["llvm.used", "llvm.compiler.used"] {
        let Some(used) = module.global(list) else { continue };
        for element in used.initializer().map(Value::operands).unwrap_or_default() {
            let global = strip_casts(element);
            if global.is_global_variable() && !is_device_variable(global) && !global.is_declaration() {
                global.set_exported();
                kept.push(global);
            }
        }
        used.delete_global();
    }
    // Exported, those in other address spaces stay without being listed.
    let listed: Vec<_> = kept.iter().copied().filter(|global| global.ty() == Type::pointer()).collect();
    if !listed.is_empty() {
        let list = module.add_global("llvm.used", Type::pointer().array(listed.len() as u64));
        list.set_initializer(pointer_array(&listed));
        list.set_appending();
        list.set_section("llvm.metadata");
    }
    kept
}

fn strip_casts(mut value: Value) -> Value {
    while value.is_constant_expression() {
        match value.operand(0) {
            Some(inner) => value = inner,
            None => break,
        }
    }
    value
}

/// Keeps what the host can name: device variables are exported, whether a kernel uses them or not.
pub(crate) fn is_root(global: Value) -> bool {
    global.is_externally_initialized() && !global.is_declaration()
}

/// Replaces device variables; what the loader must know about each.
pub(crate) fn replace(module: &Module, target: &Target) -> Result<Vec<GlobalInfo>, Refusal> {
    let mut infos = Vec::new();
    let variables: Vec<_> = module.globals().into_iter().filter(|&global| is_device_variable(global)).collect();
    for &variable in &variables {
        if let Some(&other) = initializers_that_mention(module, variable).first() {
            return Err(Refusal::of_global(
                other,
                "a variable that starts with the address of another device variable",
            ));
        }
    }
    for variable in variables {
        let name = variable.name();
        let pointer_symbol = format!("uma.pointer.{name}");
        let pointer = module.add_global(&pointer_symbol, Type::pointer());
        pointer.set_initializer(Type::pointer().null());
        pointer.set_exported();
        let init_symbol = variable.initializer().filter(|value| !value.is_zero_or_undefined()).map(|value| {
            let symbol = format!("uma.init.{name}");
            let bytes = module.add_global(&symbol, variable.value_type());
            bytes.set_initializer(value);
            bytes.set_global_constant(true);
            bytes.set_exported();
            symbol
        });
        infos.push(GlobalInfo {
            size: target.size_of(variable.value_type()),
            align: u64::from(variable.alignment()).max(target.align_of(variable.value_type())),
            managed: false,
            name,
            pointer_symbol,
            init_symbol,
        });
        let space = variable.ty();
        replace_in_functions(variable, |function| {
            let builder = Builder::at_start_of(function);
            let address = builder.load(Type::pointer(), pointer, "");
            invariant_load(address);
            builder.cast(crate::ir::Opcode::LLVMAddrSpaceCast, address, space)
        })?;
        variable.delete_global();
    }
    Ok(infos)
}
