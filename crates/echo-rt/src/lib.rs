//! Backends of a merged buffer: what p is made of, chosen a pair at a time.
//!
//! One kind of memory is wrong somewhere: managed memory must not be touched by the host while the GPU works where
//! `concurrentManagedAccess` is 0, is not cached by the GPU on some machines, and migrates on discrete ones. So a pair asks
//! [`choose`] with what the device says of itself and what the proof says of the pair, and a [`Pair`] does the rest: it hands out the host and
//! the device pointer and turns each linking copy into a wait or a copy.
//!
//! | backend | p | needs |
//! | --- | --- | --- |
//! | [`Backend::Managed`] | `cudaMallocManaged` | S5 of the pair, or `concurrentManagedAccess` |
//! | [`Backend::Prefetched`] | `cudaMallocManaged`, with prefetches | `concurrentManagedAccess` |
//! | [`Backend::Mapped`] | mapped page-locked memory | `canMapHostMemory` and one address space |
//! | [`Backend::System`] | aligned heap memory, no CUDA call | `pageableMemoryAccess` |
//! | [`Backend::Pinned`] | page-locked memory, device memory and the copies | only synchronous copies in the program |
//! | [`Backend::Separate`] | heap memory, device memory and the copies | nothing |

//!
//! Programs compiled with `target=adaptive` reach it through `libecho_rt.a` (package `echo-rt-static`), which has a C interface; Echo-DR
//! links it as a crate.

mod backend;
mod cuda;
#[cfg(test)]
mod fake;
mod merged;
mod pair;
mod runtime;

pub use backend::{Backend, DeviceFacts, PairFacts, choose, usable};
pub use cuda::{Cuda, CudaError, Direction, Side};
pub use merged::Merged;
pub use pair::Pair;
pub use runtime::{Request, Runtime, Wishes};
