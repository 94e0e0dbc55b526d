//! The driver library, as the runtime sees it: `libcuda.so.1` is opened with `dlopen`, `cuGetProcAddress_v2` is found with `dlsym`, is asked for
//! `cuGetProcAddress`, and what that gives is asked for every other function by name, version and kind of null stream. NVIDIA's runtime of CUDA
//! 13.0 does the same, so what stands between a program and its driver (a tool that is preloaded, say) sees the same of ours.
//!
//! The first call of a thread that needs a context takes the primary context, unless the program has made one current itself.

mod functions;
mod types;

pub use functions::{Driver, Streamed};
pub use types::{Copy2D, Copy3D, DevicePtr, End2D, End3D, Handle, HostFn, LaunchConfig, Location, StreamCallback};

use crate::error::{CudaError, Result};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The CUDA version whose functions this library asks for and has.
pub const VERSION: c_int = 13_000;

/// `CU_GET_PROC_ADDRESS_DEFAULT`, `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`
const DEFAULT: u64 = 0;
const PER_THREAD: u64 = 2;

/// The first CUDA version that has functions with two kinds of null stream.
const FIRST_PER_THREAD: c_int = 7_000;

/// `cuGetProcAddress_v2`
type GetProcAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> c_int;

/// What a driver call returned. The runtime has the driver's errors under their numbers.
pub fn check(code: c_int) -> Result {
    CudaError::from_code(code).map_or(Ok(()), Err)
}

/// Asks the driver library for functions.
struct Finder {
    get: GetProcAddress,
}

impl Finder {
    fn find(&self, name: &CStr, since: c_int, kind: u64) -> std::result::Result<*mut c_void, String> {
        let since = if kind == PER_THREAD { since.max(FIRST_PER_THREAD) } else { since };
        let (mut found, mut status) = (std::ptr::null_mut(), 0);
        // SAFETY: the name is a C string, the targets are ours.
        let code = unsafe { (self.get)(name.as_ptr(), &mut found, since, kind, &mut status) };
        if code == 0 && !found.is_null() { Ok(found) } else { Err(format!("it has no {}", name.to_string_lossy())) }
    }
}

fn last_dl_error() -> String {
    // SAFETY: dlerror has no preconditions.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown error".to_owned();
    }
    // SAFETY: the text is a C string that is valid until the next dl call of this thread.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Opens the driver library. It stays open: threads and exit handlers of it may run until the very end.
fn open() -> std::result::Result<Driver, String> {
    // SAFETY: the name is a C string; the library's initialisers are those of a driver.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        return Err(last_dl_error());
    }
    // SAFETY: the handle is open, the name is a C string.
    let get = unsafe { libc::dlsym(library, c"cuGetProcAddress_v2".as_ptr()) };
    if get.is_null() {
        return Err(last_dl_error());
    }
    // SAFETY: CUDA's headers say that the function of this name has this type.
    let exported = Finder { get: unsafe { std::mem::transmute::<*mut c_void, GetProcAddress>(get) } };
    let get = exported.find(c"cuGetProcAddress", 12_000, DEFAULT)?;
    // SAFETY: as above; 12000 is the version of this type.
    let finder = Finder { get: unsafe { std::mem::transmute::<*mut c_void, GetProcAddress>(get) } };
    Driver::find_all(&finder)
}

static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();

/// Counts device resets: afterwards threads take the primary context anew, which starts the device again.
static GENERATION: AtomicU64 = AtomicU64::new(1);

/// The generation in which a thread last got a context; 0: never.
static USED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The generation in which this thread got its context; 0: never.
    static ATTACHED: Cell<u64> = const { Cell::new(0) };
}

/// The driver, initialised, for calls that need no context. A failure to open it is said once on stderr.
pub fn driver() -> Result<&'static Driver> {
    let opened = DRIVER.get_or_init(|| {
        let say = |problem| {
            eprintln!("uma-device: the driver library can't be used: {problem}; put the device's libcuda.so.1 beside its libcudart or into LD_LIBRARY_PATH");
        };
        open().map_err(say).ok()
    });
    let driver = opened.as_ref().ok_or(CudaError::ErrorInsufficientDriver)?;
    // SAFETY: it takes no pointer.
    check(unsafe { (driver.init)(0) })?;
    Ok(driver)
}

/// The driver if it was opened.
pub fn driver_if_open() -> Option<&'static Driver> {
    DRIVER.get()?.as_ref()
}

/// The driver, with a context that is current on this thread.
pub fn current() -> Result<&'static Driver> {
    match DRIVER.get() {
        Some(Some(driver)) if ATTACHED.with(Cell::get) == GENERATION.load(Ordering::Relaxed) => Ok(driver),
        _ => attach(),
    }
}

#[cold]
fn attach() -> Result<&'static Driver> {
    let driver = driver()?;
    let generation = GENERATION.load(Ordering::Relaxed);
    let mut context = std::ptr::null_mut();
    // SAFETY: the target is ours.
    check(unsafe { (driver.ctx_get_current)(&mut context) })?;
    if context.is_null() || ATTACHED.with(Cell::get) != 0 {
        let mut primary = std::ptr::null_mut();
        // SAFETY: the target is ours. It is never released: the runtime needs it until the program ends.
        check(unsafe { (driver.primary_retain)(&mut primary, 0) })?;
        if context.is_null() {
            // SAFETY: it takes no pointer but the handle.
            check(unsafe { (driver.ctx_set_current)(primary) })?;
        }
    }
    ATTACHED.with(|attached| attached.set(generation));
    USED.store(generation, Ordering::Relaxed);
    Ok(driver)
}

/// The driver with a context, if any thread got one since the last reset.
pub fn current_if_used() -> Option<&'static Driver> {
    if USED.load(Ordering::Relaxed) == GENERATION.load(Ordering::Relaxed) { current().ok() } else { None }
}

/// This thread's context is gone, as the driver says: the next call takes one anew.
pub fn detach() {
    ATTACHED.with(|attached| attached.set(0));
}

/// The device was reset.
pub fn was_reset() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
