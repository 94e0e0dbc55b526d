//! Finding the function behind a hook.
//!
//! `dlsym` itself is hooked, so the real one is read from the C library's table of symbols. No lock is held around a look-up: the loader has its own,
//! and a constructor that runs under it may call any hook. Two threads that look up the same name find the same address.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::elf;

/// `dlsym`'s type.
pub(crate) type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The real `dlsym`, 0 until asked for. The hook's assembly reads it.
pub(crate) static REAL_DLSYM: AtomicUsize = AtomicUsize::new(0);

/// The real `dlvsym`, likewise.
pub(crate) static REAL_DLVSYM: AtomicUsize = AtomicUsize::new(0);

/// File names of the C library, and of its part that had `dlsym` until glibc 2.34.
const C_LIBRARY: [&str; 3] = ["libc.so.", "libc-2.", "libdl"];

thread_local! {
    static LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// `dlvsym`'s type.
pub(crate) type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;

/// The real `dlvsym`.
pub(crate) fn real_dlvsym() -> Option<Dlvsym> {
    let address = in_c_library(&REAL_DLVSYM, c"dlvsym")?;
    // SAFETY: the address is dlvsym's, whose type this is.
    Some(unsafe { std::mem::transmute::<usize, Dlvsym>(address) })
}

fn in_c_library(known: &AtomicUsize, name: &CStr) -> Option<usize> {
    struct Search<'a> {
        name: &'a CStr,
        found: Option<usize>,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid entry, and the pointer below, which outlives the walk.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
        if is_named(info, &C_LIBRARY) {
            // SAFETY: the C library stays loaded.
            search.found = unsafe { elf::headers(info).symbol(search.name) };
        }
        c_int::from(search.found.is_some())
    }
    let address = known.load(Ordering::Acquire);
    if address != 0 {
        return Some(address);
    }
    let mut search = Search { name, found: None };
    // SAFETY: visit has the type asked for and search outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    known.store(search.found?, Ordering::Release);
    search.found
}

/// The object's file name begins with one of `prefixes`.
pub(crate) fn is_named(info: &libc::dl_phdr_info, prefixes: &[&str]) -> bool {
    if info.dlpi_name.is_null() {
        return false;
    }
    // SAFETY: the loader's names end in NUL and live while the object is loaded.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
    let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    prefixes.iter().any(|prefix| file.starts_with(prefix.as_bytes()))
}

/// The real `dlsym`; `None` where the C library isn't glibc.
pub(crate) fn real_dlsym() -> Option<Dlsym> {
    let address = in_c_library(&REAL_DLSYM, c"dlsym")?;
    // SAFETY: the address is dlsym's, whose type this is.
    Some(unsafe { std::mem::transmute::<usize, Dlsym>(address) })
}

/// The next definition of `name` after this library in the global scope. `None` also where this thread is inside a look-up already:
/// the caller then serves the call itself.
pub(crate) fn next(name: &CStr) -> Option<usize> {
    let outer = LOOKING.with(|looking| looking.replace(true));
    let found = if outer { None } else { real_dlsym().and_then(|dlsym| in_handle(dlsym, libc::RTLD_NEXT, name)) };
    LOOKING.with(|looking| looking.set(outer));
    found
}

/// `name` in a library that is loaded but not in the global scope (opened by the program with `RTLD_LOCAL`): the first loaded object whose
/// file name starts with one of `prefixes`.
pub(crate) fn in_loaded(prefixes: &[&str], name: &CStr) -> Option<usize> {
    let dlsym = real_dlsym()?;
    loaded_paths(prefixes).iter().find_map(|path| {
        // SAFETY: path ends in NUL. RTLD_NOLOAD only finds what is there already, so nothing is initialised.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            return None;
        }
        // The reference that dlopen took is kept: the address found must stay valid.
        in_handle(dlsym, handle, name)
    })
}

fn in_handle(dlsym: Dlsym, handle: *mut c_void, name: &CStr) -> Option<usize> {
    // SAFETY: name ends in NUL and handle is RTLD_NEXT or was just opened.
    let found = unsafe { dlsym(handle, name.as_ptr()) } as usize;
    (found != 0).then_some(found)
}

fn loaded_paths(prefixes: &[&str]) -> Vec<std::ffi::CString> {
    struct Search<'a> {
        prefixes: &'a [&'a str],
        found: Vec<std::ffi::CString>,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid entry, and the pointer below, which outlives the walk.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
        if is_named(info, search.prefixes) {
            // SAFETY: a name is there, ends in NUL and lives while the object is loaded.
            search.found.push(unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned());
        }
        0
    }
    let mut search = Search { prefixes, found: Vec::new() };
    // SAFETY: visit has the type asked for and search outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// One hook's real function: 0 until found.
#[derive(Debug)]
pub(crate) struct Slot {
    address: AtomicUsize,
    name: &'static CStr,
    /// File names of the libraries to search beside the global scope.
    libraries: &'static [&'static str],
}

impl Slot {
    pub(crate) const fn new(name: &'static CStr, libraries: &'static [&'static str]) -> Self {
        Self { address: AtomicUsize::new(0), name, libraries }
    }

    /// The address, looked up at the first call. A function that isn't there is looked for again: its library may be opened later.
    pub(crate) fn address(&self) -> Option<usize> {
        match self.address.load(Ordering::Acquire) {
            0 => self.look_up(),
            found => Some(found),
        }
    }

    /// What the program itself looked up, kept unless a definition is known.
    pub(crate) fn offer(&self, found: usize) {
        let _ = self.address.compare_exchange(0, found, Ordering::AcqRel, Ordering::Acquire);
    }

    #[cold]
    fn look_up(&self) -> Option<usize> {
        let found = next(self.name).or_else(|| match self.libraries {
            [] => None,
            libraries => in_loaded(libraries, self.name),
        })?;
        self.offer(found);
        Some(found)
    }
}
