//! The program's view of its signal handlers, where Echo has handlers of its own.
//!
//! Echo takes a signal only while its action is the default one, and the program goes on seeing "default". Two kinds:
//! - *Fatal* signals, so that the trace is complete when one ends the program. As soon as the program installs its own action, that action
//!   replaces Echo's in the kernel; when it goes back to the default, Echo's comes back.
//! - *SIGSEGV while buffers are protected* (validation). Echo's handler stays in the kernel and passes on what isn't its business; the
//!   program's flags and mask are the kernel's, so its handler runs on the stack and under the mask it asked for.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use crate::lookup::Slot;
use crate::{fault, recorder, sys};

/// Signals whose default action ends the program, but for SIGKILL, which nothing survives.
const FATAL: [c_int; 22] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGUSR1,
    libc::SIGSEGV,
    libc::SIGUSR2,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGVTALRM,
    libc::SIGSYS,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
];

type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;

static SIGACTION: Slot = Slot::new(c"sigaction", &[]);

/// Bit n: signal n is default to the program and Echo's in the kernel.
static TAKEN: AtomicU64 = AtomicU64::new(0);
/// Fatal signals with the default action are Echo's.
static TAKES_FATAL: AtomicBool = AtomicBool::new(false);
/// Echo keeps SIGSEGV whatever the program installs.
static KEEPS_SIGSEGV: AtomicBool = AtomicBool::new(false);
/// The kernel's signal numbers end below this.
const SIGNALS: usize = 65;
/// The program's actions where the kernel has one of Echo's in their place; null is the default. Each is leaked when replaced, since a
/// handler that runs on another thread may be reading it; programs replace them a few times.
static OF_PROGRAM: [AtomicPtr<libc::sigaction>; SIGNALS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS];

fn real(signal: c_int, new: Option<&libc::sigaction>, old: Option<&mut libc::sigaction>) -> c_int {
    let Some(address) = SIGACTION.address() else { return -1 };
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    let old = old.map_or(std::ptr::null_mut(), std::ptr::from_mut);
    // SAFETY: the address is that of the C library's sigaction, whose type this is; the pointers are null or valid at every caller here.
    unsafe { std::mem::transmute::<usize, Sigaction>(address)(signal, new, old) }
}

fn default_action() -> libc::sigaction {
    // SAFETY: all zero is SIG_DFL without flags and with an empty mask.
    unsafe { std::mem::zeroed() }
}

type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

fn our_action(handler: Handler) -> libc::sigaction {
    let mut action = default_action();
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    action
}

fn die_action() -> libc::sigaction {
    let mut action = our_action(on_fatal);
    // SAFETY: the set is this action's own.
    unsafe { libc::sigfillset(&raw mut action.sa_mask) };
    action
}

fn bit(signal: c_int) -> u64 {
    u32::try_from(signal).ok().and_then(|signal| 1_u64.checked_shl(signal)).unwrap_or(0)
}

/// Takes the fatal signals that have the default action now, and those that get it later.
pub(crate) fn take_fatal() {
    TAKES_FATAL.store(true, Ordering::Release);
    for signal in FATAL {
        let mut now = default_action();
        if real(signal, None, Some(&mut now)) == 0 && now.sa_sigaction == libc::SIG_DFL {
            TAKEN.fetch_or(bit(signal), Ordering::AcqRel);
            real(signal, Some(&die_action()), None);
        }
    }
}

/// Takes SIGSEGV for good, whatever its action is.
pub(crate) fn keep_sigsegv() {
    let mut now = default_action();
    let taken = TAKEN.fetch_and(!bit(libc::SIGSEGV), Ordering::AcqRel) & bit(libc::SIGSEGV) != 0;
    if real(libc::SIGSEGV, Some(&our_action(on_sigsegv)), Some(&mut now)) == 0 {
        let program = if taken || now.sa_sigaction == libc::SIG_DFL { None } else { Some(now) };
        set_of_program(libc::SIGSEGV, program);
        KEEPS_SIGSEGV.store(true, Ordering::Release);
    }
}

fn set_of_program(signal: c_int, action: Option<libc::sigaction>) {
    let Some(place) = usize::try_from(signal).ok().and_then(|signal| OF_PROGRAM.get(signal)) else { return };
    let action = action.map_or(std::ptr::null_mut(), |action| Box::into_raw(Box::new(action)));
    place.store(action, Ordering::Release);
}

fn of_program(signal: c_int) -> libc::sigaction {
    let place = usize::try_from(signal).ok().and_then(|signal| OF_PROGRAM.get(signal));
    let action = place.map_or(std::ptr::null_mut(), |place| place.load(Ordering::Acquire));
    // SAFETY: a pointer other than null is a leaked box.
    if action.is_null() { default_action() } else { unsafe { *action } }
}

/// Writes out what is recorded and lets the signal do what it would have done.
unsafe extern "C" fn on_fatal(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    recorder::flush_in_signal();
    // SAFETY: the kernel passes a valid siginfo.
    let code = unsafe { (*info).si_code };
    die(signal, code);
}

/// After this returns, the handler's return ends the process by `signal`.
fn die(signal: c_int, code: c_int) {
    TAKEN.fetch_and(!bit(signal), Ordering::AcqRel);
    real(signal, Some(&default_action()), None);
    // A fault comes again by itself when the instruction is run again, with its true address in the core file.
    let comes_again = code > 0 && matches!(signal, libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL);
    if !comes_again {
        // SAFETY: sends a signal to this thread; it is blocked until the handler returns.
        unsafe {
            sys::system_call(
                libc::SYS_tgkill,
                [libc::getpid() as usize, libc::gettid() as usize, signal as usize, 0, 0, 0],
            )
        };
    }
}

unsafe extern "C" fn on_sigsegv(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo and context of this very fault.
    if unsafe { fault::claims(&*info, context) } {
        return;
    }
    let program = of_program(signal);
    // SAFETY: as above.
    let code = unsafe { (*info).si_code };
    match program.sa_sigaction {
        libc::SIG_DFL => {
            recorder::flush_in_signal();
            die(signal, code);
        }
        // The kernel never ignores a fault, only a signal that was sent.
        libc::SIG_IGN if code > 0 => die(signal, code),
        libc::SIG_IGN => {}
        _ => {
            if program.sa_flags & libc::SA_RESETHAND != 0 {
                OF_PROGRAM[libc::SIGSEGV as usize].store(std::ptr::null_mut(), Ordering::Release);
            }
            // SAFETY: as above.
            unsafe { handle(&program, signal, info, context) };
        }
    }
}

/// A handler of the program that is for one time: afterwards the action is the default one, which is Echo's.
unsafe extern "C" fn on_one_time(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let program = of_program(signal);
    TAKEN.fetch_or(bit(signal), Ordering::AcqRel);
    real(signal, Some(&die_action()), None);
    // SAFETY: the kernel passes what the program's handler is to get.
    unsafe { handle(&program, signal, info, context) };
}

/// Calls the program's handler.
///
/// # Safety
/// `program` has a handler, and the rest is what the kernel passed.
unsafe fn handle(program: &libc::sigaction, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if program.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the program registered a handler of this type.
        unsafe { std::mem::transmute::<usize, Handler>(program.sa_sigaction)(signal, info, context) }
    } else {
        type Short = unsafe extern "C" fn(c_int);
        // SAFETY: the program registered a handler of this type.
        unsafe { std::mem::transmute::<usize, Short>(program.sa_sigaction)(signal) }
    }
}

/// While buffers are protected no handler may block SIGSEGV: one that touches a protected buffer would end the program.
fn without_sigsegv(mut action: libc::sigaction) -> libc::sigaction {
    if KEEPS_SIGSEGV.load(Ordering::Acquire) {
        // SAFETY: the set is this copy's own.
        unsafe { libc::sigdelset(&raw mut action.sa_mask, libc::SIGSEGV) };
    }
    action
}

/// The kernel's action for a program's action that Echo's `handler` stands for: the program's flags and mask, so that its handler runs on the
/// stack and under the mask it asked for.
fn around(program: &libc::sigaction, handler: Handler) -> libc::sigaction {
    let mut action = our_action(handler);
    if has_handler(program) {
        action.sa_flags = (program.sa_flags | libc::SA_SIGINFO) & !libc::SA_RESETHAND;
        action.sa_mask = program.sa_mask;
    }
    without_sigsegv(action)
}

fn has_handler(action: &libc::sigaction) -> bool {
    !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
}

fn change(signal: c_int, new: Option<&libc::sigaction>, old: Option<&mut libc::sigaction>) -> c_int {
    let keeps = signal == libc::SIGSEGV && KEEPS_SIGSEGV.load(Ordering::Acquire);
    let takes = !keeps && TAKES_FATAL.load(Ordering::Acquire) && FATAL.contains(&signal);
    let is_one_time =
        |action: &libc::sigaction| takes && has_handler(action) && action.sa_flags & libc::SA_RESETHAND != 0;
    let wanted = new.map(|action| match action.sa_sigaction {
        _ if keeps => around(action, on_sigsegv),
        libc::SIG_DFL if takes => die_action(),
        _ if is_one_time(action) => around(action, on_one_time),
        _ => without_sigsegv(*action),
    });
    let taken = TAKEN.load(Ordering::Acquire) & bit(signal) != 0;
    let program_had = of_program(signal);
    if let Some(action) = new.filter(|action| keeps || is_one_time(action)) {
        // Before the kernel's: the handler may run at once.
        set_of_program(signal, (action.sa_sigaction != libc::SIG_DFL).then_some(*action));
    }
    let mut before = default_action();
    let result = real(signal, wanted.as_ref(), Some(&mut before));
    if result != 0 {
        return result;
    }
    match new {
        Some(action) if action.sa_sigaction == libc::SIG_DFL && takes => TAKEN.fetch_or(bit(signal), Ordering::AcqRel),
        Some(_) => TAKEN.fetch_and(!bit(signal), Ordering::AcqRel),
        None => 0,
    };
    if let Some(old) = old {
        let is_stood_for = before.sa_sigaction == on_one_time as *const () as usize;
        *old = match () {
            () if keeps || is_stood_for => program_had,
            () if taken => default_action(),
            () => before,
        };
    }
    0
}

/// # Safety
/// As for `sigaction`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: each pointer is null or the program's valid structure, which it doesn't share meanwhile.
    unsafe { change(signal, new.as_ref(), old.as_mut()) }
}

fn by_handler(signal: c_int, handler: libc::sighandler_t, flags: c_int) -> libc::sighandler_t {
    let mut action = default_action();
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    let mut old = default_action();
    match change(signal, Some(&action), Some(&mut old)) {
        0 => old.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

/// # Safety
/// As for `signal`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
    by_handler(signal, handler, libc::SA_RESTART)
}

/// `signal` of programs built for strict ISO C or X/Open.
///
/// # Safety
/// As for `sysv_signal`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn __sysv_signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
    by_handler(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER)
}

type Mask = unsafe extern "C" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;

/// A change of the signal mask that leaves SIGSEGV unblocked while buffers are protected.
///
/// # Safety
/// As for `sigprocmask`; `slot` is that of a function of its type.
unsafe fn mask(slot: &Slot, how: c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    let Some(address) = slot.address() else { return libc::ENOSYS };
    // SAFETY: the caller's promise.
    let real = unsafe { std::mem::transmute::<usize, Mask>(address) };
    if new.is_null() || how == libc::SIG_UNBLOCK || !KEEPS_SIGSEGV.load(Ordering::Acquire) {
        // SAFETY: the caller's promise.
        return unsafe { real(how, new, old) };
    }
    // SAFETY: new isn't null, so it is the program's set; the copy is changed, not the program's.
    unsafe {
        let mut set = *new;
        libc::sigdelset(&raw mut set, libc::SIGSEGV);
        real(how, &raw const set, old)
    }
}

/// # Safety
/// As for `sigprocmask`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn sigprocmask(how: c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    static REAL: Slot = Slot::new(c"sigprocmask", &[]);
    // SAFETY: the caller's promise.
    unsafe { mask(&REAL, how, new, old) }
}

/// # Safety
/// As for `pthread_sigmask`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    new: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    static REAL: Slot = Slot::new(c"pthread_sigmask", &[]);
    // SAFETY: the caller's promise.
    unsafe { mask(&REAL, how, new, old) }
}
