//! Which pairs pay, and with what kind of memory: the procedure, which knows nothing of processes.
//!
//! A unit is one pair, or all the smaller ones together. For each unit, each trial is one run without the plan and one with each backend that
//! the device has; the order turns round from trial to trial, so that a drift of the machine favours neither. A unit's best backend is the one
//! with the largest median gain, and it is enabled if that is positive. Units that pay alone are then tried together: memory that is good
//! for one may be in the way of another.

use echo_dr_format::context::Attributes;
use echo_dr_format::measure::{Measurement, Spread, gain_ppm};
use echo_dr_format::plan::{BackendName, Pair, Plan, Rejection, State, Together};
use echo_dr_format::reason::Decline;

use crate::failure::Failure;

/// Pairs that are merged in a run, each with its memory. None: a run without the plan.
pub(crate) type Variant = Vec<(u32, BackendName)>;

/// What a run gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    /// It went well; nanoseconds of an iteration.
    Took(u64),
    /// It ended badly; a sentence.
    Failed(String),
    /// Its output is wrong; a sentence.
    Differs(String),
    /// Nothing was merged, so there is nothing to compare.
    NotMerged,
}

/// What the user wants.
#[derive(Clone, Debug)]
pub(crate) struct Wishes {
    /// Trials of each variant.
    pub(crate) trials: u32,
    /// So many pairs, those that copy most, are units of their own.
    pub(crate) alone: usize,
    /// Backends to try, where possible.
    pub(crate) backends: Vec<BackendName>,
}

/// Runs the program with a variant.
pub(crate) type Runner<'a> = dyn FnMut(&Variant) -> Result<Sample, Failure> + 'a;

/// Measures the plan's validated pairs and decides. Returns sentences on what went wrong on the way.
pub(crate) fn decide(plan: &mut Plan, wishes: &Wishes, run: &mut Runner<'_>) -> Result<Vec<String>, Failure> {
    let mut said = Vec::new();
    plan.together = None;
    let device = plan.context.device.as_ref().map(|device| device.attributes).unwrap_or_default();
    let mut enabled: Vec<(Variant, i64)> = Vec::new();
    for unit in units(plan, wishes.alone) {
        let variants: Vec<Variant> = possible(plan, &unit, device, &wishes.backends)
            .into_iter()
            .map(|backend| unit.iter().map(|id| (*id, backend)).collect())
            .collect();
        if variants.is_empty() {
            reject(plan, &unit, &Decline::NoBackend);
            continue;
        }
        let results = measure(&variants, wishes.trials, run)?;
        if let Some((reason, sentence)) = results.iter().find_map(trouble) {
            said.push(format!("{}: {sentence}", names(&unit)));
            reject(plan, &unit, &reason);
            continue;
        }
        let measured: Vec<(BackendName, Measurement)> = variants
            .iter()
            .zip(results)
            .filter_map(|(variant, result)| {
                let backend = variant.first()?.1;
                Some((backend, result.measurement(backend)?))
            })
            .collect();
        let best = measured.iter().max_by_key(|(_, measurement)| measurement.gain_ppm).cloned();
        for id in &unit {
            pair(plan, *id).measured = measured.iter().map(|(_, measurement)| measurement.clone()).collect();
        }
        match best {
            None => reject(plan, &unit, &Decline::NoBackend),
            Some((_, best)) if best.gain_ppm <= 0 => reject(plan, &unit, &Decline::NoGain { gain_ppm: best.gain_ppm }),
            Some((backend, best)) => {
                enable(plan, &unit, backend);
                enabled.push((unit.iter().map(|id| (*id, backend)).collect(), best.gain_ppm));
            }
        }
    }
    if enabled.len() > 1 {
        together(plan, enabled, wishes.trials, run, &mut said)?;
    }
    Ok(said)
}

/// All that pay alone, in one run.
fn together(
    plan: &mut Plan,
    mut enabled: Vec<(Variant, i64)>,
    trials: u32,
    run: &mut Runner<'_>,
    said: &mut Vec<String>,
) -> Result<(), Failure> {
    let all: Variant = enabled.iter().flat_map(|(variant, _)| variant.clone()).collect();
    let ids: Vec<u32> = all.iter().map(|(id, _)| *id).collect();
    let results = measure(std::slice::from_ref(&all), trials, run)?;
    if let Some((reason, sentence)) = results.iter().find_map(trouble) {
        said.push(format!("all pairs together: {sentence}"));
        reject(plan, &ids, &reason);
        return Ok(());
    }
    plan.together = results.first().and_then(Results::together);
    let gain_ppm = plan.together.map_or(0, |together| together.gain_ppm);
    if gain_ppm <= 0 {
        enabled.sort_by_key(|(_, gain)| *gain);
        enabled.pop();
        said.push("all pairs together gain nothing; the one that gains most alone is kept".to_owned());
        for (variant, _) in enabled {
            let ids: Vec<u32> = variant.iter().map(|(id, _)| *id).collect();
            reject(plan, &ids, &Decline::NoGain { gain_ppm });
        }
        plan.together = None;
    }
    Ok(())
}

/// The pair passed validation; what an earlier calibration decided of it is decided again.
pub(crate) fn is_open(state: &State) -> bool {
    match state {
        State::Validated | State::Enabled => true,
        State::Candidate => false,
        State::Rejected(rejection) => matches!(
            rejection.reason,
            Decline::NoGain { .. } | Decline::NoBackend | Decline::TrialFailed | Decline::OutputDiffers
        ),
    }
}

/// The pairs that may be measured, in units.
fn units(plan: &Plan, alone: usize) -> Vec<Vec<u32>> {
    let mut pairs: Vec<&Pair> = plan.pairs.iter().filter(|pair| is_open(&pair.state)).collect();
    let moved =
        |pair: &Pair| pair.copies.iter().map(|copy| copy.count.saturating_mul(pair.bytes)).fold(0, u64::saturating_add);
    pairs.sort_by_key(|pair| (std::cmp::Reverse(moved(pair)), pair.id));
    let (first, rest) = pairs.split_at(pairs.len().min(alone.max(1)));
    let mut units: Vec<Vec<u32>> = first.iter().map(|pair| vec![pair.id]).collect();
    if !rest.is_empty() {
        units.push(rest.iter().map(|pair| pair.id).collect());
    }
    units
}

/// Backends that keep the program's meaning for each pair of a unit.
fn possible(plan: &Plan, unit: &[u32], device: Attributes, wanted: &[BackendName]) -> Vec<BackendName> {
    let pairs: Vec<&Pair> = plan.pairs.iter().filter(|pair| unit.contains(&pair.id)).collect();
    let fits = |backend: &BackendName, pair: &Pair| {
        echo_dr_engine::possible_backends(device, pair.exclusive).contains(backend)
    };
    wanted.iter().copied().filter(|backend| pairs.iter().all(|pair| fits(backend, pair))).collect()
}

/// The runs of one variant beside those without.
#[derive(Default)]
struct Results {
    /// Without, with: a trial each.
    times: Vec<(u64, u64)>,
    trouble: Option<Sample>,
}

fn measure(variants: &[Variant], trials: u32, run: &mut Runner<'_>) -> Result<Vec<Results>, Failure> {
    let mut results: Vec<Results> = variants.iter().map(|_| Results::default()).collect();
    for trial in 0..trials {
        // The run without is first, then last.
        let order: Vec<Option<usize>> = std::iter::once(None).chain((0..variants.len()).map(Some)).collect();
        let turned: Vec<_> = if trial % 2 == 0 { order } else { order.into_iter().rev().collect() };
        let mut without = None;
        let mut with = vec![None; variants.len()];
        for which in turned {
            match which {
                None => match run(&Vec::new())? {
                    Sample::Took(time) => without = Some(time),
                    Sample::Failed(what) | Sample::Differs(what) => return Err(Failure::Usage(what)),
                    Sample::NotMerged => {}
                },
                Some(index) if results[index].trouble.is_some() => {}
                Some(index) => match run(&variants[index])? {
                    Sample::Took(time) => with[index] = Some(time),
                    trouble => results[index].trouble = Some(trouble),
                },
            }
        }
        for (result, with) in results.iter_mut().zip(with) {
            result.times.extend(without.zip(with));
        }
    }
    Ok(results)
}

impl Results {
    fn measurement(&self, backend: BackendName) -> Option<Measurement> {
        let Together { trials, without, with, gain_ppm, gain_range_ppm } = self.together()?;
        Some(Measurement { backend, trials, without, with, gain_ppm, gain_range_ppm })
    }

    /// `None` if a trial is missing.
    fn together(&self) -> Option<Together> {
        if self.trouble.is_some() {
            return None;
        }
        let (without, with): (Vec<u64>, Vec<u64>) = self.times.iter().copied().unzip();
        let mut gains: Vec<i64> = self.times.iter().map(|(without, with)| gain_ppm(*without, *with)).collect();
        gains.sort_unstable();
        Some(Together {
            trials: u32::try_from(self.times.len()).ok()?,
            without: Spread::of(&without)?,
            with: Spread::of(&with)?,
            gain_ppm: gains[(gains.len() - 1) / 2],
            gain_range_ppm: (*gains.first()?, *gains.last()?),
        })
    }
}

/// Wrong results mean that the pair must not be merged, whatever the memory.
fn trouble(results: &Results) -> Option<(Decline, &str)> {
    match results.trouble.as_ref()? {
        Sample::Failed(what) => Some((Decline::TrialFailed, what)),
        Sample::Differs(what) => Some((Decline::OutputDiffers, what)),
        Sample::Took(_) | Sample::NotMerged => None,
    }
}

fn names(unit: &[u32]) -> String {
    let numbers: Vec<String> = unit.iter().map(u32::to_string).collect();
    format!("pair {}", numbers.join(", "))
}

/// Ids are indices: [`Plan::check`] holds of every plan that is read.
fn pair(plan: &mut Plan, id: u32) -> &mut Pair {
    &mut plan.pairs[id as usize]
}

fn reject(plan: &mut Plan, unit: &[u32], reason: &Decline) {
    for id in unit {
        pair(plan, *id).state = State::Rejected(Rejection { reason: reason.clone(), site: None });
    }
}

fn enable(plan: &mut Plan, unit: &[u32], backend: BackendName) {
    for id in unit {
        let pair = pair(plan, *id);
        (pair.state, pair.backend) = (State::Enabled, backend);
    }
}

/// The plan of a run: these pairs merged, the others not.
pub(crate) fn plan_of(plan: &Plan, variant: &Variant) -> Plan {
    let mut plan = plan.clone();
    for pair in &mut plan.pairs {
        match variant.iter().find(|(id, _)| *id == pair.id) {
            Some((_, backend)) => (pair.state, pair.backend) = (State::Enabled, *backend),
            None => pair.state = State::Rejected(Rejection { reason: Decline::SwitchedOff, site: None }),
        }
    }
    plan
}

#[cfg(test)]
mod tests;
