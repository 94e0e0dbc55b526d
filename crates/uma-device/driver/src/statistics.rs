//! What the program did, counted. With `UMA_DEVICE_STATS=FILE` the counts are written there when the program exits, as one JSON object:
//! `{"copies":2,"copied_bytes":4096,"launches":[812000,834000]}`. Copies are those between host and device memory, the ones that Echo
//! removes. Launches are the times at which the program asked for kernels, in nanoseconds since the device was started: the rounds of a loop,
//! measured alike in every variant of a program.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Launches that are noted; a longer run is measured by its first ones.
const LAUNCHES: usize = 1 << 20;

static COPIES: AtomicU64 = AtomicU64::new(0);
static COPIED_BYTES: AtomicU64 = AtomicU64::new(0);
static ASKED: OnceLock<Asked> = OnceLock::new();

/// What was asked for by the environment.
struct Asked {
    file: PathBuf,
    start: Instant,
    launches: Mutex<Vec<u64>>,
}

/// Arranges for the counts to be written, if the environment asks for them.
pub fn start() {
    let Some(file) = std::env::var_os("UMA_DEVICE_STATS").filter(|file| !file.is_empty()) else { return };
    let asked = Asked { file: file.into(), start: Instant::now(), launches: Mutex::new(Vec::with_capacity(LAUNCHES)) };
    if ASKED.set(asked).is_ok() {
        // SAFETY: the function is of the type that atexit wants, does not unwind, and stays loaded as long as the process lives.
        unsafe { libc::atexit(write) };
    }
}

/// One copy between host and device memory.
pub fn count_copy(bytes: usize) {
    COPIES.fetch_add(1, Ordering::Relaxed);
    COPIED_BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// The program asks for a kernel.
pub fn note_launch() {
    if let Some(asked) = ASKED.get() {
        let mut launches = asked.launches.lock().unwrap_or_else(PoisonError::into_inner);
        if launches.len() < LAUNCHES {
            launches.push(u64::try_from(asked.start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
    }
}

extern "C" fn write() {
    // A forked child has the parent's counts, and the file is the parent's.
    if crate::host::engine::is_forked_child() {
        return;
    }
    let Some(asked) = ASKED.get() else { return };
    let (copies, bytes) = (COPIES.load(Ordering::Relaxed), COPIED_BYTES.load(Ordering::Relaxed));
    // `Debug` of a list of numbers is JSON.
    let launches = asked.launches.lock().unwrap_or_else(PoisonError::into_inner);
    let text = format!("{{\"copies\":{copies},\"copied_bytes\":{bytes},\"launches\":{launches:?}}}\n");
    // `eprintln!` would panic on a closed stderr, and nothing may unwind here; who asked for the file sees that it is missing.
    let _ = std::fs::write(&asked.file, text);
}
