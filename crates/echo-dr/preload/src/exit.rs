//! The end of a process: the trace is finished and the counters are written, however the program ends itself.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use echo_dr_format::SCHEMA;
use echo_dr_format::counters::Counters;
use echo_dr_format::reason::{Reason as _, Refusal};

use crate::jump::jump_after;
use crate::lookup::Slot;
use crate::phase::Phase;
use crate::session::{self, Session};
use crate::table::HOOKS;
use crate::thread::Token;
use crate::trace::TraceFile;
use crate::{first, imports, recorder, sys, validate};

/// What is written at the end, and what is known of it at the start.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// The mode's name.
    pub(crate) mode: &'static str,
    /// Where the counters go.
    pub(crate) counters: Option<PathBuf>,
    /// Where the loop's times go.
    pub(crate) times: Option<PathBuf>,
    /// Why the plan is not used.
    pub(crate) refused: Option<Refusal>,
    /// What else is wrong.
    pub(crate) trouble: Option<String>,
}

static ENDING: OnceLock<Ending> = OnceLock::new();
/// The process that the library started in: a child made by vfork, which shares its memory, must not end it.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Says what to write. The constructor does, once.
pub(crate) fn prepare(ending: Ending) {
    let _ = ENDING.set(ending);
    this_process();
    watch_quick_exit();
}

/// The process is another one now.
pub(crate) fn this_process() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

fn is_this_process() -> bool {
    PROCESS.load(Ordering::Relaxed) == std::process::id()
}

/// The process ends by itself.
pub(crate) fn finish() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let Some(ending) = ENDING.get() else { return };
    if !is_this_process() || DONE.swap(true, Ordering::AcqRel) {
        return;
    }
    if Phase::now() == Phase::Ready {
        Phase::Leaving.enter();
    }
    validate::finish();
    if let (Some(Session::Record(record)), Some(token)) = (session::get(), Token::regardless_of_phase())
        && recorder::has_events()
    {
        imports::tell(&token, record);
    }
    recorder::finish();
    if let Some(path) = ending.counters.as_ref().filter(|_| first::is_first()) {
        let mut text = Vec::new();
        if counters(ending).write(&mut text).is_ok() {
            write(path, &text);
        }
    }
    if let (Some(path), Some(Session::Merge(merge))) = (&ending.times, session::get())
        && first::is_first()
    {
        let times = merge.times().unwrap_or_default();
        let text: String = times.iter().map(|time| format!("{time}\n")).collect();
        write(path, text.as_bytes());
    }
}

fn counters(ending: &Ending) -> Counters {
    let mut counters = Counters {
        schema: SCHEMA,
        mode: ending.mode.into(),
        refused: ending.refused.clone(),
        trouble: ending.trouble.clone(),
        ..Counters::default()
    };
    let called = HOOKS.iter().filter(|hook| hook.calls() > 0);
    counters.calls = called.map(|hook| (hook.name.to_owned(), hook.calls())).collect();
    (counters.events, counters.events_lost) = recorder::totals();
    if let Some(Session::Merge(merge)) = session::get() {
        counters.pairs = merge.unifier().counters();
        let deviations = merge.unifier().deviations().into_iter();
        counters.deviations =
            deviations.map(|(deviation, count)| (deviation.number().into(), count)).collect::<BTreeMap<_, _>>();
        counters.refused = counters.refused.or_else(|| merge.refusal());
    }
    counters
}

fn write(path: &std::path::Path, text: &[u8]) {
    // A failure has nobody to be told: the program is ending, and its standard error may be gone.
    let name = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    if let Ok(file) = TraceFile::create(name) {
        file.write(text);
        file.close();
    }
}

/// The loader calls it when the program has returned from main or called exit, after its exit handlers.
unsafe extern "C" fn at_unload() {
    finish();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_UNLOAD: unsafe extern "C" fn() = at_unload;

macro_rules! ends {
    ($($name:ident)*) => {$(
        /// Ends the process at once, after the trace is finished.
        ///
        /// # Safety
        /// As for the function of this name in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, reason = "as the function is")]
        pub(crate) unsafe extern "C" fn $name(code: c_int) -> ! {
            finish();
            // SAFETY: ends the process; nothing runs after it.
            unsafe { sys::system_call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]) };
            loop {
                std::hint::spin_loop();
            }
        }
    )*};
}

ends!(_exit _Exit);

/// The program has called exit, and CUDA's own exit handlers come next.
static IS_LEAVING: AtomicBool = AtomicBool::new(false);

/// Whether CUDA is being taken down because the program ends, not because it asks for that.
pub(crate) fn is_leaving() -> bool {
    IS_LEAVING.load(Ordering::Relaxed)
}

/// Asks to be told of the end before CUDA's own exit handlers run: called once CUDA is in use, so after they were registered.
pub(crate) fn watch_the_end() {
    extern "C" fn at_exit() {
        IS_LEAVING.store(true, Ordering::Relaxed);
        validate::leaving();
    }
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.swap(true, Ordering::Relaxed) {
        // SAFETY: the handler lives as long as the library, which is never unloaded.
        unsafe { libc::atexit(at_exit) };
    }
}

unsafe extern "C" {
    fn at_quick_exit(handler: extern "C" fn()) -> c_int;
}

/// Asks for the end of the trace where the program ends by `quick_exit`, which runs neither destructors nor `_exit` as programs call it.
fn watch_quick_exit() {
    extern "C" fn at_quick() {
        finish();
    }
    // SAFETY: the handler lives as long as the library, which is never unloaded.
    unsafe { at_quick_exit(at_quick) };
}

/// Ends the process by SIGABRT. Where the program has a handler for it that returns, the C library restores the default action unseen.
///
/// # Safety
/// As for the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn abort() -> ! {
    static REAL: Slot = Slot::new(c"abort", &[]);
    leave_for_another_program();
    if let Some(address) = REAL.address() {
        // SAFETY: the address is that of the C library's abort.
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn() -> !>(address)() };
    }
    // SAFETY: ends the process by an instruction that there is for it.
    unsafe { sys::system_call(libc::SYS_exit_group, [libc::SIGABRT as usize + 128, 0, 0, 0, 0, 0]) };
    loop {
        std::hint::spin_loop();
    }
}

type Strings = *const *const c_char;

/// The program's memory is about to be another program's: what is recorded is written first. A failed exec goes on recording.
pub(crate) fn leave_for_another_program() {
    if is_this_process() {
        recorder::flush();
    }
}

macro_rules! execs {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {$(
        /// Becomes another program, after what is recorded is written.
        ///
        /// # Safety
        /// As for the function of this name in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            static REAL: Slot = Slot::new(NAME, &[]);
            let Some(address) = REAL.address() else { return -1 };
            leave_for_another_program();
            // SAFETY: the address is that of the C library's function of this name, whose type this is; the arguments are the program's.
            unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> c_int>(address)($($arg),*) }
        }
    )*};
}

/// For functions whose number of arguments the caller chooses: what is recorded is written, and the real function is gone on to by a jump.
macro_rules! execs_with_a_list {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As for the function of this name in the C library.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() -> c_int {
            unsafe extern "C" fn prepared(_: usize) -> usize {
                const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                };
                static REAL: Slot = Slot::new(NAME, &[]);
                leave_for_another_program();
                REAL.address().unwrap_or(0)
            }
            jump_after!(prepared, -1);
        }
    )*};
}

execs_with_a_list!(execl execle execlp);

execs! {
    execve(path: *const c_char, arguments: Strings, environment: Strings);
    execv(path: *const c_char, arguments: Strings);
    execvp(file: *const c_char, arguments: Strings);
    execvpe(file: *const c_char, arguments: Strings, environment: Strings);
    fexecve(file: c_int, arguments: Strings, environment: Strings);
    execveat(folder: c_int, path: *const c_char, arguments: Strings, environment: Strings, flags: c_int);
}
