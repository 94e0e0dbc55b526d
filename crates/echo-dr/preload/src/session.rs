//! The mode of this run, set once by the constructor.

use std::sync::OnceLock;

use echo_dr_format::event::{Call, Stream};

use crate::merge::Merge;
use crate::ops::Observed;
use crate::record::Record;
use crate::thread::Token;

/// What is done with observed calls.
#[allow(clippy::large_enum_variant, reason = "a process has one of it")]
pub(crate) enum Session {
    /// Profile and validate: the calls are made as they are, and recorded.
    Record(Record),
    /// Optimise: the plan is followed.
    Merge(Merge),
}

static SESSION: OnceLock<Session> = OnceLock::new();

/// The session, once there is one.
#[inline]
pub(crate) fn get() -> Option<&'static Session> {
    SESSION.get()
}

/// Sets the session; the constructor does, once.
pub(crate) fn set(session: Session) {
    let _ = SESSION.set(session);
}

impl Session {
    /// The program asked about an address, or may have.
    pub(crate) fn queried(&self, call: &Observed<'_>, address: usize) {
        match self {
            Self::Record(record) if address != 0 => {
                record.event(call.token, call.hook.name, Call::Query { ptr: address as u64 });
            }
            Self::Record(_) => {}
            Self::Merge(merge) => merge.queried(address),
        }
    }

    /// A function is about to be called that may touch memory in ways that aren't known.
    pub(crate) fn unknown_called(&self, token: &Token, name: &'static str) {
        match self {
            Self::Record(record) => record.unknown_called(token, name),
            // Pairs that were alive at such a call when profiled aren't merged. It may be work, which later waits count.
            Self::Merge(merge) => merge.unifier().launched(Stream::LEGACY),
        }
    }

    /// A call that isn't a copy of one block reads, or writes, host memory.
    pub(crate) fn touched_by_call(&self, call: &Observed<'_>, address: usize, bytes: usize, writes: bool) {
        if let Self::Record(record) = self {
            record.call_with_memory(call.token, address, bytes, writes);
        }
    }
}
