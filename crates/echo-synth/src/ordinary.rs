//! Code that has nothing to do with CUDA: arithmetic, loops over arrays, branches, switches, calls.

use super::function::Function;
use super::random::Random;

/// Head of every module.
pub(crate) const DECLARATIONS: &str = r#"target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
@input = global [4096 x i64] zeroinitializer
@output = global [4096 x i64] zeroinitializer
@format = private constant [4 x i8] c"%f\0A\00"
declare i32 @printf(ptr, ...)
declare double @sqrt(double)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @exit(i32) noreturn
"#;

/// Some ordinary code, 10 to 60 instructions.
pub(crate) fn piece(f: &mut Function<'_>, random: &mut Random) {
    match random.below(16) {
        0..7 => arithmetic(f, random),
        7..10 => diamond(f, random),
        10..12 => calls(f, random),
        12..14 => switch(f, random),
        14 => array_loop(f),
        _ => match random.below(2) {
            0 => nested_loop(f, random),
            _ => local_array(f),
        },
    }
}

/// Straight-line arithmetic on what is in memory.
pub(crate) fn arithmetic(f: &mut Function<'_>, random: &mut Random) {
    let mut value = f.accumulator().to_owned();
    for _ in 0..4 + random.below(4) {
        let masked = f.value(&format!("and i64 {value}, 4095"));
        let place = f.value(&format!("getelementptr inbounds i64, ptr %a, i64 {masked}"));
        let loaded = f.value(&format!("load i64, ptr {place}"));
        for _ in 0..2 + random.below(3) {
            let operation = random.pick(&["add", "sub", "xor", "mul", "or", "and"]);
            let constant = 3 + random.below(1000);
            value = f.value(&format!("{operation} i64 {value}, {constant}"));
            value = f.value(&format!("xor i64 {value}, {loaded}"));
        }
    }
    f.accumulate(value);
}

/// `for (i) b[i] = a[i] * 3 + b[i]`, and a sum.
fn array_loop(f: &mut Function<'_>) {
    let total = f.variable("i64");
    let start = f.accumulator().to_owned();
    f.effect(&format!("store i64 {start}, ptr {total}"));
    f.repeat("%n", |f, i| {
        let from = f.value(&format!("getelementptr inbounds i64, ptr %a, i64 {i}"));
        let to = f.value(&format!("getelementptr inbounds i64, ptr %b, i64 {i}"));
        let left = f.value(&format!("load i64, ptr {from}"));
        let right = f.value(&format!("load i64, ptr {to}"));
        let scaled = f.value(&format!("mul i64 {left}, 3"));
        let new = f.value(&format!("add i64 {scaled}, {right}"));
        f.effect(&format!("store i64 {new}, ptr {to}"));
        let old = f.value(&format!("load i64, ptr {total}"));
        let sum = f.value(&format!("add i64 {old}, {new}"));
        f.effect(&format!("store i64 {sum}, ptr {total}"));
    });
    let sum = f.value(&format!("load i64, ptr {total}"));
    f.accumulate(sum);
}

/// A loop in a loop, with a branch in the inner one.
fn nested_loop(f: &mut Function<'_>, random: &mut Random) {
    let best = f.variable("i64");
    let start = f.accumulator().to_owned();
    f.effect(&format!("store i64 {start}, ptr {best}"));
    let width = 4 + random.below(60);
    f.repeat("%n", |f, row| {
        let base = f.value(&format!("mul i64 {row}, {width}"));
        f.repeat(&width.to_string(), |f, column| {
            let index = f.value(&format!("add i64 {base}, {column}"));
            let masked = f.value(&format!("and i64 {index}, 4095"));
            let place = f.value(&format!("getelementptr inbounds i64, ptr %a, i64 {masked}"));
            let value = f.value(&format!("load i64, ptr {place}"));
            let old = f.value(&format!("load i64, ptr {best}"));
            let larger = f.value(&format!("icmp sgt i64 {value}, {old}"));
            let (keep, after) = (f.name(), f.name());
            f.branch(&larger, &keep, &after);
            f.start(&keep);
            f.effect(&format!("store i64 {value}, ptr {best}"));
            f.go_to(&after);
            f.start(&after);
        });
    });
    let found = f.value(&format!("load i64, ptr {best}"));
    f.accumulate(found);
}

fn diamond(f: &mut Function<'_>, random: &mut Random) {
    let value = f.accumulator().to_owned();
    let bit = f.value(&format!("and i64 {value}, {}", 1 << random.below(12)));
    let set = f.value(&format!("icmp ne i64 {bit}, 0"));
    let (yes, no, join) = (f.name(), f.name(), f.name());
    f.branch(&set, &yes, &no);
    let mut sides = Vec::new();
    for side in [yes, no] {
        f.start(&side);
        arithmetic(f, random);
        sides.push((f.accumulator().to_owned(), f.block()));
        f.accumulate(value.clone());
        f.go_to(&join);
    }
    f.start(&join);
    let [(left, from_left), (right, from_right)] = &sides[..] else { return };
    let joined = f.value(&format!("phi i64 [ {left}, %{from_left} ], [ {right}, %{from_right} ]"));
    f.accumulate(joined);
}

fn switch(f: &mut Function<'_>, random: &mut Random) {
    let value = f.accumulator().to_owned();
    let which = f.value(&format!("and i64 {value}, 7"));
    let cases: Vec<String> = (0..4).map(|_| f.name()).collect();
    let join = f.name();
    let before = f.block();
    let list: Vec<String> = cases.iter().enumerate().map(|(n, case)| format!("i64 {n}, label %{case}")).collect();
    f.effect(&format!("switch i64 {which}, label %{join} [ {} ]", list.join(" ")));
    let mut inputs = vec![format!("[ {value}, %{before} ]")];
    for case in &cases {
        f.start(case);
        let result = f.value(&format!("mul i64 {value}, {}", 3 + random.below(100)));
        let shifted = f.value(&format!("lshr i64 {result}, {}", 1 + random.below(8)));
        inputs.push(format!("[ {shifted}, %{case} ]"));
        f.go_to(&join);
    }
    f.start(&join);
    let joined = f.value(&format!("phi i64 {}", inputs.join(", ")));
    f.accumulate(joined);
}

/// A copy of part of an array, worked on locally.
fn local_array(f: &mut Function<'_>) {
    let local = f.variable("[64 x i64]");
    f.effect(&format!("call void @llvm.memcpy.p0.p0.i64(ptr {local}, ptr %a, i64 512, i1 false)"));
    f.repeat("64", |f, i| {
        let place = f.value(&format!("getelementptr inbounds [64 x i64], ptr {local}, i64 0, i64 {i}"));
        let value = f.value(&format!("load i64, ptr {place}"));
        let turned = f.value(&format!("xor i64 {value}, {i}"));
        f.effect(&format!("store i64 {turned}, ptr {place}"));
    });
    let old = f.accumulator().to_owned();
    let index = f.value(&format!("and i64 {old}, 63"));
    let place = f.value(&format!("getelementptr inbounds [64 x i64], ptr {local}, i64 0, i64 {index}"));
    let value = f.value(&format!("load i64, ptr {place}"));
    let sum = f.value(&format!("add i64 {value}, {old}"));
    f.accumulate(sum);
}

fn calls(f: &mut Function<'_>, random: &mut Random) {
    let value = f.accumulator().to_owned();
    let helper = random.below(4);
    let result = f.value(&format!("call i64 @helper{helper}(ptr %a, ptr %b, i64 %n, i64 {value})"));
    let real = f.value(&format!("sitofp i64 {result} to double"));
    let root = f.value(&format!("call double @sqrt(double {real})"));
    if random.below(3) == 0 {
        f.value(&format!("call i32 (ptr, ...) @printf(ptr @format, double {root})"));
    }
    let back = f.value(&format!("fptosi double {root} to i64"));
    let mixed = f.value(&format!("xor i64 {back}, {result}"));
    f.accumulate(mixed);
}
