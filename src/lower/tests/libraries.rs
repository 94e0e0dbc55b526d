//! Calls of GPU libraries.

use super::text;

const LIBRARY: &str = "
    declare i32 @cublasCreate_v2(ptr)
    declare i32 @cublasDestroy_v2(ptr)
    declare i32 @cublasSetStream_v2(ptr, ptr)
    declare i32 @cublasSetMathMode(ptr, i32)
    declare i32 @cublasSaxpy_v2(ptr, i32, ptr, ptr, i32, ptr, i32)
    declare i32 @cublasSdot_v2(ptr, i32, ptr, i32, ptr, i32, ptr)
    declare i32 @cublasSetWorkspace_v2(ptr, ptr, i64)
    declare i32 @cublasSetVector(i32, i32, ptr, i32, ptr, i32)
    declare i32 @cublasXtSgemm(ptr, ptr)
    declare i32 @cufftPlan1d(ptr, i32, i32, i32)
    declare i32 @cufftSetStream(i32, ptr)
    declare i32 @cufftExecC2C(i32, ptr, ptr, i32)
    declare void @hide(ptr)
    @global = global ptr null";

/// `%a` and `%b` are device buffers of 64 bytes, `%h` a host buffer, `%handle` the variable of a handle, `%s` that of a stream.
fn body(statements: &str) -> String {
    text(&format!(
        "{LIBRARY}
         define i32 @main(i1 %c, ptr %foreign) {{
         entry:
           %da = alloca ptr
           %db = alloca ptr
           %handle = alloca ptr
           %plan = alloca i32
           %s = alloca ptr
           %alpha = alloca float
           %e1 = call i32 @cudaMalloc(ptr %da, i64 64)
           %e2 = call i32 @cudaMalloc(ptr %db, i64 64)
           %a = load ptr, ptr %da
           %b = load ptr, ptr %db
           %h = call ptr @malloc(i64 64)
           {statements}
           ret i32 0
         }}"
    ))
}

const CREATE: &str = "%c0 = call i32 @cublasCreate_v2(ptr %handle)";
const AXPY: &str = "%x = load ptr, ptr %handle
                    %c1 = call i32 @cublasSaxpy_v2(ptr %x, i32 16, ptr %alpha, ptr %a, i32 1, ptr %b, i32 1)";

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.lines().any(|candidate| candidate.contains(line)), "no {line:?} in\n{text}");
}

#[test]
fn work_is_queued_on_the_default_stream_until_the_handle_gets_another() {
    let text = body(&format!("{CREATE}\n{AXPY}"));
    has(&text, "enqueue Unknown#0 Library cublasCreate_v2");
    has(&text, "enqueue LegacyDefault#1 Library cublasSaxpy_v2 read? 0 [?] read? 1 [?] write? 1 [?]");
    assert!(!text.contains("use of") && !text.contains("opaque") && !text.contains("touches-captured"), "{text}");
}

#[test]
fn work_is_queued_on_the_stream_that_the_handle_was_given_last() {
    let set = "%c2 = call i32 @cudaStreamCreateWithFlags(ptr %s, i32 1)
               %stream = load ptr, ptr %s
               %y = load ptr, ptr %handle
               %c3 = call i32 @cublasSetStream_v2(ptr %y, ptr %stream)";
    has(&body(&format!("{CREATE}\n{set}\n{AXPY}")), "enqueue NonBlocking#1 Library cublasSaxpy_v2");
    let back = "%z = load ptr, ptr %handle\n%c4 = call i32 @cublasSetStream_v2(ptr %z, ptr null)";
    has(&body(&format!("{CREATE}\n{set}\n{back}\n{AXPY}")), "enqueue LegacyDefault#1 Library cublasSaxpy_v2");
    // On some ways only.
    let perhaps = format!("{CREATE}\nbr i1 %c, label %then, label %join\nthen:\n{set}\nbr label %join\njoin:\n{AXPY}");
    has(&body(&perhaps), "enqueue Unknown#1 Library cublasSaxpy_v2");
    let settings = "%y = load ptr, ptr %handle\n%c3 = call i32 @cublasSetMathMode(ptr %y, i32 1)";
    has(&body(&format!("{CREATE}\n{settings}\n{AXPY}")), "enqueue LegacyDefault#1 Library cublasSaxpy_v2");
}

#[test]
fn a_handle_that_goes_elsewhere_may_have_been_given_any_stream() {
    for elsewhere in [
        "%y = load ptr, ptr %handle\ncall void @hide(ptr %y)",
        "%y = load ptr, ptr %handle\nstore ptr %y, ptr @global",
        "%y = load ptr, ptr %handle\n%c3 = call i32 @cublasXtSgemm(ptr null, ptr %y)",
        "%y = load i64, ptr %handle\nstore i64 %y, ptr @global",
        "call void @hide(ptr %handle)",
    ] {
        let text = body(&format!("{CREATE}\n{elsewhere}\n{AXPY}"));
        assert!(
            text.lines().any(|line| line.contains("enqueue Unknown") && line.contains("cublasSaxpy_v2")),
            "{elsewhere}:\n{text}"
        );
    }
    let foreign = "%c1 = call i32 @cublasSaxpy_v2(ptr %foreign, i32 16, ptr %alpha, ptr %a, i32 1, ptr %b, i32 1)";
    has(&body(foreign), "enqueue Unknown#0 Library cublasSaxpy_v2");
}

#[test]
fn a_plan_that_is_a_number_is_followed_like_a_handle() {
    let plan = "%c0 = call i32 @cufftPlan1d(ptr %plan, i32 8, i32 41, i32 1)";
    let run = "%x = load i32, ptr %plan\n%c1 = call i32 @cufftExecC2C(i32 %x, ptr %a, ptr %b, i32 1)";
    has(&body(&format!("{plan}\n{run}")), "enqueue LegacyDefault#1 Library cufftExecC2C");
    let set = "%y = load i32, ptr %plan\n%c2 = call i32 @cufftSetStream(i32 %y, ptr %foreign)";
    has(&body(&format!("{plan}\n{set}\n{run}")), "enqueue Unknown#1 Library cufftExecC2C");
    let elsewhere = "%y = load i32, ptr %plan\nstore i32 %y, ptr @global";
    has(&body(&format!("{plan}\n{elsewhere}\n{run}")), "enqueue Unknown#1 Library cufftExecC2C");
}

#[test]
fn what_the_library_keeps_or_touches_by_mode_is_recorded() {
    let dot = |result: &str| {
        format!(
            "{CREATE}\n%x = load ptr, ptr %handle
             %c1 = call i32 @cublasSdot_v2(ptr %x, i32 16, ptr %a, i32 1, ptr %a, i32 1, ptr {result})"
        )
    };
    has(&body(&dot("%b")), "Library cublasSdot_v2 read? 0 [?] read? 0 [?] read? 1 [?] write? 1 [?]");
    has(&body(&dot("%h")), "use of 2 at 4: PassedTo(\"cublasSdot_v2\")");
    let workspace = "%x = load ptr, ptr %handle\n%c1 = call i32 @cublasSetWorkspace_v2(ptr %x, ptr %a, i64 64)";
    has(&body(&format!("{CREATE}\n{workspace}")), "PassedTo(\"cublasSetWorkspace_v2\")");
    let copy = body("%c1 = call i32 @cublasSetVector(i32 16, i32 4, ptr %h, i32 1, ptr %a, i32 1)");
    has(&copy, "use of 2 at 3: PassedTo(\"cublasSetVector\")");
    has(&copy, "use of 0 at 3: PassedTo(\"cublasSetVector\")");
}
