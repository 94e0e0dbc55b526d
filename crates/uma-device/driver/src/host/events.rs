//! Event handles of the program.

use crate::coverage::Clock;
use crate::error::{CuError, Result};
use crate::layout::EVENTS;
use crate::streams::Point;
use std::collections::HashMap;

/// `cudaEventDisableTiming`
pub const DISABLE_TIMING: u32 = 2;

/// What an event stands for since it was last recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The command that records it.
    pub point: Point,
    /// What is done once that is done.
    pub clock: Clock,
}

/// One event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its slot in the shared block.
    pub slot: u32,
    /// `cudaEventCreateWithFlags`
    pub flags: u32,
    /// Its last record, if any.
    pub recorded: Option<Recorded>,
}

/// All events. Handles are never used twice.
#[derive(Debug, Default)]
pub struct Events {
    handles: HashMap<usize, Event>,
    /// Slots of events that are gone, with the last command that writes to them.
    free: Vec<(u32, Option<Point>)>,
    used_slots: u32,
    made: usize,
}

impl Events {
    /// No events; handles go on counting.
    pub fn emptied(&self) -> Events {
        Events { made: self.made, ..Events::default() }
    }

    /// Makes an event. `is_done`: whether a command is finished.
    pub fn create(&mut self, flags: u32, is_done: impl Fn(Point) -> bool) -> Result<usize> {
        // A slot that a queued record still writes to would show that record's time.
        let idle = self.free.iter().position(|(_, last)| last.is_none_or(&is_done));
        let slot = match idle {
            Some(position) => self.free.swap_remove(position).0,
            None if (self.used_slots as usize) < EVENTS => {
                self.used_slots += 1;
                self.used_slots - 1
            }
            None => return Err(CuError::OUT_OF_MEMORY),
        };
        self.made += 1;
        // Apart from the stream handles, so that one is never taken for the other.
        let handle = 0x2_0000_0000 + self.made * 0x10;
        self.handles.insert(handle, Event { slot, flags, recorded: None });
        Ok(handle)
    }

    /// The event of a handle.
    pub fn get(&self, handle: usize) -> Result<&Event> {
        self.handles.get(&handle).ok_or(CuError::INVALID_HANDLE)
    }

    /// Notes a record.
    pub fn record(&mut self, handle: usize, recorded: Recorded) {
        if let Some(event) = self.handles.get_mut(&handle) {
            event.recorded = Some(recorded);
        }
    }

    /// Removes an event.
    pub fn destroy(&mut self, handle: usize) -> Result<()> {
        let event = self.handles.remove(&handle).ok_or(CuError::INVALID_HANDLE)?;
        self.free.push((event.slot, event.recorded.map(|recorded| recorded.point)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_with_a_queued_record_is_not_used_again() {
        let mut events = Events::default();
        let first = events.create(0, |_| false).unwrap();
        let slot = events.get(first).unwrap().slot;
        events.record(first, Recorded { point: (1, 9), clock: Clock::new() });
        events.destroy(first).unwrap();
        assert_eq!(events.destroy(first), Err(CuError::INVALID_HANDLE));
        let second = events.create(0, |_| false).unwrap();
        assert_ne!(events.get(second).unwrap().slot, slot);
        let third = events.create(0, |_| true).unwrap();
        assert_eq!(events.get(third).unwrap().slot, slot);
    }
}
