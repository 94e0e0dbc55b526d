//! Calls that wait: for a stream, an event, everything, or for the host's own turn in a stream.

use super::engine::Engine;
use super::link::Link;
use super::state::State;
use super::streams::StreamRef;
use crate::command::Command;
use crate::coverage::Clock;
use crate::error::{CuError, Result};
use crate::settings::Schedule;
use crate::streams::Point;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Copies up to this size are made under the engine's lock when nothing is queued: the hand-over would cost more than the copy.
const SHORT_TURN: usize = 64 << 10;

/// A wait that is prepared under the lock and made without it.
#[must_use = "a wait that is not finished waits for nothing"]
pub struct Wait {
    link: Option<Arc<Link>>,
    points: Vec<Point>,
    clock: Clock,
}

impl Wait {
    /// For all that is queued in a stream.
    pub fn for_stream(state: &mut State, slot: u32) -> Result<Wait> {
        let clock = state.coverage.snapshot(slot);
        Wait::for_point(state, (slot, state.streams.last(slot)), clock)
    }

    /// For one command, which stands for all of `clock`.
    pub fn for_point(state: &mut State, point: Point, clock: Clock) -> Result<Wait> {
        let link = state.device_if_started();
        if let Some(link) = &link
            && state.must_force()
            && !state.is_done(point)
        {
            state.at_once(link, Command::Force { slot: point.0, sequence: point.1 })?;
        }
        Ok(Wait { link, points: vec![point], clock })
    }

    /// For all that is queued.
    pub fn for_all(state: &mut State) -> Result<Wait> {
        let link = state.device_if_started();
        if let Some(link) = &link
            && state.must_force()
            && !state.is_all_done()
        {
            state.at_once(link, Command::ForceAll)?;
        }
        Ok(Wait { link, points: state.streams.all_last().collect(), clock: state.coverage.snapshot_all() })
    }

    /// Makes the wait. Afterwards the host may touch what the wait covers.
    pub fn finish(self, engine: &Engine) -> Result<()> {
        let Some(link) = self.link else { return Ok(()) };
        let waited = self.points.iter().filter(|point| point.1 > 0).try_for_each(|point| link.wait(point.0, point.1));
        let mut state = engine.lock();
        state.print_text();
        // Work may be done and the device process dead all the same: a later kernel has ended it.
        if waited.is_err() || link.fault().is_some() {
            return Err(state.tell_fault(&link));
        }
        state.settle(&self.clock)
    }
}

impl State {
    /// The program has waited for all of `clock`.
    pub fn settle(&mut self, clock: &Clock) -> Result<()> {
        self.reclaim();
        self.coverage.waited(clock);
        self.arena.open(&self.coverage)
    }
}

/// Does `work` (which moves `bytes`) on the host when the stream has reached this point, and returns when it is done. Later commands of the
/// stream wait for it.
pub fn host_turn(engine: &Engine, stream: StreamRef, bytes: usize, work: impl FnOnce()) -> Result<()> {
    let mut state = engine.lock();
    let link = state.device()?;
    // In the random schedule what is done now depends on timing, and the schedule must not.
    if bytes <= SHORT_TURN && !matches!(engine.settings.schedule, Schedule::Random(_)) && state.is_all_done() {
        work();
        state.print_text();
        // What the copy would have waited for had it been queued, so that no timing decides what the host may touch now.
        let clock = state.coverage.before(stream.slot, stream.nonblocking);
        return state.settle(&clock);
    }
    let sequence = state.enqueue(stream, Command::HostTurn, None, false)?;
    let slot = stream.slot;
    if state.must_force() {
        state.at_once(&link, Command::Force { slot, sequence })?;
    }
    let clock = state.coverage.snapshot(slot);
    drop(state);
    let reached = link.wait_until(|| link.control.granted[slot as usize].load(Ordering::Acquire) >= sequence);
    if reached.is_ok() {
        work();
    }
    let mut state = engine.lock();
    state.print_text();
    if reached.is_err() || link.fault().is_some() {
        return Err(state.tell_fault(&link));
    }
    // Seen as finished at once, not when the device process gets to it: a query right after the copy must say so.
    link.control.completed[slot as usize].fetch_max(sequence, Ordering::AcqRel);
    state.at_once(&link, Command::HostDone { slot, sequence })?;
    state.settle(&clock)
}

/// Whether a command is finished, for the calls that ask without waiting: [`CuError::NOT_READY`] when not.
pub fn query(engine: &Engine, point: Point, clock: &Clock) -> Result<()> {
    let mut state = engine.lock();
    let Some(link) = state.device_if_started() else { return Ok(()) };
    if link.fault().is_some() {
        return Err(state.tell_fault(&link));
    }
    if state.must_force() {
        // The answer must depend on the calls alone: first all that was called for so far is taken in.
        state.request(|request| Command::Ping { request })?;
    }
    if state.is_done(point) {
        state.print_text();
        return state.settle(clock);
    }
    if state.must_force() {
        // A program that asks until the answer is yes must not ask for ever.
        state.at_once(&link, Command::Force { slot: point.0, sequence: point.1 })?;
    }
    Err(CuError::NOT_READY)
}
