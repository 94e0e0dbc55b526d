//! The inline PTX of CUDA's own headers that has an exact meaning here. All other inline PTX is refused.

use crate::ir::{Builder, Module, Opcode, Type, Value};

/// What a piece of PTX stands for.
enum Stand {
    /// A call of this function (an intrinsic, or one of the device library) with the same operands.
    Call(&'static str),
    /// The address of memory that the runtime reserves in shared memory for groups of several warps. Those groups wait for each other with
    /// other PTX, which is refused; for all smaller ones the address is stored and never used.
    NoAddress,
}

/// Text with single spaces, and what it stands for.
const KNOWN: [(&str, Stand); 12] = [
    ("nanosleep.u32 $0;", Stand::Call("llvm.nvvm.nanosleep")),
    ("mov.u32 $0, %laneid;", Stand::Call("llvm.nvvm.read.ptx.sreg.laneid")),
    ("mov.u32 $0, %lanemask_eq;", Stand::Call("llvm.nvvm.read.ptx.sreg.lanemask.eq")),
    ("mov.u32 $0, %lanemask_lt;", Stand::Call("llvm.nvvm.read.ptx.sreg.lanemask.lt")),
    ("mov.u32 $0, %lanemask_le;", Stand::Call("llvm.nvvm.read.ptx.sreg.lanemask.le")),
    ("mov.u32 $0, %lanemask_gt;", Stand::Call("llvm.nvvm.read.ptx.sreg.lanemask.gt")),
    ("mov.u32 $0, %lanemask_ge;", Stand::Call("llvm.nvvm.read.ptx.sreg.lanemask.ge")),
    ("shf.l.wrap.b32 $0, $1, $2, $3;", Stand::Call("ptx.shf.l.wrap.b32")),
    ("shf.l.clamp.b32 $0, $1, $2, $3;", Stand::Call("ptx.shf.l.clamp.b32")),
    ("shf.r.wrap.b32 $0, $1, $2, $3;", Stand::Call("ptx.shf.r.wrap.b32")),
    ("shf.r.clamp.b32 $0, $1, $2, $3;", Stand::Call("ptx.shf.r.clamp.b32")),
    (
        "{ .reg .u32 start; .reg .u64 extended; mov.u32 start, %reserved_smem_offset_1; cvt.u64.u32 extended, start; cvta.shared.u64 $0, extended; }",
        Stand::NoAddress,
    ),
];

/// Replaces known PTX by what it stands for.
pub(crate) fn translate(module: &Module) {
    let calls: Vec<_> = module
        .functions()
        .into_iter()
        .flat_map(Value::instructions)
        .filter(|instruction| instruction.opcode() == Opcode::LLVMCall)
        .collect();
    for call in calls {
        let Some(text) = call.callee().inline_assembly() else { continue };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some((_, stand)) = KNOWN.iter().find(|(known, _)| *known == text) else { continue };
        let builder = Builder::before(call);
        let value = match stand {
            Stand::Call(name) => {
                let operands = call.call_arguments();
                let types: Vec<_> = operands.iter().map(|operand| operand.ty()).collect();
                let ty = Type::function(call.ty(), &types);
                let callee = module.function(name).unwrap_or_else(|| module.add_function(name, ty));
                builder.call(callee, ty, &operands, "")
            }
            Stand::NoAddress => call.ty().null(),
        };
        call.replace_all_uses_with(value);
        call.erase();
    }
}
