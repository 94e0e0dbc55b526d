//! What the kernel does with a host buffer for the program: each system call is seen, named by its place, and works.

use std::path::{Path, PathBuf};
use std::process::Command;

use echo_dr_engine::judge;
use echo_dr_format::finding::{Access, Finding, Trouble};
use echo_dr_format::plan::{Plan, State};
use echo_dr_format::reason::Reason as _;
use echo_dr_format::trace::Trace;

use crate::common::{read, run, scratch};
use crate::{Api, cuda_program, plan_for, run_in_mode, with_argument, with_device, write};

fn kernel() -> PathBuf {
    cuda_program("kernel", Api::Runtime)
}

/// A validation run of the program with this argument, by a plan from a run that keeps its hands off; what it prints is what it prints alone.
fn validated(plan: &Plan, argument: &str) -> Trace {
    let folder = scratch();
    let plain = run(with_device(Command::new(kernel()).arg(argument)));
    let plan = Plan { context: with_argument(plan, argument), ..plan.clone() };
    let path = write(&plan, folder.path());
    let (output, counters) = run_in_mode("validate", &kernel(), argument, Some(&path), folder.path());
    assert!(output.status.success(), "{argument}: {output:?}");
    assert_eq!(output.stdout, plain.stdout, "{argument}");
    assert_eq!(counters.refused, None, "{argument}");
    read(&folder.path().join("validate"))
}

fn clean() -> Plan {
    let folder = scratch();
    let plan = plan_for(&kernel(), "clean", folder.path());
    assert_eq!(plan.pairs.len(), 1, "{:?}", plan.ineligible);
    plan
}

/// The trouble was found, and the program's own function is named as its place.
fn is_found(trace: &Trace, trouble: Trouble, argument: &str) {
    let is_it = |finding: &&Finding| finding.trouble == trouble;
    let finding = trace.findings.iter().find(is_it);
    let finding = finding.unwrap_or_else(|| panic!("{argument}: {:?}", trace.findings));
    let frames = trace.frames.iter().find(|frames| Some(frames.site) == finding.site);
    let frames = frames.unwrap_or_else(|| panic!("{argument}: no frames of {finding:?}"));
    let module = trace.modules.iter().find(|module| Some(module.id) == frames.frames[0].module).expect("a module");
    assert_eq!(Path::new(&module.path), kernel(), "{argument}: the program itself makes the call");
}

fn each_is_found(plan: &Plan, trouble: Trouble, arguments: &[&str]) {
    for argument in arguments {
        is_found(&validated(plan, argument), trouble, argument);
    }
}

#[test]
fn a_system_call_that_reads_into_the_buffer_is_seen_and_works() {
    let calls = [
        "pread",
        "readv",
        "preadv",
        "preadv2",
        "syscall-read",
        "syscall-preadv2",
        "syscall-recvfrom",
        "recvmsg",
        "recvmmsg",
        "getrandom",
        "getentropy",
        "readlink",
        "ioctl",
        "msgrcv",
        "vm-readv",
        "vm-writev-to-self",
        "fread-unlocked",
    ];
    each_is_found(&clean(), Trouble::HostTouched(Access::SystemCall), &calls);
}

#[test]
fn a_system_call_that_writes_the_buffer_out_is_seen_and_works() {
    let calls = ["pwrite", "pwritev2", "fwrite", "sendmmsg", "vm-writev"];
    each_is_found(&clean(), Trouble::HostTouched(Access::SystemCall), &calls);
}

#[test]
fn a_call_that_is_under_way_when_the_window_opens_is_seen_and_works() {
    // The pages were closed under it: the call failed or ended short, and the next datagram of a socket was lost.
    let calls = ["late-read", "late-recv", "late-fread", "late-write", "late-fwrite", "late-cancelled"];
    each_is_found(&clean(), Trouble::HostTouched(Access::SystemCall), &calls);
}

#[test]
fn what_works_on_after_its_call_is_out_of_sight() {
    let calls = ["aio", "lio", "kernel-aio", "vmsplice", "setvbuf", "ring", "ioctl-nested"];
    each_is_found(&clean(), Trouble::OutOfSight, &calls);
}

#[test]
fn a_ring_that_is_made_without_any_call_is_found_by_its_descriptor() {
    let trace = validated(&clean(), "ring-unseen");
    assert!(trace.findings.iter().any(|finding| finding.trouble == Trouble::OutOfSight), "{:?}", trace.findings);
}

#[test]
fn a_program_that_changes_the_pages_of_its_block_has_no_pair() {
    let plan = clean();
    for argument in ["mprotect", "dontneed", "mlock", "fixed"] {
        let folder = scratch();
        let profiled = plan_for(&kernel(), argument, folder.path());
        assert!(profiled.pairs.is_empty(), "{argument}: {profiled:?}");
        let reasons = profiled.ineligible.iter().flat_map(|copies| &copies.reasons);
        assert!(reasons.into_iter().any(|reason| reason.number() == "EDR326"), "{argument}: {:?}", profiled.ineligible);
        is_found(&validated(&plan, argument), Trouble::OutOfSight, argument);
    }
}

#[test]
fn advice_that_changes_nothing_is_no_touch() {
    let mut plan = clean();
    let trace = validated(&plan, "hugepage");
    assert_eq!(trace.findings, []);
    plan.context = with_argument(&plan, "hugepage");
    judge(&mut plan, &trace).expect("the same program");
    assert_eq!(plan.pairs[0].state, State::Validated);
}
