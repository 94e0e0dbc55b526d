//! `libecho_rt.a`: the C interface of `echo-rt`, for programs that Echo-SR compiled with `target=adaptive`.
//!
//! The pass emits calls of the two functions below; nobody else needs to. The CUDA runtime is the program's own, shared or static.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::sync::OnceLock;

use echo_rt::{Cuda, CudaError, DeviceFacts, Direction, Request, Runtime, Wishes};

/// Flag of [`echo_rt_create`]: S5 holds for the pair.
const ECHO_RT_EXCLUSIVE: u32 = 1;

/// Bytes to which a buffer is aligned, as cudaMalloc aligns.
const ALIGNMENT: usize = 256;

static RUNTIME: Runtime = Runtime::new();

unsafe extern "C" {
    fn cudaMalloc(out: *mut *mut c_void, bytes: usize) -> c_int;
    fn cudaFree(address: *mut c_void) -> c_int;
    fn cudaMallocManaged(out: *mut *mut c_void, bytes: usize, flags: c_uint) -> c_int;
    fn cudaHostAlloc(out: *mut *mut c_void, bytes: usize, flags: c_uint) -> c_int;
    fn cudaHostGetDevicePointer(out: *mut *mut c_void, host: *mut c_void, flags: c_uint) -> c_int;
    fn cudaFreeHost(address: *mut c_void) -> c_int;
    fn cudaMemcpy(dst: *mut c_void, src: *const c_void, bytes: usize, kind: c_int) -> c_int;
    fn cudaDeviceSynchronize() -> c_int;
    fn cudaPeekAtLastError() -> c_int;
    fn cudaGetLastError() -> c_int;
    fn cudaGetDevice(out: *mut c_int) -> c_int;
    fn cudaDeviceGetAttribute(out: *mut c_int, attribute: c_int, device: c_int) -> c_int;
}

/// The program's CUDA runtime.
struct Linked;

fn result(code: c_int) -> Result<(), CudaError> {
    if code == 0 { Ok(()) } else { Err(CudaError(code)) }
}

/// The address that an allocating call delivers.
fn allocated(call: impl FnOnce(*mut *mut c_void) -> c_int) -> Result<usize, CudaError> {
    let mut address = std::ptr::null_mut();
    result(call(&raw mut address))?;
    Ok(address as usize)
}

impl Cuda for Linked {
    fn malloc(&self, bytes: usize) -> Result<usize, CudaError> {
        // SAFETY: `out` is a variable of the caller.
        allocated(|out| unsafe { cudaMalloc(out, bytes) })
    }

    fn free(&self, address: usize) -> Result<(), CudaError> {
        // SAFETY: the runtime checks the address.
        result(unsafe { cudaFree(address as *mut c_void) })
    }

    fn malloc_managed(&self, bytes: usize) -> Result<usize, CudaError> {
        const ATTACH_GLOBAL: c_uint = 1;
        // SAFETY: `out` is a variable of the caller.
        allocated(|out| unsafe { cudaMallocManaged(out, bytes, ATTACH_GLOBAL) })
    }

    fn host_alloc(&self, bytes: usize) -> Result<(usize, usize), CudaError> {
        const PORTABLE_AND_MAPPED: c_uint = 1 | 2;
        // SAFETY: `out` is a variable of the caller.
        let host = allocated(|out| unsafe { cudaHostAlloc(out, bytes, PORTABLE_AND_MAPPED) })?;
        // SAFETY: as above; `host` is a mapped block. One without an alias is given back, and the alias error is what counts.
        let device =
            allocated(|out| unsafe { cudaHostGetDevicePointer(out, host as *mut c_void, 0) }).inspect_err(|_| {
                let _ = self.host_free(host);
            })?;
        Ok((host, device))
    }

    fn host_free(&self, address: usize) -> Result<(), CudaError> {
        // SAFETY: the runtime checks the address.
        result(unsafe { cudaFreeHost(address as *mut c_void) })
    }

    fn heap_alloc(&self, bytes: usize) -> Option<usize> {
        let mut address = std::ptr::null_mut();
        // SAFETY: `address` is a variable of ours; the alignment is a power of two and a multiple of a pointer's size.
        let code = unsafe { libc::posix_memalign(&raw mut address, ALIGNMENT, bytes) };
        (code == 0).then_some(address as usize)
    }

    fn heap_free(&self, address: usize) {
        // SAFETY: `heap_alloc` gave it, and it is given back once.
        unsafe { libc::free(address as *mut c_void) }
    }

    fn copy(&self, dst: usize, src: usize, bytes: usize, direction: Direction) -> Result<(), CudaError> {
        let kind = match direction {
            Direction::HostToDevice => 1,
            Direction::DeviceToHost => 2,
        };
        // SAFETY: the caller says that both ranges are alive.
        result(unsafe { cudaMemcpy(dst as *mut c_void, src as *const c_void, bytes, kind) })
    }

    fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: the call takes nothing.
        result(unsafe { cudaDeviceSynchronize() })
    }

    fn has_error(&self) -> bool {
        // SAFETY: the call takes nothing.
        unsafe { cudaPeekAtLastError() != 0 }
    }

    fn forget_error(&self) {
        // SAFETY: the call takes nothing.
        unsafe { cudaGetLastError() };
    }
}

/// What the current device says of itself; nothing, where there is none.
fn device() -> DeviceFacts {
    let mut current = 0;
    // SAFETY: `current` is ours.
    if unsafe { cudaGetDevice(&raw mut current) } != 0 {
        Linked.forget_error();
        return DeviceFacts::default();
    }
    // `cudaDeviceAttr` of driver_types.h.
    let holds = |attribute: c_int| {
        let mut value = 0;
        // SAFETY: `value` is ours.
        let code = unsafe { cudaDeviceGetAttribute(&raw mut value, attribute, current) };
        if code != 0 {
            Linked.forget_error();
        }
        code == 0 && value != 0
    };
    DeviceFacts {
        integrated: holds(18),
        managed_memory: holds(83),
        concurrent_managed_access: holds(89),
        pageable_memory_access: holds(88),
        host_page_tables: holds(100),
        mapped_host_memory: holds(19) && holds(41),
    }
}

/// A line on standard error; if there is none, nobody wants to know.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn wishes() -> &'static Wishes {
    static WISHES: OnceLock<Wishes> = OnceLock::new();
    WISHES.get_or_init(|| {
        let value = |name| std::env::var(name).ok();
        let (backend, verbose) = (value("ECHO_RT_BACKEND"), value("ECHO_RT_VERBOSE"));
        let (wishes, outcome) = Wishes::parse(backend.as_deref(), verbose.as_deref());
        if let Err(text) = outcome {
            tell(&text);
        }
        wishes
    })
}

/// p for a pair of `bytes` bytes, or null: then the pair stays two buffers, and the program makes them itself. `threshold` is θ_min in
/// bytes; `facts` is 1 if S5 holds for the pair, else 0; `site` names the pair for messages.
///
/// # Safety
/// `site` is null or a text that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echo_rt_create(
    bytes: usize,
    threshold: usize,
    facts: u32,
    site: *const c_char,
) -> *mut c_void {
    let request = Request { bytes, threshold, exclusive: facts & ECHO_RT_EXCLUSIVE != 0 };
    let wishes = wishes();
    let merged = RUNTIME.create(&Linked, device, wishes, request);
    if wishes.verbose {
        // SAFETY: the caller's promise.
        let site = if site.is_null() { c"a pair" } else { unsafe { CStr::from_ptr(site) } };
        let made = merged.map_or("separate", |merged| merged.backend().name());
        tell(&format!("echo-rt: {}: {bytes} bytes, {made}", site.to_string_lossy()));
    }
    merged.map_or(std::ptr::null_mut(), |merged| merged.address() as *mut c_void)
}

/// Ends the p that [`echo_rt_create`] gave, after waiting for work on it; of null it does nothing. Gives a `cudaError_t`.
#[unsafe(no_mangle)]
pub extern "C" fn echo_rt_release(address: *mut c_void) -> c_int {
    match RUNTIME.release(&Linked, address as usize) {
        Ok(()) => 0,
        Err(CudaError(code)) => code,
    }
}
