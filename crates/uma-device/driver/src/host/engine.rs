//! The one engine of a program: made by the first call that needs it, useless in a forked child.

use super::regions::Regions;
use super::state::State;
use crate::error::{CuError, Result};
use crate::layout::REGION_BYTES;
use crate::mapping;
use crate::settings::Settings;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What all threads of the program share.
pub struct Engine {
    /// The modes.
    pub settings: Settings,
    /// The regions.
    pub regions: Arc<Regions>,
    state: Mutex<State>,
}

static ENGINE: OnceLock<Option<Engine>> = OnceLock::new();

/// Set in a child that was forked after the engine was made: the device process belongs to the parent.
static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_fork() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Whether this process is a forked child that must not use the parent's device.
pub fn is_forked_child() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// The engine; the first call makes it. A failure is said once on stderr and is the answer to every call.
pub fn engine() -> Result<&'static Engine> {
    let made = ENGINE.get_or_init(|| Engine::create().map_err(|problem| eprintln!("uma-device: {problem}")).ok());
    made.as_ref().ok_or(CuError::NOT_INITIALIZED)
}

/// The engine if there is one.
pub fn engine_if_made() -> Option<&'static Engine> {
    ENGINE.get()?.as_ref()
}

/// Settings without an engine: for calls that only ask.
pub fn settings() -> Result<Settings> {
    if let Some(engine) = engine_if_made() {
        return Ok(engine.settings);
    }
    Settings::from_environment().map_err(|problem| {
        // A program asks for many attributes; one sentence is enough.
        static SAID: AtomicBool = AtomicBool::new(false);
        if !SAID.swap(true, Ordering::Relaxed) {
            eprintln!("uma-device: {problem}");
        }
        CuError::NOT_INITIALIZED
    })
}

impl Engine {
    fn create() -> std::result::Result<Engine, Box<dyn std::error::Error>> {
        let settings = Settings::from_environment()?;
        let memory = settings.total_memory();
        // Twice the memory, since free memory between allocations may be in pieces; all there is where nothing else was asked for.
        let room = settings.memory.map_or(REGION_BYTES, |memory| (2 * memory).next_multiple_of(mapping::page_size()));
        let regions = Arc::new(Regions::create(room)?);
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(note_fork)) };
        crate::statistics::start();
        let state = State::new(Arc::clone(&regions), settings, memory);
        Ok(Engine { settings, regions, state: Mutex::new(state) })
    }

    /// Locks what changes. A panic elsewhere left no half-done state that matters more than going on.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
