//! What a function that stays a call does with its parameters, where LLVM promises nothing.

use super::text;

/// `%h` of 64 bytes is given to `@callee`, whose definition is given.
#[track_caller]
fn given_to(callee: &str) -> String {
    text(&format!(
        "{callee}
         @kept = global ptr null
         @format = constant [3 x i8] c\"%f\\00\"
         define i32 @main(ptr %foreign, i1 %c) {{
           %h = call ptr @malloc(i64 64)
           call void @callee(ptr %h)
           ret i32 0
         }}"
    ))
}

#[track_caller]
fn does(body: &str, line: &str) {
    let text = given_to(&format!("define internal void @callee(ptr %p) noinline {{\n{body}\n}}"));
    assert!(text.contains(line), "no {line:?} in\n{text}");
    assert!(!text.contains("use of") && !text.contains("blemish"), "recorded:\n{text}");
}

#[track_caller]
fn keeps(body: &str) {
    let text = given_to(&format!(
        "declare void @take(ptr)
         define internal void @again(ptr %p) {{\n call void @callee(ptr %p)\n ret void\n }}
         define internal void @callee(ptr %p) noinline {{\n{body}\n}}"
    ));
    assert!(text.contains("use of 0 at") && text.contains("PassedTo(\"callee\")"), "not recorded:\n{text}");
}

#[test]
fn accesses_through_the_parameter_are_found_however_deep() {
    does("%v = load float, ptr %p\nret void", "host read? 0 [?]");
    does("%q = getelementptr inbounds i8, ptr %p, i64 8\nstore i32 1, ptr %q\nret void", "host write? 0 [?]");
    // LLVM infers nothing where printf is called with a number of the buffer.
    let print = "%v = load double, ptr %p\n%x = call i32 (ptr, ...) @printf(ptr @format, double %v)\nret void";
    does(print, "host read? 0 [?]");
    does("call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 64, i1 false)\nret void", "host write? 0 [?]");
    does("%x = call i64 @fread(ptr %p, i64 1, i64 64, ptr null)\nret void", "host write? 0 [?]");
    let inner = "define internal void @inner(ptr %p) {\n store i8 1, ptr %p\n ret void\n }
                 define internal void @callee(ptr %p) noinline {\n call void @inner(ptr %p)\n ret void\n }";
    let text = given_to(inner);
    assert!(text.contains("host write? 0 [?]") && !text.contains("use of"), "{text}");
}

#[test]
fn a_walk_and_a_distance_within_the_buffer_are_no_more_than_accesses() {
    does(
        "br label %loop
       loop:
         %q = phi ptr [ %p, %0 ], [ %next, %loop ]
         store i8 1, ptr %q
         %next = getelementptr inbounds i8, ptr %q, i64 1
         %a = ptrtoint ptr %next to i64
         %b = ptrtoint ptr %p to i64
         %gone = sub i64 %a, %b
         %done = icmp eq i64 %gone, 64
         br i1 %done, label %out, label %loop
       out:
         ret void",
        "host write? 0 [?]",
    );
}

#[test]
fn every_other_use_keeps_the_pointer() {
    keeps("store ptr %p, ptr @kept\nret void");
    keeps("call void @take(ptr %p)\nret void");
    keeps("call void @free(ptr %p)\nret void");
    keeps("%x = ptrtoint ptr %p to i64\nstore i64 %x, ptr @kept\nret void");
    keeps("%k = load ptr, ptr @kept\n%x = icmp eq ptr %p, %k\nbr i1 %x, label %a, label %a\na:\nret void");
    keeps("%k = load ptr, ptr @kept\n%x = select i1 true, ptr %p, ptr %k\nstore i8 1, ptr %x\nret void");
    keeps("%x = load volatile i32, ptr %p\nret void");
    keeps("%x = atomicrmw add ptr %p, i32 1 seq_cst\nret void");
    keeps("call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 64, i1 true)\nret void");
    keeps("%x = call i32 (ptr, ...) @printf(ptr @format, ptr %p)\nret void");
    keeps("call void asm sideeffect \"\", \"r\"(ptr %p)\nret void");
    keeps("%k = load ptr, ptr @kept\ncall void %k(ptr %p)\nret void");
    keeps("%x = insertvalue {ptr, i64} poison, ptr %p, 0\nret void");
    keeps("%e = call i32 @cudaMemcpy(ptr %p, ptr %p, i64 8, i32 0)\nret void");
    keeps("%s = alloca ptr\nstore ptr %p, ptr %s\ncall void @use(ptr %s)\nret void");
    // What a recursion does is not known before it is known.
    keeps("call void @again(ptr %p)\nret void");
}

#[test]
fn a_function_of_which_another_copy_may_run_reads_at_least() {
    let text = given_to("define linkonce_odr void @callee(ptr %p) noinline {\n store i8 1, ptr %p\n ret void\n }");
    assert!(text.contains("host read? 0 [?] write? 0 [?]") && !text.contains("use of"), "{text}");
    let other = given_to("define weak void @callee(ptr %p) noinline {\n store i8 1, ptr %p\n ret void\n }");
    assert!(other.contains("PassedTo"), "a different function may run:\n{other}");
}

#[test]
fn a_variable_whose_address_goes_to_such_a_function_stays_in_plain_sight() {
    let ir = |body: &str| {
        format!(
            "define internal void @callee(ptr %p) noinline {{\n{body}\n}}
             @kept = global ptr null
             define i32 @main() {{
               %d = alloca ptr
               %e = call i32 @cudaMalloc(ptr %d, i64 64)
               call void @callee(ptr %d)
               ret i32 0
             }}"
        )
    };
    let reads = text(&ir("%v = load ptr, ptr %p\nstore ptr %v, ptr @kept\nret void"));
    assert!(reads.contains("use of 0 at") && reads.contains("Stored"), "the pointer in it is read:\n{reads}");
    let writes = text(&ir("store i8 0, ptr %p\nret void"));
    assert!(!writes.contains("use of"), "{writes}");
}
