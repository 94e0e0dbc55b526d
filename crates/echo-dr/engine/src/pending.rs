//! Which GPU work may still be running, as far as the program itself has found out.
//!
//! Launches are numbered. A wait that began after a launch and succeeded covers it: a wait for the device covers all, one for a stream the
//! launches of that stream, one for an event what the stream had when the event was recorded. Whatever is not certain counts as pending: waits
//! between streams are not followed, and where a table is full the work is covered by a wait for the device only. So [`Pending::idle`] may say
//! no too often, never yes too often.
//!
//! A copy in a stream is itself work that other work may be ordered by: see [`Pending::joins`].
//!
//! The analysis replays a trace into the same code that a merged run uses, so "covered by an earlier wait" means the same in both.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use echo_dr_format::event::{Stream, WaitFor};

/// Streams that are told apart, a bit of a word each. A program with more only waits more often.
const STREAMS: usize = u64::BITS as usize;
/// Events that are remembered; a newer one takes the place of an older one.
const EVENTS: usize = 64;

/// What was launched when a wait began.
#[derive(Clone, Copy, Debug)]
pub struct WaitToken(u64);

/// A stream's launches.
#[derive(Debug, Default)]
struct Slot {
    /// The handle plus 1; 0 if the slot is free.
    stream: AtomicU64,
    /// Its last launch.
    last: AtomicU64,
    /// Its launches up to here are done.
    done: AtomicU64,
    /// It was created so that it and the legacy default stream wait for each other.
    joins_legacy: AtomicBool,
    /// It was created so that they do not.
    apart: AtomicBool,
    /// What was launched when it last was made to wait for an event.
    joined: AtomicU64,
}

impl Slot {
    /// Some of its launches may still run; those up to `done` do not.
    fn is_pending(&self, done: u64) -> bool {
        self.last.load(Ordering::Acquire) > done.max(self.done.load(Ordering::Acquire))
    }
}

/// An event that was recorded.
#[derive(Clone, Copy, Debug, Default)]
struct Recorded {
    event: u64,
    stream: Stream,
    launches: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Pending {
    launches: AtomicU64,
    slots: [Slot; STREAMS],
    /// A bit for each slot that is taken.
    taken: AtomicU64,
    /// The last launch in a stream that has no slot.
    elsewhere: AtomicU64,
    /// A stream that has no slot was made to wait for an event.
    joined_elsewhere: AtomicBool,
    /// Launches up to here are done.
    done: AtomicU64,
    events: Mutex<[Recorded; EVENTS]>,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            launches: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            slots: std::array::from_fn(|_| Slot::default()),
            elsewhere: AtomicU64::new(0),
            joined_elsewhere: AtomicBool::new(false),
            done: AtomicU64::new(0),
            events: Mutex::new([Recorded::default(); EVENTS]),
        }
    }
}

impl Pending {
    /// Work has been put into a stream. Told after the call that did it: told before, a wait of another thread could count as covering work
    /// that was not there yet.
    pub(crate) fn launched(&self, stream: Stream) {
        let number = self.launches.fetch_add(1, Ordering::AcqRel) + 1;
        match self.slot(stream, true) {
            Some(slot) => slot.last.fetch_max(number, Ordering::AcqRel),
            None => self.elsewhere.fetch_max(number, Ordering::AcqRel),
        };
    }

    /// How much was launched so far.
    pub(crate) fn launches(&self) -> u64 {
        self.launches.load(Ordering::Acquire)
    }

    /// The number of the last work in a stream; of a stream that has no slot, that of all of those.
    pub(crate) fn last(&self, stream: Stream) -> u64 {
        let slot = self.slot(stream, false).map_or(&self.elsewhere, |slot| &slot.last);
        slot.load(Ordering::Acquire)
    }

    /// The stream's work up to a number is known to be done.
    pub(crate) fn is_done(&self, stream: Stream, number: u64) -> bool {
        let of_stream = self.slot(stream, false).map_or(0, |slot| slot.done.load(Ordering::Acquire));
        number <= of_stream.max(self.done.load(Ordering::Acquire))
    }

    /// A wait begins.
    pub(crate) fn waiting(&self) -> WaitToken {
        WaitToken(self.launches())
    }

    /// A wait has succeeded.
    pub(crate) fn waited(&self, token: WaitToken, on: WaitFor) {
        let (stream, launches) = match on {
            WaitFor::Device => {
                self.done.fetch_max(token.0, Ordering::AcqRel);
                return;
            }
            WaitFor::Stream(stream) => (stream, token.0),
            WaitFor::Event(event) => {
                let Some(events) = self.events() else { return };
                let recorded = events[index(event, EVENTS)];
                if event == 0 || recorded.event != event {
                    return;
                }
                // The event may have been recorded again since the wait began; what it covered then, the token bounds.
                (recorded.stream, recorded.launches.min(token.0))
            }
        };
        if let Some(slot) = self.slot(stream, false) {
            slot.done.fetch_max(launches, Ordering::AcqRel);
        }
    }

    /// A stream was created.
    pub(crate) fn created(&self, stream: Stream, non_blocking: bool) {
        if let Some(slot) = self.slot(stream, true) {
            slot.joins_legacy.store(!non_blocking, Ordering::Release);
            slot.apart.store(non_blocking, Ordering::Release);
        }
    }

    /// A stream was made to wait for an event.
    pub(crate) fn joined(&self, stream: Stream) {
        let launches = self.launches();
        match self.slot(stream, true) {
            Some(slot) => slot.joined.fetch_max(launches, Ordering::AcqRel),
            None => u64::from(self.joined_elsewhere.swap(true, Ordering::AcqRel)),
        };
    }

    /// A copy that the host waited for was made in a stream.
    pub(crate) fn copied(&self, token: WaitToken, stream: Stream) {
        self.waited(token, WaitFor::Stream(stream));
        if stream == Stream::LEGACY {
            // Work that is put into it waits for all that was in the other streams before.
            for slot in self.taken_slots().filter(|slot| slot.joins_legacy.load(Ordering::Acquire)) {
                slot.done.fetch_max(token.0, Ordering::AcqRel);
            }
        }
    }

    /// An event has recorded a stream. Told after the call.
    pub(crate) fn recorded(&self, event: u64, stream: Stream, before: WaitToken) {
        if let Some(mut events) = self.events() {
            events[index(event, EVENTS)] = Recorded { event, stream, launches: before.0 };
        }
    }

    /// All work is known to be done.
    pub(crate) fn idle(&self) -> bool {
        self.idle_where(|_| true)
    }

    /// All work outside of `stream` is known to be done.
    pub(crate) fn idle_but_for(&self, stream: Stream) -> bool {
        self.idle_where(|other| other != stream)
    }

    /// All work is known to be done that is in a stream for which `counts` holds; work in streams that are not told apart counts.
    pub(crate) fn idle_where(&self, counts: impl Fn(Stream) -> bool) -> bool {
        let done = self.done.load(Ordering::Acquire);
        if self.elsewhere.load(Ordering::Acquire) > done {
            return false;
        }
        self.taken_slots().all(|slot| {
            let stream = slot.stream.load(Ordering::Acquire);
            stream == 0 || !counts(Stream(stream - 1)) || !slot.is_pending(done)
        })
    }

    /// Work put into `stream` now would wait for pending work of another stream that nothing in `stream` waits for yet: without a word of the program,
    /// since the legacy default stream and the others wait for each other, or because the stream waits for an event, which holds for what is
    /// put into it from then on. What then comes in `stream`, or after a wait for it, is ordered behind that work by this alone.
    pub(crate) fn joins(&self, stream: Stream) -> bool {
        self.waits_for_event(stream) && !self.idle_but_for(stream) || self.joins_by_rule(stream)
    }

    /// The stream was made to wait for an event, and has had no work since.
    fn waits_for_event(&self, stream: Stream) -> bool {
        match self.slot(stream, false) {
            Some(slot) => {
                let joined = slot.joined.load(Ordering::Acquire);
                joined > 0 && slot.last.load(Ordering::Acquire) <= joined
            }
            None => self.joined_elsewhere.load(Ordering::Acquire),
        }
    }

    fn joins_by_rule(&self, stream: Stream) -> bool {
        if stream == Stream::LEGACY {
            let done = self.done.load(Ordering::Acquire);
            return self.elsewhere.load(Ordering::Acquire) > done
                || self.taken_slots().any(|slot| {
                    let other = slot.stream.load(Ordering::Acquire);
                    other != 0
                        && Stream(other - 1) != Stream::LEGACY
                        && !slot.apart.load(Ordering::Acquire)
                        && slot.is_pending(done)
                });
        }
        if self.slot(stream, false).is_some_and(|slot| slot.apart.load(Ordering::Acquire)) {
            return false;
        }
        let done = self.done.load(Ordering::Acquire);
        match self.slot(Stream::LEGACY, false) {
            Some(legacy) => legacy.is_pending(done),
            // Where all slots are taken, its work may be among what is not told apart.
            None => self.taken.load(Ordering::Acquire) == u64::MAX && self.elsewhere.load(Ordering::Acquire) > done,
        }
    }

    fn taken_slots(&self) -> impl Iterator<Item = &Slot> {
        let mut bits = self.taken.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            let next = bits.trailing_zeros() as usize;
            bits &= bits.wrapping_sub(1);
            self.slots.get(next)
        })
    }

    /// The events, unless another thread is at them: the event is then forgotten or the wait covers nothing, which is never wrong. (In the child
    /// of a fork that other thread may not exist.)
    fn events(&self) -> Option<MutexGuard<'_, [Recorded; EVENTS]>> {
        match self.events.try_lock() {
            Ok(events) => Some(events),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The stream's slot. The per-thread default stream has none: it is another stream in each thread.
    fn slot(&self, stream: Stream, make: bool) -> Option<&Slot> {
        let key = stream.0.checked_add(1)?;
        if stream == Stream::PER_THREAD {
            return None;
        }
        let start = index(stream.0, STREAMS);
        for step in 0..STREAMS {
            let slot = &self.slots[(start + step) % STREAMS];
            let found = slot.stream.load(Ordering::Acquire);
            if found == key {
                return Some(slot);
            }
            if found == 0 {
                if !make {
                    return None;
                }
                match slot.stream.compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        self.taken.fetch_or(1 << ((start + step) % STREAMS), Ordering::AcqRel);
                        return Some(slot);
                    }
                    Err(taken) if taken == key => return Some(slot),
                    Err(_) => {}
                }
            }
        }
        None
    }
}

/// A table's place for a handle.
fn index(handle: u64, places: usize) -> usize {
    // Handles are addresses, so their low bits say little. The cast keeps the high bits of the product.
    (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % places
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Stream = Stream(0x1000);
    const B: Stream = Stream(0x2000);

    fn wait(pending: &Pending, on: WaitFor) {
        let token = pending.waiting();
        pending.waited(token, on);
    }

    #[test]
    fn a_wait_covers_what_came_before_it_began() {
        let pending = Pending::default();
        assert!(pending.idle());
        pending.launched(A);
        assert!(!pending.idle() && pending.idle_but_for(A) && !pending.idle_but_for(B));
        let token = pending.waiting();
        pending.launched(A);
        pending.waited(token, WaitFor::Device);
        assert!(!pending.idle(), "the second launch came after the wait began");
        wait(&pending, WaitFor::Stream(B));
        assert!(!pending.idle(), "another stream");
        wait(&pending, WaitFor::Stream(A));
        assert!(pending.idle());
    }

    #[test]
    fn a_copy_in_the_legacy_stream_covers_the_streams_that_wait_for_it() {
        let pending = Pending::default();
        pending.created(A, false);
        pending.created(B, true);
        pending.launched(A);
        pending.copied(pending.waiting(), B);
        assert!(!pending.idle(), "a copy in another stream");
        pending.copied(pending.waiting(), Stream::LEGACY);
        assert!(pending.idle());
        pending.launched(B);
        pending.copied(pending.waiting(), Stream::LEGACY);
        assert!(!pending.idle(), "a non-blocking stream");
    }

    #[test]
    fn a_stream_that_waits_for_an_event_is_behind_it_from_its_next_work_on() {
        for (stream, other) in [(A, B), (Stream::PER_THREAD, B)] {
            let pending = Pending::default();
            pending.joined(stream);
            assert!(!pending.joins(stream), "nothing is pending");
            pending.launched(other);
            pending.joined(stream);
            assert!(pending.joins(stream) && !pending.joins(other));
            wait(&pending, WaitFor::Stream(stream));
            assert!(pending.joins(stream), "a wait for the stream waits for what it was given");
            wait(&pending, WaitFor::Stream(other));
            assert!(!pending.joins(stream));
        }
        let pending = Pending::default();
        pending.launched(B);
        pending.joined(A);
        pending.launched(A);
        assert!(!pending.joins(A), "its work waits, and what comes behind it");
    }

    #[test]
    fn the_legacy_stream_and_the_others_wait_for_each_other() {
        let pending = Pending::default();
        pending.created(B, true);
        assert!(!pending.joins(Stream::LEGACY) && !pending.joins(A));
        pending.launched(B);
        assert!(!pending.joins(Stream::LEGACY), "a stream that was made so that it does not");
        pending.launched(A);
        assert!(pending.joins(Stream::LEGACY) && !pending.joins(A) && !pending.joins(B));
        wait(&pending, WaitFor::Stream(A));
        assert!(!pending.joins(Stream::LEGACY));
        pending.launched(Stream::LEGACY);
        assert!(pending.joins(A) && pending.joins(Stream::PER_THREAD));
        assert!(!pending.joins(B) && !pending.joins(Stream::LEGACY));
        wait(&pending, WaitFor::Device);
        assert!(!pending.joins(A));
        pending.launched(Stream::PER_THREAD);
        assert!(pending.joins(Stream::LEGACY) && !pending.joins(A));
    }

    #[test]
    fn an_event_covers_what_its_stream_had() {
        let pending = Pending::default();
        pending.launched(A);
        pending.recorded(7, A, pending.waiting());
        wait(&pending, WaitFor::Event(7));
        assert!(pending.idle());
        pending.launched(A);
        wait(&pending, WaitFor::Event(7));
        assert!(!pending.idle(), "launched after the event was recorded");
        wait(&pending, WaitFor::Event(8));
        assert!(!pending.idle(), "an event that nobody has seen");
    }

    #[test]
    fn per_thread_streams_are_covered_by_the_device_alone() {
        let pending = Pending::default();
        pending.launched(Stream::PER_THREAD);
        wait(&pending, WaitFor::Stream(Stream::PER_THREAD));
        assert!(!pending.idle(), "it may have been another thread's");
        wait(&pending, WaitFor::Device);
        assert!(pending.idle());
    }

    #[test]
    fn more_streams_than_slots_are_covered_by_the_device_alone() {
        let pending = Pending::default();
        for stream in 0..200 {
            pending.launched(Stream(stream * 64 + 0x1000));
        }
        for stream in 0..200 {
            wait(&pending, WaitFor::Stream(Stream(stream * 64 + 0x1000)));
        }
        assert!(!pending.idle());
        wait(&pending, WaitFor::Device);
        assert!(pending.idle());
    }
}
