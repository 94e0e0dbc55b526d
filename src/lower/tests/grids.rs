//! What a launch's configuration proves of a kernel that writes all of a parameter, if it has the threads.

use super::kernels::{KERNEL, STUB, STUB_NAME, for_aarch64, launch, table};
use super::registration;
use crate::effects::{Count, ParamEffect, WritesAll};

const N: Count = Count::Param { index: 1, bits: 32, signed: true };
const UNSIGNED: Count = Count::Param { index: 1, bits: 32, signed: false };
const CLAIM: WritesAll = WritesAll { count: N, scale: 4, limit: 1 << 31, block: None, whatever_grid: false };

/// `(n + 255) / 256` blocks of 256 threads, and a buffer of `4 * n` bytes.
const ROUNDED: [(&str, &str); 4] = [
    ("BYTES", "%wide = sext i32 %n to i64\n%bytes = shl nsw i64 %wide, 2"),
    (
        "GRID",
        "%sum = add nsw i32 %n, 255\n%blocks = sdiv i32 %sum, 256\n%x = zext i32 %blocks to i64\n%grid = or disjoint i64 %x, 4294967296",
    ),
    ("LAUNCHED", "%grid"),
    ("BLOCK", "4294967552"),
];

/// Is the launch of a kernel with the claim, and the given texts in place of the names, certain to write all?
#[track_caller]
fn writes_whole(claim: WritesAll, texts: &[(&str, &str)]) -> bool {
    let mut ir = format!(
        "{STUB}
         {}
         define i32 @main(i32 %n, i32 %m, i64 %l) {{
           %a = alloca ptr
           BYTES
           %e1 = call i32 @cudaMalloc(ptr %a, i64 %bytes)
           %a1 = load ptr, ptr %a
           GRID
           %e3 = call i32 @__cudaPushCallConfiguration(i64 LAUNCHED, i32 1, i64 BLOCK, i32 1, i64 0, ptr null)
           call void @STUB(ptr %a1, i32 %n, i64 0)
           ret i32 0
         }}",
        registration(STUB_NAME, KERNEL)
    );
    ir = ir.replace("STUB", STUB_NAME).replace("ptr %0, ptr %1, i64 %2", "ptr %0, i32 %1, i64 %2");
    for (name, text) in texts.iter().chain(&ROUNDED) {
        ir = ir.replace(name, text);
    }
    let writes = ParamEffect { reads: false, writes: true, captures: false, writes_all: Some(claim) };
    let line = launch(&ir, table(vec![Some(writes), None, None]));
    assert!(line.contains("write"), "{line}");
    assert_eq!(launch(&for_aarch64(&ir), table(vec![Some(writes), None, None])), line);
    line.contains("write 0 whole")
}

#[test]
fn as_many_blocks_as_it_takes() {
    assert!(writes_whole(CLAIM, &[]));
    for grid in [
        "%sum = add nsw i32 %n, 255\n%blocks = udiv i32 %sum, 256",
        "%sum = add nsw i32 %n, 255\n%blocks = lshr i32 %sum, 8",
        "%sum = add nsw i32 %n, 255\n%blocks = ashr i32 %sum, 8",
        "%quotient = sdiv i32 %n, 256\n%blocks = add nsw i32 %quotient, 1",
        "%less = add nsw i32 %n, -1\n%quotient = sdiv i32 %less, 256\n%blocks = add nsw i32 %quotient, 1",
        // More threads than it takes.
        "%sum = add nsw i32 %n, 999\n%blocks = sdiv i32 %sum, 128",
    ] {
        let grid = format!("{grid}\n%x = zext i32 %blocks to i64\n%grid = or disjoint i64 %x, 4294967296");
        assert!(writes_whole(CLAIM, &[("GRID", &grid)]), "{grid}");
    }
}

#[test]
fn too_few_threads_or_a_sum_that_may_wrap_prove_nothing() {
    for grid in [
        "%blocks = sdiv i32 %n, 256",
        "%sum = add nsw i32 %n, 254\n%blocks = sdiv i32 %sum, 256",
        // Wraps: without a flag, or of a number that is not this one.
        "%sum = add i32 %n, 255\n%blocks = sdiv i32 %sum, 256",
        "%sum = add nuw i32 %n, 255\n%blocks = udiv i32 %sum, 256",
        "%sum = add nsw i32 %m, 255\n%blocks = sdiv i32 %sum, 256",
        // Blocks of the launch are smaller than those that were counted.
        "%sum = add nsw i32 %n, 511\n%blocks = sdiv i32 %sum, 512",
        "%sum = add nsw i32 %n, -2\n%quotient = sdiv i32 %sum, 256\n%blocks = add nsw i32 %quotient, 1",
        "%quotient = sdiv i32 %n, 1\n%blocks = add i32 %quotient, 1",
        "%sum = add nsw i32 %n, 255\n%blocks = srem i32 %sum, 256",
        "%blocks = add nsw i32 %m, 0",
    ] {
        let grid = format!("{grid}\n%x = zext i32 %blocks to i64\n%grid = or disjoint i64 %x, 4294967296");
        assert!(!writes_whole(CLAIM, &[("GRID", &grid)]), "{grid}");
    }
    // The sum is in the y dimension.
    let high = "%sum = add nsw i32 %n, 255\n%blocks = sdiv i32 %sum, 256\n%x = zext i32 %blocks to i64\n%y = shl i64 %x, 32\n%grid = or disjoint i64 %y, 1";
    assert!(!writes_whole(CLAIM, &[("GRID", high)]));
    // A block that is not constant, or has no threads, or too many for any device.
    for block in ["%l", "4294967296", "4294968321"] {
        assert!(!writes_whole(CLAIM, &[("BLOCK", block)]), "{block}");
    }
}

#[test]
fn the_count_must_be_what_the_size_is_made_of() {
    let bytes = |text: &'static str| [("BYTES", text)];
    assert!(
        !writes_whole(CLAIM, &bytes("%wide = sext i32 %m to i64\n%bytes = shl nsw i64 %wide, 2")),
        "another number"
    );
    assert!(!writes_whole(CLAIM, &bytes("%wide = sext i32 %n to i64\n%bytes = shl nsw i64 %wide, 3")), "half of it");
    // A size of 2^31 floats, where the kernel sees a negative count.
    assert!(!writes_whole(CLAIM, &bytes("%wide = zext i32 %n to i64\n%bytes = shl nuw nsw i64 %wide, 2")));
    // The other way round: the kernel reads a natural number.
    let unsigned = WritesAll { count: UNSIGNED, limit: 1 << 32, ..CLAIM };
    assert!(!writes_whole(unsigned, &[]));
    let whole = [
        ("BYTES", "%wide = zext i32 %n to i64\n%bytes = shl nuw nsw i64 %wide, 2"),
        (
            "GRID",
            "%sum = add nuw i32 %n, 255\n%blocks = lshr i32 %sum, 8\n%x = zext i32 %blocks to i64\n%grid = or disjoint i64 %x, 4294967296",
        ),
    ];
    assert!(writes_whole(unsigned, &whole));
    assert!(!writes_whole(WritesAll { limit: 1 << 31, ..unsigned }, &whole), "more than the kernel can count");
    let signed_division = whole.map(|(name, text)| (name, text.replace("lshr i32 %sum, 8", "sdiv i32 %sum, 256")));
    let signed_division: Vec<_> = signed_division.iter().map(|(name, text)| (*name, text.as_str())).collect();
    assert!(!writes_whole(unsigned, &signed_division));
    // A parameter of another width is not the argument.
    let narrow = Count::Param { index: 1, bits: 16, signed: true };
    assert!(!writes_whole(WritesAll { count: narrow, ..CLAIM }, &[]));
    assert!(!writes_whole(WritesAll { count: Count::Param { index: 9, bits: 32, signed: true }, ..CLAIM }, &[]));
}

#[test]
fn constants_are_multiplied() {
    let constant = |grid, count, limit| {
        let texts = [("i64 %bytes)", "i64 4000)"), ("BYTES", ""), ("LAUNCHED", grid)];
        writes_whole(WritesAll { count, limit, ..CLAIM }, &texts)
    };
    // Four blocks of 256 threads, one in the y dimension.
    assert!(constant("4294967300", Count::Constant(1000), 1 << 31));
    assert!(!constant("4294967299", Count::Constant(1000), 1 << 31), "three are too few");
    assert!(!constant("17179869187", Count::Constant(1000), 1 << 31), "the y dimension does not count");
    assert!(!constant("4294967300", Count::Constant(999), 1 << 31), "a byte is left");
    assert!(!constant("4294967300", Count::Constant(1000), 999), "more than the kernel can count");
    assert!(!constant("4294967300", Count::Threads, 1 << 31), "1024 elements are not 1000");
    let threads = WritesAll { count: Count::Threads, ..CLAIM };
    let bytes = [("i64 %bytes)", "i64 4096)"), ("BYTES", ""), ("LAUNCHED", "4294967300")];
    assert!(writes_whole(threads, &bytes));
    assert!(!writes_whole(WritesAll { limit: 1000, ..threads }, &bytes));
    assert!(!writes_whole(threads, &bytes[..2]), "how many blocks there are is not known");
}

#[test]
fn a_literal_block_must_be_the_launchs() {
    assert!(writes_whole(WritesAll { block: Some(256), ..CLAIM }, &[]));
    assert!(!writes_whole(WritesAll { block: Some(128), ..CLAIM }, &[]));
    let any = WritesAll { whatever_grid: true, ..CLAIM };
    assert!(writes_whole(any, &[("LAUNCHED", "%l"), ("BLOCK", "%l")]), "a loop over the grid needs no configuration");
    assert!(!writes_whole(WritesAll { block: Some(256), ..any }, &[("LAUNCHED", "%l"), ("BLOCK", "%l")]));
}
