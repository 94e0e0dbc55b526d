//! Kernel launches and what can be asked about kernels.

use super::{Context, get, put};
use crate::error::{CudaError, Result};
use crate::host::engine::engine;
use crate::host::launching::{self, Configuration, loaded_kernel};
use crate::host::registry::{KernelEntry, registry};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// `dim3`
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

impl Dim3 {
    fn array(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

/// `cudaLaunchConfig_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    dynamic_shared: usize,
    stream: *mut c_void,
    attributes: *const LaunchAttribute,
    attribute_count: c_uint,
}

/// `cudaLaunchAttribute`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchAttribute {
    id: c_uint,
    unused: c_uint,
    value: [u32; 16],
}

/// `cudaFuncAttributes`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FuncAttributes {
    shared_bytes: usize,
    const_bytes: usize,
    local_bytes: usize,
    max_threads: c_int,
    registers: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    cache_mode: c_int,
    max_dynamic_shared: c_int,
    carveout: c_int,
    cluster_must_be_set: c_int,
    cluster: [c_int; 3],
    cluster_policy: c_int,
    nonportable_cluster: c_int,
    reserved: [c_int; 16],
}

/// What `<<<…>>>` was given, between the two halves of a launch.
type Pushed = (Dim3, Dim3, usize, usize);

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<Pushed>> = const { RefCell::new(Vec::new()) };
}

/// `__cudaPushCallConfiguration`
pub fn push_configuration(grid: Dim3, block: Dim3, shared: usize, stream: *mut c_void) {
    CONFIGURATIONS.with(|stack| stack.borrow_mut().push((grid, block, shared, stream as usize)));
}

/// `__cudaPopCallConfiguration`
pub unsafe fn pop_configuration(
    _: Context,
    grid: *mut Dim3,
    block: *mut Dim3,
    shared: *mut usize,
    stream: *mut *mut c_void,
) -> Result {
    let pushed = CONFIGURATIONS.with(|stack| stack.borrow_mut().pop()).ok_or(CudaError::ErrorMissingConfiguration)?;
    // SAFETY: see the parent module.
    unsafe {
        put(grid, pushed.0)?;
        put(block, pushed.1)?;
        put(shared, pushed.2)?;
        put(stream, pushed.3 as *mut c_void)
    }
}

/// The values of a kernel's parameters as one packed block.
///
/// # Safety
/// `arguments` has a pointer to a value for each parameter.
unsafe fn pack(kernel: &KernelEntry, arguments: *const *const c_void) -> Result<Vec<u64>> {
    let mut words = vec![0u64; kernel.packed.div_ceil(8)];
    if arguments.is_null() && !kernel.parameters.is_empty() {
        return Err(CudaError::ErrorInvalidValue);
    }
    for (index, (offset, bytes)) in kernel.parameters.iter().enumerate() {
        // SAFETY: the caller vouches for one pointer a parameter.
        let value = unsafe { arguments.add(index).read() }.cast::<u8>();
        if value.is_null() {
            return Err(CudaError::ErrorInvalidValue);
        }
        // SAFETY: the block has room for each parameter at its offset; the caller vouches for the value.
        unsafe { std::ptr::copy_nonoverlapping(value, words.as_mut_ptr().cast::<u8>().add(*offset), *bytes) };
    }
    Ok(words)
}

/// `cudaLaunchKernel`, `__cudaLaunchKernel`: a kernel's handle is the program's address for it.
pub unsafe fn launch_kernel(
    context: Context,
    function: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *const *const c_void,
    dynamic_shared: usize,
    stream: *mut c_void,
) -> Result {
    let engine = engine()?;
    let kernel = loaded_kernel(engine, function as usize)?;
    let configuration = Configuration { grid: grid.array(), block: block.array(), dynamic_shared };
    launching::check(&kernel, &configuration)?;
    // SAFETY: see the parent module.
    let parameters = unsafe { pack(&kernel, arguments) }?;
    launching::launch(engine, &kernel, &configuration, parameters, (stream as usize, context.per_thread))
}

/// `cudaLaunchKernelExC`: attributes that change what a kernel may do are refused, hints are not.
pub unsafe fn launch_kernel_ex(
    context: Context,
    configuration: *const LaunchConfig,
    function: *const c_void,
    arguments: *const *const c_void,
) -> Result {
    const COOPERATIVE: c_uint = 2;
    const CLUSTER_DIMENSION: c_uint = 4;
    // SAFETY: see the parent module.
    let config = unsafe { get(configuration) }?;
    for index in 0..config.attribute_count as usize {
        // SAFETY: the program says how many there are.
        let attribute = unsafe { get(config.attributes.wrapping_add(index)) }?;
        let unit_cluster = attribute.value[..3] == [1, 1, 1];
        match attribute.id {
            COOPERATIVE if attribute.value[0] != 0 => return Err(CudaError::ErrorNotSupported),
            CLUSTER_DIMENSION if !unit_cluster => return Err(CudaError::ErrorNotSupported),
            _ => {}
        }
    }
    let LaunchConfig { grid, block, dynamic_shared, stream, .. } = config;
    // SAFETY: see the parent module.
    unsafe { launch_kernel(context, function, grid, block, arguments, dynamic_shared, stream) }
}

/// `__cudaGetKernel`, `cudaGetKernel`, `cudaGetFuncBySymbol`
pub unsafe fn get_kernel(_: Context, target: *mut *const c_void, function: *const c_void) -> Result {
    registry().kernel(function as usize)?;
    // SAFETY: see the parent module.
    unsafe { put(target, function) }
}

fn kernel(function: *const c_void) -> Result<Arc<KernelEntry>> {
    registry().kernel(function as usize)
}

/// `cudaFuncGetAttributes`
pub unsafe fn func_get_attributes(_: Context, target: *mut FuncAttributes, function: *const c_void) -> Result {
    let kernel = kernel(function)?;
    let attributes = FuncAttributes {
        shared_bytes: kernel.info.static_shared as usize,
        max_threads: kernel.info.max_threads as c_int,
        // The CPU has no such limit; programs divide by it.
        registers: 32,
        ptx_version: super::properties::COMPUTE_CAPABILITY,
        binary_version: super::properties::COMPUTE_CAPABILITY,
        max_dynamic_shared: kernel.dynamic_limit() as c_int,
        carveout: -1,
        ..FuncAttributes::default()
    };
    // SAFETY: see the parent module.
    unsafe { put(target, attributes) }
}

/// `cudaFuncSetAttribute`
pub unsafe fn func_set_attribute(_: Context, function: *const c_void, attribute: c_int, value: c_int) -> Result {
    const MAX_DYNAMIC_SHARED: c_int = 8;
    const CARVEOUT: c_int = 9;
    let kernel = kernel(function)?;
    match attribute {
        MAX_DYNAMIC_SHARED => {
            let most = uma_exec::MAX_SHARED_BYTES.saturating_sub(kernel.info.static_shared);
            let value = u32::try_from(value).ok().filter(|value| *value <= most).ok_or(CudaError::ErrorInvalidValue)?;
            kernel.dynamic_limit.store(value, Ordering::Relaxed);
            Ok(())
        }
        CARVEOUT if (-1..=100).contains(&value) => Ok(()),
        10..=15 => Err(CudaError::ErrorNotSupported),
        _ => Err(CudaError::ErrorInvalidValue),
    }
}

/// `cudaFuncSetCacheConfig`, `cudaFuncSetSharedMemConfig`: hints that the CPU has no use for.
pub unsafe fn func_set_hint(_: Context, function: *const c_void, value: c_int) -> Result {
    kernel(function)?;
    if (0..=3).contains(&value) { Ok(()) } else { Err(CudaError::ErrorInvalidValue) }
}

/// `cudaFuncGetName`
pub unsafe fn func_get_name(_: Context, target: *mut *const c_char, function: *const c_void) -> Result {
    let kernel = kernel(function)?;
    // SAFETY: see the parent module. The name lives as long as the image is registered.
    unsafe { put(target, kernel.name.as_ptr()) }
}

/// `cudaFuncGetParamInfo`
pub unsafe fn func_get_param_info(
    _: Context,
    function: *const c_void,
    index: usize,
    offset: *mut usize,
    bytes: *mut usize,
) -> Result {
    let kernel = kernel(function)?;
    let parameter = kernel.parameters.get(index).ok_or(CudaError::ErrorInvalidValue)?;
    // SAFETY: see the parent module.
    unsafe {
        put(offset, parameter.0)?;
        if bytes.is_null() { Ok(()) } else { put(bytes, parameter.1) }
    }
}
