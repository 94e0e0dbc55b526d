//! Kernel launches.

use super::{Context, get};
use crate::error::{CuError, Result};
use crate::host::engine::engine;
use crate::host::launching::{self, Configuration, loaded_kernel};
use crate::host::registry::KernelEntry;
use std::ffi::{c_uint, c_void};

/// `CUlaunchConfig`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    dynamic_shared: c_uint,
    stream: *mut c_void,
    attributes: *const LaunchAttribute,
    attribute_count: c_uint,
}

/// `CUlaunchAttribute`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchAttribute {
    id: c_uint,
    unused: c_uint,
    value: [u32; 16],
}

/// `CU_LAUNCH_ATTRIBUTE_…` that change what a kernel may do.
const COOPERATIVE: c_uint = 2;
const CLUSTER_DIMENSION: c_uint = 4;

/// `CU_LAUNCH_PARAM_…`: what an entry of `extra` says of the next.
const END: usize = 0;
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;

/// The values of a kernel's parameters as one packed block.
///
/// # Safety
/// `arguments` has a pointer to a value for each parameter.
unsafe fn pack(kernel: &KernelEntry, arguments: *const *const c_void) -> Result<Vec<u64>> {
    let mut words = vec![0u64; kernel.packed.div_ceil(8)];
    for (index, (offset, bytes)) in kernel.parameters.iter().enumerate() {
        // SAFETY: the caller vouches for one pointer a parameter.
        let value = unsafe { arguments.add(index).read() }.cast::<u8>();
        if value.is_null() {
            return Err(CuError::INVALID_VALUE);
        }
        // SAFETY: the block has room for each parameter at its offset; the caller vouches for the value.
        unsafe { std::ptr::copy_nonoverlapping(value, words.as_mut_ptr().cast::<u8>().add(*offset), *bytes) };
    }
    Ok(words)
}

/// The block that the program packed itself.
///
/// # Safety
/// `extra` is a list of pairs that `END` ends, as CUDA's documentation says.
unsafe fn packed(kernel: &KernelEntry, extra: *const *const c_void) -> Result<Vec<u64>> {
    let (mut buffer, mut bytes) = (std::ptr::null::<u8>(), 0usize);
    let mut at = extra;
    loop {
        // SAFETY: the list goes on until its end is read.
        let what = unsafe { at.read() } as usize;
        if what == END {
            break;
        }
        // SAFETY: as above.
        let value = unsafe { at.add(1).read() };
        match what {
            BUFFER_POINTER => buffer = value.cast(),
            // SAFETY: CUDA says that this points to a size.
            BUFFER_SIZE => bytes = unsafe { get(value.cast::<usize>()) }?,
            _ => return Err(CuError::INVALID_VALUE),
        }
        at = at.wrapping_add(2);
    }
    if kernel.packed > bytes || (buffer.is_null() && kernel.packed > 0) {
        return Err(CuError::INVALID_VALUE);
    }
    let mut words = vec![0u64; kernel.packed.div_ceil(8)];
    if kernel.packed > 0 {
        // SAFETY: the program says that the buffer has `bytes` bytes, which are enough.
        unsafe { std::ptr::copy_nonoverlapping(buffer, words.as_mut_ptr().cast(), kernel.packed) };
    }
    Ok(words)
}

unsafe fn launch(
    context: Context,
    function: *mut c_void,
    configuration: Configuration,
    stream: *mut c_void,
    arguments: *const *const c_void,
    extra: *const *const c_void,
) -> Result {
    let engine = engine()?;
    let kernel = loaded_kernel(engine, function as usize)?;
    launching::check(&kernel, &configuration)?;
    let parameters = match (arguments.is_null(), extra.is_null()) {
        // SAFETY: see the parent module.
        (false, true) => unsafe { pack(&kernel, arguments) }?,
        // SAFETY: see the parent module.
        (true, false) => unsafe { packed(&kernel, extra) }?,
        (true, true) if kernel.parameters.is_empty() => Vec::new(),
        _ => return Err(CuError::INVALID_VALUE),
    };
    launching::launch(engine, &kernel, &configuration, parameters, (stream as usize, context.per_thread))
}

/// `cuLaunchKernel`
#[expect(clippy::too_many_arguments, reason = "the arguments are CUDA's")]
pub unsafe fn launch_kernel(
    context: Context,
    function: *mut c_void,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    dynamic_shared: c_uint,
    stream: *mut c_void,
    arguments: *const *const c_void,
    extra: *const *const c_void,
) -> Result {
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    let configuration = Configuration { grid, block, dynamic_shared: dynamic_shared as usize };
    // SAFETY: see the parent module.
    unsafe { launch(context, function, configuration, stream, arguments, extra) }
}

/// `cuLaunchKernelEx`: attributes that change what a kernel may do are refused, hints are not.
pub unsafe fn launch_kernel_ex(
    context: Context,
    config: *const LaunchConfig,
    function: *mut c_void,
    arguments: *const *const c_void,
    extra: *const *const c_void,
) -> Result {
    // SAFETY: see the parent module.
    let config = unsafe { get(config) }?;
    for index in 0..config.attribute_count as usize {
        // SAFETY: the program says how many there are.
        let attribute = unsafe { get(config.attributes.wrapping_add(index)) }?;
        let unit_cluster = attribute.value[..3] == [1, 1, 1];
        match attribute.id {
            COOPERATIVE if attribute.value[0] != 0 => return Err(CuError::NOT_SUPPORTED),
            CLUSTER_DIMENSION if !unit_cluster => return Err(CuError::NOT_SUPPORTED),
            _ => {}
        }
    }
    let LaunchConfig { grid, block, dynamic_shared, stream, .. } = config;
    let configuration = Configuration { grid, block, dynamic_shared: dynamic_shared as usize };
    // SAFETY: see the parent module.
    unsafe { launch(context, function, configuration, stream, arguments, extra) }
}
