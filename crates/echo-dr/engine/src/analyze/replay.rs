//! Would a merged run find the pairs that the copies show, and which waits do its skipped copies leave?
//!
//! Both are answered by letting the code of merged runs ([`Matcher`], [`Pending`]) have the trace.

use std::collections::{BTreeMap, BTreeSet};

use echo_dr_format::event::{Call, CopyKind, Event, Stream, WaitFor};
use echo_dr_format::plan::{First, WAITING_LIMIT, Wait, Way};
use echo_dr_format::reason::Decline;
use echo_dr_format::site::Site;

use super::group::Group;
use super::history::{Block, History, Link};
use crate::matcher::{Arrival, Matcher, Rule, Side};
use crate::pending::Pending;

/// How the blocks of a pair came to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meeting {
    pub(super) first: First,
    pub(super) same_thread: bool,
    pub(super) waiting: u32,
    pub(super) alive: u32,
    pub(super) buffers: u64,
}

/// The limits to follow in later runs; a reason if blocks would be paired otherwise than the copies show.
///
/// `cut`: the trace ends in the middle, so the last block of a side may miss its partner.
pub(super) fn meeting(group: &Group, history: &History, cut: bool) -> Result<Meeting, Decline> {
    let shown = group.partners();
    let of_pair: BTreeSet<usize> = shown.iter().flat_map(|&(host, device)| [host, device]).collect();
    let from_sites = |block: &Block| match block.side {
        Side::Host => (block.site, block.bytes) == group.host,
        Side::Device => (block.site, block.bytes) == group.device,
    };
    let blocks: Vec<usize> = (0..history.blocks.len()).filter(|&block| from_sites(&history.blocks[block])).collect();
    let alone: Vec<usize> = blocks.iter().copied().filter(|block| !of_pair.contains(block)).collect();
    // In a trace that was cut off, blocks that came after the last whole pair may have lost their copies.
    let last_met = of_pair.iter().map(|&block| history.blocks[block].born).max().unwrap_or(0);
    let lost = |block: &usize| cut && history.blocks[*block].born > last_met;
    let count = alone.iter().filter(|block| !lost(block)).count();
    if count > 0 {
        return Err(Decline::BlocksWithoutPartner { count: count as u64 });
    }
    let blocks: Vec<usize> = blocks.into_iter().filter(|block| of_pair.contains(block)).collect();
    [true, false]
        .into_iter()
        .find_map(|same_thread| replay(&blocks, &shown, history, same_thread))
        .ok_or(Decline::UnstablePairing)
}

/// One replay; `None` if it pairs otherwise, or if later runs could.
fn replay(blocks: &[usize], shown: &BTreeSet<(usize, usize)>, history: &History, same_thread: bool) -> Option<Meeting> {
    // A free comes before an allocation in the same event (realloc).
    let mut steps: BTreeMap<(usize, bool), usize> = BTreeMap::new();
    for &block in blocks {
        steps.insert((history.blocks[block].born, true), block);
        if history.blocks[block].died != usize::MAX {
            steps.insert((history.blocks[block].died, false), block);
        }
    }
    let mut matcher = Matcher::new(Rule { first: First::Either, same_thread, waiting: WAITING_LIMIT });
    let mut halves: BTreeMap<usize, usize> = BTreeMap::new();
    let mut alive: BTreeMap<u64, u32> = BTreeMap::new();
    let mut makers: BTreeMap<usize, u64> = BTreeMap::new();
    let (mut waiting, mut most_alive, mut buffers) = (0, 0, 0);
    let (mut host_first, mut device_first) = (false, false);
    for (&(_, born), &number) in &steps {
        let block = &history.blocks[number];
        let thread = u64::from(block.thread);
        if !born {
            if matcher.leave(number) {
                return None;
            }
            // p ends with the second of its blocks.
            match halves.remove(&number) {
                Some(partner) if halves.contains_key(&partner) => {}
                Some(partner) => {
                    let maker = makers.remove(&number).or_else(|| makers.remove(&partner))?;
                    *alive.get_mut(&maker)? -= 1;
                }
                None => return None,
            }
            continue;
        }
        match matcher.arrive(block.side, thread) {
            Arrival::First => {
                matcher.wait(block.side, thread, number);
                waiting = waiting.max(matcher.waiting(thread));
                let maker = if same_thread { thread } else { 0 };
                let count = alive.entry(maker).or_default();
                *count += 1;
                most_alive = most_alive.max(*count);
                makers.insert(number, maker);
                host_first |= block.side == Side::Host;
                device_first |= block.side == Side::Device;
            }
            Arrival::Partner(partner) => {
                let pair = if block.side == Side::Host { (number, partner) } else { (partner, number) };
                if !shown.contains(&pair) {
                    return None;
                }
                halves.insert(number, partner);
                halves.insert(partner, number);
                buffers += 1;
            }
            Arrival::Deviation(_) => return None,
        }
    }
    // Blocks of one pair that came from two threads have missed each other.
    if buffers != shown.len() as u64 {
        return None;
    }
    let waiting = u32::try_from(waiting).ok().filter(|&waiting| same_thread || waiting == 1)?;
    // Blocks of several threads come in an order that another run may change: one thread's h would get another one's d.
    if !same_thread && buffers > 1 {
        return None;
    }
    let first = match (host_first, device_first) {
        (true, true) => First::Either,
        (true, false) => First::Host,
        _ => First::Device,
    };
    Some(Meeting { first, same_thread, waiting, alive: most_alive, buffers })
}

/// The wait that each copy site of the groups leaves: (index of the group, site, way).
pub(super) fn waits(groups: &[&Group], events: &[Event]) -> BTreeMap<(usize, Site, Way), Wait> {
    let mut linking: BTreeMap<usize, (usize, Way, bool)> = BTreeMap::new();
    for (number, group) in groups.iter().enumerate() {
        // An asynchronous upload makes nobody wait, and of page-locked memory no asynchronous copy does.
        let returns_early = |link: &Link| link.asynchronous && (link.way == Way::Upload || group.page_locked);
        linking.extend(group.links.iter().map(|link| (link.event, (number, link.way, returns_early(link)))));
    }
    let pending = Pending::default();
    let mut waits = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        // In a trace a wait is one moment.
        let now = pending.waiting();
        match event.call {
            Call::Launch { stream } | Call::Set { stream, .. } => pending.launched(stream),
            Call::StreamCreate { stream, non_blocking } => pending.created(stream, non_blocking),
            Call::StreamWait { stream, .. } => pending.joined(stream),
            Call::Wait { on } => pending.waited(now, on),
            Call::EventRecord { event, stream } => pending.recorded(event, stream, now),
            Call::Copy { kind, stream, asynchronous, .. } => match linking.get(&index) {
                Some(&(group, way, returns_early)) => {
                    let wait = match returns_early {
                        true if pending.joins(stream) => Wait::Device,
                        true => Wait::Covered,
                        false => needed(&pending, stream),
                    };
                    let entry = waits.entry((group, event.site, way)).or_insert(Wait::Covered);
                    *entry = longer(*entry, wait);
                    if wait != Wait::Covered {
                        pending
                            .waited(now, if wait == Wait::Device { WaitFor::Device } else { WaitFor::Stream(stream) });
                    }
                }
                None if asynchronous || kind == CopyKind::DeviceToDevice => pending.launched(stream),
                None => pending.copied(now, stream),
            },
            _ => {}
        }
    }
    waits
}

/// What a copy in `stream` waits for now.
fn needed(pending: &Pending, stream: Stream) -> Wait {
    if pending.idle() {
        Wait::Covered
    } else if stream.is_own() && pending.idle_but_for(stream) {
        Wait::Stream
    } else {
        Wait::Device
    }
}

fn longer(a: Wait, b: Wait) -> Wait {
    match (a, b) {
        (Wait::Device, _) | (_, Wait::Device) => Wait::Device,
        (Wait::Stream, _) | (_, Wait::Stream) => Wait::Stream,
        (Wait::Covered, Wait::Covered) => Wait::Covered,
    }
}
