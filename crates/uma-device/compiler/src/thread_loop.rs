//! Makes the entry of a kernel from its body: reads the parameters, then runs one thread, or all threads of a block in a loop.
//!
//! # Vectorising the loop over x
//! Threads of a block that never wait for each other have no order: whatever one thread writes, no other may read or write without a race,
//! which is undefined. So no memory access of one iteration depends on another iteration, and the loop may be marked parallel
//! (`llvm.loop.parallel_accesses`), which spares the vectoriser its alias checks. Where that reasoning has a gap the loop stays unmarked,
//! and LLVM proves for itself what it can:
//! - *Memory of the thread itself*: a local array or a copied parameter that stays in memory is one and the same for all iterations once
//!   the body is inlined.
//! - *Atomics and fences* order threads, so a race-free program may hand values from thread to thread through them.
//! - *Volatile accesses* are used for the same.
//! - *Calls* that access memory: their accesses cannot be seen.
//!
//! A thread that reads what it wrote itself is no such gap: within an iteration the vectoriser keeps the order of accesses, provided it
//! forms no interleaved groups (`codegen` turns them off).

use crate::codegen::Target;
use crate::ir::{At, Attribute, Block, Builder, Metadata, Module, Opcode, Predicate, Type, Value, metadata};
use crate::retarget::{KernelBody, context_field};
use std::mem::offset_of;
use uma_abi::{ThreadContext, ThreadMode};

/// What is done before the bodies are judged and put into loops.
pub(crate) const PREPARE: &str = "always-inline,cgscc(inline,function-attrs),globaldce,\
    function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,gvn,instcombine<no-verify-fixpoint>,simplifycfg),\
    cgscc(function-attrs)";

/// Adds the entry of a kernel; its symbol.
pub(crate) fn add_entry(module: &Module, target: &Target, kernel: &KernelBody) -> String {
    let symbol = format!("uma.kernel.{}", kernel.name);
    let entry = module.add_function(&symbol, Type::function(Type::void(), &[Type::pointer(), Type::pointer()]));
    entry.add_attribute(At::Function, Attribute::known("nounwind", 0));
    for (param, bytes) in [(0, 8 * kernel.params.len()), (1, size_of::<ThreadContext>())] {
        entry.add_attribute(At::Param(param), Attribute::known("noundef", 0));
        entry.add_attribute(At::Param(param), Attribute::known("align", 8));
        if bytes > 0 {
            entry.add_attribute(At::Param(param), Attribute::known("dereferenceable", bytes as u64));
        }
    }
    kernel.function.set_internal();
    kernel.function.set_name(&format!("uma.body.{}", kernel.name));
    kernel.function.add_attribute(At::Function, Attribute::known("alwaysinline", 0));
    let start = Builder::at_end(Block::append(entry, "start"));
    let params = Params::read(&start, entry, target, kernel);
    let context = entry.params()[1];
    match kernel.mode {
        ThreadMode::Thread => {
            let thread = |axis: usize| context_field(&start, context, offset_of!(ThreadContext, thread_idx) + 4 * axis);
            let thread = [thread(0), thread(1), thread(2)];
            params.call(&start, kernel, context, thread);
            start.return_void();
        }
        ThreadMode::Block => {
            let independent = params.copies.is_empty() && independent(kernel.function);
            let parallel = independent.then(|| mark_accesses(kernel.function));
            let size = |axis: usize| context_field(&start, context, offset_of!(ThreadContext, block_dim) + 4 * axis);
            let size = [size(0), size(1), size(2)];
            add_loops(entry, start, size, parallel, |builder, thread| params.call(builder, kernel, context, thread));
        }
    }
    symbol
}

/// The parameters of a kernel as its entry sees them.
struct Params {
    values: Vec<Value>,
    /// Structures that each thread needs a copy of, because it may write them.
    copies: Vec<Copied>,
}

struct Copied {
    original: Value,
    copy: Value,
    size: u32,
    align: u32,
}

impl Params {
    fn read(start: &Builder, entry: Value, target: &Target, kernel: &KernelBody) -> Params {
        let mut params = Params { values: Vec::new(), copies: Vec::new() };
        let args = entry.params()[0];
        let types = kernel.function.value_type().params();
        for (index, (info, &by_value)) in kernel.params.iter().zip(&kernel.by_value).enumerate() {
            let address = start.load(Type::pointer(), start.offset(args, 8 * index as u64, ""), "");
            if !by_value {
                let value = start.load(types[index], address, "");
                value.set_alignment(info.align);
                params.values.push(value);
                continue;
            }
            let at = At::Param(index as u32);
            if ["readonly", "readnone"].iter().any(|name| kernel.function.has_attribute(at, name)) {
                // Nobody writes the original, so all threads can read it, and no store of theirs changes it.
                kernel.function.add_attribute(at, Attribute::known("noalias", 0));
                params.values.push(address);
            } else {
                let copy = start.alloca(Type::int(8).array(info.size.into()));
                copy.set_alignment(info.align.max(target.align_of(Type::pointer()) as u32));
                params.copies.push(Copied { original: address, copy, size: info.size, align: info.align });
                params.values.push(copy);
            }
        }
        params
    }

    /// Calls the body for one thread.
    fn call(&self, builder: &Builder, kernel: &KernelBody, context: Value, thread: [Value; 3]) {
        for Copied { copy, original, size, align } in &self.copies {
            builder.copy_bytes(*copy, *original, *align, *size);
        }
        let mut arguments = self.values.clone();
        arguments.push(context);
        arguments.extend(thread);
        builder.call(kernel.function, kernel.function.value_type(), &arguments, "");
    }
}

/// Loops over z, y and x; `start` ends the block before them.
fn add_loops(
    entry: Value,
    start: Builder,
    size: [Value; 3],
    parallel: Option<Metadata>,
    body: impl Fn(&Builder, [Value; 3]),
) {
    let int = Type::int(32);
    let [x_block, y_block, z_block] = ["x", "y", "z"].map(|name| Block::append(entry, name));
    let [x_end, y_end, z_end] = ["x.end", "y.end", "z.end"].map(|name| Block::append(entry, name));
    // Every dimension is at least 1, so each loop tests at its end.
    let before = start.branch(z_block).block();
    let begin = |block: Block, from: Block| {
        let index = Builder::at_end(block).phi(int, "");
        index.add_incoming(int.null(), from);
        index
    };
    let z = begin(z_block, before);
    Builder::at_end(z_block).branch(y_block);
    let y = begin(y_block, z_block);
    Builder::at_end(y_block).branch(x_block);
    let x = begin(x_block, y_block);
    let inner = Builder::at_end(x_block);
    body(&inner, [x, y, z]);
    let close = |builder: &Builder, index: Value, limit: Value, again: Block, done: Block, from: Block| {
        let next = builder.add_no_wrap(index, int.constant(1), "");
        index.add_incoming(next, from);
        let more = builder.compare(Predicate::LLVMIntULT, next, limit);
        builder.conditional_branch(more, again, done)
    };
    let latch = close(&inner, x, size[0], x_block, x_end, x_block);
    close(&Builder::at_end(x_end), y, size[1], y_block, y_end, x_end);
    close(&Builder::at_end(y_end), z, size[2], z_block, z_end, y_end);
    Builder::at_end(z_end).return_void();
    if let Some(group) = parallel {
        latch.set_metadata("llvm.loop", loop_over(group));
    }
}

/// Whether no access of a thread can depend on another thread's, as the header argues.
fn independent(body: Value) -> bool {
    body.instructions().all(|instruction| match instruction.opcode() {
        Opcode::LLVMAlloca | Opcode::LLVMFence | Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg => false,
        Opcode::LLVMLoad | Opcode::LLVMStore => !instruction.is_volatile() && !instruction.is_atomic(),
        Opcode::LLVMCall => is_plain(instruction),
        _ => true,
    })
}

/// A call that accesses no memory.
fn is_plain(call: Value) -> bool {
    const HARMLESS: [&str; 5] =
        ["llvm.assume", "llvm.experimental.noalias.scope.decl", "llvm.expect", "llvm.donothing", "llvm.sideeffect"];
    let callee = call.callee();
    callee.is_function() && (callee.accesses_no_memory() || HARMLESS.iter().any(|name| callee.name().starts_with(name)))
}

/// Puts all accesses of a body into a new access group.
fn mark_accesses(body: Value) -> Metadata {
    let group = metadata("!0 = distinct !{}", 1)[0];
    for instruction in body.instructions() {
        if matches!(instruction.opcode(), Opcode::LLVMLoad | Opcode::LLVMStore) {
            instruction.set_metadata("llvm.access.group", group);
        }
    }
    group
}

/// The identity of a loop whose accesses in `group` are independent between iterations.
fn loop_over(group: Metadata) -> Metadata {
    let nodes = metadata("!0 = distinct !{!0, !1}\n!1 = !{!\"llvm.loop.parallel_accesses\", !2}\n!2 = distinct !{}", 3);
    nodes[1].set_operand(1, group);
    nodes[0]
}
