//! A thread's buffer of events: one producer, the thread; one consumer, whoever writes the trace.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A queue of fixed size.
pub(crate) struct Ring<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// How many were ever pushed; only the producer changes it.
    pushed: AtomicUsize,
    /// How many were ever popped; only the consumer changes it.
    popped: AtomicUsize,
}

// SAFETY: a slot is written by the producer only while it is free and read by the consumer only while it is full; `pushed` and `popped` hand
// it over.
unsafe impl<T: Copy + Send> Sync for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Room for `capacity` entries.
    pub(crate) fn new(capacity: usize) -> Self {
        let slots = (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
        Self { slots, pushed: AtomicUsize::new(0), popped: AtomicUsize::new(0) }
    }

    /// Adds an entry; gives it back where there is no room.
    ///
    /// # Safety
    /// One thread at a time pushes.
    pub(crate) unsafe fn push(&self, entry: T) -> Result<(), T> {
        let pushed = self.pushed.load(Ordering::Relaxed);
        if pushed.wrapping_sub(self.popped.load(Ordering::Acquire)) == self.slots.len() {
            return Err(entry);
        }
        // SAFETY: the slot is free, so the consumer doesn't look at it, and this is the only producer.
        unsafe { (*self.slots[pushed % self.slots.len()].get()).write(entry) };
        self.pushed.store(pushed.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Takes the oldest entry.
    ///
    /// # Safety
    /// One thread at a time pops.
    pub(crate) unsafe fn pop(&self) -> Option<T> {
        let popped = self.popped.load(Ordering::Relaxed);
        if popped == self.pushed.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the slot is full, so the producer doesn't touch it, and this is the only consumer.
        let entry = unsafe { (*self.slots[popped % self.slots.len()].get()).assume_init_read() };
        self.popped.store(popped.wrapping_add(1), Ordering::Release);
        Some(entry)
    }

    /// Nothing is waiting.
    pub(crate) fn is_empty(&self) -> bool {
        self.popped.load(Ordering::Relaxed) == self.pushed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_once_and_in_order_across_threads() {
        const COUNT: u64 = 100_000;
        let ring = Ring::new(64);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for mut entry in 0..COUNT {
                    // SAFETY: only this thread pushes.
                    while let Err(back) = unsafe { ring.push(entry) } {
                        entry = back;
                        std::thread::yield_now();
                    }
                }
            });
            for expected in 0..COUNT {
                let entry = loop {
                    // SAFETY: only this thread pops.
                    match unsafe { ring.pop() } {
                        Some(entry) => break entry,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(entry, expected);
            }
        });
    }

    #[test]
    fn a_full_ring_refuses_and_loses_nothing() {
        let ring = Ring::new(4);
        // SAFETY: this thread is the only one.
        unsafe {
            (0..4).for_each(|entry| assert_eq!(ring.push(entry), Ok(())));
            assert_eq!(ring.push(4), Err(4));
            assert_eq!(ring.pop(), Some(0));
            assert_eq!(ring.push(4), Ok(()));
            assert_eq!([(); 5].map(|()| ring.pop()), [Some(1), Some(2), Some(3), Some(4), None]);
        }
    }
}
