//! Tests of the lowering: IR text in, the event program as text out.

mod callees;
mod calls;
mod empty;
mod grids;
mod kernels;
mod libraries;
mod pointers;
pub(crate) mod shapes;

use inkwell::context::Context as LlvmContext;
use inkwell::memory_buffer::MemoryBuffer;

use super::{Context, Lowered, lower_function};
use crate::analysis::program::{AccessKind, Event, NodeId, Place, Program, Range, WaitScope, Work};
use crate::effects::EffectTable;

/// Declarations that the snippets use.
pub(crate) const DECLARATIONS: &str = r#"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
%struct.dim3 = type { i32, i32, i32 }
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare i32 @posix_memalign(ptr, i64, i64)
declare ptr @aligned_alloc(i64, i64)
declare ptr @_Znwm(i64)
declare void @_ZdlPv(ptr)
declare void @_ZdlPvm(ptr, i64)
declare void @free(ptr)
declare void @exit(i32) noreturn
declare i32 @printf(ptr, ...)
declare i64 @fwrite(ptr, i64, i64, ptr)
declare i64 @fread(ptr, i64, i64, ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare i64 @strtol(ptr, ptr, i32)
declare ptr @strcat(ptr, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @fork()
declare i32 @_setjmp(ptr) returns_twice
declare void @use(ptr)
declare void @other()
declare i32 @cudaMalloc(ptr, i64)
declare i32 @cudaMallocAsync(ptr, i64, ptr)
declare i32 @cudaMallocHost(ptr, i64)
declare i32 @cudaHostAlloc(ptr, i64, i32)
declare i32 @cudaMallocPitch(ptr, ptr, i64, i64)
declare i32 @cudaFree(ptr)
declare i32 @cudaFreeAsync(ptr, ptr)
declare i32 @cudaFreeHost(ptr)
declare i32 @cudaMemcpy(ptr, ptr, i64, i32)
declare i32 @cudaMemcpy_ptds(ptr, ptr, i64, i32)
declare i32 @cudaMemcpyAsync(ptr, ptr, i64, i32, ptr)
declare i32 @cudaMemcpyToSymbol(ptr, ptr, i64, i64, i32)
declare i32 @cudaMemset(ptr, i32, i64)
declare i32 @cudaMemsetAsync(ptr, i32, i64, ptr)
declare i32 @cudaDeviceSynchronize()
declare i32 @cudaStreamSynchronize(ptr)
declare i32 @cudaStreamCreate(ptr)
declare i32 @cudaStreamCreateWithFlags(ptr, i32)
declare i32 @cudaStreamWaitEvent(ptr, ptr, i32)
declare i32 @cudaStreamBeginCapture(ptr, i32)
declare i32 @cudaEventCreate(ptr)
declare i32 @cudaEventRecord(ptr, ptr)
declare i32 @cudaEventSynchronize(ptr)
declare i32 @cudaEventElapsedTime(ptr, ptr, ptr)
declare i32 @cudaHostRegister(ptr, i64, i32)
declare i32 @cudaPointerGetAttributes(ptr, ptr)
declare i32 @cudaSetDevice(i32)
declare i32 @cudaDeviceReset()
declare i32 @cudaGetLastError()
declare i32 @cudaFrobnicate(ptr)
declare i32 @cudaLaunchKernel(ptr, i64, i32, i64, i32, ptr, i64, ptr)
declare i32 @__cudaPushCallConfiguration(i64, i32, i64, i32, i64, ptr)
declare i32 @__cudaPopCallConfiguration(ptr, ptr, ptr, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"#;

/// What a unit's constructor says at start-up: the host function `stub` launches the kernel of that name.
pub(crate) fn registration(stub: &str, kernel: &str) -> String {
    format!(
        r#"
@kernel.name = private constant [{} x i8] c"{kernel}\00"
declare i32 @__cudaRegisterFunction(ptr, ptr, ptr, ptr, i32, ptr, ptr, ptr, ptr, ptr)
define internal void @__cuda_register_globals(ptr %handle) {{
  %e = call i32 @__cudaRegisterFunction(ptr %handle, ptr @{stub}, ptr @kernel.name, ptr @kernel.name, i32 -1, ptr null, ptr null, ptr null, ptr null, ptr null)
  ret void
}}
"#,
        kernel.len() + 1
    )
}

/// The module made of [`DECLARATIONS`] and `ir`.
#[track_caller]
pub(crate) fn parse<'c>(context: &'c LlvmContext, ir: &str) -> inkwell::module::Module<'c> {
    // What the module declares itself, it declares otherwise.
    let own = |line: &&str| line.split_once('(').is_some_and(|(start, _)| ir.contains(&format!("{start}(")));
    let declared: Vec<_> = DECLARATIONS.lines().filter(|line| !own(line)).collect();
    let mut text = format!("{}\n{ir}", declared.join("\n")).into_bytes();
    text.push(0);
    let buffer = MemoryBuffer::create_from_memory_range_copy(&text, "test.ll");
    let module = context.create_module_from_ir(buffer).unwrap_or_else(|error| panic!("{}", error.to_string_lossy()));
    module.verify().unwrap_or_else(|error| panic!("{}", error.to_string_lossy()));
    module
}

/// Lowers the function `@main` of a module made of [`DECLARATIONS`] and `ir`.
#[track_caller]
pub(super) fn lower<R>(ir: &str, check: impl FnOnce(&Lowered<'_>) -> R) -> R {
    lower_with(ir, EffectTable::default(), "main", check)
}

/// Lowers a function with what is known of the kernels.
#[track_caller]
pub(super) fn lower_with<R>(
    ir: &str,
    effects: EffectTable,
    function: &str,
    check: impl FnOnce(&Lowered<'_>) -> R,
) -> R {
    let context = LlvmContext::create();
    let module = parse(&context, ir);
    // SAFETY: the module lives until the end of this function, and nobody else has it.
    let view = unsafe { crate::ir::Module::new(module.as_mut_ptr()) };
    let context = Context::new(view, effects);
    let function = context.module.functions().find(|candidate| candidate.name() == function).expect("the function");
    check(&lower_function(&context, function).expect("a body"))
}

/// The program of `@main`, one line a node, object, use and blemish.
#[track_caller]
pub(super) fn text(ir: &str) -> String {
    lower(ir, |lowered| describe(&lowered.program))
}

/// See [`text`]. Nodes are numbered; an edge that is not to the next number is shown.
pub(super) fn describe(program: &Program) -> String {
    let mut lines = Vec::new();
    for object in &program.objects {
        let size = object.size.as_ref().map_or("?".to_owned(), |size| match size.as_constant() {
            Some(bytes) => bytes.to_string(),
            None => "dynamic".to_owned(),
        });
        lines.push(format!("object {:?} {:?} {size}", object.space, object.origin));
    }
    for node in program.graph.node_indices() {
        let mut next: Vec<_> = program.graph.neighbors(node).map(NodeId::index).collect();
        next.sort_unstable();
        let ends = matches!(program.graph[node].event, Event::Exit { .. });
        let edges = if next == [node.index() + 1] || ends { String::new() } else { format!(" -> {next:?}") };
        lines.push(format!("{}: {}{edges}", node.index(), event(program, &program.graph[node].event)));
    }
    for usage in &program.uses {
        lines.push(format!("use of {} at {}: {:?}", usage.object.0, usage.node.index(), usage.kind));
    }
    for blemish in &program.blemishes {
        let objects: Vec<_> = blemish.objects.iter().map(|object| object.0).collect();
        lines.push(format!("blemish at {}: {:?} {objects:?}", blemish.node.index(), blemish.kind));
    }
    lines.join("\n")
}

fn event(program: &Program, event: &Event) -> String {
    let stream = |id: crate::analysis::program::StreamId| format!("{:?}#{}", program.streams[id.0 as usize], id.0);
    let wait = |scope: &WaitScope| match scope {
        WaitScope::Device => "device".to_owned(),
        WaitScope::Stream(id) => stream(*id),
        WaitScope::Event(id) => format!("event#{} unique={}", id.0, program.cuda_events[id.0 as usize].unique),
    };
    match event {
        Event::Skip => "skip".to_owned(),
        Event::Alloc(object) => format!("alloc {}", object.0),
        Event::Free { object, waits, stream: on, may_be_null } => {
            let unless = if *may_be_null { "?" } else { "" };
            let waits = waits.as_ref().map_or(String::new(), |scope| format!(" waits {}", wait(scope)));
            format!("free{unless} {}{waits}{}", object.0, on.map_or(String::new(), |on| format!(" on {}", stream(on))))
        }
        Event::Host(accesses) => format!("host{}", access_text(accesses)),
        Event::Enqueue { stream: on, work } => format!("enqueue {} {}", stream(*on), work_text(work)),
        Event::Copy(copy) => format!(
            "copy {} <- {} on {} before={} after={} consumed={}",
            place(&copy.dst),
            place(&copy.src),
            stream(copy.stream),
            u8::from(copy.waits_before),
            u8::from(copy.waits_after),
            u8::from(copy.host_source_consumed)
        ),
        Event::Wait(scope) => format!("wait {}", wait(scope)),
        Event::Record { event, stream: on } => {
            format!("record {} on {}", wait(&WaitScope::Event(*event)), stream(*on))
        }
        Event::StreamWait { stream: on, event } => {
            format!("{} waits for {}", stream(*on), wait(&WaitScope::Event(*event)))
        }
        Event::Opaque { launches, name } => format!("opaque {name} launches={launches}"),
        Event::Exit { returns } => format!("exit returns={returns}"),
    }
}

fn work_text(work: &Work) -> String {
    let captures: Vec<_> = work.captures.iter().map(|object| object.0).collect();
    let captures = if captures.is_empty() { String::new() } else { format!(" captures {captures:?}") };
    let other = if work.touches_captured { " touches-captured" } else { "" };
    format!("{:?} {}{}{captures}{other}", work.kind, work.name, access_text(&work.accesses))
}

fn access_text(accesses: &[crate::analysis::program::Access]) -> String {
    accesses
        .iter()
        .map(|access| {
            let kind = if access.kind == AccessKind::Read { "read" } else { "write" };
            let must = if access.must { "" } else { "?" };
            format!(" {kind}{must} {} {}", access.object.0, range(&access.range))
        })
        .collect()
}

fn place(place: &Place) -> String {
    place.object.map_or("elsewhere".to_owned(), |object| format!("{} {}", object.0, range(&place.range)))
}

fn range(range: &Range) -> String {
    let sum =
        |sym: &crate::analysis::symbolic::Sym| sym.as_constant().map_or("dyn".to_owned(), |value| value.to_string());
    match range {
        Range::Whole => "whole".to_owned(),
        Range::Part { start, len } => format!("[{}+{}]", sum(start), sum(len)),
        Range::Unknown => "[?]".to_owned(),
    }
}
