//! Two judges of P that have nothing in common but the meaning of CUDA: happens-before on one order of each path, and every interleaving.
//! They must find the same programs without races, undefined reads and dead buffers. (The order of two operations that touch different
//! bytes is judged differently by neither.)

use echo_oracle::canonical::generate::Random;
use echo_oracle::canonical::judge::{Judgement, judge};
use echo_oracle::canonical::order::Rules;
use echo_oracle::canonical::sample::{self, Sample};
use echo_oracle::case::{Case, HostKind, Kind, Region, Step, Touch, Touches};
use echo_oracle::explore::explore;
use echo_oracle::machine::Machine;
use echo_oracle::original::original;

/// The same program for the other judge. `None` where the two are not meant to agree: of asynchronous copies of pageable memory the older
/// one promises what happens in practice, and to it making a buffer again before it is freed is a fault.
fn case(sample: &Sample) -> Option<Case> {
    let host = match sample.host {
        sample::HostKind::Malloc => HostKind::Malloc,
        sample::HostKind::Calloc => HostKind::Calloc,
        sample::HostKind::Pinned => HostKind::Pinned,
    };
    let steps = sample.steps.iter().map(step).collect();
    let mut case = Case::straight(host, steps);
    if let Some((first, last, kind)) = sample.region {
        let kind = if kind == sample::Region::Loop { Kind::Loop } else { Kind::If };
        case.regions.push(Region { first: first as u8, last: last as u8, kind });
        let allocates = |step: &Step| matches!(step, Step::Alloc(_));
        if kind == Kind::Loop && case.steps[first..=last].iter().any(allocates) {
            return None;
        }
    }
    let undecided = |step: &Step| match *step {
        Step::Copy { dst, src, sync: false, .. } => case.pageable(dst) || case.pageable(src),
        _ => false,
    };
    (!case.steps.iter().any(undecided)).then_some(case)
}

fn step(step: &sample::Step) -> Step {
    match step {
        sample::Step::Alloc(buffer) => Step::Alloc(*buffer as u8),
        sample::Step::Free(buffer) => Step::Free(*buffer as u8),
        sample::Step::FreeUnlessNull(buffer) => Step::FreeUnlessNull(*buffer as u8),
        sample::Step::Host(all) => Step::Host(touches(all)),
        sample::Step::Launch(stream, all) => {
            Step::Launch { stream: *stream as u8, touches: touches(all), keeps: false, uses_kept: false }
        }
        sample::Step::Copy { dst, src, bytes, stream, sync } => {
            Step::Copy { dst: *dst as u8, src: *src as u8, bytes: *bytes, stream: *stream as u8, sync: *sync }
        }
        sample::Step::WaitDevice => Step::WaitDevice,
        sample::Step::WaitStream(stream) => Step::WaitStream(*stream as u8),
        sample::Step::WaitEvent => Step::WaitEvent(0),
        sample::Step::Record(stream) => Step::Record(0, *stream as u8),
        sample::Step::StreamWait(stream) => Step::StreamWait(*stream as u8, 0),
    }
}

fn touches(all: &[sample::Touch]) -> Touches {
    let touch = |touch: &sample::Touch| Touch::new(touch.object as u8, touch.writes, touch.bytes);
    [all.first().map(touch), all.get(1).map(touch)]
}

#[test]
fn both_judges_find_the_same_premises_broken() {
    let mut random = Random::new(7);
    let (mut kept, mut broken) = (0, 0);
    for _ in 0..60_000 {
        let sample = random.sample(9);
        let Some(case) = case(&sample) else { continue };
        let (_, nodes) = sample.program();
        for (rules, wide_barrier) in [(Rules::Weak, false), (Rules::Strong, true)] {
            let machine = Machine { wide_barrier, synchronous: false };
            let trouble = |path| {
                let trace = original(&case, path, machine);
                trace.fault.is_some() || explore(&trace, true).trouble.is_some()
            };
            let by_interleavings = case.paths().iter().any(trouble);
            let by_order = judge(&sample, &nodes, None, rules) == Judgement::PremiseBroken;
            assert_eq!(by_interleavings, by_order, "{rules:?} of\n{case}{sample:#?}");
            *(if by_order { &mut broken } else { &mut kept }) += 1;
        }
    }
    assert!(kept > 5_000 && broken > 5_000, "both happen often: {kept} kept, {broken} broken");
}
