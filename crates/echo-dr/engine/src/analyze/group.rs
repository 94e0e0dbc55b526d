//! Copies grouped by (β_h, β_d, N), and why a group can't be a pair.

use std::collections::{BTreeMap, BTreeSet};

use echo_dr_format::event::{Event, Shape, Stream};
use echo_dr_format::plan::{Direction, Way};
use echo_dr_format::reason::Decline;
use echo_dr_format::site::Site;

use super::Options;
use super::history::{History, Link};

/// Where blocks come from: site and size.
pub(super) type Origin = (Site, u64);

/// Copies between blocks of one host and one device origin.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) host: Origin,
    pub(super) device: Origin,
    /// In time order.
    pub(super) links: Vec<Link>,
    /// Its host blocks are page-locked memory.
    pub(super) page_locked: bool,
    pub(super) reasons: Vec<Decline>,
}

/// Copies with an end in no recorded block.
#[derive(Debug)]
pub(super) struct HalfGroup {
    pub(super) host: Option<Origin>,
    pub(super) device: Option<Origin>,
    pub(super) copy: Site,
    pub(super) bytes: u64,
    pub(super) count: u64,
    pub(super) reasons: Vec<Decline>,
}

impl Group {
    pub(super) fn direction(&self) -> Direction {
        let has = |way| self.links.iter().any(|link| link.way == way);
        match (has(Way::Upload), has(Way::Download)) {
            (true, true) => Direction::Both,
            (true, false) => Direction::Input,
            _ => Direction::Output,
        }
    }

    /// Bytes that its copies move.
    pub(super) fn traffic(&self) -> u64 {
        self.links.iter().fold(0, |sum: u64, link| sum.saturating_add(link.bytes))
    }

    /// The copy site that ran most often, the first of several, and how often.
    pub(super) fn dominant(&self, events: &[Event]) -> (Site, u64) {
        let mut counts: Vec<(Site, u64)> = Vec::new();
        for site in self.links.iter().map(|link| events[link.event].site) {
            match counts.iter_mut().find(|(known, _)| *known == site) {
                Some((_, count)) => *count += 1,
                None => counts.push((site, 1)),
            }
        }
        let first_most = counts.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best });
        first_most.unwrap_or((Site(0), 0))
    }

    /// The pairs of blocks that the copies show: (host block, device block).
    pub(super) fn partners(&self) -> BTreeSet<(usize, usize)> {
        self.links.iter().filter_map(|link| Some((link.host?.block, link.device?.block))).collect()
    }

    fn refuse(&mut self, reason: Decline) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

/// All copies of a trace between host and device, grouped, and each group's reasons.
pub(super) fn groups(history: &History, events: &[Event], options: Options) -> (Vec<Group>, Vec<HalfGroup>) {
    let mut whole: BTreeMap<(Origin, Origin), Vec<Link>> = BTreeMap::new();
    let mut half: BTreeMap<(Option<Origin>, Option<Origin>, Site), Vec<Link>> = BTreeMap::new();
    let origin = |block: usize| (history.blocks[block].site, history.blocks[block].bytes);
    for &link in &history.links {
        let host = link.host.map(|at| origin(at.block));
        let device = link.device.map(|at| origin(at.block));
        match (host, device) {
            (Some(host), Some(device)) => whole.entry((host, device)).or_default().push(link),
            _ => half.entry((host, device, events[link.event].site)).or_default().push(link),
        }
    }
    let facts = Facts::of(history, whole.values().flatten());
    let group = |((host, device), links): (_, Vec<Link>)| {
        let is_page_locked = |link: &Link| link.host.is_some_and(|at| history.blocks[at.block].page_locked);
        let page_locked = links.iter().any(is_page_locked);
        Group { host, device, links, page_locked, reasons: Vec::new() }
    };
    let mut groups: Vec<Group> = whole.into_iter().map(group).collect();
    for group in &mut groups {
        check_recurrence(group, events, options);
        check_sizes(group, options);
        check_streams(group, events);
        check_blocks(group, history);
        check_partners(group, history, &facts);
        check_device_writes(group, history, &facts);
        check_overlap(group, events);
        if history.several_devices {
            group.refuse(Decline::SeveralDevices);
        }
    }
    let halves = half.into_iter().map(|((host, device, copy), links)| {
        let bytes = links.iter().map(|link| link.bytes).max().unwrap_or(0);
        let mut reasons = vec![Decline::UnrecordedMemory];
        if links.iter().any(|link| link.shape != Shape::Linear) {
            reasons.push(Decline::ShapedCopy);
        }
        HalfGroup { host, device, copy, bytes, count: links.len() as u64, reasons }
    });
    (groups, halves.filter(|half| half.bytes >= options.threshold).collect())
}

/// Who is copied with whom, in the whole trace.
struct Facts {
    /// Device blocks that a host block is copied to or from.
    of_host: BTreeMap<usize, BTreeSet<usize>>,
    /// Host blocks that a device block is copied to or from, and whether one uploads.
    of_device: BTreeMap<usize, BTreeMap<usize, bool>>,
    /// What writes a device block besides kernels: (event, host block if it is an upload from a recorded one).
    writes: BTreeMap<usize, Vec<(usize, Option<usize>)>>,
}

impl Facts {
    fn of<'a>(history: &History, links: impl Iterator<Item = &'a Link>) -> Self {
        let mut facts = Self { of_host: BTreeMap::new(), of_device: BTreeMap::new(), writes: BTreeMap::new() };
        for link in links {
            if let (Some(host), Some(device)) = (link.host, link.device) {
                facts.of_host.entry(host.block).or_default().insert(device.block);
                let hosts = facts.of_device.entry(device.block).or_default();
                *hosts.entry(host.block).or_default() |= link.way == Way::Upload;
            }
        }
        for &(event, block) in &history.device_writes {
            facts.writes.entry(block).or_default().push((event, None));
        }
        for link in history.links.iter().filter(|link| link.way == Way::Upload) {
            if let Some(device) = link.device {
                let writes = facts.writes.entry(device.block).or_default();
                writes.push((link.event, link.host.map(|host| host.block)));
            }
        }
        facts
    }
}

fn check_recurrence(group: &mut Group, events: &[Event], options: Options) {
    let (_, found) = group.dominant(events);
    if found < options.recurrences {
        group.refuse(Decline::RecursTooRarely { found, needed: options.recurrences });
    }
}

fn check_sizes(group: &mut Group, options: Options) {
    let (host, device) = (group.host.1, group.device.1);
    if host < options.threshold {
        group.refuse(Decline::BelowThreshold { bytes: host, threshold: options.threshold });
    }
    for link in group.links.clone() {
        if link.shape != Shape::Linear {
            group.refuse(Decline::ShapedCopy);
        } else if host != device {
            group.refuse(Decline::SizesDiffer { host, device, copy: link.bytes });
        } else if link.host.map(|at| at.offset) != link.device.map(|at| at.offset) {
            group.refuse(Decline::ShiftedCopy);
        } else if link.bytes != host {
            group.refuse(Decline::PartialCopy { copy: link.bytes, bytes: host });
        }
    }
}

fn check_streams(group: &mut Group, events: &[Event]) {
    // A per-thread default stream is another one in each thread.
    let key = |link: &Link| {
        let thread = (link.stream == Stream::PER_THREAD).then_some(events[link.event].thread);
        (link.stream, thread)
    };
    let streams: BTreeSet<_> = group.links.iter().map(key).collect();
    if streams.len() > 1 {
        group.refuse(Decline::SeveralStreams);
    }
}

fn check_blocks(group: &mut Group, history: &History) {
    for (host, device) in group.partners() {
        for reason in history.blocks[host].flaws.iter().chain(&history.blocks[device].flaws) {
            group.refuse(reason.clone());
        }
        let (host, device) = (&history.blocks[host], &history.blocks[device]);
        // Heap memory from the same site (a pointer to a function was called there) is a pair of its own.
        if host.page_locked != group.page_locked {
            group.refuse(Decline::SharedSite);
        }
        if host.zeroed && host.born > device.born && history.works_between(device.born, host.born) {
            group.refuse(Decline::ZeroedAfterUse);
        }
    }
}

fn check_partners(group: &mut Group, history: &History, facts: &Facts) {
    let apart = |a: usize, b: usize| {
        let (a, b) = (&history.blocks[a], &history.blocks[b]);
        a.died < b.born || b.died < a.born
    };
    let direction = group.direction();
    for (host, device) in group.partners() {
        for &other in facts.of_host[&host].iter().filter(|&&other| other != device) {
            let reason = if apart(device, other) { Decline::FreedBetween } else { Decline::HostHasSeveralPartners };
            group.refuse(reason);
        }
        for (&other, &uploads) in facts.of_device[&device].iter().filter(|&(&other, _)| other != host) {
            if history.blocks[other].site == history.blocks[host].site && apart(host, other) {
                group.refuse(Decline::FreedBetween);
            } else if (uploads && direction != Direction::Output)
                || history.blocks[other].site == history.blocks[host].site
            {
                // What only downloads from d into other memory changes neither h nor d. What uploads into d of an output pair is like a kernel that
                // writes it: validation looks whether the host touches h then.
                group.refuse(Decline::DeviceHasSeveralPartners);
            }
        }
    }
}

/// Merged, a write to d is one to h. It is harmless while the next thing that happens to h is that a download replaces it, or between an upload and
/// that; before an upload it would destroy what is to be uploaded, after a download what the host reads.
fn check_device_writes(group: &mut Group, history: &History, facts: &Facts) {
    if group.direction() == Direction::Output {
        return;
    }
    let mut copies: BTreeMap<(usize, usize), Vec<(usize, Way)>> = BTreeMap::new();
    for link in &group.links {
        if let (Some(host), Some(device)) = (link.host, link.device) {
            copies.entry((host.block, device.block)).or_default().push((link.event, link.way));
        }
    }
    for ((host, device), copies) in copies {
        let Some(writes) = facts.writes.get(&device) else { continue };
        let host_block = &history.blocks[host];
        for &(event, from) in writes {
            if from == Some(host) || event < host_block.born || event > host_block.died {
                continue;
            }
            let last = copies[..copies.partition_point(|&(copy, _)| copy < event)].last();
            if last.is_none_or(|&(_, way)| way == Way::Download) {
                group.refuse(Decline::OtherDataIntoDevice);
            }
        }
    }
}

fn check_overlap(group: &mut Group, events: &[Event]) {
    let mut last: BTreeMap<(Option<usize>, Option<usize>), &Event> = BTreeMap::new();
    let mut overlaps = false;
    for link in &group.links {
        let event = &events[link.event];
        let blocks = (link.host.map(|at| at.block), link.device.map(|at| at.block));
        if let Some(before) = last.insert(blocks, event) {
            overlaps |= before.thread != event.thread && event.time < before.time.saturating_add(before.took);
        }
    }
    if overlaps {
        group.refuse(Decline::CopiesOverlap);
    }
}
