//! All small samples, and many random larger ones: where the prover accepts, P' must behave as P.

use echo_oracle::canonical::generate::{Random, alphabet, frame, sequences};
use echo_oracle::canonical::judge::{Judgement, judge};
use echo_oracle::canonical::order::Rules;
use echo_oracle::canonical::sample::{HostKind, Sample};
use echo_sr::analysis::verdict::{Decision, MergePlan};
use echo_sr::analysis::{AccessMode, Options, Target, analyse};

#[derive(Debug, Default)]
struct Counts {
    accepted: u64,
    agreed: u64,
    premise_broken: u64,
    declined: u64,
}

fn check(sample: &Sample, access: AccessMode, counts: &mut Counts) {
    let (program, nodes) = sample.program();
    let options = Options { target: Target::Managed, access, repair: false, theta_min: 0, max_merges: None };
    let verdicts = analyse(&program, &options);
    let plan: Option<&MergePlan> = verdicts.iter().find_map(|verdict| match &verdict.decision {
        Decision::Accept(plan) => Some(plan),
        Decision::Decline(_) => None,
    });
    let Some(plan) = plan else {
        counts.declined += 1;
        return;
    };
    counts.accepted += 1;
    for rules in [Rules::Weak, Rules::Strong] {
        match judge(sample, &nodes, Some(plan), rules) {
            Judgement::PremiseBroken => counts.premise_broken += 1,
            Judgement::Agree => counts.agreed += 1,
            Judgement::Differ(path, fault) => {
                panic!("{rules:?}: {fault:?} on path {path:?} of {sample:#?}\nwith {plan:#?}")
            }
        }
    }
}

/// How many times more than in the usual suite: `ECHO_ORACLE_EFFORT=20 cargo test -p echo-oracle`.
fn effort() -> usize {
    std::env::var("ECHO_ORACLE_EFFORT").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[test]
fn every_short_program_that_is_accepted_behaves_as_before() {
    let mut counts = Counts::default();
    for host in [HostKind::Malloc, HostKind::Calloc, HostKind::Pinned] {
        for streams in [&[0][..], &[0, 1], &[3]] {
            // Two streams with every kind of host buffer would take most of the suite's time here.
            if host != HostKind::Malloc && streams.len() > 1 && effort() == 1 {
                continue;
            }
            let alphabet = alphabet(streams);
            let length = if effort() > 1 && streams.len() == 1 { 4 } else { 3 };
            for sequence in sequences(alphabet.len(), length) {
                let steps: Vec<_> = sequence.iter().map(|index| alphabet[*index].clone()).collect();
                check(&frame(host, true, &steps, true), AccessMode::Concurrent, &mut counts);
            }
        }
    }
    println!("{counts:?}");
    assert!(counts.agreed > 10_000, "the prover accepts enough for this to mean something: {counts:?}");
}

#[test]
fn random_programs_that_are_accepted_behave_as_before() {
    let mut counts = Counts::default();
    let mut random = Random::new(1);
    for round in 0..100_000 * effort() {
        let sample = random.sample(9);
        let access = if round % 3 == 0 { AccessMode::Exclusive } else { AccessMode::Concurrent };
        check(&sample, access, &mut counts);
    }
    println!("{counts:?}");
    assert!(counts.agreed > 2_000, "the prover accepts enough for this to mean something: {counts:?}");
}
