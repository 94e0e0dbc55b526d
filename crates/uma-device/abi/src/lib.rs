//! What a compiled kernel image, the kernel runner and the runtime library agree on.
//!
//! An *image* is what the host half embeds instead of a fat binary: an [`ImageHeader`], then an ELF shared object. The ELF's section
//! [`METADATA_SECTION`] holds [`ImageMetadata`] as JSON. A kernel is an exported function of type [`KernelEntry`].
//!
//! Device globals (`__device__`, `__constant__`, `__managed__`) are no ELF data: each is reached through a pointer variable in the image
//! ([`GlobalInfo::pointer_symbol`]) that the loader sets to memory of the device arena, so that a symbol's address is an ordinary device
//! pointer on both sides. Its first bytes come from [`GlobalInfo::init_symbol`].

mod params;

use serde::{Deserialize, Serialize};

/// First bytes of an image.
pub const IMAGE_MAGIC: [u8; 8] = *b"UMAIMG\0\x01";

/// ELF section that holds [`ImageMetadata`] as JSON.
pub const METADATA_SECTION: &str = ".uma.metadata";

/// Threads of a warp.
pub const WARP_SIZE: u32 = 32;

/// What precedes the ELF; `size_of::<ImageHeader>()` is a multiple of 16.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ImageHeader {
    /// [`IMAGE_MAGIC`].
    pub magic: [u8; 8],
    /// Bytes of the ELF that follows.
    pub elf_len: u64,
}

/// What an image holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageMetadata {
    /// Kernels.
    pub kernels: Vec<KernelInfo>,
    /// Device globals.
    pub globals: Vec<GlobalInfo>,
}

/// One kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// Mangled name, the one that the host half registers.
    pub name: String,
    /// Exported ELF symbol of type [`KernelEntry`].
    pub symbol: String,
    /// Size and alignment of each parameter in bytes, in order.
    pub params: Vec<ParamInfo>,
    /// Bytes of static shared memory, rounded up to the alignment that the dynamic part needs.
    pub static_shared: u32,
    /// How the threads of a block are run.
    pub mode: ThreadMode,
    /// `__launch_bounds__`, else 1024.
    pub max_threads: u32,
}

/// One kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParamInfo {
    /// Bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// How the threads of a block are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThreadMode {
    /// One call runs all threads of the block (a loop over threads inside).
    Block,
    /// One call runs one thread; it yields at barriers and warp operations.
    Thread,
}

/// One device global.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalInfo {
    /// Mangled name, the one that the host half registers.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// `__managed__`: the host reaches it too.
    pub managed: bool,
    /// ELF symbol of the pointer variable that the loader sets.
    pub pointer_symbol: String,
    /// ELF symbol of its first bytes (`size` of them); `None`: zeroes.
    pub init_symbol: Option<String>,
}

/// A kernel. `args[i]` points to the value of parameter `i`.
pub type KernelEntry = unsafe extern "C" fn(args: *const *const u8, context: *mut ThreadContext);

/// What a running thread (or block) knows. `#[repr(C)]`: the kernel compiler reads it by offset.
#[repr(C)]
pub struct ThreadContext {
    /// gridDim
    pub grid_dim: [u32; 3],
    /// blockDim
    pub block_dim: [u32; 3],
    /// blockIdx
    pub block_idx: [u32; 3],
    /// threadIdx; not used in [`ThreadMode::Block`].
    pub thread_idx: [u32; 3],
    /// Shared memory of the block: [`KernelInfo::static_shared`] bytes of static variables, then the dynamic part.
    pub shared: *mut u8,
    /// Where the dynamic part starts.
    pub dynamic: *mut u8,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Linear thread index in the block; not used in [`ThreadMode::Block`].
    pub linear_thread: u32,
    /// Services of the runner.
    pub services: *const Services,
    /// The runner's own.
    pub runner: *mut core::ffi::c_void,
}

/// Functions that kernels call through [`ThreadContext::services`].
#[repr(C)]
pub struct Services {
    /// `__syncthreads`; also the reductions over a barrier: op 0 none, 1 popc, 2 and, 3 or of `predicate`.
    pub barrier: unsafe extern "C" fn(context: *mut ThreadContext, op: u32, predicate: u32) -> u32,
    /// `__shfl_sync` on 32 bits: mode 0 up, 1 down, 2 bfly, 3 idx, as in PTX `shfl.sync`, with its operands `b` and `c`; the value, and in
    /// bit 32 the predicate (the source lane was in range).
    pub shuffle:
        unsafe extern "C" fn(context: *mut ThreadContext, mask: u32, mode: u32, value: u32, b: u32, c: u32) -> u64,
    /// `__ballot_sync`: all, any and uniform follow from it.
    pub ballot: unsafe extern "C" fn(context: *mut ThreadContext, mask: u32, predicate: u32) -> u32,
    /// `__syncwarp`
    pub sync_warp: unsafe extern "C" fn(context: *mut ThreadContext, mask: u32),
    /// `__activemask`: the lanes that wait here with the same `site`, a number that the compiler gives to each call in the source.
    pub active_mask: unsafe extern "C" fn(context: *mut ThreadContext, site: u32) -> u32,
    /// Device `vprintf`: format and the argument buffer that the device front end packs; the number of arguments or -1.
    pub vprintf: unsafe extern "C" fn(context: *mut ThreadContext, format: *const u8, arguments: *const u8) -> i32,
    /// `__assertfail` and `__trap`: does not return. `message` may be null.
    pub trap: unsafe extern "C" fn(context: *mut ThreadContext, message: *const u8) -> !,
    /// Nanoseconds since some start, for `clock64` and `globaltimer`.
    pub clock: unsafe extern "C" fn() -> u64,
}
