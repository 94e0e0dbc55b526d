//! The few CUDA calls that a backend needs, as a trait, so that the logic is tested without a device.

/// An error code of the CUDA runtime (`cudaError_t`), never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaError(pub i32);

impl CudaError {
    /// `cudaErrorMemoryAllocation`.
    pub const MEMORY_ALLOCATION: Self = Self(2);
    /// `cudaErrorInvalidValue`.
    pub const INVALID_VALUE: Self = Self(1);
    /// `cudaErrorNotSupported`.
    pub const NOT_SUPPORTED: Self = Self(801);
}

/// Which way a linking copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `cudaMemcpyHostToDevice`.
    HostToDevice,
    /// `cudaMemcpyDeviceToHost`.
    DeviceToHost,
}

/// Where managed memory is wanted next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// On the current device.
    Device,
    /// On the host.
    Host,
}

/// The CUDA runtime, as far as a merged buffer needs it. Addresses are plain numbers: nothing here dereferences them.
pub trait Cuda {
    /// `cudaMalloc`.
    ///
    /// # Errors
    /// What the runtime says.
    fn malloc(&self, bytes: usize) -> Result<usize, CudaError>;
    /// `cudaFree`: waits for the device.
    ///
    /// # Errors
    /// What the runtime says.
    fn free(&self, address: usize) -> Result<(), CudaError>;
    /// `cudaMallocManaged`, global attachment.
    ///
    /// # Errors
    /// What the runtime says.
    fn malloc_managed(&self, bytes: usize) -> Result<usize, CudaError>;
    /// `cudaHostAlloc`, mapped and portable; the address, and the device's alias of it.
    ///
    /// # Errors
    /// What the runtime says.
    fn host_alloc(&self, bytes: usize) -> Result<(usize, usize), CudaError>;
    /// `cudaFreeHost`.
    ///
    /// # Errors
    /// What the runtime says.
    fn host_free(&self, address: usize) -> Result<(), CudaError>;
    /// Heap memory aligned to 256 bytes; `None` if there is none.
    fn heap_alloc(&self, bytes: usize) -> Option<usize>;
    /// Gives back what [`Cuda::heap_alloc`] gave.
    fn heap_free(&self, address: usize);
    /// `cudaMemcpy` of `bytes` bytes.
    ///
    /// # Errors
    /// What the runtime says.
    fn copy(&self, dst: usize, src: usize, bytes: usize, direction: Direction) -> Result<(), CudaError>;
    /// `cudaDeviceSynchronize`.
    ///
    /// # Errors
    /// What the runtime says, errors of earlier asynchronous work included.
    fn synchronize(&self) -> Result<(), CudaError>;
    /// `cudaPeekAtLastError`: some call of this thread has failed and nobody has looked.
    fn has_error(&self) -> bool;
    /// `cudaGetLastError`: the last failure of this thread is forgotten.
    fn forget_error(&self);
    /// `cudaMemPrefetchAsync` in the stream with this handle: advice, so nobody depends on it.
    ///
    /// # Errors
    /// What the runtime says; [`CudaError::NOT_SUPPORTED`] where it is not called at all.
    fn prefetch(&self, address: usize, bytes: usize, side: Side, stream: u64) -> Result<(), CudaError> {
        let _ = (address, bytes, side, stream);
        Err(CudaError::NOT_SUPPORTED)
    }
}
