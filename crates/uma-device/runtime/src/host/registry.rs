//! What compiled programs register at start: images, kernels, device globals. Nothing here starts the device.

use crate::error::{CudaError, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uma_abi::{IMAGE_MAGIC, ImageHeader, ImageMetadata, KernelInfo};

/// First word of the wrapper that a program registers; its third field points to the image.
const WRAPPER_MAGIC: u32 = 0x4662_43B1;

/// Bytes of shared memory that a kernel may have without asking for more.
pub const DEFAULT_SHARED: u32 = 48 << 10;

/// Bytes of parameters at most.
const MAX_PARAMETERS: usize = 32 << 10;

/// What `__cudaRegisterFatBinary` is given.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Wrapper {
    magic: u32,
    version: u32,
    data: *const u8,
    file: *const u8,
}

/// A kernel of the program.
#[derive(Debug)]
pub struct KernelEntry {
    /// Position of its module.
    pub module: u32,
    /// Position in the module's metadata.
    pub index: u32,
    /// What the compiler says of it.
    pub info: KernelInfo,
    /// Its name as a C string, for the program.
    pub name: std::ffi::CString,
    /// Offset and length of each parameter in the packed block.
    pub parameters: Vec<(usize, usize)>,
    /// Bytes of the packed block.
    pub packed: usize,
    /// `cudaFuncAttributeMaxDynamicSharedMemorySize`
    pub dynamic_limit: AtomicU32,
}

/// A device global of the program.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Position of its module.
    pub module: u32,
    /// Its name.
    pub name: String,
}

/// A `__managed__` variable of the program.
#[derive(Clone, Debug)]
pub struct ManagedVariable {
    /// Its name.
    pub name: String,
    /// The program's pointer to it, which is set when the module is loaded.
    pub pointer: usize,
}

/// One registered image.
#[derive(Debug, Default)]
pub struct Module {
    image: &'static [u8],
    metadata: Option<Arc<ImageMetadata>>,
    /// Addresses of its globals once it is loaded.
    pub globals: Option<Vec<usize>>,
    /// Its managed variables.
    pub managed: Vec<ManagedVariable>,
    refused: bool,
}

impl Module {
    /// The image; empty when it is none that this device can run.
    pub fn image(&self) -> &'static [u8] {
        self.image
    }

    /// What the image holds, read when it is first asked for. An image of another kind is said once on stderr.
    pub fn metadata(&mut self) -> Result<Arc<ImageMetadata>> {
        if let Some(metadata) = &self.metadata {
            return Ok(Arc::clone(metadata));
        }
        match uma_exec::read_metadata(self.image) {
            Ok(metadata) => Ok(Arc::clone(self.metadata.insert(Arc::new(metadata)))),
            Err(problem) => {
                if !std::mem::replace(&mut self.refused, true) {
                    eprintln!("uma-device: the program's kernels can't run here: {problem}");
                }
                Err(CudaError::ErrorInvalidDeviceFunction)
            }
        }
    }
}

#[derive(Debug)]
struct Function {
    module: u32,
    name: String,
    entry: Option<Arc<KernelEntry>>,
}

/// All that is registered.
#[derive(Debug, Default)]
pub struct Registry {
    modules: Vec<Module>,
    functions: HashMap<usize, Function>,
    variables: HashMap<usize, Variable>,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

/// The registry of this program. Take it before the engine's lock, never after.
pub struct Locked(MutexGuard<'static, Option<Registry>>);

/// Locks the registry.
pub fn registry() -> Locked {
    let mut guard = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    guard.get_or_insert_default();
    Locked(guard)
}

impl std::ops::Deref for Locked {
    type Target = Registry;
    fn deref(&self) -> &Registry {
        // `registry` has put one there.
        self.0.as_ref().unwrap_or_else(|| unreachable!("the registry is made when it is locked"))
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Registry {
        self.0.get_or_insert_default()
    }
}

/// The image that a wrapper points to; empty when it is no image of ours.
///
/// # Safety
/// `wrapper` is null or what a compiler emits for `__cudaRegisterFatBinary`; what it points to stays as long as it is registered.
pub unsafe fn image_of(wrapper: *const Wrapper) -> &'static [u8] {
    // SAFETY: the caller vouches for the wrapper.
    let Some(wrapper) = (unsafe { wrapper.as_ref() }) else { return &[] };
    if wrapper.magic != WRAPPER_MAGIC || wrapper.data.is_null() {
        return &[];
    }
    // SAFETY: every fat binary and every image has at least 8 bytes.
    let magic = unsafe { std::slice::from_raw_parts(wrapper.data, 8) };
    if magic != IMAGE_MAGIC {
        return &[];
    }
    // SAFETY: an image starts with a header.
    let header = unsafe { wrapper.data.cast::<ImageHeader>().read_unaligned() };
    let length = size_of::<ImageHeader>() + header.elf_len as usize;
    // SAFETY: the header says how much follows.
    unsafe { std::slice::from_raw_parts(wrapper.data, length) }
}

impl Registry {
    /// Adds an image; its number.
    pub fn add_module(&mut self, image: &'static [u8]) -> u32 {
        self.modules.push(Module { image, ..Module::default() });
        self.modules.len() as u32 - 1
    }

    /// The image with this number.
    pub fn module(&mut self, number: u32) -> Result<&mut Module> {
        self.modules.get_mut(number as usize).ok_or(CudaError::ErrorInvalidResourceHandle)
    }

    /// All images.
    pub fn modules(&mut self) -> &mut [Module] {
        &mut self.modules
    }

    /// The library that registered the image is going away: its addresses may come to mean something else.
    pub fn remove_module(&mut self, number: u32) {
        self.functions.retain(|_, function| function.module != number);
        self.variables.retain(|_, variable| variable.module != number);
        if let Ok(module) = self.module(number) {
            module.image = &[];
            module.managed.clear();
        }
    }

    /// Adds a kernel that the program names by `address`.
    pub fn add_function(&mut self, module: u32, address: usize, name: String) {
        self.functions.insert(address, Function { module, name, entry: None });
    }

    /// Adds a global that the program names by `address`.
    pub fn add_variable(&mut self, address: usize, variable: Variable) {
        self.variables.insert(address, variable);
    }

    /// The kernel that the program names by `address`.
    pub fn kernel(&mut self, address: usize) -> Result<Arc<KernelEntry>> {
        let function = self.functions.get_mut(&address).ok_or(CudaError::ErrorInvalidDeviceFunction)?;
        if let Some(entry) = &function.entry {
            return Ok(Arc::clone(entry));
        }
        let module = self.modules.get_mut(function.module as usize).ok_or(CudaError::ErrorInvalidDeviceFunction)?;
        let metadata = module.metadata()?;
        let found = metadata.kernels.iter().position(|kernel| kernel.name == function.name);
        let index = found.ok_or(CudaError::ErrorInvalidDeviceFunction)?;
        let entry = Arc::new(KernelEntry::new(function.module, index, &metadata.kernels[index])?);
        function.entry = Some(Arc::clone(&entry));
        Ok(entry)
    }

    /// The global that the program names by `address`.
    pub fn variable(&self, address: usize) -> Result<Variable> {
        self.variables.get(&address).cloned().ok_or(CudaError::ErrorInvalidSymbol)
    }
}

impl KernelEntry {
    fn new(module: u32, index: usize, info: &KernelInfo) -> Result<KernelEntry> {
        let offsets = info.param_offsets();
        let parameters = offsets.zip(&info.params).map(|(offset, info)| (offset, info.size as usize)).collect();
        let packed = info.packed_len();
        if packed > MAX_PARAMETERS {
            return Err(CudaError::ErrorInvalidKernelImage);
        }
        let name = std::ffi::CString::new(info.name.clone()).map_err(|_| CudaError::ErrorInvalidKernelImage)?;
        let free = DEFAULT_SHARED.saturating_sub(info.static_shared);
        Ok(KernelEntry {
            module,
            index: index as u32,
            info: info.clone(),
            name,
            parameters,
            packed,
            dynamic_limit: AtomicU32::new(free),
        })
    }

    /// Bytes of dynamic shared memory that a launch may ask for.
    pub fn dynamic_limit(&self) -> u32 {
        self.dynamic_limit.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_fat_binaries_are_no_image() {
        let bytes = [0x50u8, 0xED, 0x55, 0xBA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut wrapper = Wrapper { magic: WRAPPER_MAGIC, version: 1, data: bytes.as_ptr(), file: std::ptr::null() };
        // SAFETY: the wrapper is well formed and its data lives on.
        assert!(unsafe { image_of(&wrapper) }.is_empty());
        wrapper.magic = 1;
        // SAFETY: as above.
        assert!(unsafe { image_of(&wrapper) }.is_empty());
        // SAFETY: null is allowed.
        assert!(unsafe { image_of(std::ptr::null()) }.is_empty());
    }

    #[test]
    fn a_kernel_without_an_image_is_no_function() {
        let mut registry = Registry::default();
        let module = registry.add_module(&[]);
        registry.add_function(module, 0x10, "k".to_owned());
        assert_eq!(registry.kernel(0x10).unwrap_err(), CudaError::ErrorInvalidDeviceFunction);
        assert_eq!(registry.kernel(0x20).unwrap_err(), CudaError::ErrorInvalidDeviceFunction);
        assert_eq!(registry.variable(0x20).unwrap_err(), CudaError::ErrorInvalidSymbol);
    }
}
