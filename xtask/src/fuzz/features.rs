//! What a program uses, for the counts: a fuzzer that never writes a kind of program says nothing about it.

use std::collections::BTreeSet;

use super::edit;
use super::language::{Action, Condition, Kind, Memory, Program, Range, StreamKind, Way};

/// Names of what `program` uses.
pub(super) fn of(program: &Program) -> BTreeSet<&'static str> {
    let mut features = BTreeSet::new();
    edit::visit_all(program, &mut |stmt| {
        features.extend(of_statement(program, &stmt.kind));
        if let Kind::Loop { body, .. } = &stmt.kind {
            edit::visit(body, &mut |inner| {
                if matches!(inner.kind, Kind::Alloc(_)) {
                    features.insert("allocation in a loop");
                }
            });
        }
    });
    for buffer in &program.buffers {
        features.insert(match buffer.memory {
            Memory::Malloc => "malloc",
            Memory::Calloc => "calloc",
            Memory::AlignedAlloc => "aligned_alloc",
            Memory::NewArray => "new[]",
            Memory::Vector => "std::vector",
            Memory::UniquePtr => "std::unique_ptr",
            Memory::MallocHost | Memory::HostAlloc => "page-locked memory",
            Memory::CudaMalloc => "cudaMalloc",
            Memory::CudaMallocHelper => "cudaMalloc in a helper",
            Memory::CudaMallocAsync(_) => "cudaMallocAsync",
            Memory::CudaMallocFreedAsync(_) => "cudaFreeAsync of cudaMalloc's memory",
            Memory::DeviceOwner => "owning class",
        });
    }
    if program.streams.len() > 1 {
        features.insert("several streams");
    }
    if program.streams.contains(&StreamKind::NonBlocking) {
        features.insert("non-blocking stream");
    }
    features.insert(if program.constant_size { "constant size" } else { "size from the command line" });
    if program.buffers.len() > 2 {
        features.insert("several buffers");
    }
    features
}

fn of_statement(program: &Program, kind: &Kind) -> Vec<&'static str> {
    let mut features = Vec::new();
    let part = |range: &Range| *range != Range::Whole;
    let data = |condition: &Condition| matches!(condition, Condition::Data { .. } | Condition::AccOdd);
    match kind {
        Kind::Copy { to, from, range, shift, stream, .. } => {
            if stream.is_some() {
                features.push("asynchronous copy");
            }
            if part(range) {
                features.push("partial copy");
            }
            if *shift > 0 {
                features.push("copy between offsets");
            }
            if !program.is_host(*to) && !program.is_host(*from) {
                features.push("copy on the device");
            }
        }
        Kind::Launch { kernel, range, .. } => {
            if part(range) {
                features.push("kernel on a part");
            }
            match program.kernels.get(*kernel).map(|kernel| kernel.action) {
                Some(Action::Keep | Action::UseKept) => features.push("kept pointer"),
                Some(Action::Shared) => features.push("shared memory"),
                _ => {}
            }
            if program.kernels.get(*kernel).is_some_and(|kernel| kernel.structure) {
                features.push("pointers in a structure");
            }
        }
        Kind::Memset { .. } => features.push("memset on the device"),
        Kind::HostCopy { .. } => features.push("copy on the host"),
        Kind::Record { .. } => features.push("events"),
        Kind::StreamWait { .. } => features.push("streams ordered by events"),
        Kind::Swap(..) => features.push("swapped pointers"),
        Kind::Loop { .. } => features.push("loop"),
        Kind::If { condition, .. } | Kind::Break(condition) | Kind::Leave(condition) => {
            features.push(if data(condition) { "branch on data" } else { "branch" });
            if matches!(kind, Kind::Leave(_)) {
                features.push("goto cleanup");
            }
        }
        Kind::Free { guarded: true, .. } => features.push("guarded free"),
        Kind::Call { way, .. } => {
            features.push(if *way == Way::Apart { "function apart" } else { "inline function" });
        }
        Kind::Fill { way: Way::Library, .. }
        | Kind::Update { way: Way::Library, .. }
        | Kind::Read { way: Way::Library, .. } => features.push("algorithm of the library"),
        _ => {}
    }
    features
}
