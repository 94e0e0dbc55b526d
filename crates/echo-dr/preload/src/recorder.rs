//! Recording: threads push events into buffers of their own, and a background thread writes them.
//!
//! The trace is complete however the program ends, short of SIGKILL: at exit, at `_exit` and in a fatal signal the buffers are written
//! by the thread that ends it; a full buffer is written by the thread that filled it. After SIGKILL what was written stands, whole lines all but
//! the last. Whoever writes holds the writer's lock with all signals blocked, so a signal handler never waits for the thread it interrupted.

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use echo_dr_format::event::{Call, Event};
use echo_dr_format::site::Site;
use echo_dr_format::trace::{End, Frame, Frames, Header, Module, Record};

use crate::contain::contain;
use crate::modules::Modules;
use crate::phase::Phase;
use crate::thread::{self, Token};
use crate::trace::{TraceFile, name_for};
use crate::{local, say, sys};

/// Events that a thread can have waiting: 100 KB a thread, and the writer comes 50 times a second.
const RING: usize = 1024;
/// How long the writer sleeps while there are events.
const PERIOD: Duration = Duration::from_millis(20);
/// How long it sleeps when there were none.
const IDLE_PERIOD: Duration = Duration::from_millis(100);
/// Lines are written in pieces of about this size.
const PIECE: usize = 1 << 16;
/// The longest line that the library makes, with room to spare: 16 frames.
const LINE: usize = 1 << 13;
/// Bytes of the writer's stack.
const STACK: usize = 256 * 1024;
/// How long a dying thread waits for a writer that is at work, in milliseconds.
const PATIENCE: u32 = 2000;

/// An event as it waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Nanoseconds since the trace began.
    pub(crate) time: u64,
    /// Nanoseconds that the real call took.
    pub(crate) took: u64,
    /// Call site.
    pub(crate) site: Site,
    /// The function's name.
    pub(crate) api: &'static str,
    /// What it means.
    pub(crate) call: Call,
}

/// The process's recorder.
struct Recorder {
    path: PathBuf,
    start: u64,
    writer: Mutex<Writer>,
    /// Records that aren't events, on their way.
    others: Mutex<Vec<Record>>,
    announced: Mutex<Announced>,
}

struct Writer {
    header: Header,
    /// The header's line, made in advance: a signal handler may have to begin the file.
    first_line: Vec<u8>,
    file: Option<TraceFile>,
    /// The file's name where the run's file is another process's; made in advance too.
    other_name: Option<CString>,
    buffer: Vec<u8>,
    /// Something failed; nothing more is tried.
    failed: bool,
}

/// What the trace has been told.
#[derive(Default)]
struct Announced {
    sites: HashSet<u64>,
    modules: HashMap<u64, u32>,
}

static RECORDER: OnceLock<Recorder> = OnceLock::new();
static HAS_THREAD: AtomicBool = AtomicBool::new(false);
static WRITTEN: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many events a thread can have waiting in this process.
pub(crate) fn ring_capacity() -> usize {
    if RECORDER.get().is_some() { RING } else { 1 }
}

/// Begins a trace. The file is opened now, so that a program that cannot write it is told before it runs for long.
pub(crate) fn start(path: PathBuf, header: Header) -> std::io::Result<()> {
    let file = TraceFile::claim(&path)?;
    let mut writer = Writer {
        header,
        first_line: Vec::new(),
        file: None,
        other_name: None,
        buffer: Vec::with_capacity(PIECE + LINE),
        failed: false,
    };
    writer.prepare(&path);
    if let Some(file) = file {
        writer.begin(file);
    }
    let recorder = Recorder {
        path,
        start: sys::now(),
        writer: Mutex::new(writer),
        others: Mutex::new(Vec::new()),
        announced: Mutex::new(Announced::default()),
    };
    let _ = RECORDER.set(recorder);
    Ok(())
}

/// Nanoseconds since the trace began.
pub(crate) fn time() -> u64 {
    RECORDER.get().map_or(0, |recorder| sys::now().saturating_sub(recorder.start))
}

/// Records an event.
pub(crate) fn push(token: &Token, mut entry: Entry) {
    let Some(recorder) = RECORDER.get() else { return };
    let local = local::mine(token);
    // SAFETY: the part is this thread's, and the token says that it isn't inside another push.
    while let Err(back) = unsafe { local.ring.push(entry) } {
        entry = back;
        recorder.drain();
    }
    if Phase::now() == Phase::Leaving {
        recorder.drain();
    } else if !HAS_THREAD.swap(true, Ordering::Relaxed) {
        start_thread();
    }
}

/// Calls were not recorded, and the trace says so.
pub(crate) fn lose() {
    LOST.fetch_add(1, Ordering::Relaxed);
}

/// Something was recorded.
pub(crate) fn has_events() -> bool {
    HAS_THREAD.load(Ordering::Relaxed)
}

/// Records something that isn't a call.
pub(crate) fn push_other(record: Record) {
    let Some(recorder) = RECORDER.get() else { return };
    sys::with_signals_blocked(|| locked(&recorder.others).push(record));
}

/// Puts the frames of a site into the trace, the first time.
pub(crate) fn announce(site: Site, addresses: &[usize], modules: &Modules) {
    let Some(recorder) = RECORDER.get() else { return };
    sys::with_signals_blocked(|| {
        let mut announced = locked(&recorder.announced);
        if !announced.sites.insert(site.0) {
            return;
        }
        let mut others = locked(&recorder.others);
        let mut frame = |&address: &usize| {
            let Some(module) = modules.find(address) else {
                return Frame { module: None, offset: address as u64 };
            };
            let next = u32::try_from(announced.modules.len()).unwrap_or(u32::MAX);
            let id = *announced.modules.entry(module.key).or_insert(next);
            if id == next {
                let build_id = module.build_id.as_deref().unwrap_or_default();
                let build_id = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
                others.push(Record::Module(Module { id, path: module.path.to_string_lossy().into_owned(), build_id }));
            }
            Frame { module: Some(id), offset: address.wrapping_sub(module.base) as u64 }
        };
        let frames = addresses.iter().map(&mut frame).collect();
        others.push(Record::Frames(Frames { site, frames }));
    });
}

fn start_thread() {
    extern "C" fn run(_: *mut c_void) -> *mut c_void {
        thread::never_observe_this_thread();
        let mut written = 0;
        loop {
            let Some(recorder) = RECORDER.get() else { return std::ptr::null_mut() };
            recorder.drain();
            let now = WRITTEN.load(Ordering::Relaxed);
            std::thread::sleep(if now == written { IDLE_PERIOD } else { PERIOD });
            written = now;
        }
    }
    // The thread inherits the mask: no signal of the program is ever handled on it.
    if !sys::with_signals_blocked(|| sys::start_thread(c"echo-dr", STACK, run)) {
        static SAY: say::Once = say::Once::new();
        SAY.say("the trace's writer could not be started; events are written when a buffer is full and at the end");
    }
}

/// Writes everything, and the end of the trace; what is recorded from now on is written at once.
pub(crate) fn finish() {
    let Some(recorder) = RECORDER.get() else { return };
    recorder.drain();
    sys::with_signals_blocked(|| {
        let mut writer = locked(&recorder.writer);
        if writer.file.is_some() {
            let end = End { time: time(), lost: LOST.load(Ordering::Relaxed) };
            writer.line(&Record::End(end));
            writer.send();
        }
    });
}

/// Writes what is waiting.
pub(crate) fn flush() {
    if let Some(recorder) = RECORDER.get() {
        recorder.drain();
    }
}

/// Writes what is waiting, in a signal handler: allocates nothing and gives up where a lock stays taken.
pub(crate) fn flush_in_signal() {
    let Some(recorder) = RECORDER.get() else { return };
    for _ in 0..PATIENCE {
        if let Ok(mut writer) = recorder.writer.try_lock() {
            if let Ok(mut others) = recorder.others.try_lock() {
                others.iter().for_each(|record| writer.line(record));
                // They aren't dropped: that would free memory, and the interrupted thread may hold the heap's lock.
                // SAFETY: shortens the list to nothing, which is always valid.
                unsafe { others.set_len(0) };
            }
            writer.take_events();
            writer.send();
            return;
        }
        // SAFETY: a valid time; nanosleep may be called in a handler.
        unsafe { libc::nanosleep(&libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 }, std::ptr::null_mut()) };
    }
}

/// Events written and lost, for the counters.
pub(crate) fn totals() -> (u64, u64) {
    (WRITTEN.load(Ordering::Relaxed), LOST.load(Ordering::Relaxed))
}

/// The locks of the recorder, for the time of a fork: no other thread is in the middle of something that the child would inherit.
pub(crate) struct Held {
    _writer: MutexGuard<'static, Writer>,
    _others: MutexGuard<'static, Vec<Record>>,
    _announced: MutexGuard<'static, Announced>,
}

/// Takes all locks, in the order of their use.
pub(crate) fn hold() -> Option<Held> {
    let recorder = RECORDER.get()?;
    Some(Held {
        _writer: locked(&recorder.writer),
        _announced: locked(&recorder.announced),
        _others: locked(&recorder.others),
    })
}

/// In the child of a fork, after the locks are free again: its trace is a file of its own, opened with its first event.
pub(crate) fn forked(parent: u32) {
    let Some(recorder) = RECORDER.get() else { return };
    local::forget_other_threads();
    HAS_THREAD.store(false, Ordering::Relaxed);
    WRITTEN.store(0, Ordering::Relaxed);
    locked(&recorder.others).clear();
    *locked(&recorder.announced) = Announced::default();
    let mut writer = locked(&recorder.writer);
    writer.buffer.clear();
    writer.header.forked_from = Some(parent);
    writer.header.pid = std::process::id();
    writer.prepare(&recorder.path);
    // The child's copy of the descriptor would keep the file locked after the parent's end.
    if let Some(file) = writer.file.take() {
        file.close();
    }
}

impl Recorder {
    /// Writes what is waiting.
    fn drain(&self) {
        sys::with_signals_blocked(|| {
            contain((), || {
                let mut writer = locked(&self.writer);
                let others = std::mem::take(&mut *locked(&self.others));
                let findings = crate::validate::findings(time());
                if !others.is_empty() {
                    writer.open();
                }
                others.iter().for_each(|record| writer.line(record));
                writer.take_events();
                findings.into_iter().for_each(|finding| writer.line(&Record::Finding(finding)));
                writer.send();
            })
        });
    }
}

impl Writer {
    fn prepare(&mut self, path: &Path) {
        self.first_line.clear();
        if serde_json::to_writer(&mut self.first_line, &Record::Header(self.header.clone())).is_ok() {
            self.first_line.push(b'\n');
        }
        self.other_name = Some(name_for(path, std::process::id()));
    }

    /// Opens a file of this process's own, if it has none.
    fn open(&mut self) {
        if self.file.is_some() || self.failed {
            return;
        }
        let Some(name) = self.other_name.take() else { return };
        match TraceFile::create(name) {
            Ok(file) => self.begin(file),
            Err(error) => self.fail(&error),
        }
    }

    fn begin(&mut self, file: TraceFile) {
        if file.write(&self.first_line) {
            self.file = Some(file);
        } else {
            self.fail(&std::io::Error::last_os_error());
        }
    }

    fn fail(&mut self, error: &std::io::Error) {
        static SAY: say::Once = say::Once::new();
        self.failed = true;
        SAY.say(&format!("the trace can't be written, the program goes on without: {error}"));
    }

    fn event(&mut self, event: Event) {
        if !event.write_line(&mut self.buffer) {
            self.line(&Record::Event(event));
        } else if self.buffer.len() > PIECE {
            self.send();
        }
    }

    fn line(&mut self, record: &Record) {
        let before = self.buffer.len();
        match serde_json::to_writer(&mut self.buffer, record) {
            Ok(()) => self.buffer.push(b'\n'),
            Err(_) => self.buffer.truncate(before),
        }
        if self.buffer.len() > PIECE {
            self.send();
        }
    }

    fn take_events(&mut self) {
        for local in local::all() {
            let thread = local.number.load(Ordering::Relaxed);
            // SAFETY: the writer's lock is held, so this is the only consumer.
            while let Some(Entry { time, took, site, api, call }) = unsafe { local.ring.pop() } {
                self.open();
                self.event(Event { time, took, thread, site, api: api.into(), call });
                let counter = if self.file.is_some() { &WRITTEN } else { &LOST };
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn send(&mut self) {
        if let Some(file) = &self.file
            && !self.buffer.is_empty()
            && !file.write(&self.buffer)
        {
            let error = std::io::Error::last_os_error();
            self.file = None;
            self.fail(&error);
        }
        self.buffer.clear();
    }
}
