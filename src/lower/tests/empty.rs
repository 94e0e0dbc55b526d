//! Buffers that are not allocated where they have no bytes.

use super::{lower, text};

/// `std::vector<float> h(n)`: `test` decides, `some` is what else happens where there are elements, `none` a block on the other way (or
/// nothing), `behind` what follows.
fn vector(test: &str, some: &str, none: Option<&str>, behind: &str) -> String {
    let (to, from) = if none.is_some() { ("none", "none") } else { ("join", "entry") };
    let none = none.map_or(String::new(), |body| format!("none:\n {body}\n br label %join"));
    format!(
        "@kept = global i32 0
         define i32 @main(i64 %n, i64 %m, ptr %foreign, i1 %c) {{
         entry:
           %d = alloca ptr
           %slot = alloca ptr
           %other = call ptr @malloc(i64 64)
           {test}
           br i1 %empty, label %{to}, label %some
         some:
           %bytes = shl nuw nsw i64 %n, 2
           %new = call ptr @_Znwm(i64 %bytes)
           {some}
           br label %join
         {none}
         join:
           %h = phi ptr [ null, %{from} ], [ %new, %some ]
           %e1 = call i32 @cudaMalloc(ptr %d, i64 %bytes.again)
           %p = load ptr, ptr %d
           %e2 = call i32 @cudaMemcpy(ptr %p, ptr %h, i64 %bytes.again, i32 1)
           {behind}
           ret i32 0
         }}"
    )
    .replace("%d = alloca ptr\n", "%d = alloca ptr\n %bytes.again = shl nuw nsw i64 %n, 2\n")
}

const TEST: &str = "%empty = icmp eq i64 %n, 0";
const FILL: &str = "call void @llvm.memset.p0.i64(ptr %new, i8 0, i64 %bytes, i1 false)";
const FREE: &str = "%null = icmp eq ptr %h, null\nbr i1 %null, label %out, label %free\n
                    free:\n call void @_ZdlPv(ptr %h)\n br label %out\nout:";

/// Is the vector's allocation one that may be left out?
fn may_be_absent(ir: &str) -> bool {
    lower(ir, |lowered| lowered.program.objects.iter().any(|object| object.may_be_absent))
}

#[test]
fn the_way_without_elements_is_left_out_and_nothing_is_recorded() {
    let ir = vector(TEST, FILL, None, FREE);
    assert!(may_be_absent(&ir));
    let text = text(&ir);
    assert!(!text.contains("blemish") && !text.contains("use of"), "{text}");
    assert!(text.contains("copy 2 [0+dyn] <- 1 [0+dyn]") || text.contains("copy 2 whole <- 1"), "{text}");
    assert!(text.contains("free 1"), "{text}");
    // The sizes are those of one number.
    lower(&ir, |lowered| {
        assert!(lowered.program.objects[1].size.is_some());
        assert_eq!(lowered.program.objects[1].size, lowered.program.objects[2].size);
        assert!(lowered.program.unordered.is_empty(), "the pointer, or null, is there at the device's allocation");
    });
}

#[test]
fn every_form_of_the_test_is_understood_if_it_says_that_no_byte_is_there() {
    // Only a comparison with zero is taken apart.
    assert!(!may_be_absent(&vector("%some.of = icmp ne i64 %n, 0\n%empty = xor i1 %some.of, true", "", None, "")));
    let shifted = "%x = shl i64 %n, 32\n%empty = icmp eq i64 %x, 0";
    let sized = |size: &str| vector(shifted, "", None, "").replace("%bytes = shl nuw nsw i64 %n, 2", size);
    assert!(may_be_absent(&sized("%k = ashr exact i64 %x, 32\n%bytes = shl nuw nsw i64 %k, 2")));
    // n * 2^32 is zero for other n, too.
    assert!(!may_be_absent(&sized("%bytes = shl nuw nsw i64 %n, 2")));
    assert!(!may_be_absent(&sized("%k = ashr exact i64 %x, 32\n%bytes = add nuw nsw i64 %k, 2")));
}

#[test]
fn a_buffer_that_is_left_out_for_another_reason_is_not_empty() {
    for test in [
        "%empty = icmp eq i64 %m, 0",
        "%empty = icmp eq i64 %n, 1",
        "%empty = icmp ult i64 %n, 1",
        "%empty = freeze i1 %c",
    ] {
        let ir = vector(test, FILL, None, FREE);
        assert!(!may_be_absent(&ir), "{test}");
    }
}

#[test]
fn what_else_happens_on_one_way_only_keeps_both() {
    for some in [
        "store i32 1, ptr @kept",
        "store i32 1, ptr %other",
        "store ptr %new, ptr %slot",
        "call void @llvm.memset.p0.i64(ptr %other, i8 0, i64 64, i1 false)",
        "%x = call i32 @cudaDeviceSynchronize()",
        "call void @other()",
        "call void @free(ptr %other)",
        "%x = load volatile i32, ptr %new",
    ] {
        assert!(!may_be_absent(&vector(TEST, some, None, FREE)), "{some}");
    }
    assert!(!may_be_absent(&vector(TEST, FILL, Some("%x = call i32 @cudaDeviceSynchronize()"), FREE)));
}

#[test]
fn a_null_test_with_more_behind_it_than_a_free_stays_on_the_graph() {
    let behind = "%null = icmp eq ptr %h, null\nbr i1 %null, label %is, label %out\n
                  is:\n %x = call i32 @cudaDeviceSynchronize()\n br label %out\nout:";
    let text = text(&vector(TEST, FILL, None, behind));
    assert!(text.contains("wait device"), "{text}");
    assert_eq!(text.matches("exit returns=false").count(), 1, "only the way around the allocation ends: {text}");
}

#[test]
fn in_a_loop_the_pointer_of_an_earlier_round_could_be_met() {
    let ir = vector(TEST, FILL, None, "br i1 %c, label %again, label %out\nagain:\n br label %top\nout:")
        .replace("br i1 %empty", "br label %top\n top:\n br i1 %empty")
        .replace("[ null, %entry ]", "[ null, %top ]");
    assert!(!may_be_absent(&ir));
}

#[test]
fn what_is_chosen_on_one_way_only_keeps_both() {
    // `src = n == 0 ? a : b`: on the graph, which has the other way only, it would be b in every run.
    let choosing = |phi: &str| vector(TEST, FILL, None, FREE).replace("join:\n", &format!("join:\n {phi}\n"));
    for phi in [
        "%src = phi ptr [ %foreign, %entry ], [ %other, %some ]",
        "%src = phi ptr [ null, %entry ], [ %other, %some ]",
        "%src = phi ptr [ %other, %entry ], [ %new, %some ]",
        "%k = phi i64 [ %m, %entry ], [ 7, %some ]",
        "%k = phi i64 [ 0, %entry ], [ %m, %some ]",
    ] {
        assert!(!may_be_absent(&choosing(phi)), "{phi}");
    }
    // A flag chooses between ways and values that are all on the graph, unless it is taken for a number.
    let flagged = |user: &str| {
        let flag = "join:\n %empty.too = phi i1 [ true, %entry ], [ false, %some ]\n";
        may_be_absent(&vector(TEST, FILL, None, &format!("{user}\n{FREE}")).replace("join:\n", flag))
    };
    assert!(flagged("%k = select i1 %empty.too, i64 1, i64 2"));
    assert!(!flagged("%k = zext i1 %empty.too to i64"));
    assert!(!flagged("%k = select i1 %c, i1 %empty.too, i1 false\n store i1 %k, ptr %slot"));
    // Where both ways choose the same, a buffer without bytes or its size, nothing tells them apart.
    for phi in [
        "%src = phi ptr [ %other, %entry ], [ %other, %some ]",
        "%k = phi i64 [ 0, %entry ], [ %bytes, %some ]",
        "%begin = phi ptr [ null, %entry ], [ %new, %some ]",
    ] {
        assert!(may_be_absent(&choosing(phi)), "{phi}");
    }
}

#[test]
fn what_is_chosen_by_a_null_test_is_chosen_on_the_graph() {
    let behind = |phi: &str| FREE.replace("out:", &format!("out:\n {phi}"));
    let ends = |phi: &str| text(&vector(TEST, FILL, None, &behind(phi))).matches("exit returns=false").count();
    assert_eq!(ends(""), 2, "the way around the allocation, and that around the free");
    assert_eq!(ends("%src = phi i64 [ 1, %join ], [ 2, %free ]"), 0, "nothing is left out");
    assert_eq!(ends("%src = phi i64 [ 2, %join ], [ 2, %free ]"), 2);
}
