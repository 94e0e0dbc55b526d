//! Shared memory: each variable gets an offset in the block's shared memory, which the context points to.
//!
//! A variable that several kernels reach (through a device function) has one offset in all of them, at the start; the others follow,
//! kernel by kernel from the same start, so that a kernel only pays for what it can reach.

use crate::codegen::Target;
use crate::ir::{Builder, Module, Opcode, Type, Value, invariant_load};
use crate::retarget::constants::{initializers_that_mention, replace_in_functions};
use crate::retarget::hidden_params::Hidden;
use crate::retarget::reach::Reach;
use crate::retarget::refuse::Refusal;
use std::collections::HashMap;
use std::mem::offset_of;
use uma_abi::ThreadContext;

/// Address space of shared variables.
const SHARED: u32 = 3;
/// What the dynamic part is aligned to where no declaration asks for more.
const DYNAMIC_ALIGNMENT: u64 = 16;

/// Replaces shared variables; the bytes of static shared memory of each kernel.
pub(crate) fn replace(
    module: &Module,
    target: &Target,
    kernels: &[Value],
    reach: &Reach,
    hidden: &Hidden,
) -> Result<HashMap<Value, u64>, Refusal> {
    let variables: Vec<_> =
        module.globals().into_iter().filter(|global| global.ty().address_space() == SHARED).collect();
    let (dynamic, fixed): (Vec<_>, Vec<_>) = variables.into_iter().partition(|variable| variable.is_declaration());
    let users = |variable: Value| kernels.iter().filter(move |&&kernel| reach.reaches(kernel, variable)).copied();

    let mut offsets = HashMap::new();
    let mut place = |variable: Value, end: u64| {
        let offset = end.next_multiple_of(u64::from(variable.alignment()).max(1));
        offsets.insert(variable, offset);
        offset + target.size_of(variable.value_type())
    };
    let (common, own): (Vec<Value>, Vec<Value>) = fixed.iter().partition(|&&variable| users(variable).count() > 1);
    let common_end = common.iter().fold(0, |end, &variable| place(variable, end));
    let mut sizes: HashMap<Value, u64> = HashMap::new();
    for &kernel in kernels {
        let mine = own.iter().filter(|&&variable| reach.reaches(kernel, variable));
        sizes.insert(kernel, mine.fold(common_end, |end, &variable| place(variable, end)));
    }
    for &kernel in kernels {
        let uses_any = fixed.iter().any(|&variable| reach.reaches(kernel, variable));
        let alignment = dynamic
            .iter()
            .filter(|&&variable| reach.reaches(kernel, variable))
            .map(|variable| u64::from(variable.alignment()))
            .fold(DYNAMIC_ALIGNMENT, u64::max);
        let size = if uses_any { sizes[&kernel] } else { 0 };
        sizes.insert(kernel, size.next_multiple_of(alignment));
    }

    for variable in fixed.into_iter().chain(dynamic) {
        if let Some(other) = initializers_that_mention(module, variable).first() {
            return Err(Refusal::of_global(*other, "a variable that starts with the address of shared memory"));
        }
        let offset = offsets.get(&variable).copied();
        let space = variable.ty();
        replace_in_functions(variable, |function| {
            let builder = Builder::at_start_of(function);
            let field = match offset {
                Some(_) => offset_of!(ThreadContext, shared),
                None => offset_of!(ThreadContext, dynamic),
            };
            let base = builder.load(Type::pointer(), builder.offset(hidden.context(function), field as u64, ""), "");
            invariant_load(base);
            let pointer = builder.offset(base, offset.unwrap_or(0), &variable.name());
            builder.cast(Opcode::LLVMAddrSpaceCast, pointer, space)
        })?;
        variable.delete_global();
    }
    Ok(sizes)
}
