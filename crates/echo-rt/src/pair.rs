//! A host and a device buffer that are one where the backend merges them.

use crate::{Backend, Cuda, CudaError, Direction, Merged};

/// A pair with its backend. Release it with [`Pair::release`]; dropping it without leaks the memory, as a program that never frees does.
#[derive(Debug)]
pub struct Pair {
    backend: Backend,
    host: usize,
    device: usize,
    bytes: usize,
}

impl Pair {
    /// Allocates `bytes` bytes (at least 1, aligned to 256). Falls back to [`Backend::Separate`] where the merged allocation fails or
    /// where the device's alias of mapped memory is another address.
    ///
    /// # Errors
    /// The error of the separate allocation, once nothing else is left to try.
    pub fn allocate(cuda: &impl Cuda, backend: Backend, bytes: usize) -> Result<Self, CudaError> {
        let asked = bytes.max(1);
        if let Some(merged) = Merged::allocate(cuda, backend, bytes) {
            return Ok(Self { backend, host: merged.address(), device: merged.address(), bytes });
        }
        if backend == Backend::Pinned
            && let Ok((host, _)) = cuda.host_alloc(asked)
        {
            return match cuda.malloc(asked) {
                Ok(device) => Ok(Self { backend, host, device, bytes }),
                Err(error) => {
                    cuda.host_free(host)?;
                    Err(error)
                }
            };
        }
        let host = cuda.heap_alloc(asked).ok_or(CudaError::MEMORY_ALLOCATION)?;
        match cuda.malloc(asked) {
            Ok(device) => Ok(Self { backend: Backend::Separate, host, device, bytes }),
            Err(error) => {
                cuda.heap_free(host);
                Err(error)
            }
        }
    }

    /// What the pair is made of in the end.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The address that host code uses.
    #[must_use]
    pub fn host(&self) -> usize {
        self.host
    }

    /// The address that the GPU uses.
    #[must_use]
    pub fn device(&self) -> usize {
        self.device
    }

    /// A linking copy of `len` bytes from offset `start`: a wait where the pair is merged (R3), else the copy.
    ///
    /// # Errors
    /// What the wait or the copy says.
    ///
    /// # Panics
    /// If the range leaves the buffer.
    pub fn link(&self, cuda: &impl Cuda, direction: Direction, start: usize, len: usize) -> Result<(), CudaError> {
        assert!(start.checked_add(len).is_some_and(|end| end <= self.bytes), "linking copy leaves the buffer");
        if self.backend.is_merged() {
            return cuda.synchronize();
        }
        let (dst, src) = match direction {
            Direction::HostToDevice => (self.device, self.host),
            Direction::DeviceToHost => (self.host, self.device),
        };
        cuda.copy(dst + start, src + start, len, direction)
    }

    /// Releases the memory once work on it is done (R4: after both frees of the program).
    ///
    /// # Errors
    /// What the waits and frees say; everything is released as far as possible.
    pub fn release(self, cuda: &impl Cuda) -> Result<(), CudaError> {
        if let Some(merged) = self.merged() {
            return merged.release(cuda);
        }
        let freed = cuda.free(self.device);
        if self.backend == Backend::Pinned {
            return cuda.host_free(self.host).and(freed);
        }
        cuda.heap_free(self.host);
        freed
    }

    fn merged(&self) -> Option<Merged> {
        self.backend.is_merged().then_some(Merged::of(self.backend, self.host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    #[test]
    fn merged_pairs_have_one_address_and_wait_where_they_copied() {
        for backend in [Backend::Managed, Backend::Prefetched, Backend::Mapped, Backend::System] {
            let cuda = Fake::default();
            let pair = Pair::allocate(&cuda, backend, 64).unwrap();
            assert_eq!((pair.backend(), pair.host()), (backend, pair.device()));
            pair.link(&cuda, Direction::DeviceToHost, 0, 64).unwrap();
            assert_eq!(cuda.log(), ["wait"]);
            pair.release(&cuda).unwrap();
            assert!(cuda.live().is_empty());
        }
    }

    #[test]
    fn unmerged_pairs_copy_the_range_in_its_direction() {
        for backend in [Backend::Pinned, Backend::Separate] {
            let cuda = Fake::default();
            let pair = Pair::allocate(&cuda, backend, 64).unwrap();
            assert_ne!(pair.host(), pair.device());
            pair.link(&cuda, Direction::HostToDevice, 16, 8).unwrap();
            let expected = format!("copy {:x} {:x} 8", pair.device() + 16, pair.host() + 16);
            assert_eq!(cuda.log(), [expected]);
            pair.release(&cuda).unwrap();
            assert!(cuda.live().is_empty());
        }
    }

    #[test]
    fn a_refused_backend_falls_back_and_leaks_nothing() {
        for backend in [Backend::Managed, Backend::Mapped, Backend::Pinned] {
            let cuda = Fake::refusing(&["managed", "pinned"]);
            let pair = Pair::allocate(&cuda, backend, 0).unwrap();
            assert_eq!(pair.backend(), Backend::Separate);
            pair.release(&cuda).unwrap();
            assert!(cuda.live().is_empty());
        }
        let cuda = Fake::with_another_alias();
        let pair = Pair::allocate(&cuda, Backend::Mapped, 8).unwrap();
        assert_eq!(pair.backend(), Backend::Separate, "an alias at another address can't be merged");
        pair.release(&cuda).unwrap();
        assert!(cuda.live().is_empty());
    }

    #[test]
    fn a_failing_device_allocation_gives_back_the_host_half() {
        for backend in [Backend::Pinned, Backend::Separate] {
            let cuda = Fake::refusing(&["device"]);
            assert_eq!(Pair::allocate(&cuda, backend, 8).unwrap_err(), CudaError::MEMORY_ALLOCATION);
            assert!(cuda.live().is_empty());
        }
    }
}
