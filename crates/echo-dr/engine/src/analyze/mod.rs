//! From a trace to a plan.
//!
//! Pairs are groups of copies by (β_h, β_d, N) that come at least k_min times at their dominant copy site, and in which nothing speaks against one
//! buffer that a trace can show (`group.rs`); whose blocks a merged run would pair as the copies do, and whose waits it would keep
//! (`replay.rs`). Everything else is listed with all reasons. What a trace cannot show, accesses by the host and values, is for
//! validation ([`judge()`]).

mod group;
mod history;
mod judge;
mod replay;

use std::collections::BTreeMap;

use echo_dr_format::context::Attributes;
use echo_dr_format::event::{Call, Event};
use echo_dr_format::plan::{BackendName, CopySite, Ineligible, Note, PAIR_LIMIT, Pair, Plan, State, Wait, Way};
use echo_dr_format::reason::Decline;
use echo_dr_format::site::Site;
use echo_dr_format::trace::Trace;
use echo_rt::{DeviceFacts, PairFacts};

use group::{Group, HalfGroup, Origin};
use history::History;
pub use judge::{OtherRun, judge};
use replay::Meeting;

/// What the analysis asks of a pair.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// θ_min in bytes; the trace's own if that is larger.
    pub threshold: u64,
    /// k_min: how many copies at the dominant site.
    pub recurrences: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { threshold: DEFAULT_THRESHOLD, recurrences: 2 }
    }
}

/// θ_min where the user says nothing: copies of smaller buffers cost too little to matter.
pub const DEFAULT_THRESHOLD: u64 = 200_000;

/// The plan for the program of a trace: its pairs as candidates, everything else with its reasons.
#[must_use]
pub fn analyze(trace: &Trace, options: Options) -> Plan {
    let options = Options { threshold: options.threshold.max(trace.header.threshold).max(1), ..options };
    let history = History::of(&trace.events);
    let (mut groups, halves) = group::groups(&history, &trace.events, options);
    let lost = trace.end.map_or(0, |end| end.lost);
    if lost > 0 {
        groups.iter_mut().for_each(|group| group.reasons.push(Decline::EventsLost { count: lost }));
    }
    contest(&mut groups);
    let cut = trace.end.is_none();
    let mut meetings = Vec::new();
    for group in &mut groups {
        let meeting = if group.reasons.is_empty() { Some(replay::meeting(group, &history, cut)) } else { None };
        match meeting {
            Some(Ok(meeting)) if meetings.iter().flatten().count() < PAIR_LIMIT => meetings.push(Some(meeting)),
            Some(Err(reason)) => {
                group.reasons.push(reason);
                meetings.push(None);
            }
            _ => meetings.push(None),
        }
    }
    let eligible: Vec<(&Group, Meeting)> =
        groups.iter().zip(meetings).filter_map(|(group, meeting)| Some((group, meeting?))).collect();
    let chosen: Vec<&Group> = eligible.iter().map(|&(group, _)| group).collect();
    let waits = replay::waits(&chosen, &trace.events);
    let attributes = trace.header.context.device.as_ref().map(|device| device.attributes).unwrap_or_default();
    let pairs = eligible.iter().enumerate().map(|(number, &(group, meeting))| {
        let wait = |site, way| waits.get(&(number, site, way)).copied().unwrap_or(Wait::Device);
        pair(number, group, meeting, copies(group, &trace.events, wait), attributes)
    });
    Plan {
        context: trace.header.context.clone(),
        threshold: options.threshold,
        loop_site: loop_site(&chosen, &trace.events),
        pairs: pairs.collect(),
        ineligible: ineligible(&groups, halves, &trace.events),
        notes: notes(trace, &history),
        together: None,
    }
}

/// The backends that keep a pair's meaning on this device, the one that is most likely to pay first.
#[must_use]
pub fn possible_backends(attributes: Attributes, exclusive: bool) -> Vec<BackendName> {
    let device = DeviceFacts::from(attributes);
    let facts = PairFacts { mergeable: true, exclusive, synchronous_copies: false };
    let mut possible: Vec<BackendName> =
        BackendName::ALL.into_iter().filter(|name| echo_rt::usable(name.backend(), device, facts)).collect();
    let first = echo_rt::choose(device, facts, &[]);
    possible.sort_by_key(|name| name.backend() != first);
    possible
}

/// A block can be merged with one other only. Of groups that want the same blocks the one that moves most wins.
fn contest(groups: &mut [Group]) {
    let mut order: Vec<usize> = (0..groups.len()).filter(|&group| groups[group].reasons.is_empty()).collect();
    order.sort_by_key(|&group| std::cmp::Reverse(groups[group].traffic()));
    let (mut hosts, mut devices): (Vec<Origin>, Vec<Origin>) = (Vec::new(), Vec::new());
    for group in order {
        let group = &mut groups[group];
        if hosts.contains(&group.host) || devices.contains(&group.device) {
            group.reasons.push(Decline::SharedSite);
        } else {
            hosts.push(group.host);
            devices.push(group.device);
        }
    }
}

fn pair(number: usize, group: &Group, meeting: Meeting, copies: Vec<CopySite>, attributes: Attributes) -> Pair {
    // Nothing is known of S5 before validation, so the guess is for a pair without it.
    let backend = possible_backends(attributes, false).first().copied().unwrap_or(BackendName::Managed);
    Pair {
        id: u32::try_from(number).unwrap_or(u32::MAX),
        host: group.host.0,
        device: group.device.0,
        bytes: group.host.1,
        page_locked: group.page_locked,
        direction: group.direction(),
        first: meeting.first,
        same_thread: meeting.same_thread,
        waiting: meeting.waiting,
        alive: meeting.alive,
        buffers: meeting.buffers,
        copies,
        exclusive: false,
        backend,
        state: State::Candidate,
        measured: Vec::new(),
    }
}

/// The copies of a group by site.
fn copies(group: &Group, events: &[Event], wait: impl Fn(Site, Way) -> Wait) -> Vec<CopySite> {
    let mut sites: BTreeMap<(Site, Way), (bool, Vec<u64>)> = BTreeMap::new();
    for link in &group.links {
        let event = &events[link.event];
        let (asynchronous, took) = sites.entry((event.site, link.way)).or_default();
        *asynchronous |= link.asynchronous;
        took.push(event.took);
    }
    let site = |((site, way), (asynchronous, mut took)): ((Site, Way), (bool, Vec<u64>))| {
        took.sort_unstable();
        let median = took.get(took.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        CopySite { site, way, asynchronous, count: took.len() as u64, took: median, wait: wait(site, way) }
    };
    sites.into_iter().map(site).collect()
}

/// The copy site of the pairs that ran most often: its recurrences are the program's iterations.
fn loop_site(groups: &[&Group], events: &[Event]) -> Option<Site> {
    let sites = groups.iter().map(|group| group.dominant(events));
    sites
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .filter(|&(_, count)| count > 1)
        .map(|(site, _)| site)
}

fn ineligible(groups: &[Group], halves: Vec<HalfGroup>, events: &[Event]) -> Vec<Ineligible> {
    let whole = groups.iter().filter(|group| !group.reasons.is_empty()).map(|group| Ineligible {
        host: Some(group.host.0),
        device: Some(group.device.0),
        copy: Some(group.dominant(events).0),
        bytes: group.links.iter().map(|link| link.bytes).max().unwrap_or(0),
        count: group.links.len() as u64,
        reasons: group.reasons.clone(),
    });
    let half = halves.into_iter().map(|half| Ineligible {
        host: half.host.map(|origin| origin.0),
        device: half.device.map(|origin| origin.0),
        copy: Some(half.copy),
        bytes: half.bytes,
        count: half.count,
        reasons: half.reasons,
    });
    whole.chain(half).collect()
}

fn notes(trace: &Trace, history: &History) -> Vec<Note> {
    let launches = trace.events.iter().any(|event| matches!(event.call, Call::Launch { .. }));
    let notes = [
        (Note::UsesManagedMemory, history.uses_managed),
        (Note::TraceTruncated, trace.truncated || trace.end.is_none()),
        (Note::NoCuda, !history.uses_cuda && !launches),
    ];
    notes.into_iter().filter(|&(_, holds)| holds).map(|(note, _)| note).collect()
}
