//! The driver library, as the runtime sees it: `libcuda.so.1` is opened with `dlopen`, `cuGetProcAddress_v2` is found with `dlsym`, is asked for
//! `cuGetProcAddress`, and what that gives is asked for every other function by name, version and kind of null stream. NVIDIA's runtime of CUDA
//! 13.0 does the same, so what stands between a program and its driver (a tool that is preloaded, say) sees the same of ours.
//!
//! The first call of a thread that needs a context takes the primary context, unless the program has made one current itself.

use crate::error::{CudaError, Result};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The CUDA version whose functions this library asks for and has.
pub const VERSION: c_int = 13_000;

/// `CUdeviceptr`
pub type DevicePtr = u64;
/// `CUcontext`, `CUstream`, `CUevent`, `CUlibrary`, `CUkernel`, `CUmemoryPool`
pub type Handle = *mut c_void;

/// `CU_GET_PROC_ADDRESS_DEFAULT`, `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`
const DEFAULT: u64 = 0;
const PER_THREAD: u64 = 2;

/// The first CUDA version that has functions with two kinds of null stream.
const FIRST_PER_THREAD: c_int = 7_000;

/// `cuGetProcAddress_v2`
type GetProcAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> c_int;

/// One end of a `CUDA_MEMCPY3D`, and without some fields of a `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct End2D {
    /// Bytes before the box.
    pub x: usize,
    /// Rows before the box.
    pub y: usize,
    /// `CU_MEMORYTYPE_…`
    pub memory_type: c_uint,
    /// Address, if it is the host's.
    pub host: usize,
    /// Address, if it is not.
    pub device: DevicePtr,
    /// None.
    pub array: *mut c_void,
    /// Bytes from a row to the next.
    pub pitch: usize,
}

/// `CUDA_MEMCPY2D`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy2D {
    /// Source.
    pub from: End2D,
    /// Target.
    pub to: End2D,
    /// Bytes of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// One end of a `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct End3D {
    /// Bytes before the box.
    pub x: usize,
    /// Rows before the box.
    pub y: usize,
    /// Slices before the box.
    pub z: usize,
    /// Of a mipmapped array.
    pub level: usize,
    /// `CU_MEMORYTYPE_…`
    pub memory_type: c_uint,
    /// Address, if it is the host's.
    pub host: usize,
    /// Address, if it is not.
    pub device: DevicePtr,
    /// None.
    pub array: *mut c_void,
    /// Null.
    pub reserved: *mut c_void,
    /// Bytes from a row to the next.
    pub pitch: usize,
    /// Rows of a slice.
    pub height: usize,
}

/// `CUDA_MEMCPY3D`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy3D {
    /// Source.
    pub from: End3D,
    /// Target.
    pub to: End3D,
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a slice.
    pub height: usize,
    /// Slices.
    pub depth: usize,
}

/// `CUlaunchConfig`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    /// gridDim
    pub grid: [c_uint; 3],
    /// blockDim
    pub block: [c_uint; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: c_uint,
    /// Where it is queued.
    pub stream: Handle,
    /// `CUlaunchAttribute`s, which are those of the runtime.
    pub attributes: *const c_void,
    /// How many.
    pub attribute_count: c_uint,
}

/// `CUmemLocation`, `cudaMemLocation`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Location {
    kind: c_int,
    id: c_int,
}

/// A function with two forms, which differ in what the null stream is.
#[derive(Clone, Copy)]
pub struct Streamed<F>([F; 2]);

impl<F: Copy> Streamed<F> {
    /// The form for a call.
    pub fn of(&self, per_thread: bool) -> F {
        self.0[usize::from(per_thread)]
    }
}

macro_rules! driver {
    (@type plain $function:ty) => { $function };
    (@type streamed $function:ty) => { Streamed<$function> };
    (@find plain $finder:ident $name:literal $since:literal $function:ty) => {
        // SAFETY: CUDA's headers say that the function of this name and version has this type.
        unsafe { std::mem::transmute::<*mut c_void, $function>($finder.find($name, $since, DEFAULT)?) }
    };
    (@find streamed $finder:ident $name:literal $since:literal $function:ty) => {
        Streamed([
            // SAFETY: as above.
            unsafe { std::mem::transmute::<*mut c_void, $function>($finder.find($name, $since, DEFAULT)?) },
            // SAFETY: as above.
            unsafe { std::mem::transmute::<*mut c_void, $function>($finder.find($name, $since, PER_THREAD)?) },
        ])
    };
    ($($kind:ident $field:ident($($argument:ty),*) = $name:literal $since:literal;)*) => {
        /// The driver's functions.
        #[allow(missing_docs, reason = "each is the driver's function that is named in the table below")]
        pub struct Driver {
            $(pub $field: driver!(@type $kind unsafe extern "C" fn($($argument),*) -> c_int),)*
        }

        impl Driver {
            fn find_all(finder: &Finder) -> std::result::Result<Driver, String> {
                Ok(Driver {
                    $($field: driver!(@find $kind finder $name $since unsafe extern "C" fn($($argument),*) -> c_int),)*
                })
            }
        }
    };
}

driver! {
    // Devices and contexts
    plain init(c_uint) = c"cuInit" 2000;
    plain driver_get_version(*mut c_int) = c"cuDriverGetVersion" 2020;
    plain device_get_count(*mut c_int) = c"cuDeviceGetCount" 2000;
    plain device_get_name(*mut c_char, c_int, c_int) = c"cuDeviceGetName" 2000;
    plain device_get_uuid(*mut [u8; 16], c_int) = c"cuDeviceGetUuid" 11040;
    plain device_total_mem(*mut usize, c_int) = c"cuDeviceTotalMem" 3020;
    plain device_get_attribute(*mut c_int, c_int, c_int) = c"cuDeviceGetAttribute" 2000;
    plain device_get_pci_bus_id(*mut c_char, c_int, c_int) = c"cuDeviceGetPCIBusId" 4010;
    plain device_can_access_peer(*mut c_int, c_int, c_int) = c"cuDeviceCanAccessPeer" 4000;
    plain primary_retain(*mut Handle, c_int) = c"cuDevicePrimaryCtxRetain" 7000;
    plain primary_reset(c_int) = c"cuDevicePrimaryCtxReset" 11000;
    plain primary_set_flags(c_int, c_uint) = c"cuDevicePrimaryCtxSetFlags" 11000;
    plain primary_get_state(c_int, *mut c_uint, *mut c_int) = c"cuDevicePrimaryCtxGetState" 7000;
    plain ctx_get_current(*mut Handle) = c"cuCtxGetCurrent" 4000;
    plain ctx_set_current(Handle) = c"cuCtxSetCurrent" 4000;
    plain ctx_get_device(*mut c_int) = c"cuCtxGetDevice" 2000;
    plain ctx_synchronize() = c"cuCtxSynchronize" 2000;
    plain ctx_set_limit(c_int, usize) = c"cuCtxSetLimit" 3010;
    plain ctx_get_limit(*mut usize, c_int) = c"cuCtxGetLimit" 3010;
    plain ctx_set_cache_config(c_int) = c"cuCtxSetCacheConfig" 3020;
    plain ctx_get_cache_config(*mut c_int) = c"cuCtxGetCacheConfig" 3020;
    plain ctx_set_shared_mem_config(c_int) = c"cuCtxSetSharedMemConfig" 4020;
    plain ctx_get_shared_mem_config(*mut c_int) = c"cuCtxGetSharedMemConfig" 4020;
    plain ctx_get_stream_priority_range(*mut c_int, *mut c_int) = c"cuCtxGetStreamPriorityRange" 5050;
    plain profiler_start() = c"cuProfilerStart" 4000;
    plain profiler_stop() = c"cuProfilerStop" 4000;
    plain get_proc_address(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) = c"cuGetProcAddress" 12000;

    // Memory
    plain mem_alloc(*mut DevicePtr, usize) = c"cuMemAlloc" 3020;
    plain mem_alloc_managed(*mut DevicePtr, usize, c_uint) = c"cuMemAllocManaged" 6000;
    plain mem_alloc_pitch(*mut DevicePtr, *mut usize, usize, usize, c_uint) = c"cuMemAllocPitch" 3020;
    plain mem_alloc_host(*mut *mut c_void, usize) = c"cuMemAllocHost" 3020;
    plain mem_host_alloc(*mut *mut c_void, usize, c_uint) = c"cuMemHostAlloc" 2020;
    streamed mem_alloc_async(*mut DevicePtr, usize, Handle) = c"cuMemAllocAsync" 11020;
    streamed mem_alloc_from_pool_async(*mut DevicePtr, usize, Handle, Handle) = c"cuMemAllocFromPoolAsync" 11020;
    plain mem_free(DevicePtr) = c"cuMemFree" 3020;
    plain mem_free_host(*mut c_void) = c"cuMemFreeHost" 2000;
    streamed mem_free_async(DevicePtr, Handle) = c"cuMemFreeAsync" 11020;
    plain mem_host_register(*mut c_void, usize, c_uint) = c"cuMemHostRegister" 6050;
    plain mem_host_unregister(*mut c_void) = c"cuMemHostUnregister" 4000;
    plain mem_host_get_device_pointer(*mut DevicePtr, *mut c_void, c_uint) = c"cuMemHostGetDevicePointer" 3020;
    plain mem_host_get_flags(*mut c_uint, *mut c_void) = c"cuMemHostGetFlags" 2030;
    plain mem_get_info(*mut usize, *mut usize) = c"cuMemGetInfo" 3020;
    plain pointer_get_attributes(c_uint, *const c_int, *const *mut c_void, DevicePtr) = c"cuPointerGetAttributes" 7000;
    streamed mem_prefetch_async(DevicePtr, usize, Location, c_uint, Handle) = c"cuMemPrefetchAsync" 12020;
    plain mem_advise(DevicePtr, usize, c_int, Location) = c"cuMemAdvise" 12020;
    streamed stream_attach_mem_async(Handle, DevicePtr, usize, c_uint) = c"cuStreamAttachMemAsync" 6000;
    plain device_get_default_mem_pool(*mut Handle, c_int) = c"cuDeviceGetDefaultMemPool" 11020;
    plain device_get_mem_pool(*mut Handle, c_int) = c"cuDeviceGetMemPool" 11020;
    plain device_set_mem_pool(c_int, Handle) = c"cuDeviceSetMemPool" 11020;
    plain mem_pool_trim_to(Handle, usize) = c"cuMemPoolTrimTo" 11020;
    plain mem_pool_set_attribute(Handle, c_int, *const c_void) = c"cuMemPoolSetAttribute" 11020;
    plain mem_pool_get_attribute(Handle, c_int, *mut c_void) = c"cuMemPoolGetAttribute" 11020;

    // Copies and memsets
    streamed memcpy(DevicePtr, DevicePtr, usize) = c"cuMemcpy" 4000;
    streamed memcpy_async(DevicePtr, DevicePtr, usize, Handle) = c"cuMemcpyAsync" 4000;
    streamed memcpy_htod(DevicePtr, *const c_void, usize) = c"cuMemcpyHtoD" 3020;
    streamed memcpy_htod_async(DevicePtr, *const c_void, usize, Handle) = c"cuMemcpyHtoDAsync" 3020;
    streamed memcpy_dtoh(*mut c_void, DevicePtr, usize) = c"cuMemcpyDtoH" 3020;
    streamed memcpy_dtoh_async(*mut c_void, DevicePtr, usize, Handle) = c"cuMemcpyDtoHAsync" 3020;
    streamed memcpy_dtod(DevicePtr, DevicePtr, usize) = c"cuMemcpyDtoD" 3020;
    streamed memcpy_dtod_async(DevicePtr, DevicePtr, usize, Handle) = c"cuMemcpyDtoDAsync" 3020;
    streamed memcpy_peer(DevicePtr, Handle, DevicePtr, Handle, usize) = c"cuMemcpyPeer" 4000;
    streamed memcpy_peer_async(DevicePtr, Handle, DevicePtr, Handle, usize, Handle) = c"cuMemcpyPeerAsync" 4000;
    streamed memcpy_2d(*const Copy2D) = c"cuMemcpy2DUnaligned" 3020;
    streamed memcpy_2d_async(*const Copy2D, Handle) = c"cuMemcpy2DAsync" 3020;
    streamed memcpy_3d(*const Copy3D) = c"cuMemcpy3D" 3020;
    streamed memcpy_3d_async(*const Copy3D, Handle) = c"cuMemcpy3DAsync" 3020;
    streamed memset_d8(DevicePtr, u8, usize) = c"cuMemsetD8" 3020;
    streamed memset_d8_async(DevicePtr, u8, usize, Handle) = c"cuMemsetD8Async" 3020;
    streamed memset_d2d8(DevicePtr, usize, u8, usize, usize) = c"cuMemsetD2D8" 3020;
    streamed memset_d2d8_async(DevicePtr, usize, u8, usize, usize, Handle) = c"cuMemsetD2D8Async" 3020;

    // Kernels
    plain library_load_data(*mut Handle, *const c_void, *const c_int, *const *mut c_void, c_uint, *const c_int, *const *mut c_void, c_uint) = c"cuLibraryLoadData" 12000;
    plain library_unload(Handle) = c"cuLibraryUnload" 12000;
    plain library_get_kernel(*mut Handle, Handle, *const c_char) = c"cuLibraryGetKernel" 12000;
    plain library_get_global(*mut DevicePtr, *mut usize, Handle, *const c_char) = c"cuLibraryGetGlobal" 12000;
    plain library_get_managed(*mut DevicePtr, *mut usize, Handle, *const c_char) = c"cuLibraryGetManaged" 12000;
    plain func_get_attribute(*mut c_int, c_int, Handle) = c"cuFuncGetAttribute" 2020;
    plain func_set_attribute(Handle, c_int, c_int) = c"cuFuncSetAttribute" 9000;
    plain func_set_cache_config(Handle, c_int) = c"cuFuncSetCacheConfig" 3000;
    plain func_set_shared_mem_config(Handle, c_int) = c"cuFuncSetSharedMemConfig" 4020;
    plain func_get_name(*mut *const c_char, Handle) = c"cuFuncGetName" 12030;
    plain func_get_param_info(Handle, usize, *mut usize, *mut usize) = c"cuFuncGetParamInfo" 12040;
    streamed launch_kernel(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *const *const c_void, *const *const c_void) = c"cuLaunchKernel" 4000;
    streamed launch_kernel_ex(*const LaunchConfig, Handle, *const *const c_void, *const *const c_void) = c"cuLaunchKernelEx" 11060;
    plain occupancy_max_active_blocks(*mut c_int, Handle, c_int, usize, c_uint) = c"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" 7000;
    plain occupancy_available_dynamic_shared(*mut usize, Handle, c_int, c_int) = c"cuOccupancyAvailableDynamicSMemPerBlock" 10020;

    // Streams and events
    plain stream_create(*mut Handle, c_uint) = c"cuStreamCreate" 2000;
    plain stream_create_with_priority(*mut Handle, c_uint, c_int) = c"cuStreamCreateWithPriority" 5050;
    plain stream_destroy(Handle) = c"cuStreamDestroy" 4000;
    streamed stream_get_flags(Handle, *mut c_uint) = c"cuStreamGetFlags" 5050;
    streamed stream_get_priority(Handle, *mut c_int) = c"cuStreamGetPriority" 5050;
    streamed stream_get_id(Handle, *mut u64) = c"cuStreamGetId" 12000;
    streamed stream_get_device(Handle, *mut c_int) = c"cuStreamGetDevice" 12080;
    streamed stream_is_capturing(Handle, *mut c_int) = c"cuStreamIsCapturing" 10000;
    streamed stream_synchronize(Handle) = c"cuStreamSynchronize" 2000;
    streamed stream_query(Handle) = c"cuStreamQuery" 2000;
    streamed stream_wait_event(Handle, Handle, c_uint) = c"cuStreamWaitEvent" 3020;
    streamed stream_add_callback(Handle, StreamCallback, *mut c_void, c_uint) = c"cuStreamAddCallback" 5000;
    streamed launch_host_func(Handle, HostFn, *mut c_void) = c"cuLaunchHostFunc" 10000;
    plain event_create(*mut Handle, c_uint) = c"cuEventCreate" 2000;
    plain event_destroy(Handle) = c"cuEventDestroy" 4000;
    streamed event_record(Handle, Handle) = c"cuEventRecord" 2000;
    streamed event_record_with_flags(Handle, Handle, c_uint) = c"cuEventRecordWithFlags" 11010;
    plain event_synchronize(Handle) = c"cuEventSynchronize" 2000;
    plain event_query(Handle) = c"cuEventQuery" 2000;
    plain event_elapsed_time(*mut f32, Handle, Handle) = c"cuEventElapsedTime" 12080;
}

/// `CUhostFn`, `cudaHostFn_t`
pub type HostFn = Option<unsafe extern "C" fn(*mut c_void)>;
/// `CUstreamCallback`, `cudaStreamCallback_t`
pub type StreamCallback = Option<unsafe extern "C" fn(*mut c_void, c_int, *mut c_void)>;

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
    // SAFETY: dlerror has no preconditions; its text is valid until the next dl call of this thread.
    let text = unsafe { libc::dlerror() };
    // SAFETY: as above.
    if text.is_null() {
        "unknown error".to_owned()
    } else {
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
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
        open().map_err(|problem| eprintln!("uma-device: the driver library libcuda.so.1 can't be used: {problem}")).ok()
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
