//! Kernel launches and what can be asked about kernels.

use super::{Context, get, put};
use crate::driver::{self, Driver, Handle, check};
use crate::error::{CudaError, Result};
use crate::registry::registry;
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_void};

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
    attributes: *const c_void,
    attribute_count: c_uint,
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

/// `CU_FUNC_ATTRIBUTE_…`
const MAX_THREADS: c_int = 0;
const STATIC_SHARED: c_int = 1;
const CONSTANT: c_int = 2;
const LOCAL: c_int = 3;
const REGISTERS: c_int = 4;
const PTX_VERSION: c_int = 5;
const BINARY_VERSION: c_int = 6;
const CACHE_MODE: c_int = 7;
const MAX_DYNAMIC_SHARED: c_int = 8;
const CARVEOUT: c_int = 9;

/// The driver's kernel that the program names by its own address or by the driver's handle.
pub(super) fn kernel(function: *const c_void) -> Result<Handle> {
    registry().kernel(function as usize)
}

fn attribute(driver: &Driver, kernel: Handle, number: c_int) -> Result<c_int> {
    let mut value = 0;
    // SAFETY: the target is ours.
    check(unsafe { (driver.func_get_attribute)(&mut value, number, kernel) })?;
    Ok(value)
}

fn device_attribute(driver: &Driver, number: c_int) -> Result<u64> {
    let mut value = 0;
    // SAFETY: the target is ours.
    check(unsafe { (driver.device_get_attribute)(&mut value, number, 0) })?;
    Ok(u64::try_from(value).unwrap_or(0))
}

/// The runtime's error for a launch that the driver refused: it tells configurations that no kernel can have from other mistakes.
fn refused(error: CudaError, kernel: Handle, grid: Dim3, block: Dim3, dynamic_shared: usize) -> CudaError {
    /// `CU_DEVICE_ATTRIBUTE_…`
    const MAX_BLOCK_THREADS: c_int = 1;
    const MAX_BLOCK: c_int = 2;
    const MAX_GRID: c_int = 5;
    const MAX_SHARED: c_int = 97;
    if error != CudaError::ErrorInvalidValue {
        return error;
    }
    let fits = || -> Result<bool> {
        let driver = driver::driver()?;
        let mut fits = block.array().iter().map(|n| u64::from(*n)).product::<u64>()
            <= device_attribute(driver, MAX_BLOCK_THREADS)?;
        for (first, size) in [(MAX_GRID, grid), (MAX_BLOCK, block)] {
            for (number, n) in (first..).zip(size.array()) {
                fits &= n >= 1 && u64::from(n) <= device_attribute(driver, number)?;
            }
        }
        let shared = dynamic_shared as u64 + u64::try_from(attribute(driver, kernel, STATIC_SHARED)?).unwrap_or(0);
        Ok(fits && shared <= device_attribute(driver, MAX_SHARED)?)
    };
    if fits() == Ok(false) { CudaError::ErrorInvalidConfiguration } else { error }
}

/// `cudaLaunchKernel`, `__cudaLaunchKernel`
pub unsafe fn launch_kernel(
    context: Context,
    function: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *const *const c_void,
    dynamic_shared: usize,
    stream: Handle,
) -> Result {
    let driver = context.current()?;
    let kernel = registry().kernel_to_launch(function as usize)?;
    let shared = c_uint::try_from(dynamic_shared).unwrap_or(c_uint::MAX);
    let launch = driver.launch_kernel.of(context.per_thread);
    let none = std::ptr::null();
    // SAFETY: see the parent module.
    check(unsafe { launch(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, arguments, none) })
        .map_err(|error| refused(error, kernel, grid, block, dynamic_shared))
}

/// `cudaLaunchKernelExC`
pub unsafe fn launch_kernel_ex(
    context: Context,
    config: *const LaunchConfig,
    function: *const c_void,
    arguments: *const *const c_void,
) -> Result {
    // SAFETY: see the parent module.
    let config = unsafe { get(config) }?;
    let driver = context.current()?;
    let kernel = registry().kernel_to_launch(function as usize)?;
    let LaunchConfig { grid, block, dynamic_shared, stream, attributes, attribute_count } = config;
    let driver_config = driver::LaunchConfig {
        grid: grid.array(),
        block: block.array(),
        dynamic_shared: c_uint::try_from(dynamic_shared).unwrap_or(c_uint::MAX),
        stream,
        attributes,
        attribute_count,
    };
    let launch = driver.launch_kernel_ex.of(context.per_thread);
    // SAFETY: see the parent module; the configuration is ours.
    check(unsafe { launch(&driver_config, kernel, arguments, std::ptr::null()) })
        .map_err(|error| refused(error, kernel, grid, block, dynamic_shared))
}

/// `__cudaGetKernel`, `cudaGetKernel`, `cudaGetFuncBySymbol`: the driver's handle, with which programs may call either library.
pub unsafe fn get_kernel(context: Context, target: *mut *const c_void, function: *const c_void) -> Result {
    context.driver()?;
    let kernel = kernel(function)?;
    // SAFETY: see the parent module.
    unsafe { put(target, kernel.cast_const()) }
}

/// `cudaFuncGetAttributes`
pub unsafe fn func_get_attributes(context: Context, target: *mut FuncAttributes, function: *const c_void) -> Result {
    let driver = context.current()?;
    let kernel = kernel(function)?;
    let get = |number| attribute(driver, kernel, number);
    let bytes = |number| get(number).map(|value| usize::try_from(value).unwrap_or(0));
    let attributes = FuncAttributes {
        shared_bytes: bytes(STATIC_SHARED)?,
        const_bytes: bytes(CONSTANT)?,
        local_bytes: bytes(LOCAL)?,
        max_threads: get(MAX_THREADS)?,
        registers: get(REGISTERS)?,
        ptx_version: get(PTX_VERSION)?,
        binary_version: get(BINARY_VERSION)?,
        cache_mode: get(CACHE_MODE)?,
        max_dynamic_shared: get(MAX_DYNAMIC_SHARED)?,
        carveout: get(CARVEOUT)?,
        ..FuncAttributes::default()
    };
    // SAFETY: see the parent module.
    unsafe { put(target, attributes) }
}

/// `cudaFuncSetAttribute`: the attributes have the driver's numbers.
pub unsafe fn func_set_attribute(context: Context, function: *const c_void, attribute: c_int, value: c_int) -> Result {
    let driver = context.current()?;
    let kernel = kernel(function)?;
    // SAFETY: it takes no pointer.
    check(unsafe { (driver.func_set_attribute)(kernel, attribute, value) })
}

/// `cudaFuncSetCacheConfig`
pub unsafe fn func_set_cache_config(context: Context, function: *const c_void, value: c_int) -> Result {
    let driver = context.current()?;
    let kernel = kernel(function)?;
    // SAFETY: it takes no pointer.
    check(unsafe { (driver.func_set_cache_config)(kernel, value) })
}

/// `cudaFuncSetSharedMemConfig`
pub unsafe fn func_set_shared_mem_config(context: Context, function: *const c_void, value: c_int) -> Result {
    let driver = context.current()?;
    let kernel = kernel(function)?;
    // SAFETY: it takes no pointer.
    check(unsafe { (driver.func_set_shared_mem_config)(kernel, value) })
}

/// `cudaFuncGetName`
pub unsafe fn func_get_name(context: Context, target: *mut *const c_char, function: *const c_void) -> Result {
    let driver = context.current()?;
    let kernel = kernel(function)?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.func_get_name)(target, kernel) })
}

/// `cudaFuncGetParamInfo`
pub unsafe fn func_get_param_info(
    context: Context,
    function: *const c_void,
    index: usize,
    offset: *mut usize,
    bytes: *mut usize,
) -> Result {
    let driver = context.current()?;
    let kernel = kernel(function)?;
    // SAFETY: see the parent module.
    check(unsafe { (driver.func_get_param_info)(kernel, index, offset, bytes) })
}
