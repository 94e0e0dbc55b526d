//! CUDA programs through lowering, analysis and rewrite, at the place of the pipeline where the pass stands.

mod common;

use std::path::Path;
use std::process::Command;

use common::{clang_without_plugin, scratch, succeed, with_module, write};
use echo_sr::analysis::verdict::{Decision, MergePlan, Verdict};
use echo_sr::analysis::{Options, analyse};
use echo_sr::effects::EffectTable;
use echo_sr::lower::{Context, has_device_allocation, lower_function};
use echo_sr::rewrite;

/// The host half of a program, as it is when the plugin's `echo-sr` pass runs.
fn host_ir(program: &str) -> String {
    let directory = scratch();
    write(directory.path(), "program.cu", program);
    succeed(clang_without_plugin(directory.path()).args([
        "-g",
        "--cuda-host-only",
        "-S",
        "-emit-llvm",
        "-Xclang",
        "-disable-llvm-passes",
        "program.cu",
        "-o",
        "raw.ll",
    ]));
    let passes = before_optimizer_early(directory.path());
    succeed(Command::new("opt-22").current_dir(directory.path()).args([
        "-S",
        &format!("-passes={passes}"),
        "raw.ll",
        "-o",
        "out.ll",
    ]));
    std::fs::read_to_string(directory.path().join("out.ll")).expect("opt wrote its output")
}

/// The passes of `default<O2>` that run before the plugin's.
fn before_optimizer_early(directory: &Path) -> String {
    let (all, _) = succeed(Command::new("opt-22").current_dir(directory).args([
        "-passes=default<O2>",
        "-print-pipeline-passes",
        "-disable-output",
        "raw.ll",
    ]));
    let (before, _) =
        all.rsplit_once("recompute-globalsaa").expect("the optimisation half starts with recompute-globalsaa");
    before.trim_end_matches(',').to_owned()
}

fn main() {}

#[test]
fn explore() {
    for file in std::env::var("EXPLORE").unwrap_or_default().split(',').filter(|f| !f.is_empty()) {
        let ir = host_ir(&std::fs::read_to_string(file).unwrap());
        with_module(&ir, |module| {
            let context = Context::new(module, EffectTable::default());
            for function in context.module.functions().filter(|f| !f.is_declaration() && has_device_allocation(*f)) {
                let lowered = lower_function(&context, function).unwrap();
                println!(
                    "== {file} {}\n{:#?}\n{:#?}\n{:#?} {:?}",
                    function.name(),
                    lowered.program.objects,
                    lowered.program.uses,
                    lowered.program.blemishes,
                    lowered.program.module
                );
                let v = analyse(&lowered.program, &Options { theta_min: 0, ..Options::default() });
                println!("{v:#?}");
            }
        });
    }
    let _ = |_: &Path, _: &Verdict, _: &MergePlan, _: &Decision| {};
    let _ = rewrite::apply;
}
