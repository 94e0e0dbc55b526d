//! One-way queue of commands in shared memory: one writer (the program, which holds a lock), one reader (the device process).
//!
//! A record is a length word and that many words. It never wraps: a length of all ones says that the rest of the ring is unused.

use crate::control::{Control, RING_WORDS, futex_wake, this_core};
use std::sync::atomic::{Ordering, fence};

/// Length word that sends the reader to the start of the ring.
const SKIP: u64 = u64::MAX;

/// Words that the largest record may have: a quarter of the ring, so that it always fits beside a skip.
pub const MAX_RECORD: usize = RING_WORDS / 4;

/// Puts a record into the ring and wakes the reader; `false` when there is no room now.
///
/// # Panics
/// When `words` is longer than [`MAX_RECORD`] (the caller checks sizes that come from outside).
pub fn push(control: &Control, words: &[u64]) -> bool {
    assert!(words.len() < MAX_RECORD, "a command of {} words does not fit the ring", words.len());
    let head = control.ring_head.load(Ordering::Acquire);
    let mut tail = control.ring_tail.load(Ordering::Relaxed);
    let start = position(tail);
    let needed = words.len() + 1;
    let skipped = if start + needed > RING_WORDS { RING_WORDS - start } else { 0 };
    if (tail - head) as usize + skipped + needed > RING_WORDS {
        return false;
    }
    if skipped > 0 {
        control.ring[start].store(SKIP, Ordering::Relaxed);
        tail += skipped as u64;
    }
    let start = position(tail);
    control.ring[start].store(words.len() as u64, Ordering::Relaxed);
    for (slot, word) in control.ring[start + 1..].iter().zip(words) {
        slot.store(*word, Ordering::Relaxed);
    }
    control.host_core.store(this_core(), Ordering::Relaxed);
    control.ring_tail.store(tail + needed as u64, Ordering::Release);
    // The reader says that it sleeps, then looks at the tail once more; we move the tail, then look whether it sleeps.
    fence(Ordering::SeqCst);
    if control.device_sleeps.load(Ordering::SeqCst) == 1 && control.device_sleeps.swap(0, Ordering::SeqCst) == 1 {
        futex_wake(&control.device_sleeps, 1);
    }
    true
}

/// Whether a record waits.
pub fn has_record(control: &Control) -> bool {
    control.ring_tail.load(Ordering::Acquire) != control.ring_head.load(Ordering::Relaxed)
}

/// Takes the next record into `words`; `false` when there is none.
pub fn pop(control: &Control, words: &mut Vec<u64>) -> bool {
    words.clear();
    let tail = control.ring_tail.load(Ordering::Acquire);
    let mut head = control.ring_head.load(Ordering::Relaxed);
    if head == tail {
        return false;
    }
    let mut start = position(head);
    let mut length = control.ring[start].load(Ordering::Relaxed);
    if length == SKIP {
        head += (RING_WORDS - start) as u64;
        start = 0;
        length = control.ring[0].load(Ordering::Relaxed);
    }
    let record = control.ring[start + 1..].iter().take(length as usize);
    words.extend(record.map(|slot| slot.load(Ordering::Relaxed)));
    control.ring_head.store(head + length + 1, Ordering::Release);
    true
}

fn position(count: u64) -> usize {
    (count % RING_WORDS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::SharedControl;

    /// Records of many lengths, with a reader in another thread, over several turns of the ring.
    #[test]
    fn records_arrive_whole_and_in_order() {
        let (_file, control) = SharedControl::create().unwrap();
        let length = |i: u64| ((i * 7919) % 700) as usize;
        let count = 3000u64;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..count {
                    let words: Vec<u64> = (0..length(i) as u64).map(|k| i * 1000 + k).collect();
                    while !push(&control, &words) {
                        std::thread::yield_now();
                    }
                }
            });
            let mut words = Vec::new();
            for i in 0..count {
                while !pop(&control, &mut words) {
                    std::thread::yield_now();
                }
                assert_eq!(words.len(), length(i));
                assert!(words.iter().enumerate().all(|(k, word)| *word == i * 1000 + k as u64));
            }
            assert!(!has_record(&control));
        });
    }

    #[test]
    fn a_full_ring_takes_nothing() {
        let (_file, control) = SharedControl::create().unwrap();
        let words = vec![1; MAX_RECORD - 1];
        let mut pushed = 0;
        while push(&control, &words) {
            pushed += 1;
        }
        assert_eq!(pushed, 4);
        assert!(pop(&control, &mut Vec::new()));
        assert!(push(&control, &words));
    }
}
