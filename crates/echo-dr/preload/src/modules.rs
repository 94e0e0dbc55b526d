//! The executable and libraries of the process: where each lies, what names it from run to run, and how to unwind its frames.
//!
//! The list is read from the loader, kept, and read again when the loader's count of additions or removals has changed. A list never
//! changes once it is made; threads share it.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use echo_dr_format::site::Fnv1a;
use framehop::{ExplicitModuleSectionInfo, MustNotAllocateDuringUnwind, Unwinder as _};

use crate::elf;

/// The unwinder of this architecture. It reads the tables where they are mapped.
pub(crate) type Unwinder = framehop::UnwinderNative<&'static [u8], MustNotAllocateDuringUnwind>;

/// The loader's counts of objects added and removed since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generation {
    adds: u64,
    subs: u64,
}

/// One loaded object.
#[derive(Debug)]
pub(crate) struct Module {
    /// The addresses it takes.
    pub(crate) range: Range<usize>,
    /// What is subtracted from an address to get the address that the file says.
    pub(crate) base: usize,
    /// Its file.
    pub(crate) path: PathBuf,
    /// The build-id that the linker wrote, if it did.
    pub(crate) build_id: Option<Vec<u8>>,
    /// FNV-1a of the build-id; without one, of file name and layout.
    pub(crate) key: u64,
    /// It is the program itself.
    pub(crate) is_executable: bool,
}

/// All objects of a moment.
pub(crate) struct Modules {
    generation: Generation,
    list: Vec<Module>,
    /// This library itself: its frames are never part of a call site.
    own: Range<usize>,
    /// Made of the same objects.
    pub(crate) unwinder: Unwinder,
}

impl Modules {
    /// The object that `address` is in.
    pub(crate) fn find(&self, address: usize) -> Option<&Module> {
        let after = self.list.partition_point(|module| module.range.start <= address);
        self.list[..after].last().filter(|module| module.range.contains(&address))
    }

    /// Whether `address` is in this library.
    pub(crate) fn is_own(&self, address: usize) -> bool {
        self.own.contains(&address)
    }

    /// The program's file.
    pub(crate) fn executable(&self) -> Option<&Module> {
        self.list.iter().find(|module| module.is_executable)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Module> {
        self.list.iter()
    }

    /// What the list was made from.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }
}

static CURRENT: RwLock<Option<Arc<Modules>>> = RwLock::new(None);

/// The list for the process as it is now.
pub(crate) fn current() -> Arc<Modules> {
    let now = generation();
    if let Some(modules) = CURRENT.read().unwrap_or_else(PoisonError::into_inner).as_ref()
        && modules.generation == now
    {
        return Arc::clone(modules);
    }
    let fresh = Arc::new(read());
    *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&fresh));
    fresh
}

/// The loader's counts now. It stops at the first object, so it costs a lock of the loader's that is held briefly.
pub(crate) fn generation() -> Generation {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid entry, and the pointer below, which outlives the walk.
        unsafe { *out.cast::<Generation>() = Generation { adds: (*info).dlpi_adds, subs: (*info).dlpi_subs } };
        1
    }
    let mut generation = Generation::default();
    // SAFETY: `first` has the type asked for and `generation` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut generation).cast()) };
    generation
}

fn read() -> Modules {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid entry, and the pointer below, which outlives the walk.
        let (info, modules) = unsafe { (&*info, &mut *out.cast::<Modules>()) };
        modules.generation = Generation { adds: info.dlpi_adds, subs: info.dlpi_subs };
        add(modules, info);
        0
    }
    let mut modules =
        Modules { generation: Generation::default(), list: Vec::new(), own: 0..0, unwinder: Unwinder::new() };
    // SAFETY: `visit` has the type asked for and `modules` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut modules).cast()) };
    modules.list.sort_unstable_by_key(|module| module.range.start);
    let here = read as *const () as usize;
    modules.own = modules.find(here).map_or(0..0, |module| module.range.clone());
    modules
}

fn add(modules: &mut Modules, info: &libc::dl_phdr_info) {
    // SAFETY: the loader's program headers are mapped while the object is, and the walk's lock keeps it loaded here.
    let headers = unsafe { elf::headers(info) };
    let Some(range) = headers.range() else { return };
    let is_executable = modules.list.is_empty();
    let path = path_of(info, is_executable);
    // SAFETY: the headers describe this object, which is loaded.
    let (build_id, tables) = unsafe { (headers.build_id(), headers.unwind_tables()) };
    let key = match &build_id {
        Some(id) => Fnv1a::of(id),
        None => headers.key_without_build_id(&path),
    };
    let base = info.dlpi_addr as usize;
    if let Some(tables) = tables {
        let svma =
            |range: &Range<usize>| (range.start.wrapping_sub(base)) as u64..(range.end.wrapping_sub(base)) as u64;
        let section = ExplicitModuleSectionInfo {
            base_svma: 0,
            eh_frame_svma: Some(svma(&tables.eh_frame)),
            eh_frame: Some(elf::bytes(&tables.eh_frame)),
            eh_frame_hdr_svma: Some(svma(&tables.eh_frame_hdr)),
            eh_frame_hdr: Some(elf::bytes(&tables.eh_frame_hdr)),
            ..Default::default()
        };
        let avma = range.start as u64..range.end as u64;
        modules.unwinder.add_module(framehop::Module::new(String::new(), avma, base as u64, section));
    }
    modules.list.push(Module { range, base, path, build_id, key, is_executable });
}

/// The loader gives the executable, which is first, no name.
fn path_of(info: &libc::dl_phdr_info, is_first: bool) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    let name = if info.dlpi_name.is_null() {
        c""
    } else {
        // SAFETY: the loader's names end in NUL and live while the object is loaded.
        unsafe { CStr::from_ptr(info.dlpi_name) }
    };
    match name.to_bytes() {
        b"" if is_first => std::fs::read_link("/proc/self/exe").unwrap_or_default(),
        bytes => PathBuf::from(std::ffi::OsStr::from_bytes(bytes)),
    }
}
