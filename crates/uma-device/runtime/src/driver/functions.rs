//! The table of the driver's functions that the runtime calls: name without version, and the CUDA version whose form is meant. NVIDIA's runtime of
//! CUDA 13.0 asks for each of these in this form.

use super::types::{Copy2D, Copy3D, DevicePtr, Handle, HostFn, LaunchConfig, Location, StreamCallback};
use super::{DEFAULT, Finder, PER_THREAD};
use std::ffi::{c_char, c_int, c_uint, c_void};

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
            pub(super) fn find_all(finder: &Finder) -> std::result::Result<Driver, String> {
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
    plain device_get_uuid(*mut [u8; 16], c_int) = c"cuDeviceGetUuid" 9020;
    plain device_total_mem(*mut usize, c_int) = c"cuDeviceTotalMem" 3020;
    plain device_get_attribute(*mut c_int, c_int, c_int) = c"cuDeviceGetAttribute" 2000;
    plain device_get_pci_bus_id(*mut c_char, c_int, c_int) = c"cuDeviceGetPCIBusId" 4010;
    plain device_can_access_peer(*mut c_int, c_int, c_int) = c"cuDeviceCanAccessPeer" 4000;
    plain primary_retain(*mut Handle, c_int) = c"cuDevicePrimaryCtxRetain" 7000;
    plain primary_reset(c_int) = c"cuDevicePrimaryCtxReset" 7000;
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
