//! What the program did, counted. With `UMA_DEVICE_STATS=FILE` the counts are written there when the program exits, as one JSON object:
//! `{"copies":2,"copied_bytes":4096}`. Copies are those between host and device memory, the ones that Echo removes.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

static COPIES: AtomicU64 = AtomicU64::new(0);
static COPIED_BYTES: AtomicU64 = AtomicU64::new(0);
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Arranges for the counts to be written, if the environment asks for them.
pub fn start() {
    let Some(file) = std::env::var_os("UMA_DEVICE_STATS").filter(|file| !file.is_empty()) else { return };
    if FILE.set(file.into()).is_ok() {
        // SAFETY: the function is of the type that atexit wants, does not unwind, and stays loaded as long as the process lives.
        unsafe { libc::atexit(write) };
    }
}

/// One copy between host and device memory.
pub fn count_copy(bytes: usize) {
    COPIES.fetch_add(1, Ordering::Relaxed);
    COPIED_BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

extern "C" fn write() {
    // A forked child has the parent's counts, and the file is the parent's.
    if crate::host::engine::is_forked_child() {
        return;
    }
    let Some(file) = FILE.get() else { return };
    let (copies, bytes) = (COPIES.load(Ordering::Relaxed), COPIED_BYTES.load(Ordering::Relaxed));
    // `eprintln!` would panic on a closed stderr, and nothing may unwind here; who asked for the file sees that it is missing.
    let _ = std::fs::write(file, format!("{{\"copies\":{copies},\"copied_bytes\":{bytes}}}\n"));
}
