//! The table of examples of the design: each program must come out just so.

use super::super::Options;
use super::super::program::{Space, WaitScope};
use super::super::testing::{Build, LEGACY, codes, concurrent, overwrites, reads, writes};
use super::super::verdict::{Decision, FreeAction, SyncAction};

const LEGACY_WAIT: SyncAction = SyncAction::Wait(WaitScope::Stream(LEGACY));
const RELEASE: FreeAction = FreeAction::Release { wait: None };
const DROP: FreeAction = FreeAction::Drop { wait: None };

#[test]
fn figure_1_is_accepted_with_one_wait_for_the_kernel() {
    let mut b = Build::main();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.host(&[writes(h)]);
    let up = b.upload(d, h);
    b.launch("kernel", &[reads(d), writes(d)]);
    let down = b.download(h, d);
    b.host(&[reads(h)]);
    let free = b.free(h);
    let cuda_free = b.cuda_free(d);
    let plan = b.plan();
    assert_eq!(plan.copies(), [(up, SyncAction::Nothing), (down, LEGACY_WAIT)]);
    assert_eq!(plan.frees(), [(free, DROP), (cuda_free, RELEASE)]);
    assert!(plan.exclusive_ok());
    assert!(plan.waits().is_empty());
}

#[test]
fn s1_a_host_write_between_upload_and_kernel_declines() {
    let mut b = Build::main();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.host(&[writes(h)]);
    b.upload(d, h);
    b.host(&[writes(h)]);
    b.launch("kernel", &[reads(d), writes(d)]);
    b.download(h, d);
    b.free(h);
    b.cuda_free(d);
    assert_eq!(b.codes(), ["S1-device-value-overwritten"]);
}

#[test]
fn s1_the_same_is_accepted_if_the_kernel_overwrites_all() {
    let mut b = Build::main();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.host(&[writes(h)]);
    b.upload(d, h);
    b.host(&[writes(h)]);
    b.launch("kernel", &[overwrites(d)]);
    b.download(h, d);
    b.free(h);
    b.cuda_free(d);
    assert_eq!(b.codes(), [""; 0]);
}

#[test]
fn s4_an_early_free_of_the_host_buffer_is_accepted() {
    let mut b = Build::main();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.host(&[writes(h)]);
    b.upload(d, h);
    let free = b.free(h);
    b.launch("kernel", &[reads(d), writes(d)]);
    b.wait(WaitScope::Device);
    let cuda_free = b.cuda_free(d);
    assert_eq!(b.plan().frees(), [(free, DROP), (cuda_free, RELEASE)]);
}

#[test]
fn an_input_that_the_kernel_only_reads_may_be_read_by_the_host_later() {
    for (effects, expected) in [("read", [].as_slice()), ("unknown", &["S1-host-value-overwritten"])] {
        let mut b = Build::main();
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.host(&[writes(h)]);
        b.upload(d, h);
        if effects == "read" {
            b.launch("kernel", &[reads(d)]);
        } else {
            b.launch("kernel", &[reads(d), writes(d)]);
        }
        b.wait(WaitScope::Device);
        b.host(&[reads(h)]);
        b.free(h);
        b.cuda_free(d);
        assert_eq!(b.codes(), expected, "{effects}");
    }
}

#[test]
fn an_output_that_is_cleared_first_is_accepted() {
    let mut b = Build::main();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.host(&[overwrites(h)]);
    b.launch("kernel", &[writes(d)]);
    b.download(h, d);
    b.host(&[reads(h)]);
    b.free(h);
    b.cuda_free(d);
    // The kernel does not write all of d for certain, so what memset put in h would be seen: but D2H covers h.
    assert_eq!(b.codes(), [""; 0]);
}

#[test]
fn a_loop_that_refills_while_the_kernel_runs_declines_and_can_be_repaired() {
    let mut b = Build::main();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.repeat(|b| {
        b.host(&[writes(h)]);
        b.upload(d, h);
        b.launch("kernel", &[reads(d)]);
    });
    b.cuda_free(d);
    b.free(h);
    let verdicts = b.verdicts(&concurrent());
    assert_eq!(codes(&verdicts[0]), ["S2-kernel-pending"]);
    let super::super::verdict::Decision::Decline(reasons) = &verdicts[0].decision else { unreachable!() };
    assert!(reasons[0].suggestion.as_ref().is_some_and(|text| text.contains("cudaDeviceSynchronize")));
    assert!(reasons[0].witness.len() >= 2);
}

#[test]
fn unrelated_work_in_flight_excludes_managed_memory_with_exclusive_access_only() {
    let build = || {
        let mut b = Build::main();
        let other = b.cuda_malloc("other");
        let h = b.malloc("h");
        let d = b.cuda_malloc("d");
        b.launch("unrelated", &[writes(other)]);
        b.host(&[writes(h)]);
        b.upload(d, h);
        b.launch("kernel", &[reads(d)]);
        b.cuda_free(d);
        b.free(h);
        b
    };
    assert_eq!(build().codes(), ["S5-host-access-in-flight"]);
    assert!(!build().plan_with(&concurrent()).exclusive_ok());
}

#[test]
fn a_size_from_the_command_line_is_accepted() {
    let mut b = Build::main();
    let n = b.atom(None);
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    let bytes = n.mul(&4.into());
    b.object(h).size = bytes.clone();
    b.object(d).size = bytes;
    b.host(&[writes(h)]);
    b.upload(d, h);
    b.launch("kernel", &[reads(d)]);
    b.cuda_free(d);
    b.free(h);
    let verdicts = b.verdicts(&Options::default());
    assert_eq!(codes(&verdicts[0]), [""; 0]);
    assert_eq!(verdicts[0].notes, [super::super::verdict::Note::SizeNotCompared]);
}

#[test]
fn of_two_device_buffers_one_is_merged_and_the_other_copy_stays() {
    let mut b = Build::main();
    let h = b.malloc("h");
    let d1 = b.cuda_malloc("d1");
    let d2 = b.cuda_malloc("d2");
    b.host(&[writes(h)]);
    b.upload(d1, h);
    let stays = b.upload(d2, h);
    b.launch("kernel", &[reads(d1), reads(d2)]);
    b.cuda_free(d1);
    b.cuda_free(d2);
    b.free(h);
    let verdicts = b.verdicts(&Options::default());
    let all: Vec<_> = verdicts.iter().map(codes).collect();
    assert_eq!(all, [vec![], vec!["CAND-better-partner"]]);
    let super::super::verdict::Decision::Accept(plan) = &verdicts[0].decision else { unreachable!() };
    assert_eq!(plan.waits(), [(stays, WaitScope::Stream(LEGACY))]);
}

#[test]
fn buffers_of_other_kinds_are_no_candidates() {
    let mut b = Build::main();
    let h = b.malloc("h");
    let d = b.cuda_malloc("d");
    b.object(d).space = Space::Both;
    b.upload(d, h);
    assert!(b.verdicts(&Options::default()).is_empty());
}

#[test]
fn a_limit_on_merges_is_part_of_what_is_proved() {
    let two_pairs = || {
        let mut b = Build::main();
        let (h, d) = (b.malloc("h"), b.cuda_malloc("d"));
        let (out, d_out) = (b.malloc("out"), b.cuda_malloc("d_out"));
        b.host(&[writes(h)]);
        b.upload(d, h);
        b.launch("kernel", &[reads(d), writes(d_out)]);
        b.download(out, d_out);
        b.host(&[reads(out), reads(h)]);
        b
    };
    for (max_merges, merged) in [(None, 2), (Some(2), 2), (Some(1), 1), (Some(0), 0)] {
        let verdicts = two_pairs().verdicts(&Options { max_merges, ..concurrent() });
        assert_eq!(verdicts.len(), 2);
        let accepted = verdicts.iter().filter(|verdict| matches!(verdict.decision, Decision::Accept(_))).count();
        assert_eq!(accepted, merged, "{max_merges:?}");
    }
}
