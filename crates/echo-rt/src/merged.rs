//! p: one block of memory that host and device use under one address.

use crate::{Backend, Cuda, CudaError};

/// A block that host and GPU share. It is released by hand: a program that never frees its buffers never frees p.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merged {
    backend: Backend,
    address: usize,
}

impl Merged {
    /// `bytes` bytes (at least 1, aligned to 256) of a merging backend; `None` for backends that keep two buffers, where the memory cannot be
    /// had, and where the device's alias of mapped memory is another address. Nothing is left allocated then.
    pub fn allocate(cuda: &impl Cuda, backend: Backend, bytes: usize) -> Option<Self> {
        let bytes = bytes.max(1);
        let address = match backend {
            Backend::Managed | Backend::Prefetched => cuda.malloc_managed(bytes).ok(),
            Backend::Mapped => match cuda.host_alloc(bytes) {
                Ok((host, device)) if host == device => Some(host),
                Ok((host, _)) => {
                    // The block is of no use; that it can't be given back is no reason to fail the allocation.
                    let _ = cuda.host_free(host);
                    None
                }
                Err(_) => None,
            },
            Backend::System => cuda.heap_alloc(bytes),
            Backend::Pinned | Backend::Separate => None,
        }?;
        Some(Self { backend, address })
    }

    /// The block of a pair that was merged.
    pub(crate) fn of(backend: Backend, address: usize) -> Self {
        Self { backend, address }
    }

    /// Where the block is, for host and device.
    #[must_use]
    pub fn address(self) -> usize {
        self.address
    }

    /// What it is made of.
    #[must_use]
    pub fn backend(self) -> Backend {
        self.backend
    }

    /// Gives the block back once work on it is done (R4: at the later of the program's two frees).
    ///
    /// # Errors
    /// What the wait or the free says; the block is given back as far as possible.
    pub fn release(self, cuda: &impl Cuda) -> Result<(), CudaError> {
        match self.backend {
            // cudaFree waits for the device itself.
            Backend::Managed | Backend::Prefetched => cuda.free(self.address),
            Backend::Mapped => {
                let waited = cuda.synchronize();
                cuda.host_free(self.address).and(waited)
            }
            Backend::System | Backend::Pinned | Backend::Separate => {
                let waited = cuda.synchronize();
                cuda.heap_free(self.address);
                waited
            }
        }
    }
}
