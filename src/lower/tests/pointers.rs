//! Which uses of a buffer's pointer are accesses, which are recorded, and which are harmless.

use super::text;

/// The text of a function whose body is given; `%h` is a host buffer of 64 bytes, `%d` the slot of a device buffer of 64 bytes.
#[track_caller]
fn body(statements: &str) -> String {
    text(&format!(
        "@global = global ptr null\n@format = constant [3 x i8] c\"%p\\00\"\n
         define i32 @main(i64 %n, ptr %foreign, i1 %c) {{
         entry:
           %d = alloca ptr
           %h = call ptr @malloc(i64 64)
           %e = call i32 @cudaMalloc(ptr %d, i64 64)
           {statements}
         }}"
    ))
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.lines().any(|candidate| candidate.contains(line)), "no {line:?} in\n{text}");
}

#[track_caller]
fn is_clean(text: &str) {
    assert!(!text.contains("use of") && !text.contains("blemish"), "recorded:\n{text}");
}

#[test]
fn loads_and_stores_are_accesses_with_their_bytes() {
    let text = body(
        "%a = getelementptr inbounds i8, ptr %h, i64 8
         store i32 1, ptr %a
         %v = load i64, ptr %h
         %w = getelementptr inbounds [4 x float], ptr %h, i64 1, i64 2
         %x = load float, ptr %w
         ret i32 0",
    );
    has(&text, "host write 0 [8+4]");
    has(&text, "host read 0 [0+8]");
    has(&text, "host read 0 [24+4]");
    is_clean(&text);
}

#[test]
fn all_bytes_of_an_object_are_whole_and_fewer_are_not() {
    let text = body(
        "call void @llvm.memset.p0.i64(ptr %h, i8 0, i64 64, i1 false)
         call void @llvm.memset.p0.i64(ptr %h, i8 0, i64 63, i1 false)
         ret i32 0",
    );
    has(&text, "host write 0 whole");
    has(&text, "host write 0 [0+63]");
}

#[test]
fn arithmetic_that_may_wrap_makes_the_bytes_unknown() {
    let text = body("%a = getelementptr float, ptr %h, i64 %n\nstore float 1.0, ptr %a\nret i32 0");
    has(&text, "host write? 0 [?]");
    is_clean(&text);
}

#[test]
fn a_pointer_that_walks_through_its_object_is_followed() {
    let text = body(
        "br label %loop
       loop:
         %p = phi ptr [ %h, %entry ], [ %q, %loop ]
         store i8 1, ptr %p
         %q = getelementptr inbounds i8, ptr %p, i64 1
         %end = getelementptr inbounds i8, ptr %h, i64 64
         %done = icmp eq ptr %q, %end
         br i1 %done, label %out, label %loop
       out:
         ret i32 0",
    );
    has(&text, "host write? 0 [?]");
    is_clean(&text);
}

#[test]
fn null_checks_and_distances_within_one_object_are_harmless() {
    let text = body(
        "%null = icmp eq ptr %h, null
         %a = getelementptr inbounds i8, ptr %h, i64 8
         %x = ptrtoint ptr %a to i64
         %y = ptrtoint ptr %h to i64
         %distance = sub i64 %x, %y
         ret i32 0",
    );
    is_clean(&text);
}

#[test]
fn every_use_that_shows_or_keeps_the_pointer_is_recorded() {
    for (statement, line) in [
        ("store ptr %h, ptr @global", "use of 0 at 2: Stored"),
        ("store ptr %h, ptr %foreign", "Stored"),
        ("%x = ptrtoint ptr %h to i64\nstore i64 %x, ptr %foreign", "CastToInteger"),
        ("%x = icmp eq ptr %h, %foreign", "Compared"),
        ("%p = load ptr, ptr %d\n%x = icmp ult ptr %h, %p", "use of 1 at 2: Compared"),
        ("%x = load volatile i32, ptr %h", "VolatileOrAtomic"),
        ("store atomic i32 1, ptr %h seq_cst, align 4", "VolatileOrAtomic"),
        ("%x = atomicrmw add ptr %h, i32 1 seq_cst", "VolatileOrAtomic"),
        ("call void @llvm.memset.p0.i64(ptr %h, i8 0, i64 64, i1 true)", "VolatileOrAtomic"),
        ("call void asm sideeffect \"\", \"r\"(ptr %h)", "InlineAsm"),
        ("call void @use(ptr %h)", "PassedTo(\"use\")"),
        ("call void %foreign(ptr %h)", "PassedTo"),
        ("%x = call i32 (ptr, ...) @printf(ptr @format, ptr %h)", "Observed(\"printf\")"),
        ("%x = call i64 @strtol(ptr %h, ptr %d, i32 10)", "use of 0 at 2: PassedTo(\"strtol\")"),
        ("%x = call ptr @realloc(ptr %h, i64 128)", "Reallocated"),
        ("%x = call i32 @cudaHostRegister(ptr %h, i64 64, i32 0)", "Registered(\"cudaHostRegister\")"),
        ("%x = call i32 @cudaPointerGetAttributes(ptr %foreign, ptr %h)", "Observed(\"cudaPointerGetAttributes\")"),
        ("%x = select i1 %c, ptr %h, ptr %foreign", "MixedWith(ObjectId(2))"),
        ("%p = load ptr, ptr %d\n%x = select i1 %c, ptr %h, ptr %p", "use of 0 at 2: MixedWith(ObjectId(1))"),
        ("%x = insertvalue {ptr, i64} poison, ptr %h, 0", "Stored"),
        ("call void @llvm.assume(i1 true) [ \"separate_storage\"(ptr %h, ptr %foreign) ]", "Compared"),
        ("%p = getelementptr i8, ptr %h, i64 8\ncall void @free(ptr %p)", "PassedTo(\"free\")"),
        ("call void @_ZdlPv(ptr %h)", "PassedTo(\"_ZdlPv\")"),
        ("%x = call i32 @cudaFree(ptr %h)", "PassedTo(\"cudaFree\")"),
    ] {
        let text = body(&format!("{statement}\nret i32 0"));
        has(&text, line);
    }
    let returned = text("define ptr @main() {\n%h = call ptr @malloc(i64 64)\nret ptr %h\n}");
    has(&returned, "Returned");
}

#[test]
fn hints_about_a_pointer_are_no_use() {
    is_clean(&body("call void @llvm.assume(i1 true) [ \"align\"(ptr %h, i64 16), \"nonnull\"(ptr %h) ]\nret i32 0"));
}

#[test]
fn a_slot_may_be_a_field_or_an_element_and_be_set_to_null_before() {
    let text = text(
        "define i32 @main() {
           %buffers = alloca {ptr, i64, ptr}
           call void @llvm.memset.p0.i64(ptr %buffers, i8 0, i64 24, i1 false)
           %second = getelementptr inbounds i8, ptr %buffers, i64 16
           %e1 = call i32 @cudaMalloc(ptr %buffers, i64 64)
           %e2 = call i32 @cudaMalloc(ptr %second, i64 32)
           %a = load ptr, ptr %buffers
           %b = load ptr, ptr %second
           %e3 = call i32 @cudaMemset(ptr %a, i32 0, i64 64)
           %e4 = call i32 @cudaMemset(ptr %b, i32 0, i64 16)
           ret i32 0
         }",
    );
    has(&text, "Memset cudaMemset write 0 whole");
    has(&text, "Memset cudaMemset write 1 [0+16]");
    is_clean(&text);
}

#[test]
fn a_slot_whose_address_goes_elsewhere_lets_its_pointer_escape() {
    for statement in [
        "call void @use(ptr %d)",
        "store ptr %d, ptr @global",
        "%x = ptrtoint ptr %d to i64",
        "%x = load volatile ptr, ptr %d",
    ] {
        has(&body(&format!("{statement}\nret i32 0")), "use of 1 at 1: Stored");
    }
}

#[test]
fn a_slot_that_is_read_as_something_else_lets_its_pointer_escape() {
    has(&body("%x = load i64, ptr %d\nret i32 0"), "use of 1 at 1: Stored");
    let copied = body(
        "%copy = alloca ptr
         call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %d, i64 8, i1 false)
         %p = load ptr, ptr %copy
         store i8 0, ptr %p
         ret i32 0",
    );
    has(&copied, "use of 1 at 1: Stored");
}

#[test]
fn a_slot_that_holds_different_objects_is_ambiguous() {
    let two = body(
        "br i1 %c, label %again, label %join
       again:
         %e2 = call i32 @cudaMalloc(ptr %d, i64 32)
         br label %join
       join:
         %p = load ptr, ptr %d
         %e3 = call i32 @cudaFree(ptr %p)
         ret i32 0",
    );
    has(&two, "AmbiguousSlot [1, 2]");
    let overwritten = body(
        "br i1 %c, label %again, label %join
       again:
         store ptr %foreign, ptr %d
         br label %join
       join:
         %p = load ptr, ptr %d
         %e3 = call i32 @cudaFree(ptr %p)
         ret i32 0",
    );
    has(&overwritten, "AmbiguousSlot [1]");
}

#[test]
fn a_free_of_a_pointer_that_may_be_null_is_recorded() {
    let text = body(
        "br i1 %c, label %release, label %out
       release:
         %p = load ptr, ptr %d
         %e1 = call i32 @cudaFree(ptr %p)
         store ptr null, ptr %d
         br label %out
       out:
         %q = load ptr, ptr %d
         %e2 = call i32 @cudaFree(ptr %q)
         ret i32 0",
    );
    has(&text, "free 1 waits device");
    has(&text, "free? 1 waits device");
    is_clean(&text);
}

#[test]
fn the_offset_of_an_earlier_round_is_not_taken_for_this_rounds() {
    let around = |before: &str, first: &str, last: &str| {
        body(&format!(
            "{before}
             br label %loop
           loop:
             %i = phi i64 [ 0, %entry ], [ %next, %loop ]
             {first}
             %q = getelementptr inbounds i8, ptr %h, i64 %i
             store i8 1, ptr %q
             %next = add nuw nsw i64 %i, 1
             {last}
             br i1 %c, label %out, label %loop
           out:
             ret i32 0"
        ))
    };
    let phi = around("", "%old = phi ptr [ undef, %entry ], [ %q, %loop ]\n%x = load i8, ptr %old", "");
    has(&phi, "host read? 0 [?]");
    let slot = around("%s = alloca ptr", "%old = load ptr, ptr %s\n%x = load i8, ptr %old", "store ptr %q, ptr %s");
    has(&slot, "host read? 0 [?]");
    // This round's is known: the write through it.
    for text in [&phi, &slot] {
        assert_eq!(text.matches("[?]").count(), 1, "{text}");
    }
}

#[test]
fn the_object_of_an_earlier_round_is_not_taken_for_this_rounds() {
    let phi = text(
        "define i32 @main(i64 %n) {
         entry:
           br label %loop
         loop:
           %last = phi ptr [ null, %entry ], [ %h, %loop ]
           %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
           %h = call ptr @malloc(i64 64)
           %known = icmp eq ptr %last, null
           %from = select i1 %known, ptr %h, ptr %last
           %x = load i32, ptr %from
           %i1 = add i64 %i, 1
           %done = icmp eq i64 %i1, %n
           br i1 %done, label %out, label %loop
         out:
           ret i32 0
         }",
    );
    has(&phi, "AmbiguousSlot [0]");
    let slot = text(
        "define i32 @main(i64 %n) {
         entry:
           %d = alloca ptr
           %last = alloca ptr
           br label %loop
         loop:
           %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
           %e = call i32 @cudaMalloc(ptr %d, i64 64)
           %old = load ptr, ptr %last
           %e2 = call i32 @cudaMemset(ptr %old, i32 0, i64 64)
           %new = load ptr, ptr %d
           store ptr %new, ptr %last
           %i1 = add i64 %i, 1
           %done = icmp eq i64 %i1, %n
           br i1 %done, label %out, label %loop
         out:
           ret i32 0
         }",
    );
    has(&slot, "AmbiguousSlot [0]");
}

#[test]
fn an_allocation_of_every_round_is_fine_within_the_round() {
    let text = text(
        "define i32 @main(i64 %n) {
         entry:
           %d = alloca ptr
           br label %loop
         loop:
           %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
           %e = call i32 @cudaMalloc(ptr %d, i64 64)
           %p = load ptr, ptr %d
           %e2 = call i32 @cudaMemset(ptr %p, i32 0, i64 64)
           %e3 = call i32 @cudaFree(ptr %p)
           %i1 = add i64 %i, 1
           %done = icmp eq i64 %i1, %n
           br i1 %done, label %out, label %loop
         out:
           ret i32 0
         }",
    );
    has(&text, "write 0 whole");
    is_clean(&text);
}

#[test]
fn an_alloca_that_is_made_again_and_again_is_no_slot() {
    let text = text(
        "define i32 @main(i1 %c) {
         entry:
           br label %loop
         loop:
           %d = alloca ptr
           %e = call i32 @cudaMalloc(ptr %d, i64 64)
           br i1 %c, label %loop, label %out
         out:
           ret i32 0
         }",
    );
    has(&text, "use of 0 at 1: Stored");
}

#[test]
fn sizes_are_equal_only_where_their_values_are() {
    let sized = |size: &str, length: &str| {
        text(&format!(
            "define i32 @main(i32 %n, i64 %m) {{
               {size}
               {length}
               %h = call ptr @malloc(i64 %size)
               call void @llvm.memset.p0.i64(ptr %h, i8 0, i64 %length, i1 false)
               ret i32 0
             }}"
        ))
    };
    let whole = "host write 0 whole";
    let wide = "%w = zext i32 %n to i64\n%size = shl i64 %w, 2";
    has(&sized(wide, "%length = mul nuw i64 %w, 4"), whole);
    has(&sized(wide, "%v = add i64 %w, %w\n%length = add i64 %v, %v"), whole);
    has(&sized("%size = mul nsw i64 %m, 12", "%t = mul nsw i64 %m, 3\n%length = shl nsw i64 %t, 2"), whole);
    // `unsigned n; n * 4` wraps at 2^32.
    has(&sized(wide, "%s = shl i32 %n, 2\n%length = zext i32 %s to i64"), "host write 0 [0+dyn]");
    has(&sized("%size = shl i64 %m, 2", "%t = shl i64 %m, 1\n%length = shl i64 %t, 1"), "host write 0 [0+dyn]");
    // (size_t)(int)n and (size_t)(unsigned)n differ.
    has(&sized(wide, "%s = sext i32 %n to i64\n%length = shl nsw i64 %s, 2"), "host write 0 [0+dyn]");
}

#[test]
fn a_phi_that_is_one_value_on_all_ways_is_that_value() {
    let joined = |tested: &str, end: &str, phi: &str| {
        text(&format!(
            "define i32 @main(i64 %n, i64 %m, i1 %other) {{
               br label %first
             first:
               %p = phi i64 [ %m, %0 ], [ %q, %last ]
               %size = shl nuw nsw i64 %n, 2
               br i1 %other, label %join, label %last
             last:
               %q = mul i64 %p, 3
               %tested = {tested}
               br i1 %tested, {end}
             join:
               %length = phi i64 {phi}
               %h = call ptr @malloc(i64 %size)
               call void @llvm.memset.p0.i64(ptr %h, i8 0, i64 %length, i1 false)
               %k = call ptr @malloc(i64 %p)
               call void @llvm.memset.p0.i64(ptr %k, i8 0, i64 %length, i1 false)
               ret i32 0
             }}"
        ))
    };
    let (join_or_again, again_or_join) = ("label %join, label %first", "label %first, label %join");
    let phi = "[ %size, %first ], [ 12, %last ]";
    let (whole, part) = ("host write 0 whole", "host write 0 [0+dyn]");
    has(&joined("icmp eq i64 %n, 3", join_or_again, phi), whole);
    has(&joined("icmp ne i64 %n, 3", again_or_join, phi), whole);
    // The other way, another number, another value, another order.
    has(&joined("icmp eq i64 %n, 3", again_or_join, phi), part);
    has(&joined("icmp eq i64 %n, 4", join_or_again, phi), part);
    has(&joined("icmp eq i64 %m, 3", join_or_again, phi), part);
    has(&joined("icmp ult i64 %n, 3", join_or_again, phi), part);
    // `%q` is 12, and `%p` would be so in the next round; in this one it is 4.
    let last_round = joined("icmp eq i64 %q, 12", join_or_again, "[ %p, %first ], [ 12, %last ]");
    assert!(!last_round.contains("host write 1 whole"), "{last_round}");
}

#[test]
fn numbers_behind_an_edge_are_computed_as_the_instructions_do() {
    let length = |tested: &str, constant: u64| {
        text(&format!(
            "define i32 @main(i64 %n, i32 %i) {{
               %down = add nsw i64 %n, -1
               %high = shl i64 %n, 62
               %low = trunc i64 %n to i8
               %size = shl nuw nsw i64 %n, 2
               %tested = {tested}
               br i1 %tested, label %join, label %some
             some:
               br label %join
             join:
               %length = phi i64 [ {constant}, %0 ], [ %size, %some ]
               %h = call ptr @malloc(i64 %size)
               call void @llvm.memset.p0.i64(ptr %h, i8 0, i64 %length, i1 false)
               ret i32 0
             }}"
        ))
    };
    let (whole, part) = ("host write 0 whole", "host write 0 [0+dyn]");
    has(&length("icmp eq i64 %down, 0", 4), whole);
    has(&length("icmp eq i64 %down, 6", 28), whole);
    has(&length("icmp eq i64 %down, -1", 0), whole);
    has(&length("icmp eq i64 %down, 0", 8), part);
    // A number that says nothing of n, or not all.
    has(&length("icmp eq i64 %high, 0", 0), part);
    has(&length("icmp eq i8 %low, 1", 4), part);
    has(&length("icmp eq i32 %i, 1", 4), part);
}
