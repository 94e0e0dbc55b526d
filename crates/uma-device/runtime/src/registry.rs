//! What compiled programs register at start: images, kernels, device globals, by the program's own addresses. The driver gets an image when
//! something of it is first used.

use crate::driver::{self, Handle, check};
use crate::error::{CudaError, Result};
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_int, c_void};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// A device global of the program.
#[derive(Clone, Debug)]
struct Variable {
    module: u32,
    name: CString,
}

/// A `__managed__` variable of the program.
#[derive(Clone, Debug)]
struct ManagedVariable {
    name: CString,
    /// The program's pointer to it, which is set when the module is first used.
    pointer: usize,
}

/// One registered image.
#[derive(Debug)]
struct Module {
    /// What the program gave for it; 0: it was taken back.
    image: usize,
    /// The driver's handle, or why there is none.
    library: Option<Result<usize>>,
    managed: Vec<ManagedVariable>,
    /// Whether the program's pointers to managed variables are set.
    managed_set: bool,
}

#[derive(Debug)]
struct Function {
    module: u32,
    name: CString,
    /// The driver's handle.
    kernel: Option<usize>,
}

/// All that is registered.
#[derive(Debug, Default)]
pub struct Registry {
    modules: Vec<Module>,
    functions: HashMap<usize, Function>,
    variables: HashMap<usize, Variable>,
    /// Handles of kernels that the program has got from us, with which it may call us.
    kernels: HashSet<usize>,
}

/// The registry of this program, locked. The driver may be called meanwhile.
pub fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Module {
    /// The driver's handle; the first call has the driver load the image.
    fn library(&mut self) -> Result<Handle> {
        if let Some(known) = self.library {
            return known.map(|library| library as Handle);
        }
        let driver = driver::driver()?;
        if self.image == 0 {
            return Err(CudaError::ErrorInvalidDeviceFunction);
        }
        /// `CU_LIBRARY_BINARY_IS_PRESERVED`
        const IS_PRESERVED: c_int = 1;
        let (options, values) = ([IS_PRESERVED], [std::ptr::without_provenance_mut::<c_void>(1)]);
        let (none, no_values) = (std::ptr::null(), std::ptr::null());
        let mut library = std::ptr::null_mut();
        // SAFETY: the program registered the image and keeps it as long as it is registered; all else is ours.
        let loaded = check(unsafe {
            let image = self.image as *const c_void;
            (driver.library_load_data)(&mut library, image, none, no_values, 0, options.as_ptr(), values.as_ptr(), 1)
        });
        // An image that the device can't run has no kernels.
        let library = loaded.map(|()| library as usize).map_err(|_| CudaError::ErrorInvalidDeviceFunction);
        self.library = Some(library);
        library.map(|library| library as Handle)
    }

    /// Sets the program's pointers to managed variables, unless they are set.
    fn set_managed(&mut self) -> Result {
        if self.managed_set {
            return Ok(());
        }
        let library = self.library()?;
        let driver = driver::current()?;
        for variable in &self.managed {
            let (mut address, mut bytes) = (0, 0);
            // SAFETY: the name is a C string, the targets are ours.
            check(unsafe { (driver.library_get_managed)(&mut address, &mut bytes, library, variable.name.as_ptr()) })?;
            // SAFETY: the program registered this pointer for us to set, and its library is still loaded.
            unsafe { (variable.pointer as *mut u64).write(address) };
        }
        self.managed_set = true;
        Ok(())
    }
}

impl Registry {
    /// Adds an image; its number.
    pub fn add_module(&mut self, image: *const c_void) -> u32 {
        let module = Module { image: image as usize, library: None, managed: Vec::new(), managed_set: false };
        self.modules.push(module);
        self.modules.len() as u32 - 1
    }

    fn module(&mut self, number: u32) -> Result<&mut Module> {
        self.modules.get_mut(number as usize).ok_or(CudaError::ErrorInvalidResourceHandle)
    }

    /// Has the driver load an image, and sets the program's pointers to its managed variables.
    pub fn load(&mut self, number: u32) -> Result {
        self.module(number)?.set_managed()
    }

    /// The library that registered the image is going away: its addresses may come to mean something else.
    pub fn remove_module(&mut self, number: u32) {
        let gone = self.functions.extract_if(|_, function| function.module == number);
        for (_, function) in gone {
            if let Some(kernel) = function.kernel {
                self.kernels.remove(&kernel);
            }
        }
        self.variables.retain(|_, variable| variable.module != number);
        let Ok(module) = self.module(number) else { return };
        module.image = 0;
        module.managed.clear();
        if let (Some(Ok(library)), Some(driver)) = (module.library.take(), driver::driver_if_open()) {
            // SAFETY: the handle came from the driver. What it answers changes nothing here.
            unsafe { (driver.library_unload)(library as Handle) };
        }
    }

    /// Adds a kernel that the program names by `address`.
    pub fn add_function(&mut self, module: u32, address: usize, name: CString) {
        self.functions.insert(address, Function { module, name, kernel: None });
    }

    /// Adds a global that the program names by `address`.
    pub fn add_variable(&mut self, module: u32, address: usize, name: CString) {
        self.variables.insert(address, Variable { module, name });
    }

    /// Adds a managed variable, to which the program has a pointer at `pointer`.
    pub fn add_managed(&mut self, module: u32, pointer: usize, name: CString) {
        self.add_variable(module, pointer, name.clone());
        if let Ok(module) = self.module(module) {
            module.managed.push(ManagedVariable { name, pointer });
            module.managed_set = false;
        }
    }

    /// The driver's kernel that the program names by its own address or by the driver's handle.
    pub fn kernel(&mut self, address: usize) -> Result<Handle> {
        let Some(function) = self.functions.get_mut(&address) else {
            let known = self.kernels.contains(&address);
            return known.then_some(address as Handle).ok_or(CudaError::ErrorInvalidDeviceFunction);
        };
        if let Some(kernel) = function.kernel {
            return Ok(kernel as Handle);
        }
        let module = self.modules.get_mut(function.module as usize).ok_or(CudaError::ErrorInvalidDeviceFunction)?;
        let library = module.library()?;
        let driver = driver::driver()?;
        let mut kernel = std::ptr::null_mut();
        // SAFETY: the name is a C string, the target is ours.
        check(unsafe { (driver.library_get_kernel)(&mut kernel, library, function.name.as_ptr()) })
            .map_err(|error| not_found(error, CudaError::ErrorInvalidDeviceFunction))?;
        function.kernel = Some(kernel as usize);
        self.kernels.insert(kernel as usize);
        Ok(kernel)
    }

    /// As [`kernel`](Registry::kernel), for a launch: the managed variables of its module have their memory.
    pub fn kernel_to_launch(&mut self, address: usize) -> Result<Handle> {
        let kernel = self.kernel(address)?;
        if let Some(function) = self.functions.get(&address)
            && let Some(module) = self.modules.get_mut(function.module as usize)
        {
            module.set_managed()?;
        }
        Ok(kernel)
    }

    /// Address and size of the global that the program names by `address`.
    pub fn symbol(&mut self, address: usize) -> Result<(u64, usize)> {
        let variable = self.variables.get(&address).ok_or(CudaError::ErrorInvalidSymbol)?;
        let module = self.modules.get_mut(variable.module as usize).ok_or(CudaError::ErrorInvalidSymbol)?;
        let no_symbol = |error| match error {
            CudaError::ErrorInvalidDeviceFunction => CudaError::ErrorInvalidSymbol,
            other => not_found(other, CudaError::ErrorInvalidSymbol),
        };
        let library = module.library().map_err(no_symbol)?;
        module.set_managed()?;
        let driver = driver::current()?;
        let (mut found, mut bytes) = (0, 0);
        // SAFETY: the name is a C string, the targets are ours.
        check(unsafe { (driver.library_get_global)(&mut found, &mut bytes, library, variable.name.as_ptr()) })
            .map_err(no_symbol)?;
        Ok((found, bytes))
    }

    /// The device was reset: managed variables get new memory when they are next used.
    pub fn forget_managed(&mut self) {
        for module in &mut self.modules {
            module.managed_set = module.managed.is_empty();
        }
    }
}

/// What the runtime says where the driver does not find a name.
fn not_found(error: CudaError, instead: CudaError) -> CudaError {
    if error == CudaError::ErrorSymbolNotFound { instead } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_registered_is_not_found() {
        let mut registry = Registry::default();
        assert_eq!(registry.kernel(0x20), Err(CudaError::ErrorInvalidDeviceFunction));
        assert_eq!(registry.symbol(0x20), Err(CudaError::ErrorInvalidSymbol));
        assert_eq!(registry.load(3), Err(CudaError::ErrorInvalidResourceHandle));
    }
}
