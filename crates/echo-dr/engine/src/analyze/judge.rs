//! What a validation run means for a plan.

use echo_dr_format::finding::Trouble;
use echo_dr_format::plan::{Plan, Rejection, State};
use echo_dr_format::reason::Decline;
use echo_dr_format::trace::Trace;

use super::possible_backends;

/// Why a validation run says nothing about a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the validation run was of another program, argument list or machine than the plan")]
pub struct OtherRun;

/// Puts what a validation run saw into the plan: candidates become validated or rejected. A pair that was rejected before stays so.
///
/// # Errors
/// If the run was not of the plan's context.
pub fn judge(plan: &mut Plan, validation: &Trace) -> Result<(), OtherRun> {
    plan.context.process.admits(&validation.header.context.process).map_err(|_| OtherRun)?;
    if let (Some(_), Some(device)) = (&plan.context.device, &validation.header.context.device) {
        plan.context.admits_device(device).map_err(|_| OtherRun)?;
    }
    let attributes = plan.context.device.as_ref().map(|device| device.attributes).unwrap_or_default();
    let lost = validation.end.map_or(0, |end| end.lost);
    for pair in plan.pairs.iter_mut().filter(|pair| !matches!(pair.state, State::Rejected(_))) {
        let findings: Vec<_> = validation.findings.iter().filter(|finding| finding.pair == pair.id).collect();
        let seen = validation.seen.iter().find(|seen| seen.pair == pair.id);
        let rejected = findings.iter().find_map(|finding| Some((reason(finding.trouble)?, finding.site)));
        let watched = seen.is_some_and(|seen| seen.windows > 0 && seen.unwatched == 0);
        let rejected = rejected
            .or((lost > 0).then_some((Decline::EventsLost { count: lost }, None)))
            .or((!watched).then_some((Decline::NotValidated, None)));
        if let Some((reason, site)) = rejected {
            pair.state = State::Rejected(Rejection { reason, site });
            continue;
        }
        let disturbed = findings.iter().find(|finding| matches!(finding.trouble, Trouble::NotExclusive(_)));
        pair.exclusive = seen.is_some_and(|seen| seen.exclusive_watched) && disturbed.is_none();
        if attributes.pageable_memory_access && !pair.exclusive {
            let site = disturbed.and_then(|finding| finding.site);
            pair.state = State::Rejected(Rejection { reason: Decline::ReachUnknown, site });
            continue;
        }
        match possible_backends(attributes, pair.exclusive).first() {
            Some(&backend) => {
                pair.backend = backend;
                pair.state = State::Validated;
            }
            None => pair.state = State::Rejected(Rejection { reason: Decline::NoBackend, site: None }),
        }
    }
    Ok(())
}

/// Why a pair with this trouble is rejected; `None` if it need not be.
fn reason(trouble: Trouble) -> Option<Decline> {
    Some(match trouble {
        Trouble::HostTouched(access) => Decline::HostTouched(access),
        Trouble::LaunchAfterHostWrite => Decline::LaunchAfterHostWrite,
        Trouble::HostWriteLost => Decline::HostWriteLost,
        Trouble::DeviceWriteLost => Decline::DeviceWriteLost,
        Trouble::WrongPartner => Decline::UnstablePairing,
        Trouble::ReachedByGpu => Decline::ReachedByGpu,
        Trouble::OutOfSight => Decline::OutOfSight,
        Trouble::NotExclusive(_) => return None,
    })
}
