//! What the device says of itself: `cudaGetDeviceProperties` is filled from the driver's attributes.

use super::device::check_number;
use super::{Context, put};
use crate::driver::check;
use crate::error::{CudaError, Result};
use std::ffi::{c_char, c_int, c_uint};

/// `cudaDeviceProp`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Properties {
    name: [c_char; 256],
    uuid: [u8; 16],
    luid: [u8; 8],
    luid_mask: c_uint,
    total_global_mem: usize,
    shared_per_block: usize,
    registers_per_block: c_int,
    warp_size: c_int,
    mem_pitch: usize,
    max_threads_per_block: c_int,
    max_block: [c_int; 3],
    max_grid: [c_int; 3],
    total_const_mem: usize,
    major: c_int,
    minor: c_int,
    texture_alignment: usize,
    texture_pitch_alignment: usize,
    multi_processor_count: c_int,
    integrated: c_int,
    can_map_host_memory: c_int,
    textures_and_surfaces: [c_int; 39],
    surface_alignment: usize,
    concurrent_kernels: c_int,
    ecc: c_int,
    pci: [c_int; 3],
    tcc_driver: c_int,
    async_engine_count: c_int,
    unified_addressing: c_int,
    memory_bus_width: c_int,
    l2_cache_size: c_int,
    persisting_l2: c_int,
    max_threads_per_multi_processor: c_int,
    stream_priorities: c_int,
    global_l1: c_int,
    local_l1: c_int,
    shared_per_multiprocessor: usize,
    registers_per_multiprocessor: c_int,
    managed_memory: c_int,
    multi_gpu_board: [c_int; 2],
    host_native_atomic: c_int,
    pageable_memory_access: c_int,
    concurrent_managed_access: c_int,
    compute_preemption: c_int,
    can_use_host_pointer: c_int,
    cooperative_launch: c_int,
    shared_per_block_optin: usize,
    pageable_uses_host_tables: c_int,
    direct_managed_from_host: c_int,
    max_blocks_per_multi_processor: c_int,
    access_policy_window: c_int,
    reserved_shared: usize,
    host_register: c_int,
    sparse_arrays: c_int,
    host_register_read_only: c_int,
    timeline_semaphores: c_int,
    memory_pools: c_int,
    rdma: [c_int; 3],
    pool_handle_types: c_uint,
    deferred_mapping: c_int,
    ipc_events: c_int,
    cluster_launch: c_int,
    unified_function_pointers: c_int,
    numa: [c_int; 2],
    mps: c_int,
    host_numa: c_int,
    gpu_pci: [c_uint; 2],
    host_numa_multinode: c_int,
    reserved: [c_int; 56],
}

/// `cudaDeviceGetAttribute`: the attributes have the driver's numbers.
pub unsafe fn device_get_attribute(context: Context, target: *mut c_int, number: c_int, device: c_int) -> Result {
    check_number(device)?;
    let driver = context.driver()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.device_get_attribute)(target, number, device) })
}

/// `cudaGetDeviceProperties`
pub unsafe fn get_device_properties(context: Context, target: *mut Properties, device: c_int) -> Result {
    check_number(device)?;
    let driver = context.driver()?;
    let get = |number| {
        let mut value = 0;
        // SAFETY: the target is ours. All numbers below exist, so nothing fails; 0 stands for "has none".
        unsafe { (driver.device_get_attribute)(&mut value, number, device) };
        value
    };
    let (mut name, mut uuid, mut total) = ([0; 256], [0; 16], 0);
    // SAFETY: the targets are ours.
    unsafe {
        check((driver.device_get_name)(name.as_mut_ptr(), name.len() as c_int, device))?;
        check((driver.device_get_uuid)(&mut uuid, device))?;
        check((driver.device_total_mem)(&mut total, device))?;
    }
    let properties = Properties {
        name,
        uuid,
        luid: [0; 8],
        luid_mask: 0,
        total_global_mem: total,
        shared_per_block: get(8) as usize,
        registers_per_block: get(12),
        warp_size: get(10),
        mem_pitch: get(11) as usize,
        max_threads_per_block: get(1),
        max_block: [get(2), get(3), get(4)],
        max_grid: [get(5), get(6), get(7)],
        total_const_mem: get(9) as usize,
        major: get(75),
        minor: get(76),
        texture_alignment: get(14) as usize,
        texture_pitch_alignment: get(51) as usize,
        multi_processor_count: get(16),
        integrated: get(18),
        can_map_host_memory: get(19),
        textures_and_surfaces: [0; 39],
        surface_alignment: get(30) as usize,
        concurrent_kernels: get(31),
        ecc: get(32),
        pci: [get(33), get(34), get(50)],
        tcc_driver: get(35),
        async_engine_count: get(40),
        unified_addressing: get(41),
        memory_bus_width: get(37),
        l2_cache_size: get(38),
        persisting_l2: get(108),
        max_threads_per_multi_processor: get(39),
        stream_priorities: get(78),
        global_l1: get(79),
        local_l1: get(80),
        shared_per_multiprocessor: get(81) as usize,
        registers_per_multiprocessor: get(82),
        managed_memory: get(83),
        multi_gpu_board: [get(84), get(85)],
        host_native_atomic: get(86),
        pageable_memory_access: get(88),
        concurrent_managed_access: get(89),
        compute_preemption: get(90),
        can_use_host_pointer: get(91),
        cooperative_launch: get(95),
        shared_per_block_optin: get(97) as usize,
        pageable_uses_host_tables: get(100),
        direct_managed_from_host: get(101),
        max_blocks_per_multi_processor: get(106),
        access_policy_window: get(109),
        reserved_shared: get(111) as usize,
        host_register: get(99),
        sparse_arrays: get(112),
        host_register_read_only: get(113),
        timeline_semaphores: get(114),
        memory_pools: get(115),
        rdma: [get(116), get(117), get(118)],
        pool_handle_types: get(119) as c_uint,
        deferred_mapping: get(121),
        ipc_events: get(125),
        cluster_launch: get(120),
        unified_function_pointers: 0,
        numa: [get(130), get(131)],
        mps: get(133),
        host_numa: get(134),
        gpu_pci: [get(139) as c_uint, get(140) as c_uint],
        host_numa_multinode: get(143),
        reserved: [0; 56],
    };
    // SAFETY: see the parent module.
    unsafe { put(target, properties) }
}

/// `cudaChooseDevice`: there is no choice.
pub unsafe fn choose_device(_: Context, target: *mut c_int, wanted: *const Properties) -> Result {
    if wanted.is_null() {
        return Err(CudaError::ErrorInvalidValue);
    }
    // SAFETY: see the parent module.
    unsafe { put(target, 0) }
}

/// `cudaDeviceGetPCIBusId`
pub unsafe fn device_get_pci_bus_id(context: Context, target: *mut c_char, length: c_int, device: c_int) -> Result {
    check_number(device)?;
    let driver = context.driver()?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.device_get_pci_bus_id)(target, length, device) })
}
