//! How far the library is: one atomic word, read wherever a hook leaves its fast path.
//!
//! `Cold` → `Ready` → `Leaving`, or `Cold` → `Off`, or any → `Off`. Nothing allocates, locks or records before `Ready`; in `Off` every hook forwards.

use std::sync::atomic::{AtomicU8, Ordering};

/// A phase of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// The constructor has not run: libraries that start before this one already call malloc.
    Cold = 0,
    /// A mode is on and its parts are set up.
    Ready = 1,
    /// The program has called exit: what is recorded from here on is written at once.
    Leaving = 2,
    /// Hooks only forward: no mode is asked for, the process is set-uid, or something failed.
    Off = 3,
}

static PHASE: AtomicU8 = AtomicU8::new(Phase::Cold as u8);

impl Phase {
    /// The phase now.
    pub(crate) fn now() -> Self {
        match PHASE.load(Ordering::Acquire) {
            0 => Self::Cold,
            1 => Self::Ready,
            2 => Self::Leaving,
            _ => Self::Off,
        }
    }

    /// Everything that was stored before is seen by whoever reads this phase.
    pub(crate) fn enter(self) {
        PHASE.store(self as u8, Ordering::Release);
    }

    /// Hooks observe calls.
    pub(crate) fn is_live(self) -> bool {
        matches!(self, Self::Ready | Self::Leaving)
    }
}
