//! Functions of the program that are called in stream order (`cudaLaunchHostFunc`, `cudaStreamAddCallback`).

use super::engine;
use super::link::Link;
use crate::command::Command;
use crate::control::futex_wait;
use crate::layout::STREAMS;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A function and what it is called with.
#[derive(Clone, Copy, Debug)]
pub enum HostFunction {
    /// `cudaLaunchHostFunc`
    Plain {
        /// The function.
        function: unsafe extern "C" fn(*mut c_void),
        /// Its argument.
        data: usize,
    },
    /// `cudaStreamAddCallback`
    Callback {
        /// The function: stream, status, argument.
        function: unsafe extern "C" fn(*mut c_void, i32, *mut c_void),
        /// The stream's handle.
        stream: usize,
        /// Its argument.
        data: usize,
    },
}

/// Functions that wait for their stream.
#[derive(Debug, Default)]
pub struct HostCalls {
    waiting: HashMap<u32, VecDeque<(u64, HostFunction)>>,
    thread_runs: bool,
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is inside a host function, which may call no API function.
pub fn is_inside() -> bool {
    INSIDE.with(Cell::get)
}

impl HostCalls {
    /// Notes the function of a queued [`Command::HostCall`].
    pub fn add(&mut self, slot: u32, sequence: u64, function: HostFunction) {
        self.waiting.entry(slot).or_default().push_back((sequence, function));
    }

    /// Starts the thread that calls them, if it does not run yet.
    pub fn start_thread(&mut self, link: &Arc<Link>) -> std::io::Result<()> {
        if !self.thread_runs {
            let link = Arc::clone(link);
            std::thread::Builder::new().name("uma-hostcalls".to_owned()).spawn(move || serve(&link))?;
            self.thread_runs = true;
        }
        Ok(())
    }

    fn take(&mut self, slot: u32) -> Option<(u64, HostFunction)> {
        self.waiting.get_mut(&slot)?.pop_front()
    }
}

/// Calls functions as their streams reach them, until the device process ends.
fn serve(link: &Link) {
    INSIDE.with(|inside| inside.set(true));
    let control = &link.control;
    loop {
        let head = control.hostcall_head.load(Ordering::Relaxed);
        let tail = control.hostcall_tail.load(Ordering::Acquire);
        if head == tail {
            if link.fault().is_some() || !link.is_alive() {
                return;
            }
            futex_wait(&control.hostcall_tail, tail, Duration::from_millis(200));
            continue;
        }
        let slot = control.hostcalls[head as usize % STREAMS].load(Ordering::Relaxed);
        control.hostcall_head.store(head.wrapping_add(1), Ordering::Relaxed);
        let Some(engine) = engine::engine_if_made() else { return };
        let call = engine.lock().hostcalls.take(slot);
        let Some((sequence, function)) = call else { continue };
        // SAFETY: the program passed the function with its argument for this call.
        unsafe {
            match function {
                HostFunction::Plain { function, data } => function(data as *mut c_void),
                HostFunction::Callback { function, stream, data } => {
                    function(stream as *mut c_void, 0, data as *mut c_void);
                }
            }
        }
        // A device that ended meanwhile is noticed by whoever waits for it.
        let _ = engine.lock().at_once(link, Command::HostDone { slot, sequence });
    }
}
