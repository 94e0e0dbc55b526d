//! Finding the function behind a hook.
//!
//! `dlsym` itself is hooked, so the real one is found by `dlvsym`, which is not. No lock is held around a look-up: the loader has its own,
//! and a constructor that runs under it may call any hook. Two threads that look up the same name find the same address.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// `dlsym`'s type.
pub(crate) type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The real `dlsym`, 0 until asked for. The hook's assembly reads it.
pub(crate) static REAL_DLSYM: AtomicUsize = AtomicUsize::new(0);

/// glibc 2.34 moved libdl into libc and gave the functions a new version; the base version is the architecture's first one.
#[cfg(target_arch = "x86_64")]
const DLSYM_VERSIONS: [&CStr; 2] = [c"GLIBC_2.34", c"GLIBC_2.2.5"];
#[cfg(target_arch = "aarch64")]
const DLSYM_VERSIONS: [&CStr; 2] = [c"GLIBC_2.34", c"GLIBC_2.17"];

thread_local! {
    static LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// The real `dlsym`; `None` where the C library has none of the versions known here.
pub(crate) fn real_dlsym() -> Option<Dlsym> {
    let mut address = REAL_DLSYM.load(Ordering::Acquire);
    if address == 0 {
        address = DLSYM_VERSIONS
            .iter()
            // SAFETY: both strings end in NUL; RTLD_NEXT asks for what comes after this library.
            .map(|version| unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) } as usize)
            .find(|&found| found != 0)?;
        REAL_DLSYM.store(address, Ordering::Release);
    }
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
        if info.dlpi_name.is_null() {
            return 0;
        }
        // SAFETY: the loader's names end in NUL and live while the object is loaded.
        let path = unsafe { CStr::from_ptr(info.dlpi_name) };
        let bytes = path.to_bytes();
        let file = bytes.rsplit(|&byte| byte == b'/').next().unwrap_or(bytes);
        if search.prefixes.iter().any(|prefix| file.starts_with(prefix.as_bytes())) {
            search.found.push(path.to_owned());
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
