//! Types of `cuda.h` that the runtime needs.

use std::ffi::{c_int, c_uint, c_void};

/// `CUdeviceptr`
pub type DevicePtr = u64;
/// `CUcontext`, `CUstream`, `CUevent`, `CUlibrary`, `CUkernel`, `CUmemoryPool`
pub type Handle = *mut c_void;

/// `CUhostFn`, `cudaHostFn_t`
pub type HostFn = Option<unsafe extern "C" fn(*mut c_void)>;
/// `CUstreamCallback`, `cudaStreamCallback_t`
pub type StreamCallback = Option<unsafe extern "C" fn(*mut c_void, c_int, *mut c_void)>;

/// One end of a `CUDA_MEMCPY3D`, and without some fields of a `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct End2D {
    /// Bytes before the box.
    pub x: usize,
    /// Rows before the box.
    pub y: usize,
    /// `CU_MEMORYTYPE_…`
    pub memory_type: c_uint,
    /// Address, if it is the host's.
    pub host: usize,
    /// Address, if it is not.
    pub device: DevicePtr,
    /// None.
    pub array: *mut c_void,
    /// Bytes from a row to the next.
    pub pitch: usize,
}

/// `CUDA_MEMCPY2D`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy2D {
    /// Source.
    pub from: End2D,
    /// Target.
    pub to: End2D,
    /// Bytes of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// One end of a `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct End3D {
    /// Bytes before the box.
    pub x: usize,
    /// Rows before the box.
    pub y: usize,
    /// Slices before the box.
    pub z: usize,
    /// Of a mipmapped array.
    pub level: usize,
    /// `CU_MEMORYTYPE_…`
    pub memory_type: c_uint,
    /// Address, if it is the host's.
    pub host: usize,
    /// Address, if it is not.
    pub device: DevicePtr,
    /// None.
    pub array: *mut c_void,
    /// Null.
    pub reserved: *mut c_void,
    /// Bytes from a row to the next.
    pub pitch: usize,
    /// Rows of a slice.
    pub height: usize,
}

/// `CUDA_MEMCPY3D`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy3D {
    /// Source.
    pub from: End3D,
    /// Target.
    pub to: End3D,
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a slice.
    pub height: usize,
    /// Slices.
    pub depth: usize,
}

/// `CUlaunchConfig`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    /// gridDim
    pub grid: [c_uint; 3],
    /// blockDim
    pub block: [c_uint; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: c_uint,
    /// Where it is queued.
    pub stream: Handle,
    /// `CUlaunchAttribute`s, which are those of the runtime.
    pub attributes: *const c_void,
    /// How many.
    pub attribute_count: c_uint,
}

/// `CUmemLocation`, `cudaMemLocation`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Location {
    kind: c_int,
    id: c_int,
}
