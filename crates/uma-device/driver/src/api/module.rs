//! Modules and libraries. Both are one thing here, since there is one context's worth of memory: a library is a module that the device process
//! gets when it is first used, and a `CUkernel` is the `CUfunction`.

use super::memory::DevicePtr;
use super::{Context, get, name, put, put_if};
use crate::error::{CuError, Result};
use crate::host::engine::engine;
use crate::host::launching::{Symbol, load_module, loaded_symbol, unload_module};
use crate::host::registry::{Image, image_in, image_of, registry};
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;

/// `CUmodule`, `CUlibrary`
type Module = *mut c_void;
/// `CUfunction`, `CUkernel`
type Function = *mut c_void;

/// Adds a module; its handle.
///
/// # Safety
/// `data` is null or what [`image_of`] asks for. With `kept` it stays as long as the module.
unsafe fn add(data: *const c_void, kept: bool) -> Result<usize> {
    if data.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    // SAFETY: the caller vouches for the data.
    let image: &'static [u8] = unsafe { image_of(data.cast()) };
    registry().add_module(if kept { Image::Kept(image) } else { Image::Copied(image.into()) })
}

/// Has the device process load a new module at once, as modules are.
fn load_now(handle: usize) -> Result {
    let mut registry = registry();
    let number = registry.number(handle)?;
    let loaded = engine().and_then(|engine| load_module(&mut registry, engine, number));
    if loaded.is_err() {
        registry.remove_module(handle)?;
    }
    loaded
}

/// `cuModuleLoadData`, `cuModuleLoadFatBinary`
pub unsafe fn load_data(_: Context, target: *mut Module, data: *const c_void) -> Result {
    if target.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    // SAFETY: see the parent module.
    let handle = unsafe { add(data, false) }?;
    load_now(handle)?;
    // SAFETY: see the parent module.
    unsafe { put(target, handle as Module) }
}

/// `cuModuleLoadDataEx`: options speak of compilers that this device has none of.
pub unsafe fn load_data_ex(
    context: Context,
    target: *mut Module,
    data: *const c_void,
    _count: c_uint,
    _options: *const c_int,
    _values: *const *mut c_void,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { load_data(context, target, data) }
}

/// Adds a module that a file holds.
unsafe fn add_file(path: *const c_char) -> Result<usize> {
    if path.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    // SAFETY: see the parent module.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
    let bytes = std::fs::read(path).map_err(|_| CuError::FILE_NOT_FOUND)?;
    registry().add_module(Image::Copied(image_in(&bytes).into()))
}

/// `cuModuleLoad`
pub unsafe fn load(_: Context, target: *mut Module, path: *const c_char) -> Result {
    if target.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    // SAFETY: see the parent module.
    let handle = unsafe { add_file(path) }?;
    load_now(handle)?;
    // SAFETY: see the parent module.
    unsafe { put(target, handle as Module) }
}

/// `cuModuleUnload`, `cuLibraryUnload`
pub unsafe fn unload(_: Context, module: Module) -> Result {
    unload_module(module as usize)
}

/// `cuModuleGetFunction`, `cuLibraryGetKernel`
pub unsafe fn get_function(_: Context, target: *mut Function, module: Module, text: *const c_char) -> Result {
    // SAFETY: see the parent module.
    let text = unsafe { name(text) }?;
    let handle = registry().kernel_named(module as usize, text)?;
    // SAFETY: see the parent module.
    unsafe { put(target, handle as Function) }
}

/// `cuModuleGetFunctionCount`, `cuLibraryGetKernelCount`
pub unsafe fn get_function_count(_: Context, target: *mut c_uint, module: Module) -> Result {
    let mut registry = registry();
    let number = registry.number(module as usize)?;
    let count = registry.module(number)?.metadata.kernels.len();
    // SAFETY: see the parent module.
    unsafe { put(target, count as c_uint) }
}

unsafe fn enumerate(target: *mut Function, room: c_uint, module: Module) -> Result {
    let mut registry = registry();
    let number = registry.number(module as usize)?;
    let count = registry.module(number)?.metadata.kernels.len();
    if target.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    for index in 0..count.min(room as usize) {
        let handle = registry.kernel_at(module as usize, index)?;
        // SAFETY: the program says how many handles there is room for.
        unsafe { put(target.add(index), handle as Function) }?;
    }
    Ok(())
}

/// `cuModuleEnumerateFunctions`, `cuLibraryEnumerateKernels`
pub unsafe fn enumerate_functions(_: Context, target: *mut Function, room: c_uint, module: Module) -> Result {
    // SAFETY: see the parent module.
    unsafe { enumerate(target, room, module) }
}

unsafe fn put_symbol(address: *mut DevicePtr, bytes: *mut usize, symbol: Symbol) -> Result {
    // SAFETY: see the parent module.
    unsafe {
        put_if(address, symbol.address as DevicePtr)?;
        put_if(bytes, symbol.bytes)
    }
}

/// `cuModuleGetGlobal`, `cuLibraryGetGlobal`
pub unsafe fn get_global(
    _: Context,
    address: *mut DevicePtr,
    bytes: *mut usize,
    module: Module,
    text: *const c_char,
) -> Result {
    // SAFETY: see the parent module.
    unsafe { put_symbol(address, bytes, loaded_symbol(engine()?, module as usize, name(text)?)?) }
}

/// `cuLibraryGetManaged`
pub unsafe fn get_managed(
    _: Context,
    address: *mut DevicePtr,
    bytes: *mut usize,
    module: Module,
    text: *const c_char,
) -> Result {
    // SAFETY: see the parent module.
    let symbol = loaded_symbol(engine()?, module as usize, unsafe { name(text) }?)?;
    if !symbol.managed {
        return Err(CuError::NOT_FOUND);
    }
    // SAFETY: see the parent module.
    unsafe { put_symbol(address, bytes, symbol) }
}

/// `cuModuleGetLoadingMode`: lazily (2), as libraries are.
pub unsafe fn get_loading_mode(_: Context, target: *mut c_int) -> Result {
    // SAFETY: see the parent module.
    unsafe { put(target, 2) }
}

/// `CU_LIBRARY_BINARY_IS_PRESERVED`
const IS_PRESERVED: c_int = 1;

/// `cuLibraryLoadData`
#[expect(clippy::too_many_arguments, reason = "the arguments are CUDA's")]
pub unsafe fn library_load_data(
    _: Context,
    target: *mut Module,
    data: *const c_void,
    _jit_options: *const c_int,
    _jit_values: *const *mut c_void,
    _jit_count: c_uint,
    options: *const c_int,
    values: *const *mut c_void,
    count: c_uint,
) -> Result {
    if target.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    let mut kept = false;
    for index in 0..count as usize {
        // SAFETY: the program says how many options there are.
        let (option, value) = unsafe { (get(options.wrapping_add(index))?, get(values.wrapping_add(index))?) };
        kept |= option == IS_PRESERVED && !value.is_null();
    }
    // SAFETY: see the parent module; the program says itself that the data is preserved.
    let handle = unsafe { add(data, kept) }?;
    // SAFETY: see the parent module.
    unsafe { put(target, handle as Module) }
}

/// `cuLibraryLoadFromFile`
#[expect(clippy::too_many_arguments, reason = "the arguments are CUDA's")]
pub unsafe fn library_load_from_file(
    _: Context,
    target: *mut Module,
    path: *const c_char,
    _jit_options: *const c_int,
    _jit_values: *const *mut c_void,
    _jit_count: c_uint,
    _options: *const c_int,
    _values: *const *mut c_void,
    _count: c_uint,
) -> Result {
    if target.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    // SAFETY: see the parent module.
    let handle = unsafe { add_file(path) }?;
    // SAFETY: see the parent module.
    unsafe { put(target, handle as Module) }
}

/// `cuLibraryGetModule`: the same thing.
pub unsafe fn library_get_module(_: Context, target: *mut Module, library: Module) -> Result {
    registry().number(library as usize)?;
    // SAFETY: see the parent module.
    unsafe { put(target, library) }
}
