//! Special registers: threadIdx is a parameter, the other coordinates are read from the context, some registers have a fixed value here.

use crate::ir::{Builder, Module, Opcode, Type, Value, invariant_load};
use crate::retarget::hidden_params::Hidden;
use std::mem::offset_of;
use uma_abi::{ThreadContext, WARP_SIZE};

#[derive(Clone, Copy)]
enum Register {
    Thread(usize),
    /// A 32-bit field of the context, by offset.
    Field(usize),
    Fixed(u32),
    Lane,
    Warp,
    /// A mask of the lanes that compare so with this one.
    LaneMask(Compared),
}

#[derive(Clone, Copy)]
enum Compared {
    Equal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

fn register(name: &str) -> Option<Register> {
    let field = |offset: usize, axis: usize| Register::Field(offset + 4 * axis);
    let name = name.strip_prefix("llvm.nvvm.read.ptx.sreg.")?;
    let axis = ["x", "y", "z"].iter().position(|axis| name.ends_with(&format!(".{axis}")));
    if let Some(axis) = axis {
        return match &name[..name.len() - 2] {
            "tid" => Some(Register::Thread(axis)),
            "ntid" => Some(field(offset_of!(ThreadContext, block_dim), axis)),
            "ctaid" => Some(field(offset_of!(ThreadContext, block_idx), axis)),
            "nctaid" => Some(field(offset_of!(ThreadContext, grid_dim), axis)),
            _ => None,
        };
    }
    Some(match name {
        "warpsize" => Register::Fixed(WARP_SIZE),
        "smid" => Register::Fixed(0),
        "nsmid" => Register::Fixed(1),
        "laneid" => Register::Lane,
        "warpid" => Register::Warp,
        "lanemask.eq" => Register::LaneMask(Compared::Equal),
        "lanemask.lt" => Register::LaneMask(Compared::Less),
        "lanemask.le" => Register::LaneMask(Compared::LessEqual),
        "lanemask.gt" => Register::LaneMask(Compared::Greater),
        "lanemask.ge" => Register::LaneMask(Compared::GreaterEqual),
        _ => return None,
    })
}

/// Whether this names a register that has a meaning here.
pub(crate) fn is_register(name: &str) -> bool {
    register(name).is_some()
}

/// Replaces the reads of special registers.
pub(crate) fn replace(module: &Module, hidden: &Hidden) {
    for declared in module.functions().into_iter().filter(|function| function.is_declaration()) {
        let Some(register) = register(&declared.name()) else { continue };
        for call in declared.users() {
            let value = read(register, call, hidden);
            call.replace_all_uses_with(value);
            call.erase();
        }
        declared.delete_function();
    }
}

fn read(register: Register, call: Value, hidden: &Hidden) -> Value {
    let function = call.function();
    let int = Type::int(32);
    match register {
        Register::Thread(axis) => hidden.thread(function, axis),
        // In the entry block, where it is read whatever the thread does, so that a loop over threads can read it once.
        Register::Field(offset) => context_field(&Builder::at_start_of(function), hidden.context(function), offset),
        Register::Fixed(value) => int.constant(value.into()),
        Register::Lane => lane(&Builder::before(call), function, hidden),
        Register::Warp => {
            let builder = Builder::before(call);
            builder.binary(Opcode::LLVMLShr, linear(&builder, function, hidden), int.constant(5))
        }
        Register::LaneMask(compared) => {
            let builder = Builder::before(call);
            let ones = |bits: u64, shift: u64| {
                let mut lane = lane(&builder, function, hidden);
                if shift != 0 {
                    lane = builder.binary(Opcode::LLVMAdd, lane, int.constant(shift));
                }
                // In 64 bits, so that a shift by 32 is one.
                let wide = builder.cast(Opcode::LLVMZExt, lane, Type::int(64));
                let mask = builder.binary(Opcode::LLVMShl, Type::int(64).constant(bits), wide);
                builder.cast(Opcode::LLVMTrunc, mask, int)
            };
            let not = |mask| builder.binary(Opcode::LLVMXor, mask, int.constant(u32::MAX.into()));
            match compared {
                Compared::Equal => ones(1, 0),
                Compared::GreaterEqual => ones(u64::MAX, 0),
                Compared::Greater => ones(u64::MAX, 1),
                Compared::Less => not(ones(u64::MAX, 0)),
                Compared::LessEqual => not(ones(u64::MAX, 1)),
            }
        }
    }
}

/// Reads a 32-bit field that does not change while a block runs.
pub(crate) fn context_field(builder: &Builder, context: Value, offset: usize) -> Value {
    let value = builder.load(Type::int(32), builder.offset(context, offset as u64, ""), "");
    invariant_load(value);
    value
}

/// threadIdx as one number: x fastest.
fn linear(builder: &Builder, function: Value, hidden: &Hidden) -> Value {
    let size =
        |axis: usize| context_field(builder, hidden.context(function), offset_of!(ThreadContext, block_dim) + 4 * axis);
    let plane = builder.binary(Opcode::LLVMMul, hidden.thread(function, 2), size(1));
    let row = builder.binary(Opcode::LLVMAdd, plane, hidden.thread(function, 1));
    let before = builder.binary(Opcode::LLVMMul, row, size(0));
    builder.binary(Opcode::LLVMAdd, before, hidden.thread(function, 0))
}

fn lane(builder: &Builder, function: Value, hidden: &Hidden) -> Value {
    builder.binary(Opcode::LLVMAnd, linear(builder, function, hidden), Type::int(32).constant(u64::from(WARP_SIZE) - 1))
}
