//! Cases and plans as a reader wants them.

use std::fmt::{self, Display, Formatter};

use crate::case::{ALL, Case, HostKind, Kind, Mask, Path, Step, Touches, is_host};
use crate::examine::Unsound;
use crate::plan::{Free, Plan, Wait};

const NAMES: [&str; 6] = ["h", "d", "g", "e", "h2", "d2"];

fn name(buffer: u8) -> &'static str {
    NAMES.get(usize::from(buffer)).copied().unwrap_or("?")
}

/// `h`, or `h[1]` for one byte.
fn part(buffer: u8, bytes: Mask) -> String {
    match bytes {
        ALL => name(buffer).to_owned(),
        0b01 => format!("{}[0]", name(buffer)),
        _ => format!("{}[1]", name(buffer)),
    }
}

fn touches(all: &Touches) -> String {
    let one = |touch: &crate::case::Touch| {
        let may = if touch.may { "may " } else { "" };
        let verb = if touch.writes { "write" } else { "read" };
        let told = if touch.vague { " (which bytes is not told)" } else { "" };
        format!("{may}{verb} {}{told}", part(touch.buffer, touch.bytes))
    };
    let list: Vec<String> = all.iter().flatten().map(one).collect();
    if list.is_empty() { "nothing".to_owned() } else { list.join(", ") }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alloc(buffer) => write!(f, "allocate {}", name(*buffer)),
            Self::Free(buffer) => write!(f, "free {}", name(*buffer)),
            Self::FreeUnlessNull(buffer) => write!(f, "free {} unless it is null", name(*buffer)),
            Self::Host(all) => write!(f, "host: {}", touches(all)),
            Self::Launch { stream, touches: all, keeps, uses_kept } => {
                write!(f, "stream {stream}: kernel: {}", touches(all))?;
                f.write_str(if *keeps { ", keep d" } else { "" })?;
                f.write_str(if *uses_kept { ", may use what was kept" } else { "" })
            }
            Self::Memset { stream, buffer, bytes } => write!(f, "stream {stream}: memset {}", part(*buffer, *bytes)),
            Self::Copy { dst, src, bytes, stream, sync } => {
                let call = if *sync { "cudaMemcpy" } else { "cudaMemcpyAsync" };
                write!(f, "stream {stream}: {call} {} <- {}", part(*dst, *bytes), part(*src, *bytes))
            }
            Self::Shifted { dst, src, from } => {
                write!(f, "stream 0: cudaMemcpy {}[{}] <- {}[{from}]", name(*dst), 1 - from, name(*src))
            }
            Self::WaitDevice => f.write_str("wait for the device"),
            Self::WaitStream(stream) => write!(f, "wait for stream {stream}"),
            Self::WaitEvent(event) => write!(f, "wait for event {event}"),
            Self::Record(event, stream) => write!(f, "stream {stream}: record event {event}"),
            Self::StreamWait(stream, event) => write!(f, "stream {stream}: wait for event {event}"),
            Self::Opaque => f.write_str("call of a function that nobody modelled"),
            Self::Reset => f.write_str("cudaDeviceReset"),
        }
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let host = match self.host {
            HostKind::Malloc => "malloc",
            HostKind::Calloc => "calloc",
            HostKind::Pinned => "cudaMallocHost",
        };
        if self.steps.iter().any(|step| matches!(step, Step::Alloc(buffer) if is_host(*buffer))) {
            writeln!(f, "host buffers by {host}")?;
        }
        if self.outside {
            writeln!(f, "work of others may be running at entry")?;
        }
        if self.vague_streams != 0 {
            writeln!(f, "streams that the prover cannot tell apart: {:#b}", self.vague_streams)?;
        }
        let mut depth = 0;
        for (place, step) in self.steps.iter().enumerate() {
            for region in self.regions.iter().filter(|region| usize::from(region.first) == place) {
                let word = match region.kind {
                    Kind::Loop => "one to three times",
                    Kind::While => "up to two times",
                    Kind::If => "perhaps",
                    Kind::Return => "perhaps, and then return",
                    Kind::Abort => "perhaps, and then abort",
                };
                writeln!(f, "    {:depth$}{word} {{", "")?;
                depth += 2;
            }
            writeln!(f, "{place:>3} {:depth$}{step}", "")?;
            for _ in self.regions.iter().filter(|region| usize::from(region.last) == place) {
                depth -= 2;
                writeln!(f, "    {:depth$}}}", "")?;
            }
        }
        Ok(())
    }
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let wait = |wait: Option<Wait>| match wait {
            None => "nothing".to_owned(),
            Some(Wait::Device) => "a wait for the device".to_owned(),
            Some(Wait::Stream(stream)) => format!("a wait for stream {stream}"),
            Some(Wait::Event(event)) => format!("a wait for event {event}"),
        };
        if self.separate {
            writeln!(f, "{} and {} stay apart:", name(self.host), name(self.device))?;
        }
        writeln!(f, "{} and {} become p, made at {}", name(self.host), name(self.device), self.creates)?;
        for (place, left) in &self.copies {
            writeln!(f, "{place:>3} leaves {}", wait(*left))?;
        }
        for (place, free) in &self.frees {
            match free {
                Free::Drop(left) => writeln!(f, "{place:>3} leaves {}", wait(*left))?,
                Free::Release(left) => writeln!(f, "{place:>3} leaves {}, then frees p", wait(*left))?,
                Free::Count(left) => {
                    writeln!(f, "{place:>3} leaves {}, then frees p if it has no name left", wait(*left))?;
                }
            }
        }
        for (place, before) in &self.repairs {
            let side = if *before { "comes behind" } else { "is followed by" };
            writeln!(f, "{place:>3} {side} a wait for the device that P does not have")?;
        }
        for (place, behind) in &self.waits {
            writeln!(f, "{place:>3} is followed by {}", wait(Some(*behind)))?;
        }
        Ok(())
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let visit = |visit: &crate::case::Visit| format!("{}{}", visit.step, if visit.does { "+" } else { "" });
        f.write_str(&self.visits.iter().map(visit).collect::<Vec<_>>().join(" "))
    }
}

impl Display for Unsound {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.case)?;
        for plan in &self.plans {
            writeln!(f, "{plan}")?;
        }
        let found = &self.difference;
        writeln!(f, "{:?} on the path {} (+: what may happen there does)", found.fault, found.path)?;
        writeln!(f, "on a machine with {:?}", found.machine)
    }
}
