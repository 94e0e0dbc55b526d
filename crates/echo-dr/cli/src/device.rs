//! What the GPU says of itself, asked through whatever CUDA library can be opened: the driver's first, then a runtime's. Nothing of CUDA is
//! linked, so the command runs (and says so) where there is none.

use std::ffi::{CStr, c_char, c_int};
use std::path::PathBuf;

use echo_rt::DeviceFacts;
use libloading::Library;
use serde::Serialize;

/// A device, as far as Echo cares.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Device {
    /// The library that was asked.
    pub(crate) asked: String,
    /// The device's name, where the library tells it.
    pub(crate) name: Option<String>,
    /// 13000 is CUDA 13.0.
    pub(crate) version: i32,
    /// Values by the names of `cudaDevAttr…`; what the library does not know is absent.
    pub(crate) attributes: Vec<(&'static str, i32)>,
}

/// Attributes by name and number, the same in `cudaDeviceAttr` and `CUdevice_attribute`.
const ATTRIBUTES: [(&str, c_int); 11] = [
    ("ComputeCapabilityMajor", 75),
    ("ComputeCapabilityMinor", 76),
    ("Integrated", 18),
    ("CanMapHostMemory", 19),
    ("UnifiedAddressing", 41),
    ("ManagedMemory", 83),
    ("ConcurrentManagedAccess", 89),
    ("PageableMemoryAccess", 88),
    ("PageableMemoryAccessUsesHostPageTables", 100),
    ("HostNativeAtomicSupported", 86),
    ("CanUseHostPointerForRegisteredMem", 91),
];

/// Names under which a runtime may be installed, newest first.
const RUNTIMES: [&str; 4] = ["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"];

type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
type Number = unsafe extern "C" fn(*mut c_int) -> c_int;

impl Device {
    /// What the first device says. `runtime` is tried before other runtimes: the one that a program asks for.
    ///
    /// # Errors
    /// One sentence for each library that was tried.
    pub(crate) fn ask(runtime: Option<PathBuf>) -> Result<Self, Vec<String>> {
        let mut failures = Vec::new();
        match Self::driver() {
            Ok(device) => return Ok(device),
            Err(reason) => failures.push(format!("libcuda.so.1: {reason}")),
        }
        for path in runtime.into_iter().chain(RUNTIMES.map(PathBuf::from)) {
            match Self::runtime(&path) {
                Ok(device) => return Ok(device),
                Err(reason) => failures.push(format!("{}: {reason}", path.display())),
            }
        }
        Err(failures)
    }

    fn driver() -> Result<Self, String> {
        // SAFETY: the driver's library has no initialiser that asks anything of the process that opens it.
        let library = unsafe { Library::new("libcuda.so.1") }.map_err(reason)?;
        let mut name = [0 as c_char; 256];
        // SAFETY: the signatures are those of cuda.h; the pointers are to live locals, `name` with its length.
        let attributes = unsafe {
            let init = library.get::<unsafe extern "C" fn(u32) -> c_int>(b"cuInit").map_err(reason)?;
            succeeded("cuInit", init(0))?;
            let called = library
                .get::<unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int>(b"cuDeviceGetName")
                .map_err(reason)?;
            succeeded("cuDeviceGetName", called(name.as_mut_ptr(), name.len() as c_int - 1, 0))?;
            read(*library.get::<Attribute>(b"cuDeviceGetAttribute").map_err(reason)?)
        };
        // SAFETY: as above.
        let version = unsafe { number(*library.get::<Number>(b"cuDriverGetVersion").map_err(reason)?).unwrap_or(0) };
        // SAFETY: the array was zeroed and its last byte was not given away, so a zero ends it.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        std::mem::forget(library); // Its threads may still run.
        Ok(Self { asked: "libcuda.so.1".to_owned(), name: Some(name), version, attributes })
    }

    fn runtime(path: &std::path::Path) -> Result<Self, String> {
        // SAFETY: as for the driver's library.
        let library = unsafe { Library::new(path) }.map_err(reason)?;
        // SAFETY: the signatures are those of cuda_runtime_api.h; the pointers are to live locals.
        let (version, attributes) = unsafe {
            let mut count = 0;
            let devices = library.get::<Number>(b"cudaGetDeviceCount").map_err(reason)?;
            succeeded("cudaGetDeviceCount", devices(&raw mut count))?;
            if count == 0 {
                return Err("it sees no device".to_owned());
            }
            let version = library.get::<Number>(b"cudaRuntimeGetVersion").map_err(reason)?;
            let attribute = library.get::<Attribute>(b"cudaDeviceGetAttribute").map_err(reason)?;
            (number(*version).unwrap_or(0), read(*attribute))
        };
        std::mem::forget(library);
        Ok(Self { asked: path.display().to_string(), name: None, version, attributes })
    }

    /// What decides between backends.
    pub(crate) fn facts(&self) -> DeviceFacts {
        let is = |name: &str| self.attributes.iter().any(|(known, value)| *known == name && *value != 0);
        DeviceFacts {
            integrated: is("Integrated"),
            managed_memory: is("ManagedMemory"),
            concurrent_managed_access: is("ConcurrentManagedAccess"),
            pageable_memory_access: is("PageableMemoryAccess"),
            host_page_tables: is("PageableMemoryAccessUsesHostPageTables"),
            mapped_host_memory: is("CanMapHostMemory") && is("UnifiedAddressing"),
        }
    }
}

/// What the loader said, which libloading has as the source of its own error.
fn reason(error: libloading::Error) -> String {
    std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn succeeded(call: &str, code: c_int) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("{call} says error {code}")) }
}

/// # Safety
/// `call` writes one number through its argument.
unsafe fn number(call: Number) -> Option<i32> {
    let mut value = 0;
    // SAFETY: the caller's promise; the pointer is to a live local.
    (unsafe { call(&raw mut value) } == 0).then_some(value)
}

/// # Safety
/// `call` is `cuDeviceGetAttribute` or `cudaDeviceGetAttribute`.
unsafe fn read(call: Attribute) -> Vec<(&'static str, i32)> {
    let value = |id| {
        let mut value = 0;
        // SAFETY: the caller's promise; the pointer is to a live local, device 0 exists.
        (unsafe { call(&raw mut value, id, 0) } == 0).then_some(value)
    };
    ATTRIBUTES.iter().filter_map(|&(name, id)| Some((name, value(id)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_the_attributes_that_are_not_zero() {
        let device = Device {
            asked: String::new(),
            name: None,
            version: 13000,
            attributes: vec![
                ("Integrated", 1),
                ("ManagedMemory", 1),
                ("ConcurrentManagedAccess", 0),
                ("CanMapHostMemory", 1),
            ],
        };
        let facts = device.facts();
        assert!(facts.integrated && facts.managed_memory && !facts.concurrent_managed_access);
        assert!(!facts.mapped_host_memory, "without one address space mapped memory has two addresses");
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let reason = Device::runtime(std::path::Path::new("/nonexistent/libcudart.so")).unwrap_err();
        assert!(reason.contains("/nonexistent/libcudart.so"), "{reason}");
    }
}
