//! The constructor: from `Cold` to `Ready` or `Off`, before the program's main.

use std::ffi::CStr;
use std::ffi::c_void;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use echo_dr_format::SCHEMA;
use echo_dr_format::context::{Context, Process};
use echo_dr_format::plan::{PLAN_LIMIT, Plan};
use echo_dr_format::reason::{Reason as _, Refusal};
use echo_dr_format::trace::{Header, Mode};

use crate::exit::Ending;
use crate::merge::Merge;
use crate::phase::Phase;
use crate::record::Record;
use crate::session::{self, Session};
use crate::settings::Settings;
use crate::{
    device, exit, fault, first, fork, identity, lookup, malloc, pages, recorder, say, signals, stack, syscall, validate,
};

/// Real functions without which a block could be freed by another allocator than made it. All other hooks are optional: what is not there
/// can't be called.
const REQUIRED: [&CStr; 9] = [
    c"malloc",
    c"calloc",
    c"realloc",
    c"free",
    c"posix_memalign",
    c"aligned_alloc",
    c"memalign",
    c"malloc_usable_size",
    c"sigaction",
];

unsafe extern "C" fn at_load() {
    stack::this_is_the_first_thread();
    first::find_out();
    say::find_out();
    // SAFETY: asks for a number.
    let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if is_secure {
        // The program has rights that its user has not: it must not be observed or changed.
        Phase::Off.enter();
        return;
    }
    let started = match Settings::read(|name| std::env::var_os(name)) {
        Ok(None) => false,
        Ok(Some(settings)) => start(settings),
        Err(sentence) => {
            say::Once::new().say(&format!("{sentence}; the program runs unchanged"));
            false
        }
    };
    if started { Phase::Ready.enter() } else { Phase::Off.enter() }
}

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
static AT_LOAD: unsafe extern "C" fn() = at_load;

/// Sets the session up; false if the library can only forward.
fn start(settings: Settings) -> bool {
    // SAFETY: the first thing that is allocated on this heap comes after it, or is not in the way: the library has one thread so far.
    unsafe { dlmalloc::enable_alloc_after_fork() };
    let mut ending = Ending {
        mode: match settings.mode {
            Mode::Profile => "profile",
            Mode::Validate => "validate",
            Mode::Optimise => "optimise",
        },
        counters: settings.counters.clone(),
        times: settings.times.clone(),
        ..Ending::default()
    };
    if let Some(owner) = another_malloc() {
        let sentence = format!(
            "{} has a malloc of its own, which the program's calls go to: host blocks are not seen. Build it without (a shared allocator library works)",
            owner.display()
        );
        say::Once::new().say(&sentence);
        ending.trouble = Some(sentence);
    }
    if let Some(name) = REQUIRED.iter().find(|name| lookup::next(name).is_none()) {
        let sentence = format!("the C library has no {}: the program runs unchanged", name.to_string_lossy());
        say::Once::new().say(&sentence);
        ending.trouble = Some(sentence);
        exit::prepare(ending);
        return false;
    }
    let process = identity::process();
    let plan = match (settings.mode, &settings.plan) {
        (Mode::Profile, _) | (_, None) => None,
        (_, Some(path)) => match read_plan(path, &process) {
            Ok(plan) => Some((plan, path.clone())),
            Err(refusal) => {
                say::Once::new().say(&format!(
                    "the plan {} is not used, the program runs unchanged: {refusal} ({})",
                    path.display(),
                    refusal.number()
                ));
                ending.refused = Some(refusal);
                exit::prepare(ending);
                return false;
            }
        },
    };
    let started = match (settings.mode, plan) {
        (Mode::Optimise, Some((plan, path))) => start_merging(plan, path, &settings, process, &mut ending),
        (_, plan) => start_recording(plan.map(|(plan, _)| plan), &settings, process, &mut ending),
    };
    exit::prepare(ending);
    if started {
        fork::watch();
        syscall::watch();
    }
    started
}

fn start_merging(plan: Plan, path: PathBuf, settings: &Settings, process: Process, ending: &mut Ending) -> bool {
    device::have_driver();
    let threshold = smallest(&plan);
    let recorded = match &settings.trace {
        // Without its trace the plan is followed all the same.
        Some(trace) => start_trace(trace, settings.mode, threshold, process, "the run is not recorded", ending),
        None => false,
    };
    if recorded {
        signals::take_fatal();
    }
    malloc::THRESHOLD.store(threshold, Ordering::Relaxed);
    session::set(Session::Merge(Merge::new(plan, path, settings.times.is_some(), recorded)));
    true
}

/// The smallest block that a plan merges: no other is looked at.
fn smallest(plan: &Plan) -> usize {
    let smallest = plan.enabled().map(|pair| pair.bytes).min();
    smallest.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX).max(malloc::LEAST)
}

fn start_recording(plan: Option<Plan>, settings: &Settings, process: Process, ending: &mut Ending) -> bool {
    let Some(path) = &settings.trace else { return false };
    let wished = plan.as_ref().map(|plan| usize::try_from(plan.threshold).unwrap_or(usize::MAX));
    let threshold = wished.unwrap_or(settings.threshold).max(malloc::LEAST);
    if !start_trace(path, settings.mode, threshold, process, "the program runs unchanged", ending) {
        return false;
    }
    let validator = plan.as_ref().map(|plan| validate::start(plan, settings.exclusive));
    signals::take_fatal();
    if validator.is_some() {
        fault::prepare();
        signals::keep_sigsegv();
    }
    malloc::THRESHOLD.store(threshold, Ordering::Relaxed);
    session::set(Session::Record(Record::new(threshold, validator)));
    true
}

/// Begins the trace; false, and said with what follows from it, if it can't be written.
fn start_trace(
    path: &Path,
    mode: Mode,
    threshold: usize,
    process: Process,
    otherwise: &str,
    ending: &mut Ending,
) -> bool {
    let header = Header {
        schema: SCHEMA,
        mode,
        version: env!("CARGO_PKG_VERSION").into(),
        context: Context { process, device: None },
        threshold: threshold as u64,
        page_size: pages::size() as u64,
        pid: std::process::id(),
        forked_from: None,
    };
    let started = recorder::start(path.to_owned(), header);
    if let Err(error) = &started {
        let sentence = format!("the trace {} can't be written, {otherwise}: {error}", path.display());
        say::Once::new().say(&sentence);
        ending.trouble = Some(sentence);
    }
    started.is_ok()
}

/// The plan, if it is the user's own and made for this process.
fn read_plan(path: &Path, process: &Process) -> Result<Plan, Refusal> {
    let unreadable = |error: std::io::Error| Refusal::Malformed(error.to_string());
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    /// Others than the owner may write.
    const OTHERS_WRITE: u32 = 0o022;
    // SAFETY: asks for a number.
    let user = unsafe { libc::geteuid() };
    if about.uid() != user || about.mode() & OTHERS_WRITE != 0 || !about.is_file() {
        return Err(Refusal::NotOwned);
    }
    let mut text = Vec::new();
    file.take(PLAN_LIMIT as u64 + 1).read_to_end(&mut text).map_err(unreadable)?;
    let plan = Plan::read(&text)?;
    plan.context.process.admits(process)?;
    Ok(plan)
}

/// The file whose malloc the program's calls go to, if it is not this library's: an executable's own comes before any preload.
fn another_malloc() -> Option<PathBuf> {
    let modules = crate::modules::current();
    let real_dlsym = crate::lookup::real_dlsym()?;
    // SAFETY: the name ends in NUL.
    let first = unsafe { real_dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr()) } as usize;
    let owner = modules.find(first)?;
    (!modules.is_own(first) && !is_stub(first)).then(|| owner.path.clone())
}

/// An executable at fixed addresses that takes a function's address has a stub of that name, which goes where the function is defined.
fn is_stub(address: usize) -> bool {
    const RTLD_DL_SYMENT: libc::c_int = 1;
    const SHN_UNDEF: u16 = 0;
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let mut symbol: *mut c_void = std::ptr::null_mut();
    // SAFETY: the address is only compared; both results are writable.
    let found = unsafe { libc::dladdr1(address as *const c_void, &raw mut info, &raw mut symbol, RTLD_DL_SYMENT) };
    // SAFETY: the loader gave an entry of a symbol table that is mapped as long as the executable.
    found != 0 && !symbol.is_null() && unsafe { (*symbol.cast::<libc::Elf64_Sym>()).st_shndx } == SHN_UNDEF
}
