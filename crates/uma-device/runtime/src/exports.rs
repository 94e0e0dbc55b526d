//! The table of exported functions. A row is the name (and, after `|`, the name of the variant whose null stream is the thread's own), the
//! arguments, and the function of [`api`](crate::api) that does the work. A row makes one exported function that decides nothing.
//!
//! At the end: every other function of CUDA 13's runtime, refused with `cudaErrorNotSupported`. A test compares the table with the headers.

#![allow(clippy::too_many_arguments, reason = "the arguments are CUDA's")]
#![allow(non_snake_case, reason = "the names are CUDA's")]

use crate::api::launch::{Dim3, FuncAttributes, LaunchConfig};
use crate::api::memory::{Extent, PitchedPtr, PointerAttributes};
use crate::api::properties::Properties;
use crate::api::{
    call, copy, device, entry_point, error, event, launch, memory, memset, not_supported, occupancy, pool, properties,
    registration, stream, symbol,
};
use crate::driver::{HostFn, Location, StreamCallback};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// `cudaStream_t`
type Stream = *mut c_void;
/// `cudaEvent_t`
type Event = *mut c_void;
/// `cudaMemPool_t`
type Pool = *mut c_void;

macro_rules! exports {
    (@both ($name:ident,) $arguments:tt $target:path) => {
        exports!(@one $name, false, $arguments, $target);
    };
    (@both ($name:ident, $own:ident) $arguments:tt $target:path) => {
        exports!(@one $name, false, $arguments, $target);
        exports!(@one $own, true, $arguments, $target);
    };
    (@one $name:ident, $per_thread:literal, ($($argument:ident: $type:ty),*), $target:path) => {
        /// As CUDA's documentation says.
        ///
        /// # Safety
        /// Pointers are null or what CUDA's documentation asks for.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's promise is passed on.
            call($per_thread, |context| unsafe { $target(context, $($argument),*) })
        }
    };
    ($($name:ident $(| $own:ident)? ($($arguments:tt)*) = $target:path;)*) => {
        $(
            exports!(@both ($name, $($own)?) ($($arguments)*) $target);
        )*
        /// Names of the functions that do something.
        pub const IMPLEMENTED: &[&str] = &[$(stringify!($name), $(stringify!($own),)?)*];
    };
}

exports! {
    // Memory
    cudaMalloc(target: *mut *mut c_void, bytes: usize) = memory::malloc;
    cudaMallocManaged(target: *mut *mut c_void, bytes: usize, flags: c_uint) = memory::malloc_managed;
    cudaMallocHost(target: *mut *mut c_void, bytes: usize) = memory::malloc_host;
    cudaHostAlloc(target: *mut *mut c_void, bytes: usize, flags: c_uint) = memory::host_alloc;
    cudaMallocPitch(target: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize) = memory::malloc_pitch;
    cudaMalloc3D(target: *mut PitchedPtr, extent: Extent) = memory::malloc_3d;
    cudaMallocAsync | cudaMallocAsync_ptsz(target: *mut *mut c_void, bytes: usize, stream: Stream) = memory::malloc_async;
    cudaFree(address: *mut c_void) = memory::free;
    cudaFreeHost(address: *mut c_void) = memory::free_host;
    cudaFreeAsync | cudaFreeAsync_ptsz(address: *mut c_void, stream: Stream) = memory::free_async;
    cudaHostRegister(address: *mut c_void, bytes: usize, flags: c_uint) = memory::host_register;
    cudaHostUnregister(address: *mut c_void) = memory::host_unregister;
    cudaHostGetDevicePointer(target: *mut *mut c_void, address: *mut c_void, flags: c_uint) = memory::host_get_device_pointer;
    cudaHostGetFlags(target: *mut c_uint, address: *mut c_void) = memory::host_get_flags;
    cudaMemGetInfo(free: *mut usize, total: *mut usize) = memory::mem_get_info;
    cudaPointerGetAttributes(target: *mut PointerAttributes, address: *const c_void) = memory::pointer_get_attributes;
    cudaMemPrefetchAsync | cudaMemPrefetchAsync_ptsz(address: *const c_void, bytes: usize, location: Location, flags: c_uint, stream: Stream) = memory::mem_prefetch_async;
    cudaMemAdvise(address: *const c_void, bytes: usize, advice: c_int, location: Location) = memory::mem_advise;
    cudaStreamAttachMemAsync | cudaStreamAttachMemAsync_ptsz(stream: Stream, address: *mut c_void, bytes: usize, flags: c_uint) = memory::stream_attach_mem_async;

    // Memory pools
    cudaDeviceGetDefaultMemPool(target: *mut Pool, device: c_int) = pool::device_get_default;
    cudaDeviceGetMemPool(target: *mut Pool, device: c_int) = pool::device_get;
    cudaDeviceSetMemPool(device: c_int, pool: Pool) = pool::device_set;
    cudaMallocFromPoolAsync | cudaMallocFromPoolAsync_ptsz(target: *mut *mut c_void, bytes: usize, pool: Pool, stream: Stream) = pool::malloc_from;
    cudaMemPoolTrimTo(pool: Pool, keep: usize) = pool::trim_to;
    cudaMemPoolSetAttribute(pool: Pool, attribute: c_int, value: *const c_void) = pool::set_attribute;
    cudaMemPoolGetAttribute(pool: Pool, attribute: c_int, value: *mut c_void) = pool::get_attribute;

    // Copies and memsets
    cudaMemcpy | cudaMemcpy_ptds(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int) = copy::memcpy;
    cudaMemcpyAsync | cudaMemcpyAsync_ptsz(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int, stream: Stream) = copy::memcpy_async;
    cudaMemcpyPeer(to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, bytes: usize) = copy::memcpy_peer;
    cudaMemcpyPeerAsync(to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, bytes: usize, stream: Stream) = copy::memcpy_peer_async;
    cudaMemcpy2D | cudaMemcpy2D_ptds(to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: c_int) = copy::memcpy_2d;
    cudaMemcpy2DAsync | cudaMemcpy2DAsync_ptsz(to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: c_int, stream: Stream) = copy::memcpy_2d_async;
    cudaMemcpy3D | cudaMemcpy3D_ptds(request: *const copy::Copy3D) = copy::memcpy_3d;
    cudaMemcpy3DAsync | cudaMemcpy3DAsync_ptsz(request: *const copy::Copy3D, stream: Stream) = copy::memcpy_3d_async;
    cudaMemset | cudaMemset_ptds(to: *mut c_void, value: c_int, bytes: usize) = memset::memset;
    cudaMemsetAsync | cudaMemsetAsync_ptsz(to: *mut c_void, value: c_int, bytes: usize, stream: Stream) = memset::memset_async;
    cudaMemset2D | cudaMemset2D_ptds(to: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) = memset::memset_2d;
    cudaMemset2DAsync | cudaMemset2DAsync_ptsz(to: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: Stream) = memset::memset_2d_async;
    cudaMemset3D | cudaMemset3D_ptds(to: PitchedPtr, value: c_int, extent: Extent) = memset::memset_3d;
    cudaMemset3DAsync | cudaMemset3DAsync_ptsz(to: PitchedPtr, value: c_int, extent: Extent, stream: Stream) = memset::memset_3d_async;

    // Device globals
    cudaGetSymbolAddress(target: *mut *mut c_void, symbol: *const c_void) = symbol::get_symbol_address;
    cudaGetSymbolSize(target: *mut usize, symbol: *const c_void) = symbol::get_symbol_size;
    cudaMemcpyToSymbol | cudaMemcpyToSymbol_ptds(symbol: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_int) = symbol::memcpy_to_symbol;
    cudaMemcpyToSymbolAsync | cudaMemcpyToSymbolAsync_ptsz(symbol: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_int, stream: Stream) = symbol::memcpy_to_symbol_async;
    cudaMemcpyFromSymbol | cudaMemcpyFromSymbol_ptds(to: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: c_int) = symbol::memcpy_from_symbol;
    cudaMemcpyFromSymbolAsync | cudaMemcpyFromSymbolAsync_ptsz(to: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: c_int, stream: Stream) = symbol::memcpy_from_symbol_async;

    // Streams
    cudaStreamCreate(target: *mut Stream) = stream::create;
    cudaStreamCreateWithFlags(target: *mut Stream, flags: c_uint) = stream::create_with_flags;
    cudaStreamCreateWithPriority(target: *mut Stream, flags: c_uint, priority: c_int) = stream::create_with_priority;
    cudaStreamDestroy(stream: Stream) = stream::destroy;
    cudaStreamGetFlags | cudaStreamGetFlags_ptsz(stream: Stream, target: *mut c_uint) = stream::get_flags;
    cudaStreamGetPriority | cudaStreamGetPriority_ptsz(stream: Stream, target: *mut c_int) = stream::get_priority;
    cudaStreamGetId | cudaStreamGetId_ptsz(stream: Stream, target: *mut u64) = stream::get_id;
    cudaStreamGetDevice | cudaStreamGetDevice_ptsz(stream: Stream, target: *mut c_int) = stream::get_device;
    cudaStreamIsCapturing | cudaStreamIsCapturing_ptsz(stream: Stream, target: *mut c_int) = stream::is_capturing;
    cudaStreamSynchronize | cudaStreamSynchronize_ptsz(stream: Stream) = stream::synchronize;
    cudaStreamQuery | cudaStreamQuery_ptsz(stream: Stream) = stream::query;
    cudaStreamWaitEvent | cudaStreamWaitEvent_ptsz(stream: Stream, event: Event, flags: c_uint) = stream::wait_event;
    cudaLaunchHostFunc | cudaLaunchHostFunc_ptsz(stream: Stream, function: HostFn, data: *mut c_void) = stream::launch_host_func;
    cudaStreamAddCallback | cudaStreamAddCallback_ptsz(stream: Stream, function: StreamCallback, data: *mut c_void, flags: c_uint) = stream::add_callback;

    // Events
    cudaEventCreate(target: *mut Event) = event::create;
    cudaEventCreateWithFlags(target: *mut Event, flags: c_uint) = event::create_with_flags;
    cudaEventDestroy(event: Event) = event::destroy;
    cudaEventRecord | cudaEventRecord_ptsz(event: Event, stream: Stream) = event::record;
    cudaEventRecordWithFlags | cudaEventRecordWithFlags_ptsz(event: Event, stream: Stream, flags: c_uint) = event::record_with_flags;
    cudaEventSynchronize(event: Event) = event::synchronize;
    cudaEventQuery(event: Event) = event::query;
    cudaEventElapsedTime(target: *mut f32, start: Event, end: Event) = event::elapsed_time;

    // Launch
    cudaLaunchKernel | cudaLaunchKernel_ptsz(function: *const c_void, grid: Dim3, block: Dim3, arguments: *const *const c_void, shared: usize, stream: Stream) = launch::launch_kernel;
    __cudaLaunchKernel | __cudaLaunchKernel_ptsz(kernel: *const c_void, grid: Dim3, block: Dim3, arguments: *const *const c_void, shared: usize, stream: Stream) = launch::launch_kernel;
    cudaLaunchKernelExC | cudaLaunchKernelExC_ptsz(config: *const LaunchConfig, function: *const c_void, arguments: *const *const c_void) = launch::launch_kernel_ex;
    __cudaPopCallConfiguration(grid: *mut Dim3, block: *mut Dim3, shared: *mut usize, stream: *mut Stream) = launch::pop_configuration;
    __cudaGetKernel(target: *mut *const c_void, function: *const c_void) = launch::get_kernel;
    cudaGetKernel(target: *mut *const c_void, function: *const c_void) = launch::get_kernel;
    cudaGetFuncBySymbol(target: *mut *const c_void, function: *const c_void) = launch::get_kernel;
    cudaFuncGetAttributes(target: *mut FuncAttributes, function: *const c_void) = launch::func_get_attributes;
    cudaFuncSetAttribute(function: *const c_void, attribute: c_int, value: c_int) = launch::func_set_attribute;
    cudaFuncSetCacheConfig(function: *const c_void, config: c_int) = launch::func_set_cache_config;
    cudaFuncSetSharedMemConfig(function: *const c_void, config: c_int) = launch::func_set_shared_mem_config;
    cudaFuncGetName(target: *mut *const c_char, function: *const c_void) = launch::func_get_name;
    cudaFuncGetParamInfo(function: *const c_void, index: usize, offset: *mut usize, bytes: *mut usize) = launch::func_get_param_info;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(target: *mut c_int, function: *const c_void, threads: c_int, shared: usize) = occupancy::max_active_blocks;
    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(target: *mut c_int, function: *const c_void, threads: c_int, shared: usize, flags: c_uint) = occupancy::max_active_blocks_with_flags;
    cudaOccupancyAvailableDynamicSMemPerBlock(target: *mut usize, function: *const c_void, blocks: c_int, threads: c_int) = occupancy::available_dynamic_shared;

    // The device
    cudaGetDeviceCount(target: *mut c_int) = device::get_device_count;
    cudaSetDevice(device: c_int) = device::set_device;
    cudaInitDevice(device: c_int, device_flags: c_uint, flags: c_uint) = device::init_device;
    cudaGetDevice(target: *mut c_int) = device::get_device;
    cudaSetValidDevices(devices: *const c_int, count: c_int) = device::set_valid_devices;
    cudaSetDeviceFlags(flags: c_uint) = device::set_device_flags;
    cudaGetDeviceFlags(target: *mut c_uint) = device::get_device_flags;
    cudaChooseDevice(target: *mut c_int, wanted: *const Properties) = properties::choose_device;
    cudaGetDeviceProperties(target: *mut Properties, device: c_int) = properties::get_device_properties;
    cudaDeviceGetAttribute(target: *mut c_int, attribute: c_int, device: c_int) = properties::device_get_attribute;
    cudaDeviceGetPCIBusId(target: *mut c_char, length: c_int, device: c_int) = properties::device_get_pci_bus_id;
    cudaDeviceSynchronize() = device::synchronize;
    cudaDeviceReset() = device::reset;
    cudaDeviceSetLimit(limit: c_int, value: usize) = device::set_limit;
    cudaDeviceGetLimit(target: *mut usize, limit: c_int) = device::get_limit;
    cudaDeviceSetCacheConfig(config: c_int) = device::set_cache_config;
    cudaDeviceGetCacheConfig(target: *mut c_int) = device::get_cache_config;
    cudaDeviceSetSharedMemConfig(config: c_int) = device::set_shared_mem_config;
    cudaDeviceGetSharedMemConfig(target: *mut c_int) = device::get_shared_mem_config;
    cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) = device::get_stream_priority_range;
    cudaDeviceCanAccessPeer(target: *mut c_int, device: c_int, peer: c_int) = device::can_access_peer;
    cudaRuntimeGetVersion(target: *mut c_int) = device::get_runtime_version;
    cudaDriverGetVersion(target: *mut c_int) = device::get_driver_version;
    cudaProfilerStart() = device::profiler_start;
    cudaProfilerStop() = device::profiler_stop;
    cudaGetDriverEntryPoint | cudaGetDriverEntryPoint_ptsz(symbol: *const c_char, target: *mut *mut c_void, flags: u64, status: *mut c_int) = entry_point::get;
    cudaGetDriverEntryPointByVersion | cudaGetDriverEntryPointByVersion_ptsz(symbol: *const c_char, target: *mut *mut c_void, version: c_uint, flags: u64, status: *mut c_int) = entry_point::get_by_version;
}

/// Names of the functions below, which have another form than those in the table.
pub const SPECIAL: &[&str] = &[
    "cudaGetLastError",
    "cudaPeekAtLastError",
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudaCreateChannelDesc",
    "__cudaPushCallConfiguration",
    "__cudaRegisterFatBinary",
    "__cudaRegisterFatBinaryEnd",
    "__cudaUnregisterFatBinary",
    "__cudaRegisterFunction",
    "__cudaRegisterVar",
    "__cudaRegisterManagedVar",
    "__cudaInitModule",
];

/// As CUDA's documentation says.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetLastError() -> c_int {
    error::get_last_error()
}

/// As CUDA's documentation says.
#[unsafe(no_mangle)]
pub extern "C" fn cudaPeekAtLastError() -> c_int {
    error::peek_at_last_error()
}

/// As CUDA's documentation says.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorName(code: c_int) -> *const c_char {
    error::get_error_name(code)
}

/// As CUDA's documentation says.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorString(code: c_int) -> *const c_char {
    error::get_error_string(code)
}

/// `cudaChannelFormatDesc`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ChannelFormat([c_int; 5]);

/// As CUDA's documentation says; it only puts its arguments together.
#[unsafe(no_mangle)]
pub extern "C" fn cudaCreateChannelDesc(x: c_int, y: c_int, z: c_int, w: c_int, kind: c_int) -> ChannelFormat {
    ChannelFormat([x, y, z, w, kind])
}

/// First half of a launch; 0: the second half may follow.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: Stream) -> c_uint {
    launch::push_configuration(grid, block, shared, stream);
    0
}

/// Registers an image.
///
/// # Safety
/// The arguments are what a compiler emits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: *const c_void) -> *mut *mut c_void {
    // SAFETY: the caller's promise is passed on.
    unsafe { registration::register_fat_binary(wrapper) }
}

/// Ends the registration of an image.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinaryEnd(_handle: *mut *mut c_void) {}

/// Takes an image back.
///
/// # Safety
/// The arguments are what a compiler emits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaUnregisterFatBinary(handle: *mut *mut c_void) {
    // SAFETY: the caller's promise is passed on.
    unsafe { registration::unregister_fat_binary(handle) }
}

/// Registers a kernel.
///
/// # Safety
/// The arguments are what a compiler emits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFunction(
    handle: *mut *mut c_void,
    address: *const c_void,
    _device_function: *mut c_char,
    name: *const c_char,
    _thread_limit: c_int,
    _thread: *mut c_void,
    _block: *mut c_void,
    _block_dim: *mut c_void,
    _grid_dim: *mut c_void,
    _warp_size: *mut c_int,
) {
    // SAFETY: the caller's promise is passed on.
    unsafe { registration::register_function(handle, address, name) }
}

/// Registers a device global.
///
/// # Safety
/// The arguments are what a compiler emits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterVar(
    handle: *mut *mut c_void,
    address: *const c_void,
    _device_address: *mut c_char,
    name: *const c_char,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    // SAFETY: the caller's promise is passed on.
    unsafe { registration::register_var(handle, address, name) }
}

/// Registers a managed variable.
///
/// # Safety
/// The arguments are what a compiler emits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterManagedVar(
    handle: *mut *mut c_void,
    pointer: *mut *mut c_void,
    _device_address: *mut c_char,
    name: *const c_char,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    // SAFETY: the caller's promise is passed on.
    unsafe { registration::register_managed_var(handle, pointer, name) }
}

/// Gives managed variables their memory; 0: that failed.
///
/// # Safety
/// The arguments are what a compiler emits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaInitModule(handle: *mut *mut c_void) -> c_char {
    // SAFETY: the caller's promise is passed on.
    unsafe { registration::init_module(handle) }
}

macro_rules! refused {
    ($($name:ident)*) => {
        $(
            /// Not supported: returns `cudaErrorNotSupported` whatever its arguments are, which are not looked at.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> c_int {
                not_supported(stringify!($name))
            }
        )*
        /// Names of the functions that are refused.
        pub const REFUSED: &[&str] = &[$(stringify!($name)),*];
    };
}

refused! {
    __cudaGetProcAddress __cudaRegisterHostVar __cudaRegisterUnifiedTable cudaArrayGetInfo
    cudaArrayGetMemoryRequirements cudaArrayGetPlane cudaArrayGetSparseProperties
    cudaCreateSurfaceObject cudaCreateTextureObject cudaCtxResetPersistingL2Cache cudaDestroyExternalMemory
    cudaDestroyExternalSemaphore cudaDestroySurfaceObject cudaDestroyTextureObject cudaDeviceDisablePeerAccess
    cudaDeviceEnablePeerAccess cudaDeviceFlushGPUDirectRDMAWrites cudaDeviceGetByPCIBusId
    cudaDeviceGetGraphMemAttribute cudaDeviceGetHostAtomicCapabilities cudaDeviceGetNvSciSyncAttributes
    cudaDeviceGetP2PAtomicCapabilities cudaDeviceGetP2PAttribute cudaDeviceGetTexture1DLinearMaxWidth
    cudaDeviceGraphMemTrim cudaDeviceRegisterAsyncNotification cudaDeviceSetGraphMemAttribute
    cudaDeviceUnregisterAsyncNotification cudaEGLStreamConsumerAcquireFrame cudaEGLStreamConsumerConnect
    cudaEGLStreamConsumerConnectWithFlags cudaEGLStreamConsumerDisconnect cudaEGLStreamConsumerReleaseFrame
    cudaEGLStreamProducerConnect cudaEGLStreamProducerDisconnect cudaEGLStreamProducerPresentFrame
    cudaEGLStreamProducerReturnFrame cudaEventCreateFromEGLSync cudaExternalMemoryGetMappedBuffer
    cudaExternalMemoryGetMappedMipmappedArray cudaFreeArray cudaFreeMipmappedArray cudaGLGetDevices
    cudaGLMapBufferObject cudaGLMapBufferObjectAsync cudaGLRegisterBufferObject cudaGLSetBufferObjectMapFlags
    cudaGLSetGLDevice cudaGLUnmapBufferObject cudaGLUnmapBufferObjectAsync cudaGLUnregisterBufferObject
    cudaGetChannelDesc cudaGetExportTable cudaGetMipmappedArrayLevel cudaGetSurfaceObjectResourceDesc
    cudaGetTextureObjectResourceDesc cudaGetTextureObjectResourceViewDesc cudaGetTextureObjectTextureDesc
    cudaGraphAddChildGraphNode cudaGraphAddDependencies cudaGraphAddEmptyNode cudaGraphAddEventRecordNode
    cudaGraphAddEventWaitNode cudaGraphAddExternalSemaphoresSignalNode cudaGraphAddExternalSemaphoresWaitNode
    cudaGraphAddHostNode cudaGraphAddKernelNode cudaGraphAddMemAllocNode cudaGraphAddMemFreeNode
    cudaGraphAddMemcpyNode cudaGraphAddMemcpyNode1D cudaGraphAddMemcpyNodeFromSymbol cudaGraphAddMemcpyNodeToSymbol
    cudaGraphAddMemsetNode cudaGraphAddNode cudaGraphChildGraphNodeGetGraph cudaGraphClone
    cudaGraphConditionalHandleCreate cudaGraphCreate cudaGraphDebugDotPrint cudaGraphDestroy cudaGraphDestroyNode
    cudaGraphEventRecordNodeGetEvent cudaGraphEventRecordNodeSetEvent cudaGraphEventWaitNodeGetEvent
    cudaGraphEventWaitNodeSetEvent cudaGraphExecChildGraphNodeSetParams cudaGraphExecDestroy
    cudaGraphExecEventRecordNodeSetEvent cudaGraphExecEventWaitNodeSetEvent
    cudaGraphExecExternalSemaphoresSignalNodeSetParams cudaGraphExecExternalSemaphoresWaitNodeSetParams
    cudaGraphExecGetFlags cudaGraphExecHostNodeSetParams cudaGraphExecKernelNodeSetParams
    cudaGraphExecMemcpyNodeSetParams cudaGraphExecMemcpyNodeSetParams1D cudaGraphExecMemcpyNodeSetParamsFromSymbol
    cudaGraphExecMemcpyNodeSetParamsToSymbol cudaGraphExecMemsetNodeSetParams cudaGraphExecNodeSetParams
    cudaGraphExecUpdate cudaGraphExternalSemaphoresSignalNodeGetParams cudaGraphExternalSemaphoresSignalNodeSetParams
    cudaGraphExternalSemaphoresWaitNodeGetParams cudaGraphExternalSemaphoresWaitNodeSetParams cudaGraphGetEdges
    cudaGraphGetNodes cudaGraphGetRootNodes cudaGraphHostNodeGetParams cudaGraphHostNodeSetParams cudaGraphInstantiate
    cudaGraphInstantiateWithFlags cudaGraphInstantiateWithParams cudaGraphInstantiateWithParams_ptsz
    cudaGraphKernelNodeCopyAttributes cudaGraphKernelNodeGetAttribute cudaGraphKernelNodeGetParams
    cudaGraphKernelNodeSetAttribute cudaGraphKernelNodeSetParams cudaGraphLaunch cudaGraphLaunch_ptsz
    cudaGraphMemAllocNodeGetParams cudaGraphMemFreeNodeGetParams cudaGraphMemcpyNodeGetParams
    cudaGraphMemcpyNodeSetParams cudaGraphMemcpyNodeSetParams1D cudaGraphMemcpyNodeSetParamsFromSymbol
    cudaGraphMemcpyNodeSetParamsToSymbol cudaGraphMemsetNodeGetParams cudaGraphMemsetNodeSetParams
    cudaGraphNodeFindInClone cudaGraphNodeGetDependencies cudaGraphNodeGetDependentNodes cudaGraphNodeGetEnabled
    cudaGraphNodeGetType cudaGraphNodeSetEnabled cudaGraphNodeSetParams cudaGraphReleaseUserObject
    cudaGraphRemoveDependencies cudaGraphRetainUserObject cudaGraphUpload cudaGraphUpload_ptsz
    cudaGraphicsEGLRegisterImage cudaGraphicsGLRegisterBuffer cudaGraphicsGLRegisterImage cudaGraphicsMapResources
    cudaGraphicsResourceGetMappedEglFrame cudaGraphicsResourceGetMappedMipmappedArray
    cudaGraphicsResourceGetMappedPointer cudaGraphicsResourceSetMapFlags cudaGraphicsSubResourceGetMappedArray
    cudaGraphicsUnmapResources cudaGraphicsUnregisterResource cudaGraphicsVDPAURegisterOutputSurface
    cudaGraphicsVDPAURegisterVideoSurface cudaImportExternalMemory cudaImportExternalSemaphore cudaIpcCloseMemHandle
    cudaIpcGetEventHandle cudaIpcGetMemHandle cudaIpcOpenEventHandle cudaIpcOpenMemHandle
    cudaKernelSetAttributeForDevice cudaLaunchCooperativeKernel cudaLaunchCooperativeKernel_ptsz
    cudaLibraryEnumerateKernels cudaLibraryGetGlobal cudaLibraryGetKernel cudaLibraryGetKernelCount
    cudaLibraryGetManaged cudaLibraryGetUnifiedFunction cudaLibraryLoadData cudaLibraryLoadFromFile cudaLibraryUnload
    cudaLogsCurrent cudaLogsDumpToFile cudaLogsDumpToMemory cudaLogsRegisterCallback cudaLogsUnregisterCallback
    cudaMalloc3DArray cudaMallocArray cudaMallocMipmappedArray cudaMemDiscardAndPrefetchBatchAsync
    cudaMemDiscardAndPrefetchBatchAsync_ptsz cudaMemDiscardBatchAsync cudaMemDiscardBatchAsync_ptsz
    cudaMemGetDefaultMemPool cudaMemGetMemPool cudaMemPoolCreate cudaMemPoolDestroy cudaMemPoolExportPointer
    cudaMemPoolExportToShareableHandle cudaMemPoolGetAccess cudaMemPoolImportFromShareableHandle
    cudaMemPoolImportPointer cudaMemPoolSetAccess cudaMemPrefetchBatchAsync cudaMemPrefetchBatchAsync_ptsz
    cudaMemRangeGetAttribute cudaMemRangeGetAttributes cudaMemSetMemPool cudaMemcpy2DArrayToArray
    cudaMemcpy2DArrayToArray_ptds cudaMemcpy2DFromArray cudaMemcpy2DFromArrayAsync cudaMemcpy2DFromArrayAsync_ptsz
    cudaMemcpy2DFromArray_ptds cudaMemcpy2DToArray cudaMemcpy2DToArrayAsync cudaMemcpy2DToArrayAsync_ptsz
    cudaMemcpy2DToArray_ptds cudaMemcpy3DBatchAsync cudaMemcpy3DBatchAsync_ptsz cudaMemcpy3DPeer cudaMemcpy3DPeerAsync
    cudaMemcpy3DPeerAsync_ptsz cudaMemcpy3DPeer_ptds cudaMemcpyArrayToArray cudaMemcpyArrayToArray_ptds
    cudaMemcpyBatchAsync cudaMemcpyBatchAsync_ptsz cudaMemcpyFromArray cudaMemcpyFromArrayAsync
    cudaMemcpyFromArrayAsync_ptsz cudaMemcpyFromArray_ptds cudaMemcpyToArray cudaMemcpyToArrayAsync
    cudaMemcpyToArrayAsync_ptsz cudaMemcpyToArray_ptds cudaMipmappedArrayGetMemoryRequirements
    cudaMipmappedArrayGetSparseProperties cudaOccupancyMaxActiveClusters cudaOccupancyMaxPotentialClusterSize
    cudaSignalExternalSemaphoresAsync cudaSignalExternalSemaphoresAsync_ptsz cudaStreamBeginCapture
    cudaStreamBeginCaptureToGraph cudaStreamBeginCaptureToGraph_ptsz cudaStreamBeginCapture_ptsz
    cudaStreamCopyAttributes cudaStreamCopyAttributes_ptsz cudaStreamEndCapture cudaStreamEndCapture_ptsz
    cudaStreamGetAttribute cudaStreamGetAttribute_ptsz cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_ptsz
    cudaStreamSetAttribute cudaStreamSetAttribute_ptsz cudaStreamUpdateCaptureDependencies
    cudaStreamUpdateCaptureDependencies_ptsz cudaThreadExchangeStreamCaptureMode cudaUserObjectCreate
    cudaUserObjectRelease cudaUserObjectRetain cudaVDPAUGetDevice cudaVDPAUSetVDPAUDevice
    cudaWaitExternalSemaphoresAsync cudaWaitExternalSemaphoresAsync_ptsz
}
