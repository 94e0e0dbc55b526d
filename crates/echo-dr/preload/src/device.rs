//! CUDA as Echo itself calls it: the real functions of the layer that the program uses.

use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::sync::{Mutex, OnceLock, PoisonError};

use echo_dr_format::context::{Attributes, DeviceIdentity};
use echo_dr_format::event::Stream;
use echo_rt::{Cuda, CudaError, Direction, Side};

use crate::lookup::Slot;
use crate::table::{Layer, hooks};
use crate::thread::Token;
use crate::{malloc, pages};

/// Flags of `cudaHostAlloc` and `cuMemHostAlloc`: for all contexts, mapped for the device.
const PORTABLE_MAPPED: u32 = 3;
/// `cudaMemAttachGlobal`, `CU_MEM_ATTACH_GLOBAL`.
const ATTACH_GLOBAL: u32 = 1;
/// What a call of a function that isn't there answers (`cudaErrorNotSupported`).
const NOT_SUPPORTED: c_int = 801;

const RUNTIME: &[&str] = &["libcudart.so"];
const DRIVER: &[&str] = &["libcuda.so"];

/// Functions that no row of the table has.
static RUNTIME_VERSION: Slot = Slot::new(c"cudaRuntimeGetVersion", RUNTIME);
static RUNTIME_DRIVER_VERSION: Slot = Slot::new(c"cudaDriverGetVersion", RUNTIME);
static GET_DEVICE: Slot = Slot::new(c"cudaGetDevice", RUNTIME);
static DEVICE_ATTRIBUTE: Slot = Slot::new(c"cudaDeviceGetAttribute", RUNTIME);
static PROPERTIES: Slot = Slot::new(c"cudaGetDeviceProperties", RUNTIME);
static PROPERTIES_V2: Slot = Slot::new(c"cudaGetDeviceProperties_v2", RUNTIME);
static PEEK_ERROR: Slot = Slot::new(c"cudaPeekAtLastError", RUNTIME);
static GET_ERROR: Slot = Slot::new(c"cudaGetLastError", RUNTIME);
static CU_INIT: Slot = Slot::new(c"cuInit", DRIVER);
static CU_DRIVER_VERSION: Slot = Slot::new(c"cuDriverGetVersion", DRIVER);
static CU_CONTEXT: Slot = Slot::new(c"cuCtxGetCurrent", DRIVER);
static CU_CONTEXT_DEVICE: Slot = Slot::new(c"cuCtxGetDevice", DRIVER);
static CU_RETAIN: Slot = Slot::new(c"cuDevicePrimaryCtxRetain", DRIVER);
static CU_ATTRIBUTE: Slot = Slot::new(c"cuDeviceGetAttribute", DRIVER);
static CU_NAME: Slot = Slot::new(c"cuDeviceGetName", DRIVER);
static CU_UUID: Slot = Slot::new(c"cuDeviceGetUuid", DRIVER);

/// Calls a real function, if there is one.
macro_rules! call {
    ($slot:expr, ($($type:ty),*), $($argument:expr),*) => {
        match $slot.address() {
            None => NOT_SUPPORTED,
            Some(address) => {
                // SAFETY: the slot holds the real function of its name, whose type this is; the arguments are valid where it is called.
                unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> c_int>(address)($($argument),*) }
            }
        }
    };
}

/// The real functions of one layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Real {
    layer: Layer,
}

fn result(code: c_int) -> Result<(), CudaError> {
    if code == 0 { Ok(()) } else { Err(CudaError(code)) }
}

impl Real {
    /// Of a layer.
    pub(crate) fn of(layer: Layer) -> Self {
        Self { layer }
    }

    /// Of the layer that this process has, where no call says: the runtime if it is a shared library, else the driver, with a context of the
    /// first device made current if the thread has none (what a statically linked runtime does at its first call). `None` without CUDA.
    pub(crate) fn current() -> Option<Self> {
        if hooks::cudaMalloc.slot.address().is_some() {
            return Some(Self::of(Layer::Runtime));
        }
        hooks::cuMemAlloc_v2.slot.address()?;
        let mut context = 0_usize;
        if call!(CU_CONTEXT, (*mut usize), &raw mut context) != 0 || context == 0 {
            result(call!(CU_INIT, (u32), 0)).ok()?;
            result(call!(CU_RETAIN, (*mut usize, c_int), &raw mut context, 0)).ok()?;
            result(call!(hooks::cuCtxSetCurrent.slot, (usize), context)).ok()?;
        }
        Some(Self::of(Layer::Driver))
    }

    fn is_runtime(self) -> bool {
        self.layer == Layer::Runtime
    }

    /// Waits for the device.
    pub(crate) fn wait_device(self) -> c_int {
        if self.is_runtime() {
            call!(hooks::cudaDeviceSynchronize.slot, (),)
        } else {
            call!(hooks::cuCtxSynchronize.slot, (),)
        }
    }

    /// Frees page-locked memory; the function's own result.
    pub(crate) fn free_page_locked(self, address: usize) -> c_int {
        let slot = if self.is_runtime() { &hooks::cudaFreeHost.slot } else { &hooks::cuMemFreeHost.slot };
        call!(slot, (usize), address)
    }

    /// Waits for a stream.
    pub(crate) fn wait_stream(self, stream: Stream) -> c_int {
        let stream = stream.0 as usize;
        if self.is_runtime() {
            call!(hooks::cudaStreamSynchronize.slot, (usize), stream)
        } else {
            call!(hooks::cuStreamSynchronize.slot, (usize), stream)
        }
    }

    /// CUDA 13 changed the type of `cudaMemPrefetchAsync` under its name.
    fn runtime_has_locations(self) -> bool {
        let mut version = 0;
        call!(RUNTIME_VERSION, (*mut c_int), &raw mut version) == 0 && version >= 13000
    }

    /// Copies device memory to `piece`; false where that fails.
    pub(crate) fn read(self, piece: &mut [u8], address: usize) -> bool {
        self.copy(piece.as_mut_ptr() as usize, address, piece.len(), Direction::DeviceToHost).is_ok()
    }

    /// Fills device memory with a pattern that programs don't write, and waits for it.
    pub(crate) fn poison(self, address: usize, bytes: usize) {
        const PATTERN: u8 = 0xa5;
        let code = if self.is_runtime() {
            call!(hooks::cudaMemset.slot, (usize, c_int, usize), address, c_int::from(PATTERN), bytes)
        } else {
            call!(hooks::cuMemsetD8_v2.slot, (usize, u8, usize), address, PATTERN, bytes)
        };
        if code == 0 {
            let _ = self.wait_device();
        }
    }

    /// Number of the current device.
    fn device(self) -> Option<c_int> {
        let mut device = 0;
        let code = if self.is_runtime() {
            call!(GET_DEVICE, (*mut c_int), &raw mut device)
        } else {
            call!(CU_CONTEXT_DEVICE, (*mut c_int), &raw mut device)
        };
        (code == 0).then_some(device)
    }

    /// An attribute; both layers use the same numbers.
    fn attribute(self, number: c_int, device: c_int) -> Option<c_int> {
        let mut value = 0;
        let slot = if self.is_runtime() { &DEVICE_ATTRIBUTE } else { &CU_ATTRIBUTE };
        let code = call!(slot, (*mut c_int, c_int, c_int), &raw mut value, number, device);
        (code == 0).then_some(value)
    }

    fn name_and_uuid(self, device: c_int) -> Option<(String, [u8; 16])> {
        const NAME: usize = 256;
        // `cudaDeviceProp` begins with the name and the UUID in every version, and has about 1000 bytes.
        let mut bytes = [0_u8; 8192];
        if self.is_runtime() {
            let slot = if PROPERTIES_V2.address().is_some() { &PROPERTIES_V2 } else { &PROPERTIES };
            result(call!(slot, (*mut u8, c_int), bytes.as_mut_ptr(), device)).ok()?;
        } else {
            result(call!(CU_NAME, (*mut c_char, c_int, c_int), bytes.as_mut_ptr().cast(), NAME as c_int, device))
                .ok()?;
            result(call!(CU_UUID, (*mut u8, c_int), bytes[NAME..].as_mut_ptr(), device)).ok()?;
        }
        let name = bytes[..NAME].split(|&byte| byte == 0).next().unwrap_or_default();
        let uuid = bytes[NAME..].first_chunk().copied()?;
        Some((String::from_utf8_lossy(name).into_owned(), uuid))
    }

    fn identity(self) -> Option<DeviceIdentity> {
        let device = self.device()?;
        let is = |number| self.attribute(number, device).is_some_and(|value| value != 0);
        let number = |number| self.attribute(number, device).and_then(|value| u32::try_from(value).ok()).unwrap_or(0);
        let (name, uuid) = self.name_and_uuid(device)?;
        let version = |slot: &Slot| {
            let mut version = 0;
            let code = call!(slot, (*mut c_int), &raw mut version);
            u32::try_from(version).ok().filter(|_| code == 0)
        };
        // Numbers of `cudaDeviceAttr` and `CUdevice_attribute`.
        let attributes = Attributes {
            integrated: is(18),
            managed_memory: is(83),
            concurrent_managed_access: is(89),
            pageable_memory_access: is(88),
            host_page_tables: is(100),
            mapped_host_memory: is(19) && is(41),
        };
        Some(DeviceIdentity {
            name,
            uuid: uuid.iter().map(|byte| format!("{byte:02x}")).collect(),
            compute: (number(75), number(76)),
            driver: version(if self.is_runtime() { &RUNTIME_DRIVER_VERSION } else { &CU_DRIVER_VERSION }).unwrap_or(0),
            runtime: if self.is_runtime() { version(&RUNTIME_VERSION) } else { None },
            attributes,
        })
    }
}

/// Opens the driver if the program has no CUDA library yet. A runtime that is linked in opens it at the first CUDA call, and the host block of a
/// pair may be allocated before. Called before the program's main: later another thread may hold the loader's lock.
pub(crate) fn have_driver() {
    if hooks::cudaMalloc.slot.address().is_none() && hooks::cuMemAlloc_v2.slot.address().is_none() {
        // SAFETY: the name ends in NUL. Without a driver nothing is opened, and nothing is merged. It stays open, as a runtime would keep it.
        unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    }
}

/// The device that this process uses first. Asked inside a hooked call: CUDA's own calls are not the program's.
pub(crate) fn identity(_: &Token) -> Option<&'static DeviceIdentity> {
    static IDENTITY: OnceLock<Option<DeviceIdentity>> = OnceLock::new();
    IDENTITY.get_or_init(|| Real::current()?.identity()).as_ref()
}

/// Contexts that are there, each with its number.
static CONTEXTS: Mutex<Vec<(usize, c_int)>> = Mutex::new(Vec::new());

/// The number of a context: its device's. A second one of a device has streams and waits of its own, as another device has, so it gets another number.
fn number_of(context: usize, device: c_int) -> c_int {
    /// More than there are devices.
    const MORE: c_int = 1000;
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&(_, number)) = contexts.iter().find(|(known, _)| *known == context) {
        return number;
    }
    let is_second = contexts.iter().any(|&(_, number)| number == device);
    let number = if is_second { MORE + c_int::try_from(contexts.len()).unwrap_or(0) } else { device };
    contexts.push((context, number));
    number
}

/// The context is no more; another one may get its address.
pub(crate) fn context_ended(context: usize) {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner).retain(|(known, _)| *known != context);
}

/// The number of this thread's context, if it is another one than when this was asked last.
pub(crate) fn changed() -> Option<c_int> {
    thread_local! {
        static LAST: Cell<c_int> = const { Cell::new(0) };
    }
    let device = Real::of(Layer::Driver).device()?;
    let mut context = 0_usize;
    if call!(CU_CONTEXT, (*mut usize), &raw mut context) != 0 {
        return None;
    }
    let number = number_of(context, device);
    LAST.with(|last| last.replace(number) != number).then_some(number)
}

impl Cuda for Real {
    fn malloc(&self, bytes: usize) -> Result<usize, CudaError> {
        let mut address = 0;
        let slot = if self.is_runtime() { &hooks::cudaMalloc.slot } else { &hooks::cuMemAlloc_v2.slot };
        result(call!(slot, (*mut usize, usize), &raw mut address, bytes)).map(|()| address)
    }

    fn free(&self, address: usize) -> Result<(), CudaError> {
        let slot = if self.is_runtime() { &hooks::cudaFree.slot } else { &hooks::cuMemFree_v2.slot };
        result(call!(slot, (usize), address))
    }

    fn malloc_managed(&self, bytes: usize) -> Result<usize, CudaError> {
        let mut address = 0;
        let slot = if self.is_runtime() { &hooks::cudaMallocManaged.slot } else { &hooks::cuMemAllocManaged.slot };
        result(call!(slot, (*mut usize, usize, u32), &raw mut address, bytes, ATTACH_GLOBAL)).map(|()| address)
    }

    fn host_alloc(&self, bytes: usize) -> Result<(usize, usize), CudaError> {
        let (mut host, mut device) = (0, 0);
        let (make, ask) = if self.is_runtime() {
            (&hooks::cudaHostAlloc.slot, &hooks::cudaHostGetDevicePointer.slot)
        } else {
            (&hooks::cuMemHostAlloc.slot, &hooks::cuMemHostGetDevicePointer_v2.slot)
        };
        result(call!(make, (*mut usize, usize, u32), &raw mut host, bytes, PORTABLE_MAPPED))?;
        match result(call!(ask, (*mut usize, usize, u32), &raw mut device, host, 0)) {
            Ok(()) => Ok((host, device)),
            Err(error) => self.host_free(host).and(Err(error)),
        }
    }

    fn host_free(&self, address: usize) -> Result<(), CudaError> {
        result(self.free_page_locked(address))
    }

    fn heap_alloc(&self, bytes: usize) -> Option<usize> {
        let mut block = std::ptr::null_mut();
        // At the start of a page, as page-locked memory is.
        // SAFETY: the place for the address is this function's own.
        let code = unsafe { malloc::real::posix_memalign(&raw mut block, pages::size(), bytes) };
        (code == 0).then_some(block as usize)
    }

    fn heap_free(&self, address: usize) {
        // SAFETY: the block came from heap_alloc and the engine gives it back once.
        unsafe { malloc::real::free(address as *mut std::ffi::c_void) };
    }

    fn copy(&self, dst: usize, src: usize, bytes: usize, direction: Direction) -> Result<(), CudaError> {
        let kind: c_int = match direction {
            Direction::HostToDevice => 1,
            Direction::DeviceToHost => 2,
        };
        if self.is_runtime() {
            return result(call!(hooks::cudaMemcpy.slot, (usize, usize, usize, c_int), dst, src, bytes, kind));
        }
        let slot = match direction {
            Direction::HostToDevice => &hooks::cuMemcpyHtoD_v2.slot,
            Direction::DeviceToHost => &hooks::cuMemcpyDtoH_v2.slot,
        };
        result(call!(slot, (usize, usize, usize), dst, src, bytes))
    }

    fn synchronize(&self) -> Result<(), CudaError> {
        result(self.wait_device())
    }

    fn has_error(&self) -> bool {
        self.is_runtime() && call!(PEEK_ERROR, (),) != 0
    }

    fn forget_error(&self) {
        if self.is_runtime() {
            let _ = call!(GET_ERROR, (),);
        }
    }

    fn prefetch(&self, address: usize, bytes: usize, side: Side, stream: u64) -> Result<(), CudaError> {
        /// What stands for the host as a device, before locations came.
        const HOST: c_int = -1;
        let device = self.device().ok_or(CudaError::NOT_SUPPORTED)?;
        // A location: its type in the lower half (1 device, 2 host), a number in the upper.
        let location = match side {
            Side::Device => 1 | u64::from(device.cast_unsigned()) << 32,
            Side::Host => 2,
        };
        let device = if side == Side::Host { HOST } else { device };
        let stream = stream as usize;
        let has_locations = if self.is_runtime() {
            self.runtime_has_locations()
        } else {
            hooks::cuMemPrefetchAsync_v2.slot.address().is_some()
        };
        let slot = match (self.layer, has_locations) {
            (Layer::Runtime, _) => &hooks::cudaMemPrefetchAsync.slot,
            (Layer::Driver, true) => &hooks::cuMemPrefetchAsync_v2.slot,
            (Layer::Driver, false) => &hooks::cuMemPrefetchAsync.slot,
        };
        if has_locations {
            result(call!(slot, (usize, usize, u64, u32, usize), address, bytes, location, 0, stream))
        } else {
            result(call!(slot, (usize, usize, c_int, usize), address, bytes, device, stream))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_context_of_a_device_is_as_another_device() {
        assert_eq!((number_of(0x10, 7), number_of(0x20, 8), number_of(0x10, 7)), (7, 8, 7));
        assert!(number_of(0x30, 7) >= 1000);
        context_ended(0x10);
        assert_eq!(number_of(0x40, 7), 7, "one after the other is one at a time");
    }
}
