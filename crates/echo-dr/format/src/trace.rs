//! The trace: JSON Lines, one [`Record`] a line, the first one a header.
//!
//! A trace is written while the program runs and may end anywhere, since the program may be killed. So each line stands alone, and a last
//! line without its end is left out and told ([`Trace::truncated`]). Any other fault is an error that names its line.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use crate::SCHEMA;
use crate::context::{Context, DeviceIdentity};
use crate::event::Event;
use crate::finding::{Finding, PairSeen};
use crate::site::Site;

/// The longest line that is read or written.
pub const LINE_LIMIT: usize = 1 << 20;
/// How many records a trace may have.
pub const RECORD_LIMIT: usize = 1 << 26;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The first line.
    Header(Header),
    /// A module that frames refer to.
    Module(Module),
    /// The frames of a site, before or after its first use.
    Frames(Frames),
    /// The device, once it is known.
    Device(DeviceIdentity),
    /// A call.
    Event(Event),
    /// What validation found.
    Finding(Finding),
    /// What validation saw of a pair.
    Seen(PairSeen),
    /// The last line of a run that ended by itself.
    End(End),
}

/// Who wrote the trace, about what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of the format.
    pub schema: u32,
    /// What the run was for.
    pub mode: Mode,
    /// Version of the library.
    pub version: String,
    /// Where; the device comes later, in a record of its own.
    pub context: Context,
    /// θ_min in bytes: smaller host and device blocks are not in the trace.
    pub threshold: u64,
    /// Page size of the machine.
    pub page_size: u64,
    /// The process.
    pub pid: u32,
    /// Its parent's trace was this process's, for the child of a fork.
    pub forked_from: Option<u32>,
}

/// What the library was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Record.
    Profile,
    /// Record and watch the pairs of a plan.
    Validate,
    /// Merge, where a trace was asked for.
    Optimise,
}

/// A loaded file that frames are in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Its number.
    pub id: u32,
    /// Where it is.
    pub path: String,
    /// Build-id in hex; empty if it has none.
    pub build_id: String,
}

/// The stack of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frames {
    /// The site.
    pub site: Site,
    /// Innermost first.
    pub frames: Vec<Frame>,
}

/// A return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// Number of its module; absent for code of no file.
    pub module: Option<u32>,
    /// Offset in the module (as in its file's addresses), or the address.
    pub offset: u64,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Nanoseconds since the trace began.
    pub time: u64,
    /// Events that could not be written.
    pub lost: u64,
}

/// Writes one line.
///
/// # Errors
/// The writer's; a record longer than [`LINE_LIMIT`] is refused before anything is written.
pub fn write_record(record: &Record, to: &mut impl Write) -> io::Result<()> {
    let mut line = serde_json::to_vec(record)?;
    if line.len() >= LINE_LIMIT {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a trace record is too long"));
    }
    line.push(b'\n');
    to.write_all(&line)
}

/// Why a trace can't be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It could not be read at all.
    #[error("the trace can't be read: {0}")]
    Io(#[from] io::Error),
    /// There is nothing in it.
    #[error("the trace is empty; was libecho_dr.so loaded?")]
    Empty,
    /// The first line is no header.
    #[error("the file is no trace of Echo-DR: {0}")]
    NoHeader(String),
    /// Another version.
    #[error("the trace has format version {found}, this Echo-DR reads version {SCHEMA}; profile again")]
    Version {
        /// Of the file.
        found: u64,
    },
    /// A line is wrong.
    #[error("line {line} of the trace is malformed: {what}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// How.
        what: String,
    },
    /// A line is too long.
    #[error("line {line} of the trace is longer than {LINE_LIMIT} bytes")]
    TooLong {
        /// Which, from 1.
        line: usize,
    },
    /// There are too many lines.
    #[error("the trace has more than {RECORD_LIMIT} records; raise the threshold")]
    TooMany,
}

/// A whole trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The header.
    pub header: Header,
    /// Modules.
    pub modules: Vec<Module>,
    /// Frames of the sites.
    pub frames: Vec<Frames>,
    /// Events in time order.
    pub events: Vec<Event>,
    /// What validation found.
    pub findings: Vec<Finding>,
    /// What validation saw.
    pub seen: Vec<PairSeen>,
    /// How it ended, if the program ended by itself.
    pub end: Option<End>,
    /// The last line was cut off.
    pub truncated: bool,
}

impl Trace {
    /// Reads a trace. The header's context gets the device if there was one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(from: impl BufRead) -> Result<Self, TraceError> {
        let mut lines = Lines { from, number: 0, buffer: Vec::new(), truncated: false };
        let Some(first) = lines.next_line()? else {
            return Err(TraceError::Empty);
        };
        let mut trace = Self {
            header: header(first)?,
            modules: Vec::new(),
            frames: Vec::new(),
            events: Vec::new(),
            findings: Vec::new(),
            seen: Vec::new(),
            end: None,
            truncated: false,
        };
        loop {
            let record = match lines.next_line()? {
                None => break,
                Some(line) => serde_json::from_slice::<Record>(line).map_err(|error| error.to_string()),
            };
            let line = lines.number;
            if line > RECORD_LIMIT {
                return Err(TraceError::TooMany);
            }
            let wrong = |what: String| TraceError::Line { line, what };
            match record.map_err(wrong)? {
                Record::Header(_) => return Err(wrong("a second header".into())),
                Record::Module(module) => trace.modules.push(module),
                Record::Frames(frames) => trace.frames.push(frames),
                Record::Device(device) => trace.header.context.device = Some(device),
                Record::Event(event) => trace.events.push(event),
                Record::Finding(finding) => trace.findings.push(finding),
                Record::Seen(seen) => trace.seen.push(seen),
                Record::End(end) => trace.end = Some(end),
            }
        }
        trace.truncated = lines.truncated;
        // Each thread's events are in order, those of several threads come in blocks.
        trace.events.sort_by_key(|event| event.time);
        Ok(trace)
    }
}

/// The header, with the version looked at before anything that another version may have otherwise.
fn header(line: &[u8]) -> Result<Header, TraceError> {
    #[derive(Deserialize)]
    struct Versioned {
        header: Version,
    }
    #[derive(Deserialize)]
    struct Version {
        schema: u64,
    }
    let wrong = |error: serde_json::Error| TraceError::NoHeader(error.to_string());
    let found = serde_json::from_slice::<Versioned>(line).map_err(wrong)?.header.schema;
    if found != u64::from(SCHEMA) {
        return Err(TraceError::Version { found });
    }
    match serde_json::from_slice::<Record>(line).map_err(wrong)? {
        Record::Header(header) => Ok(header),
        _ => Err(TraceError::NoHeader("the first line is no header".into())),
    }
}

/// Lines of bounded length.
struct Lines<R> {
    from: R,
    number: usize,
    buffer: Vec<u8>,
    truncated: bool,
}

impl<R: BufRead> Lines<R> {
    /// The next whole line without its end; `None` at the end of the file and at a line that was cut off.
    fn next_line(&mut self) -> Result<Option<&[u8]>, TraceError> {
        self.buffer.clear();
        self.number += 1;
        let limit = u64::try_from(LINE_LIMIT).unwrap_or(u64::MAX);
        let read = self.from.by_ref().take(limit).read_until(b'\n', &mut self.buffer)?;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
            return Ok(Some(&self.buffer));
        }
        if read == LINE_LIMIT {
            return Err(TraceError::TooLong { line: self.number });
        }
        self.truncated = read > 0;
        Ok(None)
    }
}
