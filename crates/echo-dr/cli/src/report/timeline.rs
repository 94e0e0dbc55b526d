//! One iteration of the program's loop, as bars: which calls it makes, when, and how long they take.
//!
//! An iteration lies between two recurrences of the dominant copy site. The one that is shown is the median by length of the second half
//! of the run, so neither a warm-up nor an odd one.

use echo_dr_format::event::{Call, CopyKind, Event, WaitFor};
use echo_dr_format::plan::Wait;
use echo_dr_format::site::Site;

/// What a call is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Moves bytes between host and device.
    Copy,
    /// Gives the GPU work.
    Launch,
    /// The host waits.
    Wait,
    /// Allocates or frees.
    Memory,
}

impl Kind {
    /// All, in the order of the key.
    pub(crate) const ALL: [Self; 4] = [Self::Copy, Self::Launch, Self::Wait, Self::Memory];

    /// The class in the style sheet.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Launch => "launch",
            Self::Wait => "wait",
            Self::Memory => "memory",
        }
    }

    /// In the key.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copies",
            Self::Launch => "launches",
            Self::Wait => "waits",
            Self::Memory => "allocation",
        }
    }
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    /// Nanoseconds since the iteration began.
    pub(crate) start: u64,
    /// Nanoseconds in the call.
    pub(crate) took: u64,
    /// The thread that makes it.
    pub(crate) thread: u32,
    /// Where it is called.
    pub(crate) site: Site,
    /// What it is.
    pub(crate) kind: Kind,
    /// In words.
    pub(crate) text: String,
}

/// An iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timeline {
    /// Nanoseconds.
    pub(crate) length: u64,
    /// Its calls in time order.
    pub(crate) bars: Vec<Bar>,
    /// Calls that are not among the bars.
    pub(crate) left_out: usize,
}

/// More bars than this cannot be told apart, and make the page slow.
const MOST_BARS: usize = 400;

impl Timeline {
    /// Threads that make calls, in order.
    pub(crate) fn lanes(&self) -> Vec<u32> {
        let mut lanes: Vec<u32> = self.bars.iter().map(|bar| bar.thread).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    }

    /// Nanoseconds in calls of a kind.
    pub(crate) fn spent(&self, kind: Kind) -> u64 {
        self.bars.iter().filter(|bar| bar.kind == kind).map(|bar| bar.took).sum()
    }
}

/// The iteration that stands for all: its first and its last nanosecond. `None` if the site does not recur.
pub(crate) fn typical(events: &[Event], dominant: Site) -> Option<(u64, u64)> {
    let is_copy = |call: &Call| matches!(call, Call::Copy { .. } | Call::Skipped { .. });
    let is_dominant = |event: &&Event| event.site == dominant && is_copy(&event.call);
    let mut times: Vec<u64> = events.iter().filter(is_dominant).map(|event| event.time).collect();
    times.sort_unstable();
    let spans: Vec<(u64, u64)> = times.windows(2).map(|pair| (pair[0], pair[1])).filter(|(a, b)| a < b).collect();
    let mut steady = spans[spans.len() / 2..].to_vec();
    steady.sort_unstable_by_key(|(start, end)| end - start);
    steady.get(steady.len().saturating_sub(1) / 2).copied()
}

/// The calls between two times.
pub(crate) fn between(events: &[Event], (start, end): (u64, u64)) -> Timeline {
    let inside = events.iter().filter(|event| (start..end).contains(&event.time));
    let mut bars: Vec<Bar> = inside.filter_map(|event| bar(event, start)).collect();
    bars.sort_by_key(|bar| bar.start);
    let left_out = bars.len().saturating_sub(MOST_BARS);
    bars.truncate(MOST_BARS);
    Timeline { length: end - start, bars, left_out }
}

/// The same iteration with copies taken out: later calls move up by the time that the skipped ones took, on every thread. Where a wait stays, it
/// is shown without length: how much of the copy's time was waiting is not known.
pub(crate) fn without_copies(before: &Timeline, skipped: &[(Site, Wait)]) -> Timeline {
    let wait = |bar: &Bar| {
        let found = skipped.iter().find(|(site, _)| *site == bar.site)?;
        (bar.kind == Kind::Copy).then_some(found.1)
    };
    let mut after = Timeline { bars: Vec::new(), ..before.clone() };
    let mut saved = 0;
    for bar in &before.bars {
        let start = bar.start.saturating_sub(saved);
        let kept = wait(bar).map_or_else(
            || Some(Bar { start, ..bar.clone() }),
            |wait| {
                saved += bar.took;
                let text = match wait {
                    Wait::Covered => return None,
                    Wait::Stream => "wait for the stream, in the place of a copy",
                    Wait::Device => "wait for the device, in the place of a copy",
                };
                Some(Bar { start, took: 0, kind: Kind::Wait, text: text.to_owned(), ..bar.clone() })
            },
        );
        after.bars.extend(kept);
    }
    after.length = before.length.saturating_sub(saved);
    after
}

fn awaited(on: &WaitFor) -> &'static str {
    match on {
        WaitFor::Device => "the device",
        WaitFor::Stream(_) => "a stream",
        WaitFor::Event(_) => "an event",
    }
}

fn bar(event: &Event, start: u64) -> Option<Bar> {
    let (kind, what) = match &event.call {
        Call::Copy { bytes, kind, .. } => {
            let way = match kind {
                CopyKind::HostToDevice => "host to device",
                CopyKind::DeviceToHost => "device to host",
                CopyKind::DeviceToDevice => "device to device",
                CopyKind::HostToHost => "host to host",
                CopyKind::Default => "by address",
            };
            (Kind::Copy, format!("{} {way}", echo_cli::size(*bytes)))
        }
        Call::Skipped { wait: None, .. } => return None,
        Call::Skipped { wait: Some(on), .. } => (Kind::Wait, format!("for {}, in the place of a copy", awaited(on))),
        Call::Set { bytes, .. } => (Kind::Launch, echo_cli::size(*bytes)),
        Call::Launch { .. } => (Kind::Launch, String::new()),
        Call::Wait { on } => (Kind::Wait, format!("for {}", awaited(on))),
        Call::HostAlloc { bytes, .. } | Call::DeviceAlloc { bytes, .. } | Call::HostRealloc { bytes, .. } => {
            (Kind::Memory, echo_cli::size(*bytes))
        }
        Call::HostFree { .. } | Call::DeviceFree { .. } => (Kind::Memory, String::new()),
        _ => return None,
    };
    // The time of an allocation is taken after the call.
    let began = match kind {
        Kind::Memory if !matches!(event.call, Call::HostFree { .. } | Call::DeviceFree { .. }) => {
            event.time.saturating_sub(event.took)
        }
        _ => event.time,
    };
    let text = if what.is_empty() { event.api.to_string() } else { format!("{} ({what})", event.api) };
    Some(Bar {
        start: began.saturating_sub(start),
        took: event.took,
        thread: event.thread,
        site: event.site,
        kind,
        text,
    })
}

#[cfg(test)]
mod tests {
    use echo_dr_format::event::{Shape, Stream};

    use super::*;

    fn event(time: u64, took: u64, site: u64, call: Call) -> Event {
        Event { time, took, thread: 0, site: Site(site), api: "cudaMemcpy".into(), call }
    }

    fn copy(time: u64, site: u64) -> Event {
        let (kind, stream, shape) = (CopyKind::HostToDevice, Stream::LEGACY, Shape::Linear);
        event(time, 5, site, Call::Copy { dst: 2, src: 1, bytes: 1 << 20, kind, stream, asynchronous: false, shape })
    }

    #[test]
    fn the_median_of_the_second_half_stands_for_all() {
        // Intervals: 1000, 900 (warm-up), 100, 110, 500.
        let times = [0, 1000, 1900, 2000, 2110, 2610];
        let events: Vec<Event> = times.iter().flat_map(|time| [copy(*time, 7), copy(time + 1, 8)]).collect();
        assert_eq!(typical(&events, Site(7)), Some((2000, 2110)));
        assert_eq!(typical(&events, Site(9)), None);
        assert_eq!(typical(&events[..1], Site(7)), None);
    }

    #[test]
    fn calls_of_the_iteration_become_bars_from_its_beginning() {
        let launch = event(40, 1, 0, Call::Launch { stream: Stream::LEGACY });
        let allocated = Call::HostAlloc { ptr: 1, bytes: 64, align: 0, kind: echo_dr_format::event::HostKind::Heap };
        let events = [copy(20, 7), launch, event(60, 10, 0, allocated), copy(120, 7)];
        let timeline = between(&events, (20, 120));
        let seen: Vec<_> = timeline.bars.iter().map(|bar| (bar.start, bar.took, bar.kind)).collect();
        assert_eq!(seen, [(0, 5, Kind::Copy), (20, 1, Kind::Launch), (30, 10, Kind::Memory)]);
        assert_eq!((timeline.length, timeline.spent(Kind::Copy), timeline.lanes()), (100, 5, vec![0]));
        assert_eq!(timeline.bars[0].text, "cudaMemcpy (1 MiB host to device)");
    }

    #[test]
    fn skipped_copies_go_and_what_follows_moves_up() {
        let launch = event(40, 1, 0, Call::Launch { stream: Stream::LEGACY });
        let before = between(&[copy(20, 7), launch, copy(60, 8), copy(70, 9)], (20, 120));
        let after = without_copies(&before, &[(Site(7), Wait::Covered), (Site(8), Wait::Device)]);
        let seen: Vec<_> = after.bars.iter().map(|bar| (bar.start, bar.took, bar.kind)).collect();
        assert_eq!(seen, [(15, 1, Kind::Launch), (35, 0, Kind::Wait), (40, 5, Kind::Copy)]);
        assert_eq!(after.length, 90);
    }

    #[test]
    fn a_loop_of_too_many_calls_is_cut_and_says_so() {
        let events: Vec<Event> = (0..500).map(|time| copy(time, 7)).collect();
        let timeline = between(&events, (0, 500));
        assert_eq!((timeline.bars.len(), timeline.left_out), (MOST_BARS, 100));
    }
}
