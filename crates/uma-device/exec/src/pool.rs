//! The threads that run launches.
//!
//! A launch starts on the calling thread alone. When it has run for [`ALONE`] and blocks remain, the workers are asked to help. So a small
//! launch costs no hand-over at all, and a large one loses a few microseconds.

use crate::fault::KernelFault;
use crate::launch::{Launch, Running, Scratch};
use crate::services::ServiceTable;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a launch runs before it asks for help: about what waking a sleeping worker costs.
const ALONE: Duration = Duration::from_micros(5);
/// How long a worker looks for the next launch before it sleeps.
const SPIN: Duration = Duration::from_micros(50);

/// The threads that run launches; one launch at a time.
pub struct Pool {
    shared: Arc<Shared>,
    services: Box<ServiceTable>,
    workers: Vec<JoinHandle<()>>,
    /// Of the calling thread; also what makes launches wait for each other.
    caller: Mutex<Scratch>,
}

struct Shared {
    /// Counts the launches that asked for help.
    asked: AtomicU64,
    /// The launch that wants help.
    job: Mutex<Option<Job>>,
    /// Workers that are inside the current job.
    inside: AtomicUsize,
    ending: AtomicBool,
}

/// A pointer to a [`Running`] that outlives its time in [`Shared::job`] and all workers inside it.
#[derive(Clone, Copy)]
struct Job(*const Running<'static>);

// SAFETY: a `Running` is Sync; `Pool::launch` keeps it alive until no worker can reach it.
unsafe impl Send for Job {}

impl Pool {
    /// Starts `threads - 1` workers (the calling thread of a launch is the last). `sink` gets what kernels print, in pieces of one
    /// `printf` each; it may be called by several threads at once.
    pub fn new(threads: usize, sink: impl Fn(&[u8]) + Send + Sync + 'static) -> std::io::Result<Pool> {
        let shared = Arc::new(Shared {
            asked: AtomicU64::new(0),
            job: Mutex::new(None),
            inside: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
        });
        let mut pool = Pool {
            shared,
            services: ServiceTable::new(Arc::new(sink)),
            workers: Vec::new(),
            caller: Mutex::new(Scratch::default()),
        };
        for number in 1..threads {
            let shared = pool.shared.clone();
            let worker = std::thread::Builder::new().name(format!("uma-{number}")).spawn(move || shared.work())?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// A pool with a thread for each core that this process may use.
    pub fn with_all_cores(sink: impl Fn(&[u8]) + Send + Sync + 'static) -> std::io::Result<Pool> {
        Pool::new(std::thread::available_parallelism().map_or(1, |n| n.get()), sink)
    }

    /// Lets the workers see a launch.
    fn ask(&self, job: Job) {
        *lock(&self.shared.job) = Some(job);
        self.shared.asked.fetch_add(1, Release);
        for worker in &self.workers {
            worker.thread().unpark();
        }
    }

    /// Runs a launch to its end.
    ///
    /// # Safety
    /// `params` hold values of the types that the kernel takes, and what the kernel does with them is allowed in this process. All
    /// globals of its module have been placed.
    pub unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), KernelFault> {
        let mut scratch = lock(&self.caller);
        let running = Running::new(launch, self.services.as_services(), self.workers.len() + 1)?;
        let started = Instant::now();
        // Without workers there is nobody to ask.
        let (size, has_help) = if self.workers.is_empty() { (running.chunk, false) } else { (1, true) };
        // SAFETY: the caller vouches for the kernel.
        unsafe { running.work(&mut scratch, size, || !has_help || started.elapsed() < ALONE) };
        if running.work_left() {
            self.ask(Job((&raw const running).cast()));
            // SAFETY: as above.
            unsafe { running.work(&mut scratch, running.chunk, || true) };
            self.shared.finish();
        }
        running.result()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.ending.store(true, Release);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A worker has no way to panic that would not have ended the process.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut scratch = Scratch::default();
        let mut seen = 0;
        loop {
            seen = match self.next(seen) {
                Some(asked) => asked,
                None => return,
            };
            let job = {
                let job = lock(&self.job);
                if job.is_some() {
                    // Under the lock, so that `finish` either sees this worker inside or this worker sees no job.
                    self.inside.fetch_add(1, AcqRel);
                }
                *job
            };
            if let Some(Job(running)) = job {
                // SAFETY: the launch waits until no worker is inside before it ends.
                unsafe { (*running).work(&mut scratch, (*running).chunk, || true) };
                self.inside.fetch_sub(1, AcqRel);
            }
        }
    }

    /// Waits for a launch after `seen`; `None` when the pool ends.
    fn next(&self, seen: u64) -> Option<u64> {
        let start = Instant::now();
        loop {
            if self.ending.load(Acquire) {
                return None;
            }
            let asked = self.asked.load(Acquire);
            if asked != seen {
                return Some(asked);
            }
            if start.elapsed() < SPIN {
                std::hint::spin_loop();
            } else {
                std::thread::park();
            }
        }
    }

    fn finish(&self) {
        *lock(&self.job) = None;
        let mut rounds = 0u32;
        while self.inside.load(Acquire) != 0 {
            rounds += 1;
            if rounds < 10_000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

/// What the locks protect holds no half-done state, so a panic elsewhere does not matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
