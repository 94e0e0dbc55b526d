//! Device half: which kernels write every byte of `[0, n·scale)` of a parameter, and what that takes.
//!
//! The claim is about a whole launch, so it is about its threads together: thread `t` of the grid's x dimension writes the `scale` bytes
//! from `t·scale` on, if `t < n`. Two shapes are known:
//! ```text
//! i = blockIdx.x * blockDim.x + threadIdx.x;  if (i < n) d[i] = …;                       needs n threads
//! for (i = …; i < n; i += blockDim.x * gridDim.x) d[i] = …;                              any grid does
//! ```
//!
//! # Why the claim holds
//! - *The index.* [`Index`] is a value that is `t` for each thread `t` below a limit: of 32-bit arithmetic 2^32 (a later thread wraps around
//!   and is of no use, but the thread with just that number exists), of its sign extension 2^31. Where the block is a literal in the
//!   kernel (`blockIdx.x * 256 + threadIdx.x`), the launch must have blocks of just that width.
//! - *The store happens.* A walk over the control flow of a thread with `t < n` finds no way to the end of the kernel that does not pass a
//!   block whose stores cover the `scale` bytes. A branch on `index < n` is decided for such a thread; of any other branch both ways are
//!   walked, so a store under another condition, or behind another return, claims nothing. All guards compare with one count.
//! - *The loop* must not be left, and not begin its next round, without the store; the only exits that count for nothing are the guards, behind which
//!   the thread has no more elements below n. Before an element below the limit nothing wraps: if the stride (`T`, all threads) is exact, the index
//!   has passed only smaller ones; if T itself wrapped, there are more threads than the limit, and each element is some thread's first.
//! - *The count* is a parameter or a constant, read as it is compared. A negative count compares as signed: then nothing is written, and
//!   nothing is claimed, because who uses the claim reads the count in the same way.
//! - *Nothing ends a thread early*: no call but of intrinsics and mathematical functions, no inline assembly, no trap.
//! - Kernels of which another copy may run claim nothing (`derive`): another optimiser may have dropped a store of what is there already.

use std::collections::HashSet;

use super::{Count, WritesAll};
use crate::ir::{Block, IntPredicate, Module, Opcode, TypeKind, Value};

/// A kernel with more blocks is not looked at. Those that fill a buffer have a handful.
const MAX_BLOCKS: usize = 200;
/// Bytes that one thread writes: a structure, not a whole buffer.
const MAX_SCALE: u64 = 256;

/// The claim for the pointer parameter `pointer` of a kernel.
#[must_use]
pub(super) fn claim<'m>(module: Module<'m>, kernel: Value<'m>, pointer: Value<'m>) -> Option<WritesAll> {
    let blocks: Vec<_> = kernel.blocks().take(MAX_BLOCKS + 1).collect();
    if blocks.len() > MAX_BLOCKS || kernel.instructions().any(ends_thread) {
        return None;
    }
    let pieces: Vec<_> = kernel.instructions().filter_map(|store| piece(module, store, pointer)).collect();
    // All shapes that some store has; a kernel has one or two.
    let mut shapes: Vec<(Index<'m>, u64)> = Vec::new();
    for piece in &pieces {
        if !shapes.contains(&(piece.index, piece.scale)) {
            shapes.push((piece.index, piece.scale));
        }
    }
    shapes.into_iter().find_map(|(index, scale)| {
        let covering = blocks.iter().copied().filter(|block| covers(&pieces, *block, index, scale)).collect();
        Walk { kernel, index, covering, count: None, limit: index.limit }.run(*blocks.first()?, scale)
    })
}

/// A value that is the number of the thread in the grid's x dimension, or an element of a loop that starts there.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Index<'m> {
    /// The thread's number is exact below this.
    limit: u64,
    /// The launch must have blocks of this width.
    block: Option<u32>,
    /// The loop that it counts: its phi.
    phi: Option<Value<'m>>,
    /// It is the element of the loop's next round.
    ahead: bool,
}

/// What a thread counts in 32 bits.
const UNSIGNED: u64 = 1 << 32;
const SIGNED: u64 = 1 << 31;

fn index<'m>(value: Value<'m>) -> Option<Index<'m>> {
    if let Some((limit, block)) = thread_number(value) {
        return Some(Index { limit, block, phi: None, ahead: false });
    }
    match value.opcode()? {
        Opcode::LLVMZExt => narrowed(index(value.operand(0)?)?, UNSIGNED),
        Opcode::LLVMSExt => narrowed(index(value.operand(0)?)?, SIGNED),
        Opcode::LLVMPHI => grid_stride(value),
        // The next round's element.
        Opcode::LLVMAdd => {
            let phi = value.operands().into_iter().find(|operand| operand.opcode() == Some(Opcode::LLVMPHI))?;
            let is_next = phi.incoming().iter().any(|(input, _)| *input == value);
            grid_stride(phi).filter(|_| is_next).map(|index| Index { ahead: true, ..index })
        }
        _ => None,
    }
}

fn narrowed(index: Index<'_>, limit: u64) -> Option<Index<'_>> {
    Some(Index { limit: index.limit.min(limit), ..index })
}

/// `blockIdx.x * blockDim.x + threadIdx.x`: below which number it is exact, and the width of the block where that is a literal.
fn thread_number(value: Value<'_>) -> Option<(u64, Option<u32>)> {
    match value.opcode()? {
        Opcode::LLVMZExt => thread_number(value.operand(0)?).map(|(limit, block)| (limit.min(UNSIGNED), block)),
        Opcode::LLVMSExt => thread_number(value.operand(0)?).map(|(limit, block)| (limit.min(SIGNED), block)),
        Opcode::LLVMAdd => sum(value),
        Opcode::LLVMOr if value.is_disjoint_or() => sum(value),
        _ => None,
    }
}

fn sum(value: Value<'_>) -> Option<(u64, Option<u32>)> {
    let (left, right) = (value.operand(0)?, value.operand(1)?);
    let first = if reads_register(left, "tid.x") {
        right
    } else if reads_register(right, "tid.x") {
        left
    } else {
        return None;
    };
    let (limit, block) = first_of_block(first)?;
    Some((limit.min(wrap(value)?), block))
}

/// `blockIdx.x * blockDim.x`
fn first_of_block(value: Value<'_>) -> Option<(u64, Option<u32>)> {
    let extended = |limit: u64| first_of_block(value.operand(0)?).map(|(exact, block)| (exact.min(limit), block));
    match value.opcode()? {
        Opcode::LLVMZExt => return extended(UNSIGNED),
        Opcode::LLVMSExt => return extended(SIGNED),
        _ => {}
    }
    let (left, right) = (value.operand(0)?, value.operand(1)?);
    match value.opcode()? {
        Opcode::LLVMMul => {
            let (number, width) = if reads_register(left, "ctaid.x") { (left, right) } else { (right, left) };
            if !reads_register(number, "ctaid.x") {
                return None;
            }
            if reads_register(width, "ntid.x") {
                return Some((wrap(value)?, None));
            }
            Some((wrap(value)?, Some(u32::try_from(width.constant_uint()?).ok()?)))
        }
        Opcode::LLVMShl if reads_register(left, "ctaid.x") => {
            Some((wrap(value)?, Some(1_u32.checked_shl(u32::try_from(right.constant_uint()?).ok()?)?)))
        }
        _ => None,
    }
}

/// Where arithmetic of this width wraps.
fn wrap(value: Value<'_>) -> Option<u64> {
    match value.ty().int_width()? {
        32 => Some(UNSIGNED),
        64 => Some(u64::MAX),
        _ => None,
    }
}

/// The special register, or an extension of it: they all hold less than 2^31.
fn reads_register(value: Value<'_>, register: &str) -> bool {
    let extended = matches!(value.opcode(), Some(Opcode::LLVMZExt | Opcode::LLVMSExt));
    let read = if extended { value.operand(0) } else { Some(value) };
    read.and_then(Value::called_function)
        .is_some_and(|callee| callee.name().strip_prefix("llvm.nvvm.read.ptx.sreg.") == Some(register))
}

/// A phi that begins at the thread's number and goes on by the number of all threads.
fn grid_stride(phi: Value<'_>) -> Option<Index<'_>> {
    let [(one, _), (other, _)] = phi.incoming()[..] else { return None };
    let (first, next) = if other.opcode() == Some(Opcode::LLVMAdd) && other.operands().contains(&phi) {
        (one, other)
    } else {
        (other, one)
    };
    let (limit, block) = thread_number(first)?;
    if next.opcode() != Some(Opcode::LLVMAdd) {
        return None;
    }
    let (left, right) = (next.operand(0)?, next.operand(1)?);
    let stride = if left == phi { right } else { left };
    let stride_limit = (left == phi || right == phi).then(|| all_threads(stride, block)).flatten()?;
    Some(Index { limit: limit.min(stride_limit).min(wrap(phi)?), block, phi: Some(phi), ahead: false })
}

/// `blockDim.x * gridDim.x`: below which number it is exact.
fn all_threads(value: Value<'_>, block: Option<u32>) -> Option<u64> {
    match value.opcode()? {
        Opcode::LLVMZExt => Some(all_threads(value.operand(0)?, block)?.min(UNSIGNED)),
        Opcode::LLVMSExt => Some(all_threads(value.operand(0)?, block)?.min(SIGNED)),
        Opcode::LLVMMul => {
            let (left, right) = (value.operand(0)?, value.operand(1)?);
            let (grid, width) = if reads_register(left, "nctaid.x") { (left, right) } else { (right, left) };
            let is_width = reads_register(width, "ntid.x")
                || block.is_some_and(|block| width.constant_uint() == Some(u64::from(block)));
            (reads_register(grid, "nctaid.x") && is_width).then(|| wrap(value)).flatten()
        }
        Opcode::LLVMShl => {
            let shift = u32::try_from(value.operand(1)?.constant_uint()?).ok()?;
            let is_width = block.is_some_and(|block| 1_u32.checked_shl(shift) == Some(block));
            (reads_register(value.operand(0)?, "nctaid.x") && is_width).then(|| wrap(value)).flatten()
        }
        _ => None,
    }
}

/// A store to `pointer[index·scale + offset]`.
struct Piece<'m> {
    block: Block<'m>,
    index: Index<'m>,
    scale: u64,
    offset: u64,
    size: u64,
}

fn piece<'m>(module: Module<'m>, store: Value<'m>, pointer: Value<'m>) -> Option<Piece<'m>> {
    if store.opcode() != Some(Opcode::LLVMStore) {
        return None;
    }
    let value = store.operand(0).filter(|value| !value.is_undef())?;
    let size = module.store_size(value.ty()).filter(|_| is_all_bytes(value))?;
    let (mut address, mut offset, mut element) = (store.operand(1)?, 0_u64, None);
    while address != pointer {
        match address.opcode()? {
            Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast => {}
            Opcode::LLVMGetElementPtr => {
                // One index, of an element of the source type.
                let step = address.operand(1).filter(|_| address.operand_count() == 2)?;
                let scale = module.alloc_size(address.gep_source_type()?)?;
                match step.constant_uint() {
                    Some(count) => offset = offset.checked_add(count.checked_mul(scale)?)?,
                    None if element.is_none() => {
                        // A narrow index is sign-extended.
                        let exact = if step.ty().int_width() == Some(64) { u64::MAX } else { SIGNED };
                        element = Some((narrowed(index(step)?, exact)?, scale));
                    }
                    None => return None,
                }
            }
            _ => return None,
        }
        address = address.operand(0)?;
    }
    let (index, scale) = element.filter(|(index, scale)| *scale <= MAX_SCALE && !index.ahead)?;
    Some(Piece { block: store.block()?, index, scale, offset, size })
}

/// Does a store of the value write all bits of its bytes?
fn is_all_bytes(value: Value<'_>) -> bool {
    let ty = value.ty();
    match ty.kind() {
        TypeKind::LLVMIntegerTypeKind => ty.int_width().is_some_and(|width| width % 8 == 0),
        TypeKind::LLVMHalfTypeKind
        | TypeKind::LLVMBFloatTypeKind
        | TypeKind::LLVMFloatTypeKind
        | TypeKind::LLVMDoubleTypeKind => true,
        _ => false,
    }
}

/// Do the block's stores of this shape cover all bytes of the element?
fn covers<'m>(pieces: &[Piece<'m>], block: Block<'m>, index: Index<'m>, scale: u64) -> bool {
    let mut parts: Vec<_> = pieces
        .iter()
        .filter(|piece| (piece.block, piece.index, piece.scale) == (block, index, scale))
        .map(|piece| (piece.offset, piece.offset.saturating_add(piece.size)))
        .collect();
    parts.sort_unstable();
    parts.into_iter().fold(0, |end, (start, stop)| if start <= end { end.max(stop) } else { end }) >= scale
}

/// May the instruction end the thread, or do something that is not looked at?
fn ends_thread(instruction: Value<'_>) -> bool {
    const ENDING: [&str; 4] = ["llvm.nvvm.exit", "llvm.trap", "llvm.ubsantrap", "llvm.debugtrap"];
    match instruction.opcode() {
        Some(Opcode::LLVMUnreachable | Opcode::LLVMInvoke | Opcode::LLVMCallBr) => true,
        Some(Opcode::LLVMCall) => {
            let name = instruction.called_function().filter(|callee| callee.is_declaration()).map(Value::name);
            name.is_none_or(|name| {
                ENDING.iter().any(|ending| name.starts_with(ending))
                    || !(name.starts_with("llvm.") || name.starts_with("__nv_") || name == "vprintf")
            })
        }
        _ => false,
    }
}

/// The walk of a thread that has an element to write.
struct Walk<'m> {
    kernel: Value<'m>,
    index: Index<'m>,
    covering: HashSet<Block<'m>>,
    count: Option<Count>,
    limit: u64,
}

impl<'m> Walk<'m> {
    fn run(mut self, entry: Block<'m>, scale: u64) -> Option<WritesAll> {
        let header = self.index.phi.and_then(Value::block);
        let mut seen = HashSet::new();
        // A block, and whether this round's element is written when control comes there.
        let mut open = vec![(entry, false)];
        while let Some((block, written)) = open.pop() {
            if !seen.insert((block, written)) {
                continue;
            }
            let written = written || self.covering.contains(&block);
            if written && header.is_none() {
                continue;
            }
            let end = block.terminator()?;
            if end.opcode() == Some(Opcode::LLVMRet) {
                return None;
            }
            let successors = match end.branch_condition().map(|condition| self.guard(condition, written)) {
                Some(Some(below)) => {
                    let [yes, no] = block.successors()[..] else { return None };
                    vec![if below { yes } else { no }]
                }
                _ => block.successors(),
            };
            for next in successors {
                let into_loop = header == Some(next);
                if into_loop && !written && self.is_round(block) {
                    return None;
                }
                open.push((next, written && !into_loop));
            }
        }
        let whatever_grid = header.is_some();
        let count = match self.count {
            Some(count) => count,
            // Without a guard the loop would not end.
            None if whatever_grid => return None,
            None => Count::Threads,
        };
        Some(WritesAll { count, scale, limit: self.limit, block: self.index.block, whatever_grid })
    }

    /// Does control come from the block to the loop's header for another round?
    fn is_round(&self, block: Block<'m>) -> bool {
        self.index.phi.is_some_and(|phi| {
            phi.incoming()
                .iter()
                .any(|(input, from)| *from == block && index(*input).is_some_and(|input| input.phi.is_some()))
        })
    }

    /// For `index < n` and its like: the outcome for a thread that has an element to write. Notes n. That the next round has none says
    /// nothing of this round's, which must be `written`.
    fn guard(&mut self, condition: Value<'m>, written: bool) -> Option<bool> {
        use IntPredicate::{
            LLVMIntSGE, LLVMIntSGT, LLVMIntSLE, LLVMIntSLT, LLVMIntUGE, LLVMIntUGT, LLVMIntULE, LLVMIntULT,
        };
        let predicate = condition.integer_predicate()?;
        let (left, right) = (condition.operand(0)?, condition.operand(1)?);
        let (below, number, limit) = match (index(left), index(right)) {
            (Some(number), None) => {
                (matches!(predicate, LLVMIntSLT | LLVMIntSLE | LLVMIntULT | LLVMIntULE), number, right)
            }
            (None, Some(number)) => {
                (matches!(predicate, LLVMIntSGT | LLVMIntSGE | LLVMIntUGT | LLVMIntUGE), number, left)
            }
            _ => return None,
        };
        let signed = matches!(predicate, LLVMIntSLT | LLVMIntSLE | LLVMIntSGT | LLVMIntSGE);
        let unsigned = matches!(predicate, LLVMIntULT | LLVMIntULE | LLVMIntUGT | LLVMIntUGE);
        // The thread's own number is an index in a loop as well, before it.
        let same = number.block == self.index.block && (number.phi.is_none() || number.phi == self.index.phi);
        let count = self.count_of(limit, signed)?;
        if !(signed || unsigned) || !same || number.ahead && !written || self.count.is_some_and(|known| known != count)
        {
            return None;
        }
        let wraps = wrap(left)?;
        self.limit = self.limit.min(number.limit).min(if signed { wraps / 2 } else { wraps });
        self.count = Some(count);
        Some(below)
    }

    fn count_of(&self, value: Value<'m>, signed: bool) -> Option<Count> {
        if let Some(constant) = if signed { value.constant_int() } else { value.constant_uint().map(u64::cast_signed) }
        {
            return u64::try_from(constant).ok().map(Count::Constant);
        }
        let (parameter, signed) = match value.opcode() {
            Some(Opcode::LLVMZExt) => (value.operand(0)?, false),
            Some(Opcode::LLVMSExt) => (value.operand(0)?, true),
            _ => (value, signed),
        };
        let index = self.kernel.parameters().iter().position(|candidate| *candidate == parameter)?;
        let bits = parameter.ty().int_width()?;
        Some(Count::Param { index: u32::try_from(index).ok()?, bits, signed })
    }
}
