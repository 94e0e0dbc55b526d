//! Modules that the program loaded (`cuModuleLoadData`, `cuLibraryLoadData`) and their kernels, by handle. Nothing here starts the device.

use crate::error::{CuError, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use uma_abi::{IMAGE_MAGIC, ImageHeader, ImageMetadata, KernelInfo};

/// First word of the wrapper that compilers put around an image; its third field points to the image.
const WRAPPER_MAGIC: u32 = 0x4662_43B1;

/// Bytes of shared memory that a kernel may have without asking for more.
pub const DEFAULT_SHARED: u32 = 48 << 10;

/// Bytes of parameters at most.
const MAX_PARAMETERS: usize = 32 << 10;

/// Handles of modules and kernels start here: apart from those of streams and events, and no address that a program could mistake for memory.
const HANDLES: usize = 0x4_0000_0000;

/// What a compiler puts around an image.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: *const u8,
    file: *const u8,
}

/// A kernel of a module.
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
    /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`
    pub dynamic_limit: AtomicU32,
}

/// The bytes of a module.
#[derive(Clone, Debug)]
pub enum Image {
    /// The program keeps them as long as the module is loaded.
    Kept(&'static [u8]),
    /// A copy.
    Copied(Arc<[u8]>),
}

impl std::ops::Deref for Image {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Image::Kept(bytes) => bytes,
            Image::Copied(bytes) => bytes,
        }
    }
}

/// One module.
#[derive(Debug)]
pub struct Module {
    /// Its handle.
    pub handle: usize,
    /// Its bytes.
    pub image: Image,
    /// What the image holds.
    pub metadata: Arc<ImageMetadata>,
    /// Addresses of its globals once the device process has it.
    pub globals: Option<Vec<usize>>,
    /// Handle of each kernel that was asked for.
    kernels: HashMap<usize, usize>,
}

/// All modules.
#[derive(Debug, Default)]
pub struct Registry {
    /// By number; a number is never used again, since the device process knows modules by it.
    modules: Vec<Option<Module>>,
    by_handle: HashMap<usize, u32>,
    kernels: HashMap<usize, Arc<KernelEntry>>,
    handles: usize,
}

/// The registry of this program, locked. Take it before the engine's lock, never after.
pub fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The image that `data` is or wraps; empty when it is no image of ours.
///
/// # Safety
/// `data` points to a fat binary, a wrapper of one, an image or text that is ended by a NUL, and stays as long as the result is used.
pub unsafe fn image_of<'a>(data: *const u8) -> &'a [u8] {
    // SAFETY: the shortest of these is one byte of text; each further byte is read only if the one before is not the end.
    let starts_with = |data: *const u8, magic: &[u8]| (0..magic.len()).all(|at| unsafe { *data.add(at) } == magic[at]);
    let data = if starts_with(data, &WRAPPER_MAGIC.to_ne_bytes()) {
        // SAFETY: it starts as a wrapper.
        unsafe { data.cast::<Wrapper>().read_unaligned() }.data
    } else {
        data
    };
    if data.is_null() || !starts_with(data, &IMAGE_MAGIC) {
        return &[];
    }
    // SAFETY: an image starts with a header.
    let header = unsafe { data.cast::<ImageHeader>().read_unaligned() };
    let length = size_of::<ImageHeader>() + header.elf_len as usize;
    // SAFETY: the header says how much follows.
    unsafe { std::slice::from_raw_parts(data, length) }
}

/// The image that the bytes of a file are; empty when they are none of ours.
pub fn image_in(bytes: &[u8]) -> &[u8] {
    let header = bytes.first_chunk::<{ size_of::<ImageHeader>() }>().filter(|header| header.starts_with(&IMAGE_MAGIC));
    let length = header.and_then(|header| header.last_chunk().map(|length| u64::from_le_bytes(*length)));
    let end = length.and_then(|length| usize::try_from(length).ok()?.checked_add(size_of::<ImageHeader>()));
    end.and_then(|end| bytes.get(..end)).unwrap_or(&[])
}

impl Registry {
    fn new_handle(&mut self) -> usize {
        self.handles += 1;
        HANDLES + self.handles * 0x10
    }

    /// Adds a module; its handle. An image of another kind is said on stderr.
    pub fn add_module(&mut self, image: Image) -> Result<usize> {
        let metadata = uma_exec::read_metadata(&image).map_err(|problem| {
            eprintln!("uma-device: the program's kernels can't run here: {problem}");
            CuError::NO_BINARY_FOR_GPU
        })?;
        let handle = self.new_handle();
        let number = self.modules.len() as u32;
        let module = Module { handle, image, metadata: Arc::new(metadata), globals: None, kernels: HashMap::new() };
        self.modules.push(Some(module));
        self.by_handle.insert(handle, number);
        Ok(handle)
    }

    /// Number of the module with this handle.
    pub fn number(&self, handle: usize) -> Result<u32> {
        self.by_handle.get(&handle).copied().ok_or(CuError::INVALID_HANDLE)
    }

    /// The module with this number.
    pub fn module(&mut self, number: u32) -> Result<&mut Module> {
        self.modules.get_mut(number as usize).and_then(Option::as_mut).ok_or(CuError::INVALID_HANDLE)
    }

    /// All modules.
    pub fn modules(&mut self) -> impl Iterator<Item = &mut Module> {
        self.modules.iter_mut().flatten()
    }

    /// Takes a module out, with its kernels.
    pub fn remove_module(&mut self, handle: usize) -> Result<Module> {
        let number = self.by_handle.remove(&handle).ok_or(CuError::INVALID_HANDLE)?;
        let module = self.modules.get_mut(number as usize).and_then(Option::take).ok_or(CuError::INVALID_HANDLE)?;
        for handle in module.kernels.values() {
            self.kernels.remove(handle);
        }
        Ok(module)
    }

    /// Handle of the kernel at a position of the module's metadata.
    pub fn kernel_at(&mut self, module: usize, index: usize) -> Result<usize> {
        let number = self.number(module)?;
        let known = self.module(number)?;
        if let Some(handle) = known.kernels.get(&index) {
            return Ok(*handle);
        }
        let info = known.metadata.kernels.get(index).ok_or(CuError::NOT_FOUND)?;
        let entry = Arc::new(KernelEntry::new(number, index, info)?);
        let handle = self.new_handle();
        self.module(number)?.kernels.insert(index, handle);
        self.kernels.insert(handle, entry);
        Ok(handle)
    }

    /// Handle of the kernel of this name.
    pub fn kernel_named(&mut self, module: usize, name: &str) -> Result<usize> {
        let number = self.number(module)?;
        let found = self.module(number)?.metadata.kernels.iter().position(|kernel| kernel.name == name);
        self.kernel_at(module, found.ok_or(CuError::NOT_FOUND)?)
    }

    /// The kernel with this handle.
    pub fn kernel(&self, handle: usize) -> Result<Arc<KernelEntry>> {
        self.kernels.get(&handle).cloned().ok_or(CuError::INVALID_HANDLE)
    }
}

impl KernelEntry {
    fn new(module: u32, index: usize, info: &KernelInfo) -> Result<KernelEntry> {
        let offsets = info.param_offsets();
        let parameters = offsets.zip(&info.params).map(|(offset, info)| (offset, info.size as usize)).collect();
        let packed = info.packed_len();
        if packed > MAX_PARAMETERS {
            return Err(CuError::INVALID_IMAGE);
        }
        let name = std::ffi::CString::new(info.name.clone()).map_err(|_| CuError::INVALID_IMAGE)?;
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
    fn other_fat_binaries_and_text_are_no_image() {
        let bytes = [0x50u8, 0xED, 0x55, 0xBA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut wrapper = Wrapper { magic: WRAPPER_MAGIC, version: 1, data: bytes.as_ptr(), file: std::ptr::null() };
        // SAFETY: the wrapper is well formed and its data lives on.
        assert!(unsafe { image_of(std::ptr::from_ref(&wrapper).cast()) }.is_empty());
        wrapper.data = std::ptr::null();
        // SAFETY: as above.
        assert!(unsafe { image_of(std::ptr::from_ref(&wrapper).cast()) }.is_empty());
        // SAFETY: the text has an end.
        assert!(unsafe { image_of(c"".as_ptr().cast()) }.is_empty());
    }

    #[test]
    fn an_image_behind_a_wrapper_is_found() {
        let image = [&IMAGE_MAGIC[..], &3u64.to_le_bytes(), b"elf"].concat();
        let wrapper = Wrapper { magic: WRAPPER_MAGIC, version: 1, data: image.as_ptr(), file: std::ptr::null() };
        // SAFETY: the wrapper is well formed and its data lives on.
        assert_eq!(unsafe { image_of(std::ptr::from_ref(&wrapper).cast()) }, image);
        // SAFETY: as above.
        assert_eq!(unsafe { image_of(image.as_ptr()) }, image);
    }

    #[test]
    fn an_image_in_a_file_is_no_longer_than_the_file() {
        let image = [&IMAGE_MAGIC[..], &3u64.to_le_bytes(), b"elf"].concat();
        assert_eq!(image_in(&[&image[..], b"rest"].concat()), image);
        assert!(image_in(&image[..18]).is_empty());
        assert!(image_in(&image[..9]).is_empty());
        assert!(image_in(&[&IMAGE_MAGIC[..], &u64::MAX.to_le_bytes()].concat()).is_empty());
        assert!(image_in(&WRAPPER_MAGIC.to_le_bytes().repeat(8)).is_empty());
    }

    #[test]
    fn what_is_no_module_has_no_kernels() {
        let mut registry = Registry::default();
        assert_eq!(registry.add_module(Image::Kept(&[])), Err(CuError::NO_BINARY_FOR_GPU));
        assert_eq!(registry.kernel_named(0x10, "k"), Err(CuError::INVALID_HANDLE));
        assert_eq!(registry.kernel(0x10).unwrap_err(), CuError::INVALID_HANDLE);
        assert_eq!(registry.remove_module(0x10).unwrap_err(), CuError::INVALID_HANDLE);
    }
}
