//! A run of the oracle over several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::count::Counts;
use crate::enumerate::{self, Unit};
use crate::examine::Unsound;
use crate::families::families;
use crate::minimise::minimise;
use crate::random;
use crate::report::Report;

/// What the random programs are called in the tables.
const RANDOM: &str = "random programs";
/// Every so many batches of random programs one is of those with many interleavings.
const WIDE_EVERY: u64 = 2;
const WIDE: &str = "random programs with much work in flight";
/// At most this many counterexamples are made small and shown: each takes a while, and the first says most.
const SHOWN: usize = 5;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Bounds of the families.
    pub effort: u8,
    /// Random programs.
    pub random: u64,
    /// Their seed.
    pub seed: u64,
    /// Only the i-th of n slices, from 1.
    pub part: (usize, usize),
    /// Threads.
    pub threads: usize,
}

/// How far a job is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Pieces of work.
    pub pieces: usize,
    /// Pieces done.
    pub done: usize,
    /// Cases (program, interleaving) so far.
    pub cases: u128,
    /// Programs that the prover got wrong so far.
    pub unsound: usize,
}

enum Piece {
    Unit(Unit),
    Batch(u64),
}

#[derive(Default)]
struct Results {
    counts: BTreeMap<String, Counts>,
    found: Vec<Unsound>,
    done: usize,
}

impl Job {
    /// Runs it; `watch` hears of every piece that is done.
    pub fn run(&self, watch: impl Fn(Progress) + Sync) -> Report {
        let start = Instant::now();
        let families = families(self.effort);
        let mut pieces: Vec<Piece> = enumerate::units(&families).into_iter().map(Piece::Unit).collect();
        pieces.extend((0..self.random.div_ceil(random::BATCH)).map(Piece::Batch));
        let (one, of) = self.part;
        let mine: Vec<&Piece> = pieces.iter().skip(one - 1).step_by(of).collect();
        let (next, results) = (AtomicUsize::new(0), Mutex::new(Results::default()));
        let work = || {
            while let Some(piece) = mine.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (name, (counts, found)) = match piece {
                    Piece::Unit(unit) => (families[unit.family].name, enumerate::run(&families, *unit)),
                    Piece::Batch(batch) => {
                        let wide = batch % WIDE_EVERY == WIDE_EVERY - 1;
                        (if wide { WIDE } else { RANDOM }, random::run(self.seed, *batch, wide))
                    }
                };
                // A thread that panics ends the whole job when the scope ends.
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.counts.entry(name.to_owned()).or_default().add(&counts);
                results.found.extend(found);
                results.done += 1;
                watch(Progress {
                    pieces: mine.len(),
                    done: results.done,
                    cases: results.counts.values().map(Counts::cases).sum(),
                    unsound: results.found.len(),
                });
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(work);
            }
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let shown = results.found.into_iter().take(SHOWN).map(|found| minimise(found).to_string());
        Report { families: results.counts, counterexamples: shown.collect(), seconds: start.elapsed().as_secs_f64() }
    }
}
