//! The block of memory through which the program and its device process talk: atomics alone, so that sharing it is safe code.
//!
//! Who writes what: the program writes the ring's words and `ring_tail`, `hostcall_head`, `text_head`, and `completed` of a stream whose head
//! is the host's turn; the device process writes all else.

use crate::layout::{EVENTS, STREAMS};
use crate::mapping::{self, Mapping, Place, Protection};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// Words of the command ring.
pub const RING_WORDS: usize = 1 << 17;

/// Bytes of kernels' `printf` output that can wait for the program.
pub const TEXT_BYTES: usize = 1 << 20;

/// Bytes of a kernel's name that a report of a fault has room for.
pub const KERNEL_NAME_BYTES: usize = 256;

/// How long a waiter spins before it sleeps. On a 2-core virtual machine a futex round trip costs 43 µs, a spinning one 0.4 µs; longer
/// spinning would take a core from the kernels.
pub const SPIN: Duration = Duration::from_micros(20);

/// A counter on a cache line of its own.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Line<T>(pub T);

impl<T> Deref for Line<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The shared block. All-zero bytes are its first state.
#[repr(C)]
pub struct Control {
    /// Process id of the device process once it is ready.
    pub device_pid: AtomicI32,
    /// Error code that ended the device process; 0: none.
    pub fault: AtomicU32,
    /// Address that a kernel could not touch.
    pub fault_address: AtomicU64,
    /// Name of the kernel that ran at the fault, ended by 0; empty: none ran.
    pub fault_kernel: [AtomicU8; KERNEL_NAME_BYTES],
    /// Words taken from the ring.
    pub ring_head: Line<AtomicU64>,
    /// Words put into the ring.
    pub ring_tail: Line<AtomicU64>,
    /// Futex: 1 while the device process sleeps.
    pub device_sleeps: Line<AtomicU32>,
    /// Futex: counts what the device process finished.
    pub progress: Line<AtomicU32>,
    /// Host threads that sleep on `progress`.
    pub sleepers: Line<AtomicU32>,
    /// Core on which the device process was last seen, plus 1.
    pub device_core: Line<AtomicU32>,
    /// Core from which the last command came, plus 1.
    pub host_core: Line<AtomicU32>,
    /// Number of the last answered request that wants an answer.
    pub answered: AtomicU64,
    /// The answer: 0 or an error code.
    pub answer: AtomicU32,
    /// Calls of host functions taken.
    pub hostcall_head: AtomicU32,
    /// Futex: calls of host functions asked for.
    pub hostcall_tail: Line<AtomicU32>,
    /// Stream slots of the calls asked for.
    pub hostcalls: [AtomicU32; STREAMS],
    /// Bytes of text taken.
    pub text_head: AtomicU64,
    /// Bytes of text written.
    pub text_tail: AtomicU64,
    /// Sequence number of the last finished command of each stream.
    pub completed: [AtomicU64; STREAMS],
    /// Sequence number of the host's turn that each stream has reached.
    pub granted: [AtomicU64; STREAMS],
    /// When each event was last reached, in nanoseconds of the monotonic clock.
    pub event_time: [AtomicU64; EVENTS],
    /// The command ring.
    pub ring: [AtomicU64; RING_WORDS],
    /// Text of kernels.
    pub text: [AtomicU8; TEXT_BYTES],
}

impl Control {
    /// Whether the command `sequence` of stream `slot` is finished.
    pub fn is_complete(&self, slot: u32, sequence: u64) -> bool {
        self.completed[slot as usize].load(Ordering::Acquire) >= sequence
    }

    /// Tells host threads that something changed.
    pub fn announce(&self) {
        self.progress.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            futex_wake(&self.progress, i32::MAX);
        }
    }

    /// Waits until `done`: spins for [`SPIN`], then sleeps. `alive` is asked now and then; when it says no, the wait ends with `false`.
    pub fn wait_until(&self, done: impl Fn() -> bool, alive: impl Fn() -> bool) -> bool {
        if spin_until(&done, &self.device_core) {
            return true;
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let result = loop {
            let seen = self.progress.load(Ordering::SeqCst);
            if done() {
                break true;
            }
            if !alive() {
                // What was finished before the end counts.
                break done();
            }
            futex_wait(&self.progress, seen, Duration::from_millis(50));
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

/// The calling thread's core, plus 1 (0: not known).
pub fn this_core() -> u32 {
    // SAFETY: sched_getcpu has no preconditions.
    u32::try_from(unsafe { libc::sched_getcpu() } + 1).unwrap_or(0)
}

/// Spins until `done`, at most [`SPIN`]; says whether it is. While the other side is on the same core (`other_core`) it can't get on, so
/// spinning ends at once.
pub fn spin_until(done: impl Fn() -> bool, other_core: &AtomicU32) -> bool {
    if done() {
        return true;
    }
    let start = Instant::now();
    loop {
        for _ in 0..16 {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() >= SPIN || this_core() == other_core.load(Ordering::Relaxed) {
            return done();
        }
    }
}

/// Sleeps while `word` is `expected`, at most `timeout`. May return early.
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Duration) {
    let time = libc::timespec { tv_sec: timeout.as_secs() as libc::time_t, tv_nsec: timeout.subsec_nanos().into() };
    // SAFETY: `word` and `time` live for the whole call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, &time) };
}

/// Wakes up to `count` sleepers of `word`. Async-signal-safe.
pub fn futex_wake(word: &AtomicU32, count: i32) {
    // SAFETY: `word` is a valid address; the call touches nothing else.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
}

/// A mapped [`Control`].
#[derive(Debug)]
pub struct SharedControl {
    mapping: Mapping,
}

impl SharedControl {
    /// A new block and its file.
    pub fn create() -> io::Result<(OwnedFd, SharedControl)> {
        let file = mapping::memory_file(c"uma-control", size_of::<Control>())?;
        let control = SharedControl::open(file.as_raw_fd())?;
        Ok((file, control))
    }

    /// Maps the block that `file` holds.
    pub fn open(file: RawFd) -> io::Result<SharedControl> {
        let mapping = Mapping::new(file, 0, size_of::<Control>(), Place::Anywhere, Protection::ReadWrite)?;
        Ok(SharedControl { mapping })
    }
}

impl Deref for SharedControl {
    type Target = Control;
    fn deref(&self) -> &Control {
        // SAFETY: the mapping is as long as `Control`, page-aligned, lives as long as `self`, and `Control` is atomics alone, for which
        // any bytes are valid and which other processes may change.
        unsafe { &*(self.mapping.address() as *const Control) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_sleeping_waiter_is_woken() {
        let (_file, control) = SharedControl::create().unwrap();
        let control = Arc::new(control);
        let waiter = {
            let control = Arc::clone(&control);
            std::thread::spawn(move || control.wait_until(|| control.is_complete(3, 5), || true))
        };
        std::thread::sleep(Duration::from_millis(5));
        control.completed[3].store(5, Ordering::Release);
        control.announce();
        assert!(waiter.join().unwrap());
    }

    #[test]
    fn a_wait_ends_when_the_other_side_is_gone() {
        let (_file, control) = SharedControl::create().unwrap();
        assert!(!control.wait_until(|| false, || false));
    }
}
