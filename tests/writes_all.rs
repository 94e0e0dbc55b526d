//! Which kernels are said to write all of a parameter: the known shapes, and what differs from one in one thing.

#![cfg(any(feature = "llvm19", feature = "llvm22"))]

mod common;

use common::with_module;
use echo_sr::effects::{Count, WritesAll, derive};

/// The claim for the first parameter of kernel `@k`.
#[track_caller]
fn claim(ir: &str) -> Option<WritesAll> {
    let text = format!(
        "target datalayout = \"e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64\"
         target triple = \"nvptx64-nvidia-cuda\"
         declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
         declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
         declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
         declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
         declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
         declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
         declare void @llvm.nvvm.exit()
         declare void @llvm.trap()
         declare void @other()
         declare float @__nv_sinf(float)
         {ir}"
    );
    let table = with_module(&text, derive::effects_of_device_module);
    table.kernels.get("k").expect("the module defines kernel @k").params[0].expect("a pointer").writes_all
}

const N: Count = Count::Param { index: 1, bits: 32, signed: true };

fn simple() -> WritesAll {
    WritesAll { count: N, scale: 4, limit: 1 << 31, block: None, whatever_grid: false }
}

/// `int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) d[i] = 1;`
const SIMPLE: &str = "define ptx_kernel void @k(ptr %d, i32 %n, i32 %m, i1 %flag) {
   entry:
     %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
     %w = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
     %first = mul i32 %b, %w
     %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
     %i = add i32 %first, %t
     %below = icmp slt i32 %i, %n
     br i1 %below, label %then, label %end
   then:
     %wide = sext i32 %i to i64
     %p = getelementptr inbounds float, ptr %d, i64 %wide
     store float 1.0, ptr %p
     br label %end
   end:
     ret void
   }";

/// [`SIMPLE`] with one thing changed.
#[track_caller]
fn changed(from: &str, to: &str) -> Option<WritesAll> {
    assert!(SIMPLE.contains(from), "{from}");
    claim(&SIMPLE.replace(from, to))
}

#[test]
fn one_element_a_thread_below_n() {
    assert_eq!(claim(SIMPLE), Some(simple()));
    // The operands the other way round, an early return, a bound that lets more through.
    assert_eq!(changed("mul i32 %b, %w", "mul i32 %w, %b"), Some(simple()));
    assert_eq!(changed("add i32 %first, %t", "add i32 %t, %first"), Some(simple()));
    assert_eq!(changed("icmp slt i32 %i, %n", "icmp sgt i32 %n, %i"), Some(simple()));
    assert_eq!(changed("icmp slt i32 %i, %n", "icmp sle i32 %i, %n"), Some(simple()));
    let other_way =
        SIMPLE.replace("icmp slt", "icmp sge").replace("label %then, label %end", "label %end, label %then");
    assert_eq!(claim(&other_way), Some(simple()));
}

#[test]
fn a_count_is_read_as_it_is_compared() {
    let unsigned = Count::Param { index: 1, bits: 32, signed: false };
    // The address is still the sign extension, so the limit stays.
    assert_eq!(changed("icmp slt", "icmp ult"), Some(WritesAll { count: unsigned, ..simple() }));
    let natural = SIMPLE.replace("icmp slt", "icmp ult").replace("sext i32 %i", "zext i32 %i");
    assert_eq!(claim(&natural), Some(WritesAll { count: unsigned, limit: 1 << 32, ..simple() }));
    assert_eq!(changed("icmp slt i32 %i, %n", "icmp slt i32 %i, 1000"), {
        Some(WritesAll { count: Count::Constant(1000), ..simple() })
    });
    assert_eq!(changed("icmp slt i32 %i, %n", "icmp slt i32 %i, -5"), None);
    // size_t n, compared with an index of 32 bits: more than 2^32 elements are not all written.
    let wide = SIMPLE
        .replace("i32 %n", "i64 %n")
        .replace("%below = icmp slt i32 %i, %n", "%wide = zext i32 %i to i64\n%below = icmp ult i64 %wide, %n")
        .replace("%wide = sext i32 %i to i64\n", "");
    let count = Count::Param { index: 1, bits: 64, signed: false };
    assert_eq!(claim(&wide), Some(WritesAll { count, limit: 1 << 32, ..simple() }));
}

#[test]
fn sixty_four_bit_arithmetic_has_no_limit_that_matters() {
    let wide = SIMPLE
        .replace(
            "%first = mul i32 %b, %w",
            "%b64 = zext i32 %b to i64\n%w64 = zext i32 %w to i64\n%first = mul i64 %b64, %w64",
        )
        .replace("%i = add i32 %first, %t", "%t64 = zext i32 %t to i64\n%i = add i64 %first, %t64")
        .replace("i32 %n", "i64 %n")
        .replace("icmp slt i32 %i", "icmp ult i64 %i")
        .replace("%wide = sext i32 %i to i64", "")
        .replace("i64 %wide", "i64 %i");
    let count = Count::Param { index: 1, bits: 64, signed: false };
    assert_eq!(claim(&wide), Some(WritesAll { count, limit: u64::MAX, ..simple() }));
}

#[test]
fn without_a_guard_each_thread_writes_its_element() {
    assert_eq!(
        changed("br i1 %below, label %then, label %end", "br label %then"),
        Some(WritesAll { count: Count::Threads, ..simple() })
    );
}

#[test]
fn a_literal_block_is_asked_of_the_launch() {
    assert_eq!(changed("mul i32 %b, %w", "shl i32 %b, 8"), Some(WritesAll { block: Some(256), ..simple() }));
    assert_eq!(changed("mul i32 %b, %w", "mul i32 %b, 96"), Some(WritesAll { block: Some(96), ..simple() }));
}

#[test]
fn an_element_may_be_written_in_parts_of_one_block() {
    let parts = |second: u32| {
        SIMPLE.replace("inbounds float, ptr %d", "inbounds { float, float }, ptr %d").replace(
            "store float 1.0, ptr %p",
            &format!("store float 1.0, ptr %p\n%q = getelementptr i8, ptr %p, i64 {second}\nstore float 2.0, ptr %q"),
        )
    };
    assert_eq!(claim(&parts(4)), Some(WritesAll { scale: 8, ..simple() }));
    assert_eq!(claim(&parts(0)), None, "half of the element is left");
    assert_eq!(claim(&parts(5)), None, "a hole");
    assert_eq!(changed("inbounds float, ptr %d", "inbounds double, ptr %d"), None, "a float of a double's size");
}

#[test]
fn what_may_leave_an_element_out_claims_nothing() {
    for (what, from, to) in [
        ("an early return", "%below = icmp", "br i1 %flag, label %go, label %end\ngo:\n%below = icmp"),
        (
            "a store under another condition",
            "store float 1.0, ptr %p",
            "br i1 %flag, label %really, label %end\nreally:\nstore float 1.0, ptr %p",
        ),
        (
            "a second bound",
            "%wide = sext",
            "%also = icmp slt i32 %i, %m\nbr i1 %also, label %go, label %end\ngo:\n%wide = sext",
        ),
        ("both conditions in one", "br i1 %below,", "%both = and i1 %below, %flag\nbr i1 %both,"),
        ("the other way", "label %then, label %end", "label %end, label %then"),
        ("a bound that is no bound", "icmp slt", "icmp eq"),
        (
            "a bound that was computed",
            "%below = icmp slt i32 %i, %n",
            "%half = sdiv i32 %n, 2\n%below = icmp slt i32 %i, %half",
        ),
        ("another dimension", "ptx.sreg.tid.x()\n     %i", "ptx.sreg.tid.y()\n     %i"),
        (
            "another block's dimension",
            "call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
            "call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()",
        ),
        ("half of the threads", "add i32 %first, %t", "add i32 %first, %m"),
        ("a shifted index", "%wide = sext i32 %i to i64", "%next = add i32 %i, 1\n%wide = sext i32 %next to i64"),
        ("every other element", "%wide = sext i32 %i to i64", "%even = shl i32 %i, 1\n%wide = sext i32 %even to i64"),
        (
            "an offset",
            "getelementptr inbounds float, ptr %d, i64 %wide",
            "getelementptr { [4 x i8], float }, ptr %d, i64 %wide",
        ),
        ("nothing that is defined", "store float 1.0", "store float undef"),
        ("a bit", "store float 1.0", "store i1 true"),
        ("an end of the thread", "%below = icmp", "call void @llvm.nvvm.exit()\n%below = icmp"),
        ("a trap", "%below = icmp", "call void @llvm.trap()\n%below = icmp"),
        ("a call", "%below = icmp", "call void @other()\n%below = icmp"),
        ("assembly", "%below = icmp", "call void asm sideeffect \"exit;\", \"\"()\n%below = icmp"),
        (
            "an index of 16 bits",
            "%wide = sext i32 %i to i64",
            "%low = trunc i32 %i to i16\n%wide = sext i16 %low to i64",
        ),
        ("another copy of the kernel", "define ptx_kernel", "define linkonce_odr ptx_kernel"),
        ("another definition", "define ptx_kernel", "define weak ptx_kernel"),
    ] {
        assert_eq!(changed(from, to), None, "{what}");
    }
    // What does no harm.
    assert_eq!(changed("%below = icmp", "%x = call float @__nv_sinf(float 1.0)\n%below = icmp"), Some(simple()));
}

#[test]
fn a_condition_with_a_store_on_both_ways_is_none() {
    let both = SIMPLE.replace(
        "store float 1.0, ptr %p",
        "br i1 %flag, label %one, label %two\none:\nstore float 1.0, ptr %p\nbr label %end\ntwo:\nstore float 2.0, ptr %p",
    );
    assert_eq!(claim(&both), Some(simple()));
}

/// `for (int i = …; i < n; i += blockDim.x * gridDim.x) d[i] = 1;` as it is after rotation.
const LOOP: &str = "define ptx_kernel void @k(ptr %d, i32 %n, i32 %m, i1 %flag) {
   entry:
     %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
     %w = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
     %first = mul i32 %b, %w
     %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
     %i = add i32 %first, %t
     %below = icmp slt i32 %i, %n
     br i1 %below, label %ahead, label %end
   ahead:
     %g = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
     %all = mul i32 %w, %g
     br label %loop
   loop:
     %e = phi i32 [ %i, %ahead ], [ %next, %loop ]
     %wide = sext i32 %e to i64
     %p = getelementptr inbounds float, ptr %d, i64 %wide
     store float 1.0, ptr %p
     %next = add i32 %e, %all
     %more = icmp slt i32 %next, %n
     br i1 %more, label %loop, label %end
   end:
     ret void
   }";

#[test]
fn a_loop_over_the_grid_writes_all_whatever_the_grid() {
    let expected = Some(WritesAll { whatever_grid: true, ..simple() });
    assert_eq!(claim(LOOP), expected);
    // Not rotated: the test is at the top.
    let top = LOOP
        .replace("br i1 %below, label %ahead, label %end", "br label %ahead")
        .replace("[ %next, %loop ]", "[ %next, %body ]")
        .replace("%wide = sext", "%go = icmp slt i32 %e, %n\nbr i1 %go, label %body, label %end\nbody:\n%wide = sext")
        .replace("%more = icmp slt i32 %next, %n\n     br i1 %more, label %loop, label %end", "br label %loop");
    assert_eq!(claim(&top), expected);
}

#[test]
fn a_loop_that_may_leave_an_element_out_claims_nothing() {
    const BODY: &str = "%wide = sext i32 %e to i64
     %p = getelementptr inbounds float, ptr %d, i64 %wide
     store float 1.0, ptr %p
     %next = add i32 %e, %all";
    const STORE: &str = "store float 1.0, ptr %p";
    const BACK: &str = "[ %next, %loop ]";
    let cases: [(&str, &[(&str, &str)]); 8] = [
        ("another stride", &[("add i32 %e, %all", "add i32 %e, %m")]),
        ("a longer stride", &[("mul i32 %w, %g", "mul i32 %m, %g")]),
        ("another start", &[("phi i32 [ %i, %ahead ]", "phi i32 [ %m, %ahead ]")]),
        (
            "the test of the next element before the store",
            &[
                (STORE, ""),
                (
                    "br i1 %more, label %loop, label %end",
                    "br i1 %more, label %last, label %end\nlast:\nstore float 1.0, ptr %p\nbr label %loop",
                ),
                (BACK, "[ %next, %last ]"),
            ],
        ),
        (
            "a store of the next element",
            &[(
                BODY,
                "%next = add i32 %e, %all\n%wide = sext i32 %next to i64\n%p = getelementptr inbounds float, ptr %d, i64 %wide\nstore float 1.0, ptr %p",
            )],
        ),
        (
            "a way out",
            &[(STORE, "store float 1.0, ptr %p\nbr i1 %flag, label %on, label %end\non:"), (BACK, "[ %next, %on ]")],
        ),
        (
            "a round without a store",
            &[
                (STORE, "br i1 %flag, label %really, label %on\nreally:\nstore float 1.0, ptr %p\nbr label %on\non:"),
                (BACK, "[ %next, %on ]"),
            ],
        ),
        ("another count at the end", &[("icmp slt i32 %next, %n", "icmp slt i32 %next, %m")]),
    ];
    for (what, changes) in cases {
        let ir = changes.iter().fold(LOOP.to_owned(), |ir, (from, to)| {
            assert!(ir.contains(from), "{what}: {from}");
            ir.replace(from, to)
        });
        assert_eq!(claim(&ir), None, "{what}");
    }
}
