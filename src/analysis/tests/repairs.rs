//! Waits that repair pairs which lack nothing but an order.

use super::super::Options;
use super::super::program::{NodeId, Stream};
use super::super::testing::{Build, codes, concurrent, reads, writes};
use super::super::verdict::{Decision, Note, RepairPlace, Verdict};

fn repairing() -> Options {
    Options { repair: true, ..concurrent() }
}

fn repairs(verdict: &Verdict) -> Vec<(NodeId, RepairPlace)> {
    match &verdict.decision {
        Decision::Accept(plan) => plan.repairs().to_vec(),
        Decision::Decline(_) => panic!("declined: {:?}", codes(verdict)),
    }
}

#[test]
fn a_refill_waits_before_it_where_each_round_has_new_work() {
    let mut b = Build::main();
    let (h, d) = (b.malloc("h"), b.cuda_malloc("d"));
    let mut refill = None;
    b.repeat(|b| {
        refill = Some(b.host(&[writes(h)]));
        b.upload(d, h);
        b.launch("kernel", &[reads(d)]);
    });
    b.cuda_free(d);
    b.free(h);
    let verdicts = b.verdicts(&repairing());
    assert_eq!(repairs(&verdicts[0]), [(refill.expect("a node"), RepairPlace::Before)]);
    assert_eq!(verdicts[0].notes, [Note::Repaired]);
}

#[test]
fn a_loop_that_fills_makes_the_wait_stand_behind_the_work() {
    let mut b = Build::main();
    let (h, d) = (b.malloc("h"), b.cuda_malloc("d"));
    let mut kernel = None;
    b.repeat(|b| {
        b.repeat(|b| {
            b.host(&[writes(h)]);
        });
        b.upload(d, h);
        kernel = Some(b.launch("kernel", &[reads(d)]));
    });
    b.cuda_free(d);
    b.free(h);
    let verdicts = b.verdicts(&repairing());
    assert_eq!(repairs(&verdicts[0]), [(kernel.expect("a node"), RepairPlace::Behind)]);
}

#[test]
fn streams_that_nothing_orders_are_ordered() {
    let mut b = Build::main();
    let (h, d) = (b.pinned("h"), b.cuda_malloc("d"));
    let (one, other) = (b.stream(Stream::NonBlocking), b.stream(Stream::NonBlocking));
    b.host(&[writes(h)]);
    b.upload_async(d, h, one);
    b.launch_on(one, "first", &[reads(d)]);
    let second = b.launch_on(other, "second", &[writes(h)]);
    b.wait(super::super::program::WaitScope::Device);
    b.cuda_free(d);
    b.free(h);
    let verdicts = b.verdicts(&repairing());
    match &verdicts[0].decision {
        Decision::Accept(plan) => assert_eq!(plan.repairs(), [(second, RepairPlace::Before)]),
        Decision::Decline(reasons) => panic!("{reasons:#?}"),
    }
}

#[test]
fn a_value_that_is_lost_is_not_repaired() {
    let mut b = Build::main();
    let (h, d) = (b.malloc("h"), b.cuda_malloc("d"));
    b.host(&[writes(h)]);
    b.upload(d, h);
    b.launch("first", &[reads(d)]);
    b.host(&[writes(h)]);
    b.launch("second", &[reads(d)]);
    b.cuda_free(d);
    b.free(h);
    let verdicts = b.verdicts(&repairing());
    assert!(codes(&verdicts[0]).contains(&"S1-device-value-overwritten"), "{:?}", codes(&verdicts[0]));
}

#[test]
fn a_program_that_lacks_nothing_gets_no_wait() {
    let mut b = Build::main();
    let (h, d) = (b.malloc("h"), b.cuda_malloc("d"));
    b.host(&[writes(h)]);
    b.upload(d, h);
    b.launch("kernel", &[reads(d)]);
    b.cuda_free(d);
    b.free(h);
    let verdicts = b.verdicts(&repairing());
    assert!(repairs(&verdicts[0]).is_empty());
    assert!(verdicts[0].notes.is_empty());
}

#[test]
fn what_repairs_no_pair_is_not_put_in() {
    // The first pair lacks an order only; the second an order and a value, and gets no wait for that order.
    let mut b = Build::main();
    let (h, d) = (b.malloc("h"), b.cuda_malloc("d"));
    let (g, e) = (b.malloc("g"), b.cuda_malloc("e"));
    b.host(&[writes(h)]);
    b.host(&[writes(g)]);
    b.upload(d, h);
    b.upload(e, g);
    b.launch("kernel", &[reads(d), reads(e)]);
    b.host(&[writes(g)]);
    b.launch("again", &[reads(e), reads(d)]);
    let refill = b.host(&[writes(h)]);
    b.cuda_free(d);
    b.cuda_free(e);
    b.free(h);
    b.free(g);
    let verdicts = b.verdicts(&repairing());
    assert_eq!(repairs(&verdicts[0]), [(refill, RepairPlace::Before)]);
    assert!(codes(&verdicts[1]).contains(&"S1-device-value-overwritten"));
}

#[test]
fn what_a_callee_does_in_its_middle_is_not_repaired() {
    // A call that starts work and then writes h: between the two there is no place for a wait, before and behind the call it is of no use.
    let exclusive = Options { repair: true, ..Options::default() };
    let program = |one_instruction: bool| {
        let mut b = Build::main();
        let (h, d, other) = (b.malloc("h"), b.cuda_malloc("d"), b.cuda_malloc("other"));
        let work = b.launch("of the callee", &[writes(other)]);
        let write = b.host(&[writes(h)]);
        b.upload(d, h);
        b.launch("kernel", &[reads(d)]);
        b.wait(super::super::program::WaitScope::Device);
        for device in [d, other] {
            b.cuda_free(device);
        }
        b.free(h);
        if one_instruction {
            b.of_one_instruction(&[work, write]);
        }
        b.verdicts(&exclusive).into_iter().next().expect("a pair")
    };
    assert!(!repairs(&program(false)).is_empty());
    let declined = program(true);
    assert_eq!(codes(&declined), ["S5-host-access-in-flight"]);
}
