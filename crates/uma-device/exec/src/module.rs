//! A loaded image and its kernels.

use crate::image::{ImageError, elf_of, read_metadata};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;
use uma_abi::{GlobalInfo, ImageMetadata, KernelEntry, KernelInfo};

/// A loaded image. Kernels keep it loaded.
#[derive(Clone)]
pub struct Module {
    loaded: Arc<Loaded>,
}

struct Loaded {
    metadata: ImageMetadata,
    kernels: HashMap<String, (usize, KernelEntry)>,
    library: Library,
    /// Keeps the number in the path that the library was opened by taken: the dynamic linker takes equal paths for the same library.
    _file: File,
}

/// One kernel of a loaded image.
#[derive(Clone)]
pub struct Kernel {
    loaded: Arc<Loaded>,
    index: usize,
    pub(crate) entry: KernelEntry,
}

impl Module {
    /// Loads an image (header and ELF).
    ///
    /// # Safety
    /// The image must come from the kernel compiler: loading runs its initialisers, and its metadata is believed.
    pub unsafe fn load(image: &[u8]) -> Result<Module, ImageError> {
        let metadata = read_metadata(image)?;
        let file = memory_file(elf_of(image)?)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: the caller vouches for the image.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL)? };
        let mut kernels = HashMap::new();
        for (index, kernel) in metadata.kernels.iter().enumerate() {
            // SAFETY: the metadata says that this symbol is a kernel entry.
            let entry = unsafe { *library.get::<KernelEntry>(kernel.symbol.as_bytes())? };
            kernels.insert(kernel.name.clone(), (index, entry));
        }
        Ok(Module { loaded: Arc::new(Loaded { metadata, kernels, library, _file: file }) })
    }

    /// What the image holds.
    pub fn metadata(&self) -> &ImageMetadata {
        &self.loaded.metadata
    }

    /// The kernel with this mangled name.
    pub fn kernel(&self, name: &str) -> Option<Kernel> {
        let (index, entry) = *self.loaded.kernels.get(name)?;
        Some(Kernel { loaded: self.loaded.clone(), index, entry })
    }

    /// Copies the first bytes of a device global to `address` and makes the kernels use it there. To be called for each global of
    /// [`Module::metadata`] before the first launch.
    ///
    /// # Safety
    /// `global` is of this module; `address` is aligned for it, writable for its size, and stays valid while kernels of the module run.
    /// No kernel of the module runs during the call.
    pub unsafe fn place_global(&self, global: &GlobalInfo, address: *mut u8) -> Result<(), ImageError> {
        let size = global.size as usize;
        match &global.init_symbol {
            // SAFETY: the metadata says that the symbol has `size` bytes; the caller vouches for the destination.
            Some(symbol) => unsafe { std::ptr::copy_nonoverlapping(self.symbol(symbol)?, address, size) },
            // SAFETY: as above.
            None => unsafe { std::ptr::write_bytes(address, 0, size) },
        }
        // SAFETY: the metadata says that the symbol is a writable pointer variable; no kernel reads it meanwhile.
        unsafe { *self.symbol(&global.pointer_symbol)?.cast::<*mut u8>() = address };
        Ok(())
    }

    /// The address of an ELF symbol.
    fn symbol(&self, name: &str) -> Result<*mut u8, ImageError> {
        // SAFETY: the type says no more than that a symbol has an address.
        Ok(unsafe { self.loaded.library.get::<*mut u8>(name.as_bytes())? }.as_raw_ptr().cast())
    }
}

impl Kernel {
    /// Parameters, shared memory and the like.
    pub fn info(&self) -> &KernelInfo {
        &self.loaded.metadata.kernels[self.index]
    }
}

/// An unnamed file that holds `bytes`: the dynamic linker only opens files.
fn memory_file(bytes: &[u8]) -> std::io::Result<File> {
    // SAFETY: the name is a C string; the result is checked.
    let descriptor = unsafe { libc::memfd_create(c"uma-image".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open and nobody else owns it.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(bytes)?;
    Ok(file)
}
