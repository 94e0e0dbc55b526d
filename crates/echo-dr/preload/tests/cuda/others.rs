//! CUDA's functions beyond allocation, copies and kernels: what they do to exactly the pairs that they concern.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use echo_dr_format::plan::{Plan, State};
use echo_dr_format::reason::Reason as _;

use crate::common::{program, run, scratch};
use crate::{Api, cuda_program, device, plan_for, run_in_mode, with_device, write};

/// The numbers of the reasons for which the program's copies are no pair.
fn reasons(plan: &Plan) -> Vec<&'static str> {
    assert!(plan.pairs.is_empty(), "{:?}", plan.pairs);
    plan.ineligible.iter().flat_map(|copies| &copies.reasons).map(|reason| reason.number()).collect()
}

fn is_declined(program: &Path, argument: &str, number: &str) {
    let folder = scratch();
    let plan = plan_for(program, argument, folder.path());
    assert!(reasons(&plan).contains(&number), "{argument}: {:?}", plan.ineligible);
}

/// The pair is merged, and the program prints what it does without Echo.
fn is_merged(program: &Path, argument: &str) {
    let folder = scratch();
    let plain = run(with_device(Command::new(program).arg(argument)));
    let mut plan = plan_for(program, argument, folder.path());
    assert_eq!(plan.pairs.len(), 1, "{argument}: {:?}", plan.ineligible);
    plan.pairs[0].state = State::Enabled;
    let path = write(&plan, folder.path());
    let (output, counters) = run_in_mode("optimise", program, argument, Some(&path), folder.path());
    assert_eq!(output.stdout, plain.stdout, "{argument}: {output:?}");
    assert_eq!(counters.pairs[0].copies_skipped, 10, "{argument}: {counters:?}");
}

#[test]
fn what_is_put_into_a_graph_or_a_batch_is_no_pair_and_other_blocks_are() {
    let program = cuda_program("others", Api::Runtime);
    for argument in ["node-1d", "node-3d", "node-changed", "batch"] {
        is_declined(&program, argument, "EDR326");
    }
    is_merged(&program, "node-of-others");
}

#[test]
fn functions_that_nobody_has_told_the_analysis_of_decline_what_is_alive() {
    let program = cuda_program("others", Api::Runtime);
    for argument in ["node-any", "batch-3d"] {
        is_declined(&program, argument, "EDR331");
    }
}

#[test]
fn pools_and_resets_decline_and_copies_between_devices_do_not() {
    let program = cuda_program("others", Api::Runtime);
    is_declined(&program, "pool", "EDR312");
    is_declined(&program, "reset", "EDR324");
    is_merged(&program, "peer");
}

#[test]
fn one_context_at_a_time_is_as_good_as_the_devices_own() {
    let program = cuda_program("others", Api::Driver);
    for argument in ["primary", "context", "contexts-in-turn", "release-at-end"] {
        is_merged(&program, argument);
    }
    is_declined(&program, "context-late", "EDR327");
    is_declined(&program, "two-contexts", "EDR322");
    is_declined(&program, "release-alive", "EDR324");
}

/// A library with a function of CUDA that Echo can't know.
fn tomorrow() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let link = format!("-L{}", device().display());
        let flags = ["-shared", "-fPIC", "-DLIBRARY", "-Wl,-soname,libcudatomorrow.so,--no-as-needed", &link, "-lcuda"];
        let built = program("tomorrow", &flags);
        let path = built.with_file_name("libcudatomorrow.so");
        std::fs::rename(&built, &path).expect("renamed");
        path
    })
}

#[test]
fn a_function_that_is_not_known_is_noticed_when_it_is_called() {
    let path = format!("-DTOMORROW=\"{}\"", tomorrow().display());
    let link = format!("-L{}", device().display());
    let program = program("tomorrow", &[&path, &link, "-lcudart"]);
    for argument in ["dlsym", "proc"] {
        is_declined(&program, argument, "EDR331");
    }
    for argument in ["clean", "not-called"] {
        is_merged(&program, argument);
    }
}

#[test]
fn a_function_that_is_not_known_is_noticed_where_a_file_imports_it() {
    let folder = tomorrow().parent().expect("a folder").display().to_string();
    let path = format!("-DTOMORROW=\"{}\"", tomorrow().display());
    let (own, links) = (format!("-L{}", device().display()), format!("-L{folder}"));
    let place = format!("-Wl,-rpath,{folder}");
    let program = program("tomorrow", &[&path, "-DIMPORTS", &own, &links, &place, "-lcudart", "-lcudatomorrow"]);
    is_declined(&program, "import", "EDR331");
}
