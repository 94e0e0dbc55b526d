use echo_dr_format::context::{Context, DeviceIdentity, FileIdentity, Process};
use echo_dr_format::plan::{CopySite, Direction, First, Wait, Way};
use echo_dr_format::site::{Hash64, Site};

use super::*;

/// A device with managed and mapped memory, not for both sides at once.
const ATTRIBUTES: Attributes = Attributes {
    integrated: true,
    managed_memory: true,
    concurrent_managed_access: false,
    pageable_memory_access: false,
    host_page_tables: false,
    mapped_host_memory: true,
};

fn pair_of(id: u32, bytes: u64) -> Pair {
    let site = |number: u64| Site(u64::from(id) * 10 + number);
    let (site_of_copy, way, wait) = (site(3), Way::Upload, Wait::Covered);
    Pair {
        id,
        host: site(1),
        device: site(2),
        bytes,
        page_locked: false,
        direction: Direction::Both,
        first: First::Host,
        same_thread: true,
        waiting: 1,
        alive: 1,
        buffers: 1,
        copies: vec![CopySite { site: site_of_copy, way, asynchronous: false, count: 10, took: 5, wait }],
        exclusive: true,
        backend: BackendName::Managed,
        state: State::Validated,
        measured: Vec::new(),
    }
}

fn plan(pairs: Vec<Pair>) -> Plan {
    let file = FileIdentity { path: "/app".into(), build_id: String::new(), bytes: 1, hash: Hash64(1) };
    let device = DeviceIdentity {
        name: "device".into(),
        uuid: String::new(),
        compute: (8, 7),
        driver: 13000,
        runtime: Some(13000),
        attributes: ATTRIBUTES,
    };
    let process = Process { executable: file, libraries: Vec::new(), host: "host".into(), arguments: Vec::new() };
    Plan {
        context: Context { process, device: Some(device) },
        threshold: 1,
        loop_site: Some(Site(3)),
        pairs,
        ineligible: Vec::new(),
        notes: Vec::new(),
        together: None,
    }
}

fn wishes(backends: &[BackendName]) -> Wishes {
    Wishes { trials: 3, alone: 8, backends: backends.to_vec() }
}

/// Runs the procedure on a program whose iteration takes 1000 less what each merged pair gains with its memory.
fn decided(plan: &mut Plan, wishes: &Wishes, gains: impl Fn(u32, BackendName) -> i64) -> (Vec<String>, Vec<Variant>) {
    let mut runs = Vec::new();
    let said = decide(plan, wishes, &mut |variant| {
        runs.push(variant.clone());
        let gain: i64 = variant.iter().map(|(id, backend)| gains(*id, *backend)).sum();
        Ok(Sample::Took(u64::try_from(1000 - gain).unwrap()))
    });
    (said.unwrap(), runs)
}

fn reason(pair: &Pair) -> Option<&Decline> {
    match &pair.state {
        State::Rejected(rejection) => Some(&rejection.reason),
        _ => None,
    }
}

#[test]
fn the_best_backend_of_a_pair_that_gains_is_taken_and_what_was_measured_is_kept() {
    let mut plan = plan(vec![pair_of(0, 100)]);
    let gains = |_, backend| if backend == BackendName::Mapped { 300 } else { 200 };
    let (said, runs) = decided(&mut plan, &wishes(&BackendName::ALL), gains);
    let pair = &plan.pairs[0];
    assert_eq!((&pair.state, pair.backend, said.len()), (&State::Enabled, BackendName::Mapped, 0));
    let measured: Vec<_> = pair.measured.iter().map(|found| (found.backend, found.trials, found.gain_ppm)).collect();
    assert_eq!(measured, [(BackendName::Managed, 3, 200_000), (BackendName::Mapped, 3, 300_000)]);
    // Three trials of one run without and one with each of two backends; the second trial the other way round.
    assert_eq!(runs.len(), 9);
    assert!(runs[0].is_empty() && runs[5].is_empty() && runs[6].is_empty(), "{runs:?}");
    assert_eq!(plan.together, None);
}

#[test]
fn a_pair_that_loses_or_gains_nothing_is_switched_off_and_the_others_are_tried_together() {
    let mut plan = plan(vec![pair_of(0, 400), pair_of(1, 300), pair_of(2, 200), pair_of(3, 100)]);
    let gain = |id, _| [100, 0, -50, 50][id as usize];
    let (_, runs) = decided(&mut plan, &wishes(&[BackendName::Mapped]), gain);
    assert_eq!(plan.pairs[0].state, State::Enabled);
    assert_eq!(reason(&plan.pairs[1]), Some(&Decline::NoGain { gain_ppm: 0 }));
    assert_eq!(reason(&plan.pairs[2]), Some(&Decline::NoGain { gain_ppm: -50_000 }));
    assert_eq!(plan.pairs[3].state, State::Enabled);
    let together = plan.together.unwrap();
    assert_eq!((together.trials, together.gain_ppm, together.with.median), (3, 150_000, 850));
    assert_eq!(runs.last(), Some(&vec![(0, BackendName::Mapped), (3, BackendName::Mapped)]));
}

#[test]
fn pairs_that_are_in_each_others_way_leave_the_best_one() {
    let mut plan = plan(vec![pair_of(0, 200), pair_of(1, 100)]);
    let said = decide(&mut plan, &wishes(&[BackendName::Mapped]), &mut |variant| {
        Ok(Sample::Took(match variant[..] {
            [] => 1000,
            [(0, _)] => 900,
            [_] => 800,
            _ => 1100,
        }))
    })
    .unwrap();
    assert_eq!(plan.pairs[1].state, State::Enabled);
    assert_eq!(reason(&plan.pairs[0]), Some(&Decline::NoGain { gain_ppm: -100_000 }));
    assert!(said[0].contains("together") && plan.together.is_none(), "{said:?}");
}

#[test]
fn wrong_results_reject_a_pair_whatever_its_gain() {
    for (sample, reject) in [
        (Sample::Differs("other".into()), Decline::OutputDiffers),
        (Sample::Failed("fell over".into()), Decline::TrialFailed),
    ] {
        let mut plan = plan(vec![pair_of(0, 200), pair_of(1, 100)]);
        let said = decide(&mut plan, &wishes(&[BackendName::Managed, BackendName::Mapped]), &mut |variant| {
            let bad = variant.contains(&(0, BackendName::Mapped));
            Ok(if bad { sample.clone() } else { Sample::Took(1000 - 100 * variant.len() as u64) })
        })
        .unwrap();
        assert_eq!(reason(&plan.pairs[0]), Some(&reject), "even though managed memory gave the right output");
        assert_eq!(plan.pairs[1].state, State::Enabled);
        assert!(said[0].starts_with("pair 0: "), "{said:?}");
    }
}

#[test]
fn wrong_results_of_all_together_reject_all() {
    let mut plan = plan(vec![pair_of(0, 200), pair_of(1, 100)]);
    decide(&mut plan, &wishes(&[BackendName::Mapped]), &mut |variant| {
        Ok(match variant.len() {
            2 => Sample::Differs("other".into()),
            merged => Sample::Took(1000 - 100 * merged as u64),
        })
    })
    .unwrap();
    assert!(plan.pairs.iter().all(|pair| reason(pair) == Some(&Decline::OutputDiffers)), "{:?}", plan.pairs);
}

#[test]
fn memory_that_the_device_lacks_or_the_pair_must_not_have_is_not_tried() {
    let mut shared = plan(vec![Pair { exclusive: false, ..pair_of(0, 100) }]);
    let (_, runs) = decided(&mut shared, &wishes(&BackendName::ALL), |_, _| 1);
    assert!(runs.iter().flatten().all(|(_, backend)| *backend == BackendName::Mapped), "{runs:?}");

    let mut none = plan(vec![pair_of(0, 100)]);
    let (_, runs) = decided(&mut none, &wishes(&[BackendName::System]), |_, _| 1);
    assert_eq!((reason(&none.pairs[0]), runs.len()), (Some(&Decline::NoBackend), 0));

    let mut refused = plan(vec![pair_of(0, 100)]);
    decide(&mut refused, &wishes(&[BackendName::Mapped]), &mut |variant| {
        Ok(if variant.is_empty() { Sample::Took(10) } else { Sample::NotMerged })
    })
    .unwrap();
    assert_eq!(reason(&refused.pairs[0]), Some(&Decline::NoBackend), "no time of a run without merging counts");
}

#[test]
fn pairs_that_were_not_validated_are_never_run() {
    let rejected = State::Rejected(Rejection { reason: Decline::LaunchAfterHostWrite, site: None });
    let candidate = Pair { state: State::Candidate, ..pair_of(1, 100) };
    let mut plan = plan(vec![Pair { state: rejected.clone(), ..pair_of(0, 100) }, candidate]);
    let (_, runs) = decided(&mut plan, &wishes(&BackendName::ALL), |_, _| 500);
    assert_eq!((runs.len(), &plan.pairs[0].state, &plan.pairs[1].state), (0, &rejected, &State::Candidate));
}

#[test]
fn what_an_earlier_calibration_decided_is_decided_again() {
    let rejected = State::Rejected(Rejection { reason: Decline::NoGain { gain_ppm: -1 }, site: None });
    let mut plan =
        plan(vec![Pair { state: rejected, ..pair_of(0, 100) }, Pair { state: State::Enabled, ..pair_of(1, 50) }]);
    decided(&mut plan, &wishes(&[BackendName::Mapped]), |id, _| if id == 0 { 100 } else { -100 });
    assert_eq!(plan.pairs[0].state, State::Enabled);
    assert_eq!(reason(&plan.pairs[1]), Some(&Decline::NoGain { gain_ppm: -100_000 }));
}

#[test]
fn small_pairs_are_measured_all_at_once() {
    let mut plan = plan((0..4).map(|id| pair_of(id, 100 * u64::from(id + 1))).collect());
    let (_, runs) = decided(&mut plan, &Wishes { alone: 1, ..wishes(&[BackendName::Mapped]) }, |_, _| 10);
    let sizes: Vec<usize> = runs.iter().map(Vec::len).collect();
    assert_eq!(sizes, [0, 1, 1, 0, 0, 1, 0, 3, 3, 0, 0, 3, 0, 4, 4, 0, 0, 4]);
    assert_eq!(runs[1][0].0, 3, "the pair that copies most");
    assert!(plan.pairs.iter().all(|pair| pair.state == State::Enabled));
}

#[test]
fn one_trial_more_often_slower_than_faster_does_not_enable() {
    let mut plan = plan(vec![pair_of(0, 100)]);
    let mut times = [1000, 500, 1010, 1000, 1000, 1010].into_iter();
    decide(&mut plan, &wishes(&[BackendName::Mapped]), &mut |_| Ok(Sample::Took(times.next().unwrap()))).unwrap();
    // Gains: +50 %, −1 %, −1 %.
    assert_eq!(reason(&plan.pairs[0]), Some(&Decline::NoGain { gain_ppm: -10_000 }));
    assert_eq!(plan.pairs[0].measured[0].gain_range_ppm, (-10_000, 500_000));
}

#[test]
fn the_plan_of_a_run_merges_its_pairs_and_no_other() {
    let plan = plan(vec![pair_of(0, 100), Pair { state: State::Enabled, ..pair_of(1, 100) }]);
    let of_run = plan_of(&plan, &vec![(0, BackendName::Mapped)]);
    let merged: Vec<_> = of_run.enabled().map(|pair| (pair.id, pair.backend)).collect();
    assert_eq!(merged, [(0, BackendName::Mapped)]);
    assert_eq!(plan_of(&plan, &Vec::new()).enabled().count(), 0);
}

#[test]
fn in_a_trials_plan_only_its_own_pairs_are_merged() {
    let plan = plan(vec![pair_of(0, 200), pair_of(1, 100)]);
    let trial = plan_of(&plan, &vec![(1, BackendName::Mapped)]);
    assert_eq!(reason(&trial.pairs[0]), Some(&Decline::SwitchedOff));
    assert_eq!((&trial.pairs[1].state, trial.pairs[1].backend), (&State::Enabled, BackendName::Mapped));
    assert!(plan_of(&plan, &Vec::new()).enabled().next().is_none());
}
