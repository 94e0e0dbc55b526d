//! Stream handles of the program.

use crate::error::{CuError, Result};
use crate::layout::{LEGACY_STREAM, STREAMS};
use std::collections::HashMap;

/// `cudaStreamNonBlocking`
pub const NONBLOCKING: u32 = 1;

/// A stream as commands name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRef {
    /// Its slot.
    pub slot: u32,
    /// Whether it ignores the legacy default stream.
    pub nonblocking: bool,
}

/// The legacy default stream.
pub const LEGACY: StreamRef = StreamRef { slot: LEGACY_STREAM, nonblocking: false };

/// What a stream was created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// `cudaStreamCreateWithFlags`
    pub flags: u32,
    /// `cudaStreamCreateWithPriority`
    pub priority: i32,
    /// `cudaStreamGetId`: never used twice.
    pub id: u64,
}

/// All streams. A slot is used again after its stream is gone, a handle never.
#[derive(Debug)]
pub struct Streams {
    slots: Vec<Option<StreamInfo>>,
    /// Last command of each slot, of streams that are gone too.
    last: Vec<u64>,
    handles: HashMap<usize, u32>,
    next_id: u64,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams::new()
    }
}

impl Streams {
    /// The legacy default stream alone.
    pub fn new() -> Streams {
        let legacy = StreamInfo { flags: 0, priority: 0, id: 1 };
        Streams { slots: vec![Some(legacy)], last: vec![0], handles: HashMap::new(), next_id: 2 }
    }

    /// No streams but the legacy one; handles go on counting.
    pub fn emptied(&self) -> Streams {
        Streams { next_id: self.next_id, ..Streams::new() }
    }

    /// Makes a stream and its handle. `is_done(slot, sequence)`: whether a command is finished.
    pub fn create(&mut self, flags: u32, priority: i32, is_done: impl Fn(u32, u64) -> bool) -> Result<(usize, u32)> {
        let slot = self.free_slot(is_done)?;
        let id = self.next_id;
        self.next_id += 1;
        self.slots[slot as usize] = Some(StreamInfo { flags, priority, id });
        // Above the handles with a meaning of their own (0, 1, 2), and no address that a program could mistake for memory.
        let handle = 0x1000 + id as usize * 0x10;
        self.handles.insert(handle, slot);
        Ok((handle, slot))
    }

    /// A slot without a stream, at best one whose old work is finished: the new stream would wait for it.
    fn free_slot(&mut self, is_done: impl Fn(u32, u64) -> bool) -> Result<u32> {
        let free: Vec<u32> = (0..self.slots.len() as u32).filter(|slot| self.slots[*slot as usize].is_none()).collect();
        if let Some(slot) = free.iter().find(|slot| is_done(**slot, self.last[**slot as usize])) {
            return Ok(*slot);
        }
        if self.slots.len() < STREAMS {
            self.slots.push(None);
            self.last.push(0);
            return Ok(self.slots.len() as u32 - 1);
        }
        free.first().copied().ok_or(CuError::OUT_OF_MEMORY)
    }

    /// Removes a stream; its queued commands still run.
    pub fn destroy(&mut self, handle: usize) -> Result<u32> {
        let slot = self.handles.remove(&handle).ok_or(CuError::INVALID_HANDLE)?;
        self.slots[slot as usize] = None;
        Ok(slot)
    }

    /// The slot of a handle that [`create`](Streams::create) gave.
    pub fn slot(&self, handle: usize) -> Result<u32> {
        self.handles.get(&handle).copied().ok_or(CuError::INVALID_HANDLE)
    }

    /// The stream in a slot.
    pub fn info(&self, slot: u32) -> Result<StreamInfo> {
        self.slots.get(slot as usize).copied().flatten().ok_or(CuError::INVALID_HANDLE)
    }

    /// The stream in a slot, as commands name it.
    pub fn stream_ref(&self, slot: u32) -> Result<StreamRef> {
        Ok(StreamRef { slot, nonblocking: self.info(slot)?.flags & NONBLOCKING != 0 })
    }

    /// Notes the last command of a slot.
    pub fn set_last(&mut self, slot: u32, sequence: u64) {
        self.last[slot as usize] = sequence;
    }

    /// The last command of a slot; 0: none.
    pub fn last(&self, slot: u32) -> u64 {
        self.last.get(slot as usize).copied().unwrap_or(0)
    }

    /// Slot and last command of every slot that ever had one.
    pub fn all_last(&self) -> impl Iterator<Item = (u32, u64)> {
        self.last.iter().enumerate().map(|(slot, last)| (slot as u32, *last)).filter(|(_, last)| *last > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_never_used_twice_and_idle_slots_are_used_again() {
        let mut streams = Streams::new();
        let (first, slot) = streams.create(NONBLOCKING, -1, |_, _| true).unwrap();
        assert_eq!(streams.stream_ref(slot).unwrap(), StreamRef { slot, nonblocking: true });
        streams.set_last(slot, 7);
        streams.destroy(first).unwrap();
        assert_eq!(streams.slot(first), Err(CuError::INVALID_HANDLE));
        assert_eq!(streams.destroy(first), Err(CuError::INVALID_HANDLE));
        let (busy, other) = streams.create(0, 0, |_, last| last != 7).unwrap();
        assert_ne!(other, slot);
        assert_ne!(busy, first);
        let (_, again) = streams.create(0, 0, |_, _| true).unwrap();
        assert_eq!(again, slot);
    }

    #[test]
    fn there_is_an_end_to_streams() {
        let mut streams = Streams::new();
        for _ in 1..STREAMS {
            streams.create(0, 0, |_, _| true).unwrap();
        }
        assert_eq!(streams.create(0, 0, |_, _| true).unwrap_err(), CuError::OUT_OF_MEMORY);
    }
}
