//! What validation asks of the library that is preloaded: pages, and what is in memory.

/// What the pages of a host buffer allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Everything.
    Open,
    /// Reading.
    ReadOnly,
    /// Nothing.
    Closed,
}

impl Protection {
    pub(super) fn allows_less_than(self, needed: Self) -> bool {
        match needed {
            Self::Open => self != Self::Open,
            Self::ReadOnly => self == Self::Closed,
            Self::Closed => false,
        }
    }
}

/// What validation needs done. All of it may be called while [`crate::Windows`] holds its lock, so none of it may come back; [`crate::Windows::touched`], which a
/// fault handler calls, takes no lock.
pub trait Memory {
    /// `mprotect` of whole pages. False if they did not change: accesses may go unseen then.
    fn protect(&self, start: usize, bytes: usize, protection: Protection) -> bool;
    /// Waits until the device has done everything.
    fn drain(&self);
    /// A hash of host memory, which may be protected at the time: the program's threads must not see it opened.
    fn host_digest(&self, address: usize, bytes: usize) -> u64;
    /// The same hash of device memory, after all work of the device is done. `None` if it can't be read.
    fn device_digest(&self, address: usize, bytes: usize) -> Option<u64>;
    /// Fills fresh device memory with a pattern that programs don't write.
    fn poison(&self, address: usize, bytes: usize);
}

/// What a fault handler does with a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The address is none of ours: the previous handler's business.
    NotOurs,
    /// Give these pages this protection (`mprotect`) and let the program go on.
    Reopen {
        /// The first page's address.
        start: usize,
        /// Bytes, whole pages.
        bytes: usize,
        /// What they allow from now on.
        protection: Protection,
    },
}
