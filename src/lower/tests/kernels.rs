//! Kernel launches.

use super::{describe, lower_with, registration, text};
use crate::effects::{Count, EffectTable, KernelEffects, ParamEffect, WritesAll};

const READS: ParamEffect = ParamEffect { reads: true, writes: false, captures: false, writes_all: None };
const FILLS: ParamEffect = ParamEffect {
    reads: false,
    writes: true,
    captures: false,
    writes_all: Some(WritesAll {
        count: Count::Param { index: 2, bits: 64, signed: true },
        scale: 4,
        limit: u64::MAX,
        block: None,
        whatever_grid: true,
    }),
};

/// The stub in these tests, and its kernel.
pub(super) const STUB_NAME: &str = "_Z16__device_stub__kPfS_m";
pub(super) const KERNEL: &str = "_Z1kPfS_m";

pub(super) fn table(params: Vec<Option<ParamEffect>>) -> EffectTable {
    let effects = KernelEffects { params, touches_other_memory: false };
    EffectTable { kernels: [(KERNEL.to_owned(), effects)].into() }
}

/// Two device buffers of `4 * n` bytes, and a launch `k<<<…, stream>>>(a, b, n)` as clang leaves it when the stub is inlined.
fn inlined(stream: &str) -> String {
    registration(STUB_NAME, KERNEL) + &unregistered(stream)
}

/// The same in a module that does not say which kernel the stub launches.
fn unregistered(stream: &str) -> String {
    format!(
        "define void @_Z16__device_stub__kPfS_m(ptr %0, ptr %1, i64 %2) {{
           ret void
         }}
         define i32 @main(i64 %n, ptr %any) {{
         entry:
           %a.addr = alloca ptr
           %b.addr = alloca ptr
           %n.addr = alloca i64
           %args = alloca [3 x ptr]
           %grid = alloca %struct.dim3
           %block = alloca %struct.dim3
           %shared = alloca i64
           %stream = alloca ptr
           %a = alloca ptr
           %b = alloca ptr
           %s = alloca ptr
           %bytes = shl nsw i64 %n, 2
           %e0 = call i32 @cudaStreamCreateWithFlags(ptr %s, i32 1)
           %e1 = call i32 @cudaMalloc(ptr %a, i64 %bytes)
           %e2 = call i32 @cudaMalloc(ptr %b, i64 %bytes)
           %s1 = load ptr, ptr %s
           %e3 = call i32 @__cudaPushCallConfiguration(i64 1, i32 1, i64 1, i32 1, i64 0, ptr {stream})
           %ok = icmp eq i32 %e3, 0
           br i1 %ok, label %launch, label %after
         launch:
           %a1 = load ptr, ptr %a
           %b1 = load ptr, ptr %b
           store ptr %a1, ptr %a.addr
           store ptr %b1, ptr %b.addr
           store i64 %n, ptr %n.addr
           store ptr %a.addr, ptr %args
           %args1 = getelementptr inbounds i8, ptr %args, i64 8
           store ptr %b.addr, ptr %args1
           %args2 = getelementptr inbounds i8, ptr %args, i64 16
           store ptr %n.addr, ptr %args2
           %e4 = call i32 @__cudaPopCallConfiguration(ptr %grid, ptr %block, ptr %shared, ptr %stream)
           %shared1 = load i64, ptr %shared
           %stream1 = load ptr, ptr %stream
           %e5 = call i32 @cudaLaunchKernel(ptr @_Z16__device_stub__kPfS_m, i64 1, i32 1, i64 1, i32 1, ptr %args, i64 %shared1, ptr %stream1)
           br label %after
         after:
           ret i32 0
         }}"
    )
}

#[track_caller]
pub(super) fn launch(ir: &str, effects: EffectTable) -> String {
    let text = lower_with(ir, effects, "main", |lowered| describe(&lowered.program));
    assert!(!text.contains("use of") && !text.contains("blemish"), "{text}");
    text.lines().find(|line| line.contains("enqueue")).unwrap_or_else(|| panic!("no launch in\n{text}")).to_owned()
}

#[test]
fn a_kernel_with_a_record_does_what_the_record_says() {
    let line = launch(&inlined("null"), table(vec![Some(READS), Some(FILLS), None]));
    assert!(line.contains("Launch _Z1kPfS_m read? 0 [?] write 1 whole"), "{line}");
    assert!(!line.contains("captures") && !line.contains("touches-captured"), "{line}");
}

/// The module as clang writes it for AArch64, where a dim3 is one argument: an array of two integers.
pub(super) fn for_aarch64(ir: &str) -> String {
    let mut text = String::from(
        "declare i32 @__cudaPushCallConfiguration([2 x i64], [2 x i64], i64, ptr)
         declare i32 @cudaLaunchKernel(ptr, [2 x i64], [2 x i64], ptr, i64, ptr)\n",
    );
    for (number, line) in ir.lines().enumerate() {
        let takes = line.contains("@__cudaPushCallConfiguration(") || line.contains("@cudaLaunchKernel(");
        if !takes {
            text.extend([line, "\n"]);
            continue;
        }
        let mut pieces: Vec<String> = Vec::new();
        for piece in line.split(", ") {
            if piece.starts_with("i32 1")
                && let Some(half) = pieces.last_mut()
                && let Some((before, half_value)) = half.split_once("i64 ")
            {
                let name = format!("%both.{number}.{}", before.len() + half_value.len());
                let array = match half_value.strip_prefix('%') {
                    None => format!("[i64 {half_value}, i64 1]"),
                    Some(_) => {
                        text.push_str(&format!("{name}.x = insertvalue [2 x i64] poison, i64 {half_value}, 0\n"));
                        text.push_str(&format!("{name} = insertvalue [2 x i64] {name}.x, i64 1, 1\n"));
                        name
                    }
                };
                *half = format!("{before}[2 x i64] {array}");
            } else {
                pieces.push(piece.to_owned());
            }
        }
        text.extend([pieces.join(", ").as_str(), "\n"]);
    }
    text
}

#[test]
fn grid_and_block_may_be_one_argument_each() {
    let effects = || table(vec![Some(READS), Some(FILLS), None]);
    for stream in ["null", "%s1"] {
        let (here, there) = (inlined(stream), for_aarch64(&inlined(stream)));
        assert_eq!(launch(&there, effects()), launch(&here, effects()));
    }
}

#[test]
fn a_kernel_without_a_record_may_do_everything() {
    let line = launch(&inlined("null"), EffectTable::default());
    for part in ["read? 0 [?]", "write? 0 [?]", "read? 1 [?]", "write? 1 [?]", "captures [0, 1]", "touches-captured"] {
        assert!(line.contains(part), "no {part} in {line}");
    }
}

#[test]
fn the_name_of_a_stub_says_nothing_of_its_kernel() {
    let line = launch(&unregistered("null"), table(vec![Some(READS), Some(FILLS), None]));
    for part in ["Launch _Z16__device_stub__kPfS_m", "write? 0 [?]", "captures [0, 1]", "touches-captured"] {
        assert!(line.contains(part), "no {part} in {line}");
    }
    // Not even where a kernel is called as the stub is.
    let mut same_name = table(vec![Some(READS), Some(FILLS), None]);
    let effects = same_name.kernels.remove(KERNEL).expect("the kernel");
    same_name.kernels.insert(STUB_NAME.to_owned(), effects);
    assert!(launch(&unregistered("null"), same_name).contains("captures [0, 1]"));
}

#[test]
fn a_record_with_another_number_of_parameters_is_not_believed() {
    assert!(launch(&inlined("null"), table(vec![Some(READS), Some(READS)])).contains("captures [0, 1]"));
}

#[test]
fn a_pointer_where_the_record_knows_none_may_be_used_in_any_way() {
    assert!(launch(&inlined("null"), table(vec![None, Some(READS), None])).contains("captures [0]"));
}

#[test]
fn the_stream_comes_from_the_configuration() {
    assert!(launch(&inlined("null"), EffectTable::default()).contains("enqueue LegacyDefault"));
    assert!(launch(&inlined("%s1"), EffectTable::default()).contains("enqueue NonBlocking"));
    assert!(launch(&inlined("%any"), EffectTable::default()).contains("enqueue Unknown"));
    assert!(launch(&inlined("inttoptr (i64 2 to ptr)"), EffectTable::default()).contains("enqueue PerThreadDefault"));
}

pub(super) const STUB: &str = "
define void @_Z16__device_stub__kPfS_m(ptr %0, ptr %1, i64 %2) noinline {
  %grid = alloca %struct.dim3
  %stream = alloca ptr
  %e = call i32 @__cudaPopCallConfiguration(ptr %grid, ptr %grid, ptr %grid, ptr %stream)
  %s = load ptr, ptr %stream
  %l = call i32 @cudaLaunchKernel(ptr @_Z16__device_stub__kPfS_m, i64 1, i32 1, i64 1, i32 1, ptr null, i64 0, ptr %s)
  ret void
}";

#[test]
fn a_stub_that_was_not_inlined_is_the_same_launch() {
    let ir = format!(
        "{STUB}
         {}
         define i32 @main(i64 %n) {{
           %a = alloca ptr
           %b = alloca ptr
           %bytes = shl nsw i64 %n, 2
           %e1 = call i32 @cudaMalloc(ptr %a, i64 %bytes)
           %e2 = call i32 @cudaMalloc(ptr %b, i64 %bytes)
           %a1 = load ptr, ptr %a
           %b1 = load ptr, ptr %b
           %e3 = call i32 @__cudaPushCallConfiguration(i64 1, i32 1, i64 1, i32 1, i64 0, ptr null)
           call void @_Z16__device_stub__kPfS_m(ptr %a1, ptr %b1, i64 %n)
           ret i32 0
         }}",
        registration(STUB_NAME, KERNEL)
    );
    let line = launch(&ir, table(vec![Some(READS), Some(FILLS), None]));
    assert!(line.contains("enqueue LegacyDefault#0 Launch _Z1kPfS_m read? 0 [?] write 1 whole"), "{line}");
    // Compiled for the per-thread default stream, the headers name another symbol, and null means another stream.
    let declaration = "declare i32 @cudaLaunchKernel_ptsz(ptr, i64, i32, i64, i32, ptr, i64, ptr)";
    let per_thread = format!("{declaration}\n{}", ir.replace("@cudaLaunchKernel(", "@cudaLaunchKernel_ptsz("));
    assert!(launch(&per_thread, EffectTable::default()).contains("enqueue PerThreadDefault#0"));
}

#[test]
fn two_configurations_that_meet_leave_the_stream_unknown() {
    let ir = format!(
        "{STUB}
         define i32 @main(i64 %n, i1 %c) {{
           %a = alloca ptr
           %e1 = call i32 @cudaMalloc(ptr %a, i64 64)
           %a1 = load ptr, ptr %a
           br i1 %c, label %one, label %two
         one:
           %e3 = call i32 @__cudaPushCallConfiguration(i64 1, i32 1, i64 1, i32 1, i64 0, ptr null)
           br label %launch
         two:
           %e4 = call i32 @__cudaPushCallConfiguration(i64 1, i32 1, i64 1, i32 1, i64 0, ptr inttoptr (i64 2 to ptr))
           br label %launch
         launch:
           call void @_Z16__device_stub__kPfS_m(ptr %a1, ptr %a1, i64 %n)
           ret i32 0
         }}"
    );
    assert!(launch(&ir, EffectTable::default()).contains("enqueue Unknown"));
}

/// `void *args[] = {&d}; cudaLaunchKernel(…, args, …)` by hand, with one thing changed.
fn by_hand(setup: &str, function: &str) -> String {
    text(&format!(
        "define void @k(ptr %0) {{
           ret void
         }}
         define i32 @main(ptr %any, i64 %n) {{
           %d = alloca ptr
           %args = alloca [1 x ptr]
           %e1 = call i32 @cudaMalloc(ptr %d, i64 64)
           {setup}
           %e2 = call i32 @cudaLaunchKernel(ptr {function}, i64 1, i32 1, i64 1, i32 1, ptr %args, i64 0, ptr null)
           ret i32 0
         }}"
    ))
}

#[test]
fn the_pointer_variable_itself_may_be_the_argument() {
    let text = by_hand("store ptr %d, ptr %args", "@k");
    assert!(text.contains("Launch k read? 0 [?] write? 0 [?] captures [0]"), "{text}");
    assert!(!text.contains("use of"), "{text}");
}

#[test]
fn arguments_that_are_not_understood_escape() {
    for setup in [
        "%p = getelementptr i8, ptr %args, i64 %n\nstore ptr %d, ptr %p",
        "call void @llvm.memcpy.p0.p0.i64(ptr %args, ptr %any, i64 8, i1 false)\nstore ptr %d, ptr %args\ncall void @use(ptr %args)",
        // One variable's address or another's: which is the argument?
        "%other = alloca ptr
         %c = icmp eq i64 %n, 0
         br i1 %c, label %one, label %two
         one:
           store ptr %d, ptr %args
           br label %go
         two:
           store ptr %other, ptr %args
           br label %go
         go:",
    ] {
        let text = by_hand(setup, "@k");
        assert!(text.contains("use of 0") && text.contains("Stored"), "{text}");
    }
}

#[test]
fn a_kernel_chosen_at_run_time_may_do_everything() {
    let text = by_hand("store ptr %d, ptr %args", "%any");
    assert!(text.contains("Launch a kernel chosen at run time read? 0 [?] write? 0 [?] captures [0]"), "{text}");
}

#[test]
fn a_stub_of_nvcc_is_a_launch_and_a_function_that_launches_without_a_configuration_is_none() {
    let program = |pop: &str| {
        format!(
            "declare i32 @__cudaLaunchKernel(ptr, i64, i32, i64, i32, ptr, i64, ptr)
             declare i32 @__cudaGetKernel(ptr, ptr)
             declare i32 @__cxa_guard_acquire(ptr)
             @handle = internal global ptr null
             define void @_Z25__device_stub__Z5scalePfmPfm(ptr %0) noinline {{
               %grid = alloca %struct.dim3
               %stream = alloca ptr
               %g = call i32 @__cxa_guard_acquire(ptr @handle)
               %k = call i32 @__cudaGetKernel(ptr @handle, ptr null)
               {pop}
               %s = load ptr, ptr %stream
               %f = load ptr, ptr @handle
               %l = call i32 @__cudaLaunchKernel(ptr %f, i64 1, i32 1, i64 1, i32 1, ptr null, i64 0, ptr %s)
               ret void
             }}
             define i32 @main() {{
               %d = alloca ptr
               %e1 = call i32 @cudaMalloc(ptr %d, i64 64)
               %p = load ptr, ptr %d
               %e3 = call i32 @__cudaPushCallConfiguration(i64 1, i32 1, i64 1, i32 1, i64 0, ptr null)
               call void @_Z25__device_stub__Z5scalePfmPfm(ptr %p)
               ret i32 0
             }}"
        )
    };
    let pop = "%e = call i32 @__cudaPopCallConfiguration(ptr %grid, ptr %grid, ptr %grid, ptr %stream)";
    let line = launch(&program(pop), EffectTable::default());
    assert!(line.contains("enqueue LegacyDefault#0 Launch") && line.contains("captures [0]"), "{line}");
    let other = text(&program(""));
    assert!(other.contains("enqueue Unknown#0 Library _Z25__device_stub__Z5scalePfmPfm touches-captured"), "{other}");
}

#[test]
fn a_configuration_is_used_up_by_the_stub_that_follows_it() {
    let ir = format!(
        "{STUB}
         define i32 @main(i64 %n) {{
           %a = alloca ptr
           %e1 = call i32 @cudaMalloc(ptr %a, i64 64)
           %a1 = load ptr, ptr %a
           %e3 = call i32 @__cudaPushCallConfiguration(i64 1, i32 1, i64 1, i32 1, i64 0, ptr null)
           call void @_Z16__device_stub__kPfS_m(ptr null, ptr null, i64 %n)
           call void @_Z16__device_stub__kPfS_m(ptr %a1, ptr %a1, i64 %n)
           ret i32 0
         }}"
    );
    let text = text(&ir);
    assert!(text.contains("2: enqueue LegacyDefault#0") && text.contains("3: enqueue Unknown#1"), "{text}");
}
