//! The calls that the engine is told of, and what it answers.

use echo_dr_format::event::{CopyKind, Shape, Stream};
use echo_dr_format::site::Site;
use echo_rt::CudaError;

/// An allocation of host memory, before it is made.
#[derive(Clone, Copy, Debug)]
pub struct HostAlloc {
    /// β_h.
    pub site: Site,
    /// Size that is asked for.
    pub bytes: usize,
    /// Alignment that is asked for; 1 if none.
    pub align: usize,
    /// The block must be zero (calloc).
    pub zeroed: bool,
    /// Page-locked memory of CUDA (`cudaMallocHost` …), not heap memory.
    pub page_locked: bool,
    /// The calling thread: any number that is another one in each thread.
    pub thread: u64,
}

/// An allocation of device memory, before it is made.
#[derive(Clone, Copy, Debug)]
pub struct DeviceAlloc {
    /// β_d.
    pub site: Site,
    /// Size that is asked for.
    pub bytes: usize,
    /// The calling thread.
    pub thread: u64,
}

/// What to do with an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocDecision {
    /// Make the real call.
    Forward,
    /// Give the program this block.
    Use {
        /// Its address.
        address: usize,
        /// The block must be filled with zeroes first: calloc asked for it, and nothing of its content is needed.
        fill_zero: bool,
    },
}

/// What to do with a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeDecision {
    /// Make the real call.
    Forward,
    /// Done; a function that returns an error code returns this.
    Done(Result<(), CudaError>),
}

/// What to do with realloc of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReallocDecision {
    /// Make the real call.
    Forward,
    /// The block is merged: allocate the new size with the real malloc, copy the smaller of the two sizes, and tell the engine that the old block
    /// is freed ([`crate::Unifier::host_free`]). If malloc fails the old block stays, as realloc has it.
    Replace {
        /// Size of the old block.
        bytes: usize,
    },
}

/// A copy, before it is made.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// β_c. Only asked for where it matters: see [`crate::Unifier::is_near`].
    pub site: Site,
    /// Where to.
    pub dst: usize,
    /// Where from.
    pub src: usize,
    /// How many bytes; of a pitched copy, the extent from the first to the last byte of the wider side.
    pub bytes: usize,
    /// Which way the call says.
    pub kind: CopyKind,
    /// In which stream.
    pub stream: Stream,
    /// The function may return before the copy is done.
    pub asynchronous: bool,
    /// One run of bytes or not.
    pub shape: Shape,
}

/// A wait that the library makes with the real function, and whose result the program gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// `cudaDeviceSynchronize`, `cuCtxSynchronize`.
    Device,
    /// `cudaStreamSynchronize`, `cuStreamSynchronize`.
    Stream(Stream),
}

/// What to do with a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyDecision {
    /// Make the real call.
    Forward,
    /// Make the real call and, if it succeeds, wait: the copy has an end in merged memory, for which an asynchronous copy may return earlier than
    /// for the memory that the program thinks it has.
    ForwardThenWait(Waiting),
    /// Return success.
    Skip,
    /// Wait instead of copying.
    SkipThenWait(Waiting),
}

/// What to do with a reset of the device or the end of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetDecision {
    /// Make the real call.
    Forward,
    /// Host memory of the program would go: wait for the device instead.
    WaitInstead,
}
