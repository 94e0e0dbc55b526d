//! What the library knows between calls, and how commands are queued.

use super::arena::{Allocation, Arena};
use super::events::Events;
use super::hostcalls::HostCalls;
use super::link::Link;
use super::regions::Regions;
use super::registered::Registered;
use super::streams::{LEGACY, StreamRef, Streams};
use crate::command::{Command, Packet};
use crate::coverage::{Clock, Coverage};
use crate::error::{CuError, Result};
use crate::ring;
use crate::settings::{Schedule, Settings};
use crate::streams::Point;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a command waits for besides the rules of streams.
#[derive(Clone, Debug)]
pub struct After {
    /// The command that it waits for.
    pub point: Point,
    /// What is done once that is done.
    pub clock: Clock,
}

/// Everything that changes; behind the engine's lock.
pub struct State {
    /// The modes.
    pub settings: Settings,
    /// Memory.
    pub arena: Arena,
    /// Registered host memory.
    pub registered: Registered,
    /// Streams.
    pub streams: Streams,
    /// Events.
    pub events: Events,
    /// What the program has waited for.
    pub coverage: Coverage,
    /// Host functions that wait for their stream.
    pub hostcalls: HostCalls,
    pub(super) regions: Arc<Regions>,
    pub(super) link: Option<Arc<Link>>,
    total: usize,
    sequence: u64,
    requests: u64,
    words: Vec<u64>,
    /// Memory that is free once a command is finished.
    deferred: Vec<(Point, Allocation)>,
    fault_told: bool,
}

/// Counts device resets: a thread's own default stream is gone after one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

impl State {
    /// Nothing allocated, no device process.
    pub fn new(regions: Arc<Regions>, settings: Settings, total: usize) -> State {
        State {
            settings,
            arena: Arena::new(Arc::clone(&regions), &settings, total),
            registered: Registered::default(),
            streams: Streams::new(),
            events: Events::default(),
            coverage: Coverage::default(),
            hostcalls: HostCalls::default(),
            regions,
            link: None,
            total,
            sequence: 0,
            requests: 0,
            words: Vec::new(),
            deferred: Vec::new(),
            fault_told: false,
        }
    }

    /// The device process, started if need be. An error when it has ended: only a reset helps.
    pub fn device(&mut self) -> Result<Arc<Link>> {
        if let Some(link) = &self.link {
            let link = Arc::clone(link);
            return match link.fault() {
                Some(_) => Err(self.tell_fault(&link)),
                None => Ok(link),
            };
        }
        let link = Link::start(&self.regions, &self.settings).map_err(|problem| {
            eprintln!("uma-device: {problem}");
            CuError::NOT_INITIALIZED
        })?;
        let link = Arc::new(link);
        self.link = Some(Arc::clone(&link));
        Ok(link)
    }

    /// The device process if it was started.
    pub fn device_if_started(&self) -> Option<Arc<Link>> {
        self.link.clone()
    }

    /// Says once on stderr what ended the device process.
    pub fn tell_fault(&mut self, link: &Link) -> CuError {
        let error = link.why_it_ended();
        if !std::mem::replace(&mut self.fault_told, true) {
            let address = link.control.fault_address.load(Ordering::Relaxed);
            let name = link.control.fault_kernel.iter().map(|byte| byte.load(Ordering::Relaxed));
            let name: Vec<u8> = name.take_while(|byte| *byte != 0).collect();
            let who =
                if name.is_empty() { "a copy".into() } else { format!("kernel {}", String::from_utf8_lossy(&name)) };
            if error == CuError::ILLEGAL_ADDRESS {
                eprintln!("uma-device: {who} touched {address:#x}, which is not memory of the device");
            }
        }
        error
    }

    /// Whether a command is finished.
    pub fn is_done(&self, (slot, sequence): Point) -> bool {
        sequence == 0 || self.link.as_ref().is_none_or(|link| link.control.is_complete(slot, sequence))
    }

    /// Whether every command is finished.
    pub fn is_all_done(&self) -> bool {
        self.streams.all_last().all(|point| self.is_done(point))
    }

    /// The stream that a handle names. `per_thread`: what the null handle is.
    pub fn stream(&mut self, handle: usize, per_thread: bool) -> Result<StreamRef> {
        match (handle, per_thread) {
            (0, false) | (1, _) => Ok(LEGACY),
            (0, true) | (2, _) => self.own_stream(),
            _ => self.streams.stream_ref(self.streams.slot(handle)?),
        }
    }

    /// The calling thread's default stream.
    fn own_stream(&mut self) -> Result<StreamRef> {
        let generation = GENERATION.load(Ordering::Relaxed);
        let known = OWN_STREAM.with(|own| own.0.get().filter(|own| own.0 == generation));
        let handle = match known {
            Some((_, handle)) => handle,
            None => {
                let handle = self.create_stream(0, 0)?;
                OWN_STREAM.with(|own| own.0.set(Some((generation, handle))));
                handle
            }
        };
        self.streams.stream_ref(self.streams.slot(handle)?)
    }

    /// Makes a stream; its handle.
    pub fn create_stream(&mut self, flags: u32, priority: i32) -> Result<usize> {
        let link = self.device()?;
        let is_done = |slot, sequence| sequence == 0 || link.control.is_complete(slot, sequence);
        Ok(self.streams.create(flags, priority, is_done)?.0)
    }

    /// Queues a command; its sequence number. `works`: the device touches memory for it, so managed memory is closed to the host.
    pub fn enqueue(&mut self, stream: StreamRef, command: Command, after: Option<&After>, works: bool) -> Result<u64> {
        let link = self.device()?;
        if works {
            self.arena.close(stream.slot)?;
        }
        let StreamRef { slot, nonblocking } = stream;
        let sequence = self.sequence + 1;
        self.push(&link, Packet { slot, nonblocking, sequence, command })?;
        self.sequence = sequence;
        self.streams.set_last(slot, sequence);
        self.coverage.enqueue(slot, nonblocking, sequence, after.map(|after| &after.clock), works);
        Ok(sequence)
    }

    /// Has something done at once.
    pub fn at_once(&mut self, link: &Link, command: Command) -> Result<()> {
        self.push(link, Packet::at_once(command))
    }

    fn push(&mut self, link: &Link, packet: Packet) -> Result<()> {
        packet.encode(&mut self.words);
        while !ring::push(&link.control, &self.words) {
            if link.fault().is_some() || !link.is_alive() {
                return Err(self.tell_fault(link));
            }
            // The device process is a whole ring behind; a little sleep costs it nothing.
            std::thread::sleep(Duration::from_micros(20));
        }
        Ok(())
    }

    /// Has something done at once and waits for the answer.
    pub fn request(&mut self, command: impl FnOnce(u64) -> Command) -> Result<()> {
        let link = self.device()?;
        self.requests += 1;
        let request = self.requests;
        self.at_once(&link, command(request))?;
        if link.wait_until(|| link.control.answered.load(Ordering::Acquire) >= request).is_err() {
            return Err(self.tell_fault(&link));
        }
        CuError::from_code(link.control.answer.load(Ordering::Relaxed) as i32).map_or(Ok(()), Err)
    }

    /// Whether waits must say what they need (the device process does not run work by itself).
    pub fn must_force(&self) -> bool {
        self.settings.schedule != Schedule::Eager
    }

    /// Frees an allocation once `point` is finished.
    pub fn release_after(&mut self, point: Point, allocation: Allocation) {
        self.deferred.push((point, allocation));
    }

    /// Frees what waited for commands that are finished now.
    pub fn reclaim(&mut self) {
        let Some(link) = &self.link else { return };
        let control = &link.control;
        let arena = &mut self.arena;
        self.deferred.retain(|((slot, sequence), allocation)| {
            let done = control.is_complete(*slot, *sequence);
            if done {
                arena.release(allocation);
            }
            !done
        });
    }

    /// Writes to stdout what kernels have printed, through the C library, so that it is in order with the program's own output.
    pub fn print_text(&mut self) {
        let Some(link) = &self.link else { return };
        let control = &link.control;
        let head = control.text_head.load(Ordering::Relaxed);
        let tail = control.text_tail.load(Ordering::Acquire);
        if head == tail {
            return;
        }
        let ring = &control.text;
        let text: Vec<u8> =
            (head..tail).map(|at| ring[(at % ring.len() as u64) as usize].load(Ordering::Relaxed)).collect();
        control.text_head.store(tail, Ordering::Release);
        // SAFETY: `text` is that many bytes; `stdout` is the C library's stream, which is never closed by us.
        unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout) };
    }

    /// Ends the device process and forgets everything that lived on it.
    pub fn reset(&mut self) -> Result<()> {
        self.print_text();
        self.registered.restore_all(&self.regions);
        if let Some(link) = self.link.take() {
            link.end();
        }
        GENERATION.fetch_add(1, Ordering::Relaxed);
        self.regions.clear().map_err(|_| CuError::OPERATING_SYSTEM)?;
        let (regions, settings, total) = (Arc::clone(&self.regions), self.settings, self.total);
        // Handles go on counting, so that one from before the reset never names something new.
        let streams = self.streams.emptied();
        let events = self.events.emptied();
        *self = State { streams, events, ..State::new(regions, settings, total) };
        Ok(())
    }
}

unsafe extern "C" {
    static stdout: *mut libc::FILE;
}

/// The calling thread's default stream: generation and handle.
struct OwnStream(Cell<Option<(u64, usize)>>);

impl Drop for OwnStream {
    /// The thread ends: its stream can be used again.
    fn drop(&mut self) {
        let Some((generation, handle)) = self.0.get() else { return };
        let Some(engine) = super::engine::engine_if_made() else { return };
        if super::engine::is_forked_child() || generation != GENERATION.load(Ordering::Relaxed) {
            return;
        }
        // It is gone already only if a reset came in between.
        let _ = engine.lock().streams.destroy(handle);
    }
}

thread_local! {
    static OWN_STREAM: OwnStream = const { OwnStream(Cell::new(None)) };
}
