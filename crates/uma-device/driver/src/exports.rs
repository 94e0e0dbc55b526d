//! The table of exported functions. A row is the name (and, after `|`, the name of the variant whose null stream is the thread's own), the name
//! without its version and the first CUDA version that has this form, the arguments, and the function of [`api`](crate::api) that does the
//! work. A row makes one exported function that decides nothing. A test compares the table with CUDA's headers.

#![allow(clippy::too_many_arguments, reason = "the arguments are CUDA's")]
#![allow(non_snake_case, reason = "the names are CUDA's")]

use crate::api::copy::{Copy2D, Copy3D};
use crate::api::hints::Location;
use crate::api::launch::LaunchConfig;
use crate::api::memory::DevicePtr;
use crate::api::occupancy::SharedOf;
use crate::api::{
    Needs, call, context, copy, device, event, hints, kernel, launch, memory, memset, module, occupancy, pointer, pool,
    stream,
};
use crate::proc_address::{self, Row};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// `CUcontext`, `CUstream`, `CUevent`, `CUmodule`, `CUlibrary`, `CUfunction`, `CUkernel`, `CUmemoryPool`
type Handle = *mut c_void;
/// `CUhostFn`
type HostFn = Option<unsafe extern "C" fn(*mut c_void)>;
/// `CUstreamCallback`
type StreamCallback = Option<unsafe extern "C" fn(*mut c_void, c_int, *mut c_void)>;

macro_rules! exports {
    (@one $needs:ident $name:ident, $per_thread:literal, ($($argument:ident: $type:ty),*), $target:path) => {
        /// As CUDA's documentation says.
        ///
        /// # Safety
        /// Pointers are null or what CUDA's documentation asks for.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's promise is passed on.
            call($per_thread, Needs::$needs, |context| unsafe { $target(context, $($argument),*) })
        }
    };
    (@both $needs:ident ($name:ident,) $arguments:tt $target:path) => {
        exports!(@one $needs $name, false, $arguments, $target);
    };
    (@both $needs:ident ($name:ident, $own:ident) $arguments:tt $target:path) => {
        exports!(@one $needs $name, false, $arguments, $target);
        exports!(@one $needs $own, true, $arguments, $target);
    };
    (@address ) => { None };
    (@address $own:ident) => { Some((stringify!($own), $own as *const () as usize)) };
    ($table:ident, $needs:ident; $($name:ident $(| $own:ident)? = $base:literal $since:literal ($($arguments:tt)*) $target:path;)*) => {
        $(
            exports!(@both $needs ($name, $($own)?) ($($arguments)*) $target);
        )*
        fn $table() -> Vec<Row> {
            vec![$(Row {
                base: $base,
                since: $since,
                plain: (stringify!($name), $name as *const () as usize),
                per_thread: exports!(@address $($own)?),
            }),*]
        }
    };
}

exports! { anytime, Nothing;
    cuInit = "cuInit" 2000 (flags: c_uint) device::init;
    cuDriverGetVersion = "cuDriverGetVersion" 2020 (target: *mut c_int) device::get_version;
    cuGetErrorName = "cuGetErrorName" 6000 (code: c_int, target: *mut *const c_char) device::get_error_name;
    cuGetErrorString = "cuGetErrorString" 6000 (code: c_int, target: *mut *const c_char) device::get_error_string;
    cuGetProcAddress = "cuGetProcAddress" 11030 (symbol: *const c_char, target: *mut *mut c_void, version: c_int, flags: u64) proc_address::get_proc_address;
    cuGetProcAddress_v2 = "cuGetProcAddress" 12000 (symbol: *const c_char, target: *mut *mut c_void, version: c_int, flags: u64, status: *mut c_int) proc_address::get_proc_address_v2;
    cuModuleGetLoadingMode = "cuModuleGetLoadingMode" 11070 (target: *mut c_int) module::get_loading_mode;
    cuProfilerStart = "cuProfilerStart" 4000 () context::profiler;
    cuProfilerStop = "cuProfilerStop" 4000 () context::profiler;
}

exports! { initialised, Init;
    // Devices
    cuDeviceGet = "cuDeviceGet" 2000 (target: *mut c_int, ordinal: c_int) device::get;
    cuDeviceGetCount = "cuDeviceGetCount" 2000 (target: *mut c_int) device::get_count;
    cuDeviceGetName = "cuDeviceGetName" 2000 (target: *mut c_char, room: c_int, device: c_int) device::get_name;
    cuDeviceGetUuid = "cuDeviceGetUuid" 9020 (target: *mut [u8; 16], device: c_int) device::get_uuid;
    cuDeviceGetUuid_v2 = "cuDeviceGetUuid" 11040 (target: *mut [u8; 16], device: c_int) device::get_uuid;
    cuDeviceTotalMem_v2 = "cuDeviceTotalMem" 3020 (target: *mut usize, device: c_int) device::total_mem;
    cuDeviceGetAttribute = "cuDeviceGetAttribute" 2000 (target: *mut c_int, attribute: c_int, device: c_int) device::get_attribute;
    cuDeviceComputeCapability = "cuDeviceComputeCapability" 2000 (major: *mut c_int, minor: *mut c_int, device: c_int) device::compute_capability;
    cuDeviceGetPCIBusId = "cuDeviceGetPCIBusId" 4010 (target: *mut c_char, room: c_int, device: c_int) device::get_pci_bus_id;
    cuDeviceCanAccessPeer = "cuDeviceCanAccessPeer" 4000 (target: *mut c_int, device: c_int, peer: c_int) device::can_access_peer;
    cuDeviceGetDefaultMemPool = "cuDeviceGetDefaultMemPool" 11020 (target: *mut Handle, device: c_int) pool::device_get;
    cuDeviceGetMemPool = "cuDeviceGetMemPool" 11020 (target: *mut Handle, device: c_int) pool::device_get;
    cuDeviceSetMemPool = "cuDeviceSetMemPool" 11020 (device: c_int, pool: Handle) pool::device_set;

    // Contexts
    cuDevicePrimaryCtxRetain = "cuDevicePrimaryCtxRetain" 7000 (target: *mut Handle, device: c_int) context::primary_retain;
    cuDevicePrimaryCtxRelease = "cuDevicePrimaryCtxRelease" 7000 (device: c_int) context::primary_release;
    cuDevicePrimaryCtxRelease_v2 = "cuDevicePrimaryCtxRelease" 11000 (device: c_int) context::primary_release;
    cuDevicePrimaryCtxReset = "cuDevicePrimaryCtxReset" 7000 (device: c_int) context::primary_reset;
    cuDevicePrimaryCtxReset_v2 = "cuDevicePrimaryCtxReset" 11000 (device: c_int) context::primary_reset;
    cuDevicePrimaryCtxSetFlags = "cuDevicePrimaryCtxSetFlags" 7000 (device: c_int, flags: c_uint) context::primary_set_flags;
    cuDevicePrimaryCtxSetFlags_v2 = "cuDevicePrimaryCtxSetFlags" 11000 (device: c_int, flags: c_uint) context::primary_set_flags;
    cuDevicePrimaryCtxGetState = "cuDevicePrimaryCtxGetState" 7000 (device: c_int, flags: *mut c_uint, active: *mut c_int) context::primary_get_state;
    cuCtxCreate_v2 = "cuCtxCreate" 3020 (target: *mut Handle, flags: c_uint, device: c_int) context::create;
    cuCtxCreate_v4 = "cuCtxCreate" 12050 (target: *mut Handle, parameters: *const c_void, flags: c_uint, device: c_int) context::create_with;
    cuCtxDestroy_v2 = "cuCtxDestroy" 4000 (context: Handle) context::destroy;
    cuCtxPushCurrent_v2 = "cuCtxPushCurrent" 4000 (context: Handle) context::push_current;
    cuCtxSetCurrent = "cuCtxSetCurrent" 4000 (context: Handle) context::set_current;
    cuCtxGetCurrent = "cuCtxGetCurrent" 4000 (target: *mut Handle) context::get_current;
    cuCtxGetApiVersion = "cuCtxGetApiVersion" 3020 (context: Handle, target: *mut c_uint) context::get_api_version;
    cuCtxSynchronize_v2 = "cuCtxSynchronize" 13000 (context: Handle) context::synchronize_of;
    cuCtxGetDevice_v2 = "cuCtxGetDevice" 13000 (target: *mut c_int, context: Handle) context::get_device_of;
    cuCtxGetId = "cuCtxGetId" 12000 (context: Handle, target: *mut u64) context::get_id;

    // Libraries: they need no context until something of them is used
    cuLibraryLoadData = "cuLibraryLoadData" 12000 (target: *mut Handle, data: *const c_void, jit_options: *const c_int, jit_values: *const *mut c_void, jit_count: c_uint, options: *const c_int, values: *const *mut c_void, count: c_uint) module::library_load_data;
    cuLibraryLoadFromFile = "cuLibraryLoadFromFile" 12000 (target: *mut Handle, path: *const c_char, jit_options: *const c_int, jit_values: *const *mut c_void, jit_count: c_uint, options: *const c_int, values: *const *mut c_void, count: c_uint) module::library_load_from_file;
    cuLibraryUnload = "cuLibraryUnload" 12000 (library: Handle) module::unload;
    cuLibraryGetKernel = "cuLibraryGetKernel" 12000 (target: *mut Handle, library: Handle, name: *const c_char) module::get_function;
    cuLibraryGetKernelCount = "cuLibraryGetKernelCount" 12040 (target: *mut c_uint, library: Handle) module::get_function_count;
    cuLibraryEnumerateKernels = "cuLibraryEnumerateKernels" 12040 (target: *mut Handle, room: c_uint, library: Handle) module::enumerate_functions;
    cuLibraryGetModule = "cuLibraryGetModule" 12000 (target: *mut Handle, library: Handle) module::library_get_module;
    cuKernelGetFunction = "cuKernelGetFunction" 12000 (target: *mut Handle, kernel: Handle) kernel::get_function;
    cuKernelGetLibrary = "cuKernelGetLibrary" 12050 (target: *mut Handle, kernel: Handle) kernel::get_module;
    cuKernelGetAttribute = "cuKernelGetAttribute" 12000 (target: *mut c_int, attribute: c_int, kernel: Handle, device: c_int) kernel::kernel_get_attribute;
    cuKernelSetAttribute = "cuKernelSetAttribute" 12000 (attribute: c_int, value: c_int, kernel: Handle, device: c_int) kernel::kernel_set_attribute;
    cuKernelSetCacheConfig = "cuKernelSetCacheConfig" 12000 (kernel: Handle, config: c_int, device: c_int) kernel::kernel_set_hint;
    cuKernelGetName = "cuKernelGetName" 12030 (target: *mut *const c_char, kernel: Handle) kernel::get_name;
    cuKernelGetParamInfo = "cuKernelGetParamInfo" 12040 (kernel: Handle, index: usize, offset: *mut usize, bytes: *mut usize) kernel::get_param_info;
}

exports! { current, Current;
    // Contexts
    cuCtxPopCurrent_v2 = "cuCtxPopCurrent" 4000 (target: *mut Handle) context::pop_current;
    cuCtxGetDevice = "cuCtxGetDevice" 2000 (target: *mut c_int) context::get_device;
    cuCtxGetFlags = "cuCtxGetFlags" 7000 (target: *mut c_uint) context::get_flags;
    cuCtxSynchronize = "cuCtxSynchronize" 2000 () context::synchronize;
    cuCtxSetLimit = "cuCtxSetLimit" 3010 (limit: c_int, value: usize) context::set_limit;
    cuCtxGetLimit = "cuCtxGetLimit" 3010 (target: *mut usize, limit: c_int) context::get_limit;
    cuCtxSetCacheConfig = "cuCtxSetCacheConfig" 3020 (config: c_int) context::set_hint;
    cuCtxGetCacheConfig = "cuCtxGetCacheConfig" 3020 (target: *mut c_int) context::get_hint;
    cuCtxSetSharedMemConfig = "cuCtxSetSharedMemConfig" 4020 (config: c_int) context::set_hint;
    cuCtxGetSharedMemConfig = "cuCtxGetSharedMemConfig" 4020 (target: *mut c_int) context::get_hint;
    cuCtxGetStreamPriorityRange = "cuCtxGetStreamPriorityRange" 5050 (least: *mut c_int, greatest: *mut c_int) context::get_stream_priority_range;

    // Memory
    cuMemAlloc_v2 = "cuMemAlloc" 3020 (target: *mut DevicePtr, bytes: usize) memory::alloc;
    cuMemAllocManaged = "cuMemAllocManaged" 6000 (target: *mut DevicePtr, bytes: usize, flags: c_uint) memory::alloc_managed;
    cuMemAllocPitch_v2 = "cuMemAllocPitch" 3020 (target: *mut DevicePtr, pitch: *mut usize, width: usize, height: usize, element: c_uint) memory::alloc_pitch;
    cuMemAllocHost_v2 = "cuMemAllocHost" 3020 (target: *mut *mut c_void, bytes: usize) memory::alloc_host;
    cuMemHostAlloc = "cuMemHostAlloc" 2020 (target: *mut *mut c_void, bytes: usize, flags: c_uint) memory::host_alloc;
    cuMemAllocAsync | cuMemAllocAsync_ptsz = "cuMemAllocAsync" 11020 (target: *mut DevicePtr, bytes: usize, stream: Handle) memory::alloc_async;
    cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz = "cuMemAllocFromPoolAsync" 11020 (target: *mut DevicePtr, bytes: usize, pool: Handle, stream: Handle) pool::alloc_from;
    cuMemFree_v2 = "cuMemFree" 3020 (address: DevicePtr) memory::free;
    cuMemFreeHost = "cuMemFreeHost" 2000 (address: *mut c_void) memory::free_host;
    cuMemFreeAsync | cuMemFreeAsync_ptsz = "cuMemFreeAsync" 11020 (address: DevicePtr, stream: Handle) memory::free_async;
    cuMemHostRegister_v2 = "cuMemHostRegister" 6050 (address: *mut c_void, bytes: usize, flags: c_uint) memory::host_register;
    cuMemHostUnregister = "cuMemHostUnregister" 4000 (address: *mut c_void) memory::host_unregister;
    cuMemHostGetDevicePointer_v2 = "cuMemHostGetDevicePointer" 3020 (target: *mut DevicePtr, address: *mut c_void, flags: c_uint) memory::host_get_device_pointer;
    cuMemHostGetFlags = "cuMemHostGetFlags" 2030 (target: *mut c_uint, address: *mut c_void) memory::host_get_flags;
    cuMemGetInfo_v2 = "cuMemGetInfo" 3020 (free: *mut usize, total: *mut usize) memory::get_info;
    cuMemGetAddressRange_v2 = "cuMemGetAddressRange" 3020 (base: *mut DevicePtr, bytes: *mut usize, address: DevicePtr) memory::get_address_range;
    cuPointerGetAttribute = "cuPointerGetAttribute" 4000 (data: *mut c_void, attribute: c_int, address: DevicePtr) pointer::get_attribute;
    cuPointerGetAttributes = "cuPointerGetAttributes" 7000 (count: c_uint, attributes: *const c_int, data: *const *mut c_void, address: DevicePtr) pointer::get_attributes;
    cuMemPrefetchAsync | cuMemPrefetchAsync_ptsz = "cuMemPrefetchAsync" 8000 (address: DevicePtr, bytes: usize, device: c_int, stream: Handle) hints::prefetch_async_to;
    cuMemPrefetchAsync_v2 | cuMemPrefetchAsync_v2_ptsz = "cuMemPrefetchAsync" 12020 (address: DevicePtr, bytes: usize, location: Location, flags: c_uint, stream: Handle) hints::prefetch_async;
    cuMemAdvise = "cuMemAdvise" 8000 (address: DevicePtr, bytes: usize, advice: c_int, device: c_int) hints::advise_for;
    cuMemAdvise_v2 = "cuMemAdvise" 12020 (address: DevicePtr, bytes: usize, advice: c_int, location: Location) hints::advise;
    cuStreamAttachMemAsync | cuStreamAttachMemAsync_ptsz = "cuStreamAttachMemAsync" 6000 (stream: Handle, address: DevicePtr, bytes: usize, flags: c_uint) hints::attach_async;
    cuMemPoolTrimTo = "cuMemPoolTrimTo" 11020 (pool: Handle, keep: usize) pool::trim_to;
    cuMemPoolSetAttribute = "cuMemPoolSetAttribute" 11020 (pool: Handle, attribute: c_int, value: *const c_void) pool::set_attribute;
    cuMemPoolGetAttribute = "cuMemPoolGetAttribute" 11020 (pool: Handle, attribute: c_int, value: *mut c_void) pool::get_attribute;

    // Copies
    cuMemcpy | cuMemcpy_ptds = "cuMemcpy" 4000 (to: DevicePtr, from: DevicePtr, bytes: usize) copy::memcpy;
    cuMemcpyAsync | cuMemcpyAsync_ptsz = "cuMemcpyAsync" 4000 (to: DevicePtr, from: DevicePtr, bytes: usize, stream: Handle) copy::memcpy_async;
    cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds = "cuMemcpyHtoD" 3020 (to: DevicePtr, from: *const c_void, bytes: usize) copy::memcpy_htod;
    cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz = "cuMemcpyHtoDAsync" 3020 (to: DevicePtr, from: *const c_void, bytes: usize, stream: Handle) copy::memcpy_htod_async;
    cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds = "cuMemcpyDtoH" 3020 (to: *mut c_void, from: DevicePtr, bytes: usize) copy::memcpy_dtoh;
    cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz = "cuMemcpyDtoHAsync" 3020 (to: *mut c_void, from: DevicePtr, bytes: usize, stream: Handle) copy::memcpy_dtoh_async;
    cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptds = "cuMemcpyDtoD" 3020 (to: DevicePtr, from: DevicePtr, bytes: usize) copy::memcpy_dtod;
    cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz = "cuMemcpyDtoDAsync" 3020 (to: DevicePtr, from: DevicePtr, bytes: usize, stream: Handle) copy::memcpy_dtod_async;
    cuMemcpyPeer | cuMemcpyPeer_ptds = "cuMemcpyPeer" 4000 (to: DevicePtr, to_context: Handle, from: DevicePtr, from_context: Handle, bytes: usize) copy::memcpy_peer;
    cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz = "cuMemcpyPeerAsync" 4000 (to: DevicePtr, to_context: Handle, from: DevicePtr, from_context: Handle, bytes: usize, stream: Handle) copy::memcpy_peer_async;
    cuMemcpy2D_v2 | cuMemcpy2D_v2_ptds = "cuMemcpy2D" 3020 (copy: *const Copy2D) copy::memcpy_2d;
    cuMemcpy2DUnaligned_v2 | cuMemcpy2DUnaligned_v2_ptds = "cuMemcpy2DUnaligned" 3020 (copy: *const Copy2D) copy::memcpy_2d;
    cuMemcpy2DAsync_v2 | cuMemcpy2DAsync_v2_ptsz = "cuMemcpy2DAsync" 3020 (copy: *const Copy2D, stream: Handle) copy::memcpy_2d_async;
    cuMemcpy3D_v2 | cuMemcpy3D_v2_ptds = "cuMemcpy3D" 3020 (copy: *const Copy3D) copy::memcpy_3d;
    cuMemcpy3DAsync_v2 | cuMemcpy3DAsync_v2_ptsz = "cuMemcpy3DAsync" 3020 (copy: *const Copy3D, stream: Handle) copy::memcpy_3d_async;

    // Memsets
    cuMemsetD8_v2 | cuMemsetD8_v2_ptds = "cuMemsetD8" 3020 (to: DevicePtr, value: u8, count: usize) memset::d8;
    cuMemsetD8Async | cuMemsetD8Async_ptsz = "cuMemsetD8Async" 3020 (to: DevicePtr, value: u8, count: usize, stream: Handle) memset::d8_async;
    cuMemsetD2D8_v2 | cuMemsetD2D8_v2_ptds = "cuMemsetD2D8" 3020 (to: DevicePtr, pitch: usize, value: u8, width: usize, height: usize) memset::d2d8;
    cuMemsetD2D8Async | cuMemsetD2D8Async_ptsz = "cuMemsetD2D8Async" 3020 (to: DevicePtr, pitch: usize, value: u8, width: usize, height: usize, stream: Handle) memset::d2d8_async;
    cuMemsetD16_v2 | cuMemsetD16_v2_ptds = "cuMemsetD16" 3020 (to: DevicePtr, value: u16, count: usize) memset::d16;
    cuMemsetD16Async | cuMemsetD16Async_ptsz = "cuMemsetD16Async" 3020 (to: DevicePtr, value: u16, count: usize, stream: Handle) memset::d16_async;
    cuMemsetD2D16_v2 | cuMemsetD2D16_v2_ptds = "cuMemsetD2D16" 3020 (to: DevicePtr, pitch: usize, value: u16, width: usize, height: usize) memset::d2d16;
    cuMemsetD2D16Async | cuMemsetD2D16Async_ptsz = "cuMemsetD2D16Async" 3020 (to: DevicePtr, pitch: usize, value: u16, width: usize, height: usize, stream: Handle) memset::d2d16_async;
    cuMemsetD32_v2 | cuMemsetD32_v2_ptds = "cuMemsetD32" 3020 (to: DevicePtr, value: u32, count: usize) memset::d32;
    cuMemsetD32Async | cuMemsetD32Async_ptsz = "cuMemsetD32Async" 3020 (to: DevicePtr, value: u32, count: usize, stream: Handle) memset::d32_async;
    cuMemsetD2D32_v2 | cuMemsetD2D32_v2_ptds = "cuMemsetD2D32" 3020 (to: DevicePtr, pitch: usize, value: u32, width: usize, height: usize) memset::d2d32;
    cuMemsetD2D32Async | cuMemsetD2D32Async_ptsz = "cuMemsetD2D32Async" 3020 (to: DevicePtr, pitch: usize, value: u32, width: usize, height: usize, stream: Handle) memset::d2d32_async;

    // Modules
    cuModuleLoad = "cuModuleLoad" 2000 (target: *mut Handle, path: *const c_char) module::load;
    cuModuleLoadData = "cuModuleLoadData" 2000 (target: *mut Handle, data: *const c_void) module::load_data;
    cuModuleLoadDataEx = "cuModuleLoadDataEx" 2010 (target: *mut Handle, data: *const c_void, count: c_uint, options: *const c_int, values: *const *mut c_void) module::load_data_ex;
    cuModuleLoadFatBinary = "cuModuleLoadFatBinary" 2000 (target: *mut Handle, data: *const c_void) module::load_data;
    cuModuleUnload = "cuModuleUnload" 2000 (module: Handle) module::unload;
    cuModuleGetFunction = "cuModuleGetFunction" 2000 (target: *mut Handle, module: Handle, name: *const c_char) module::get_function;
    cuModuleGetFunctionCount = "cuModuleGetFunctionCount" 12040 (target: *mut c_uint, module: Handle) module::get_function_count;
    cuModuleEnumerateFunctions = "cuModuleEnumerateFunctions" 12040 (target: *mut Handle, room: c_uint, module: Handle) module::enumerate_functions;
    cuModuleGetGlobal_v2 = "cuModuleGetGlobal" 3020 (address: *mut DevicePtr, bytes: *mut usize, module: Handle, name: *const c_char) module::get_global;
    cuLibraryGetGlobal = "cuLibraryGetGlobal" 12000 (address: *mut DevicePtr, bytes: *mut usize, library: Handle, name: *const c_char) module::get_global;
    cuLibraryGetManaged = "cuLibraryGetManaged" 12000 (address: *mut DevicePtr, bytes: *mut usize, library: Handle, name: *const c_char) module::get_managed;

    // Kernels
    cuFuncGetAttribute = "cuFuncGetAttribute" 2020 (target: *mut c_int, attribute: c_int, function: Handle) kernel::get_attribute;
    cuFuncSetAttribute = "cuFuncSetAttribute" 9000 (function: Handle, attribute: c_int, value: c_int) kernel::set_attribute;
    cuFuncSetCacheConfig = "cuFuncSetCacheConfig" 3000 (function: Handle, config: c_int) kernel::set_hint;
    cuFuncSetSharedMemConfig = "cuFuncSetSharedMemConfig" 4020 (function: Handle, config: c_int) kernel::set_hint;
    cuFuncGetName = "cuFuncGetName" 12030 (target: *mut *const c_char, function: Handle) kernel::get_name;
    cuFuncGetParamInfo = "cuFuncGetParamInfo" 12040 (function: Handle, index: usize, offset: *mut usize, bytes: *mut usize) kernel::get_param_info;
    cuFuncGetModule = "cuFuncGetModule" 11000 (target: *mut Handle, function: Handle) kernel::get_module;
    cuFuncIsLoaded = "cuFuncIsLoaded" 12040 (target: *mut c_int, function: Handle) kernel::is_loaded;
    cuFuncLoad = "cuFuncLoad" 12040 (function: Handle) kernel::load;
    cuLaunchKernel | cuLaunchKernel_ptsz = "cuLaunchKernel" 4000 (function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle, arguments: *const *const c_void, extra: *const *const c_void) launch::launch_kernel;
    cuLaunchKernelEx | cuLaunchKernelEx_ptsz = "cuLaunchKernelEx" 11060 (config: *const LaunchConfig, function: Handle, arguments: *const *const c_void, extra: *const *const c_void) launch::launch_kernel_ex;
    cuOccupancyMaxActiveBlocksPerMultiprocessor = "cuOccupancyMaxActiveBlocksPerMultiprocessor" 6050 (target: *mut c_int, function: Handle, threads: c_int, shared: usize) occupancy::max_active_blocks;
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags = "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" 7000 (target: *mut c_int, function: Handle, threads: c_int, shared: usize, flags: c_uint) occupancy::max_active_blocks_with_flags;
    cuOccupancyMaxPotentialBlockSize = "cuOccupancyMaxPotentialBlockSize" 6050 (grid: *mut c_int, threads: *mut c_int, function: Handle, shared_of: SharedOf, shared: usize, limit: c_int) occupancy::max_potential_block_size;
    cuOccupancyMaxPotentialBlockSizeWithFlags = "cuOccupancyMaxPotentialBlockSizeWithFlags" 7000 (grid: *mut c_int, threads: *mut c_int, function: Handle, shared_of: SharedOf, shared: usize, limit: c_int, flags: c_uint) occupancy::max_potential_block_size_with_flags;
    cuOccupancyAvailableDynamicSMemPerBlock = "cuOccupancyAvailableDynamicSMemPerBlock" 10020 (target: *mut usize, function: Handle, blocks: c_int, threads: c_int) occupancy::available_dynamic_shared;

    // Streams
    cuStreamCreate = "cuStreamCreate" 2000 (target: *mut Handle, flags: c_uint) stream::create;
    cuStreamCreateWithPriority = "cuStreamCreateWithPriority" 5050 (target: *mut Handle, flags: c_uint, priority: c_int) stream::create_with_priority;
    cuStreamDestroy_v2 = "cuStreamDestroy" 4000 (stream: Handle) stream::destroy;
    cuStreamGetFlags | cuStreamGetFlags_ptsz = "cuStreamGetFlags" 5050 (stream: Handle, target: *mut c_uint) stream::get_flags;
    cuStreamGetPriority | cuStreamGetPriority_ptsz = "cuStreamGetPriority" 5050 (stream: Handle, target: *mut c_int) stream::get_priority;
    cuStreamGetId | cuStreamGetId_ptsz = "cuStreamGetId" 12000 (stream: Handle, target: *mut u64) stream::get_id;
    cuStreamGetDevice | cuStreamGetDevice_ptsz = "cuStreamGetDevice" 12080 (stream: Handle, target: *mut c_int) stream::get_device;
    cuStreamGetCtx | cuStreamGetCtx_ptsz = "cuStreamGetCtx" 9020 (stream: Handle, target: *mut Handle) stream::get_context;
    cuStreamIsCapturing | cuStreamIsCapturing_ptsz = "cuStreamIsCapturing" 10000 (stream: Handle, target: *mut c_int) stream::is_capturing;
    cuStreamSynchronize | cuStreamSynchronize_ptsz = "cuStreamSynchronize" 2000 (stream: Handle) stream::synchronize;
    cuStreamQuery | cuStreamQuery_ptsz = "cuStreamQuery" 2000 (stream: Handle) stream::query;
    cuStreamWaitEvent | cuStreamWaitEvent_ptsz = "cuStreamWaitEvent" 3020 (stream: Handle, event: Handle, flags: c_uint) stream::wait_event;
    cuStreamAddCallback | cuStreamAddCallback_ptsz = "cuStreamAddCallback" 5000 (stream: Handle, function: StreamCallback, data: *mut c_void, flags: c_uint) stream::add_callback;
    cuLaunchHostFunc | cuLaunchHostFunc_ptsz = "cuLaunchHostFunc" 10000 (stream: Handle, function: HostFn, data: *mut c_void) stream::launch_host_func;

    // Events
    cuEventCreate = "cuEventCreate" 2000 (target: *mut Handle, flags: c_uint) event::create;
    cuEventDestroy_v2 = "cuEventDestroy" 4000 (event: Handle) event::destroy;
    cuEventRecord | cuEventRecord_ptsz = "cuEventRecord" 2000 (event: Handle, stream: Handle) event::record;
    cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz = "cuEventRecordWithFlags" 11010 (event: Handle, stream: Handle, flags: c_uint) event::record_with_flags;
    cuEventSynchronize = "cuEventSynchronize" 2000 (event: Handle) event::synchronize;
    cuEventQuery = "cuEventQuery" 2000 (event: Handle) event::query;
    cuEventElapsedTime = "cuEventElapsedTime" 2000 (target: *mut f32, start: Handle, end: Handle) event::elapsed_time;
    cuEventElapsedTime_v2 = "cuEventElapsedTime" 12080 (target: *mut f32, start: Handle, end: Handle) event::elapsed_time;
}

/// All rows.
pub fn rows() -> Vec<Row> {
    [anytime(), initialised(), current()].concat()
}
