//! The hooks of CUDA: one table makes the functions that the program calls, their slots, their counters, and the list for look-ups.
//!
//! A row names functions of one type that mean the same (the `_ptds` and `_ptsz` variants have the per-thread default stream), the CUDA
//! versions for which `cuGetProcAddress` gives this type, their arguments, and what to do: `call` is the observed call, `real` makes the real
//! one. Rows decide nothing. Inside another hooked call, and before the library is ready, every function of the table only forwards.
//! `docs/hooks.md` is the table for readers; a test writes it.
//!
//! Addresses and handles are numbers: nothing here dereferences them, except structures that the program passes by address.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU64, Ordering};

use echo_dr_format::event::{Call, CopyKind, DeviceKind, Setup, WaitFor};

use crate::abi::{
    CudaExtent, CudaMemcpy3D, CudaMemcpy3DPeer, CudaPitched, Dim3, DriverMemcpy2D, DriverMemcpy3D, Transfer,
};
use crate::lookup::Slot;
use crate::ops::Observed;
use crate::thread::Token;

/// Which API a function belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// `libcudart`, where it is a shared library.
    Runtime,
    /// `libcuda`.
    Driver,
}

impl Layer {
    /// File names of the libraries that have its functions.
    const fn libraries(self) -> &'static [&'static str] {
        match self {
            Self::Runtime => &["libcudart.so"],
            Self::Driver => &["libcuda.so"],
        }
    }
}

/// One hooked function.
#[derive(Debug)]
pub(crate) struct Hook {
    /// The symbol's name.
    pub(crate) name: &'static str,
    /// Which API.
    pub(crate) layer: Layer,
    /// Stream 0 is the thread's own.
    pub(crate) per_thread: bool,
    /// The CUDA versions, times 1000, for which `cuGetProcAddress` gives a function of this type for the base name.
    pub(crate) versions: std::ops::Range<c_int>,
    /// The real function.
    pub(crate) slot: Slot,
    /// Address of Echo's function, for look-ups.
    pub(crate) shim: fn() -> usize,
    calls: AtomicU64,
}

impl Hook {
    const fn new(
        c_name: &'static CStr,
        name: &'static str,
        layer: Layer,
        versions: std::ops::Range<c_int>,
        shim: fn() -> usize,
    ) -> Self {
        let slot = Slot::new(c_name, layer.libraries());
        let per_thread = ends_with(name, "_ptds") || ends_with(name, "_ptsz");
        Self { name, layer, per_thread, versions, slot, shim, calls: AtomicU64::new(0) }
    }

    /// How often the program called it.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// The name under which `cuGetProcAddress` knows it: without version and stream variant.
    pub(crate) fn base(&self) -> &'static str {
        let name = self.name.trim_end_matches("_ptds").trim_end_matches("_ptsz");
        match name.rsplit_once("_v") {
            Some((base, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => base,
            _ => name,
        }
    }
}

const fn ends_with(text: &str, end: &str) -> bool {
    let (text, end) = (text.as_bytes(), end.as_bytes());
    if text.len() < end.len() {
        return false;
    }
    let mut at = 0;
    while at < end.len() {
        if text[text.len() - end.len() + at] != end[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The hook of exactly this name.
pub(crate) fn by_name(name: &CStr) -> Option<&'static Hook> {
    let name = name.to_bytes();
    if !name.starts_with(b"cu") && !name.starts_with(b"__cuda") {
        return None;
    }
    HOOKS.iter().copied().find(|hook| hook.name.as_bytes() == name)
}

/// `cudaErrorNotSupported`, `CUDA_ERROR_NOT_SUPPORTED`: what a call answers whose function no loaded library has. A program can only
/// come to such a call through this library's own symbol.
pub(crate) const NOT_SUPPORTED: c_int = 801;

macro_rules! c_name {
    ($name:ident) => {
        match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        }
    };
}

macro_rules! shim {
    ($name:ident ($($arg:ident: $type:ty),*) $call:ident $real:ident $body:expr) => {
        /// # Safety
        /// As for the CUDA function of this name.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "as the function is")]
        pub(crate) unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            let hook = &hooks::$name;
            let Some(address) = hook.slot.address() else { return NOT_SUPPORTED };
            // SAFETY: the slot holds the real function of this name, whose type this is.
            let function = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> c_int>(address) };
            // SAFETY: the arguments are the program's.
            let mut real = || unsafe { function($($arg),*) };
            let Some(token) = Token::outermost() else { return real() };
            let $real: crate::ops::Forward<'_> = &mut real;
            hook.count();
            let $call = Observed::new(&token, hook);
            $body
        }
    };
}

macro_rules! layer {
    (runtime) => {
        Layer::Runtime
    };
    (driver) => {
        Layer::Driver
    };
}

macro_rules! versions {
    (()) => {
        0..c_int::MAX
    };
    (($since:literal ..)) => {
        $since..c_int::MAX
    };
    ((.. $until:literal)) => {
        0..$until
    };
    (($since:literal .. $until:literal)) => {
        $since..$until
    };
}

macro_rules! table {
    (
        rows { $( $layer:ident $versions:tt [$($name:ident)+] $args:tt |$call:ident, $real:ident| $body:expr; )* }
        by_hand { $( $module:ident $hand_layer:ident $hand_versions:tt [$($hand:ident)+]; )* }
    ) => {
        #[allow(non_upper_case_globals, reason = "named as the functions")]
        pub(crate) mod hooks {
            use super::*;
            $($( pub(crate) static $name: Hook = Hook::new(c_name!($name), stringify!($name), layer!($layer),
                versions!($versions), || super::$name as *const () as usize); )+)*
            $($( pub(crate) static $hand: Hook = Hook::new(c_name!($hand), stringify!($hand), layer!($hand_layer),
                versions!($hand_versions), || crate::$module::$hand as *const () as usize); )+)*
        }

        /// All hooks of CUDA.
        pub(crate) static HOOKS: &[&Hook] = &[ $($( &hooks::$name, )+)* $($( &hooks::$hand, )+)* ];

        $($( shim!($name $args $call $real $body); )+)*
    };
}

type Address = usize;
type Handle = usize;

table! {
    rows {
    // ---- Runtime: memory -------------------------------------------------------------------------------------------------------------
    runtime () [cudaMalloc](out: *mut Address, bytes: usize)
        |call, real| call.device_alloc(out, bytes, DeviceKind::Plain, real);
    runtime () [cudaMallocAsync cudaMallocAsync_ptsz](out: *mut Address, bytes: usize, stream: Handle)
        |call, real| call.device_alloc(out, bytes, DeviceKind::Pooled, real);
    runtime () [cudaMallocFromPoolAsync cudaMallocFromPoolAsync_ptsz](out: *mut Address, bytes: usize, pool: Handle, stream: Handle)
        |call, real| call.device_alloc(out, bytes, DeviceKind::Pooled, real);
    runtime () [cudaMallocManaged](out: *mut Address, bytes: usize, flags: u32)
        |call, real| call.device_alloc(out, bytes, DeviceKind::Managed, real);
    runtime () [cudaMallocPitch](out: *mut Address, pitch: *mut usize, width: usize, height: usize)
        |call, real| call.pitched_alloc(out, pitch, height, real);
    runtime () [cudaMalloc3D](out: *mut CudaPitched, extent: CudaExtent)
        |call, real| call.pitched_alloc_3d(out, extent, real);
    runtime () [cudaMallocHost](out: *mut Address, bytes: usize)
        |call, real| call.page_locked_alloc(out, bytes, real);
    runtime () [cudaHostAlloc](out: *mut Address, bytes: usize, flags: u32)
        |call, real| call.page_locked_alloc(out, bytes, real);
    runtime () [cudaFree](address: Address)
        |call, real| call.device_free(address, false, real);
    runtime () [cudaFreeAsync cudaFreeAsync_ptsz](address: Address, stream: Handle)
        |call, real| call.device_free(address, true, real);
    runtime () [cudaFreeHost](address: Address)
        |call, real| call.page_locked_free(address, real);
    runtime () [cudaHostRegister](address: Address, bytes: usize, flags: u32)
        |call, real| call.plain(Call::HostRegister { ptr: address as u64, bytes: bytes as u64 }, real);
    runtime () [cudaHostUnregister](address: Address)
        |call, real| call.plain(Call::HostRegister { ptr: address as u64, bytes: 0 }, real);

    // ---- Runtime: copies -------------------------------------------------------------------------------------------------------------
    runtime () [cudaMemcpy cudaMemcpy_ptds](dst: Address, src: Address, bytes: usize, kind: c_int)
        |call, real| call.copy(Transfer::linear(dst, src, bytes, kind), None, real);
    runtime () [cudaMemcpyAsync cudaMemcpyAsync_ptsz](dst: Address, src: Address, bytes: usize, kind: c_int, stream: Handle)
        |call, real| call.copy(Transfer::linear(dst, src, bytes, kind), Some(stream), real);
    runtime () [cudaMemcpyPeer](dst: Address, dst_device: c_int, src: Address, src_device: c_int, bytes: usize)
        |call, real| call.copy(Transfer::between_devices(dst, src, bytes), None, real);
    runtime () [cudaMemcpyPeerAsync](dst: Address, dst_device: c_int, src: Address, src_device: c_int, bytes: usize, stream: Handle)
        |call, real| call.copy(Transfer::between_devices(dst, src, bytes), Some(stream), real);
    runtime () [cudaMemcpy2D cudaMemcpy2D_ptds]
        (dst: Address, dst_pitch: usize, src: Address, src_pitch: usize, width: usize, height: usize, kind: c_int)
        |call, real| call.copy(Transfer::pitched(dst, src, [width, height, 1], [dst_pitch, src_pitch], kind), None, real);
    runtime () [cudaMemcpy2DAsync cudaMemcpy2DAsync_ptsz]
        (dst: Address, dst_pitch: usize, src: Address, src_pitch: usize, width: usize, height: usize, kind: c_int, stream: Handle)
        |call, real| call.copy(Transfer::pitched(dst, src, [width, height, 1], [dst_pitch, src_pitch], kind), Some(stream), real);
    runtime () [cudaMemcpy3D cudaMemcpy3D_ptds](what: *const CudaMemcpy3D)
        |call, real| call.copy_of(CudaMemcpy3D::transfer(what), None, real);
    runtime () [cudaMemcpy3DAsync cudaMemcpy3DAsync_ptsz](what: *const CudaMemcpy3D, stream: Handle)
        |call, real| call.copy_of(CudaMemcpy3D::transfer(what), Some(stream), real);
    runtime () [cudaMemcpy3DPeer cudaMemcpy3DPeer_ptds](what: *const CudaMemcpy3DPeer)
        |call, real| call.copy_of(CudaMemcpy3DPeer::transfer(what), None, real);
    runtime () [cudaMemcpy3DPeerAsync cudaMemcpy3DPeerAsync_ptsz](what: *const CudaMemcpy3DPeer, stream: Handle)
        |call, real| call.copy_of(CudaMemcpy3DPeer::transfer(what), Some(stream), real);
    runtime () [cudaMemcpyToSymbol cudaMemcpyToSymbol_ptds](symbol: Address, src: Address, bytes: usize, offset: usize, kind: c_int)
        |call, real| call.copy(Transfer::to_array(src, bytes, kind), None, real);
    runtime () [cudaMemcpyToSymbolAsync cudaMemcpyToSymbolAsync_ptsz]
        (symbol: Address, src: Address, bytes: usize, offset: usize, kind: c_int, stream: Handle)
        |call, real| call.copy(Transfer::to_array(src, bytes, kind), Some(stream), real);
    runtime () [cudaMemcpyFromSymbol cudaMemcpyFromSymbol_ptds](dst: Address, symbol: Address, bytes: usize, offset: usize, kind: c_int)
        |call, real| call.copy(Transfer::from_array(dst, bytes, kind), None, real);
    runtime () [cudaMemcpyFromSymbolAsync cudaMemcpyFromSymbolAsync_ptsz]
        (dst: Address, symbol: Address, bytes: usize, offset: usize, kind: c_int, stream: Handle)
        |call, real| call.copy(Transfer::from_array(dst, bytes, kind), Some(stream), real);
    runtime () [cudaMemcpyToArray cudaMemcpyToArray_ptds]
        (array: Handle, x: usize, y: usize, src: Address, bytes: usize, kind: c_int)
        |call, real| call.copy(Transfer::to_array(src, bytes, kind), None, real);
    runtime () [cudaMemcpyToArrayAsync cudaMemcpyToArrayAsync_ptsz]
        (array: Handle, x: usize, y: usize, src: Address, bytes: usize, kind: c_int, stream: Handle)
        |call, real| call.copy(Transfer::to_array(src, bytes, kind), Some(stream), real);
    runtime () [cudaMemcpyFromArray cudaMemcpyFromArray_ptds]
        (dst: Address, array: Handle, x: usize, y: usize, bytes: usize, kind: c_int)
        |call, real| call.copy(Transfer::from_array(dst, bytes, kind), None, real);
    runtime () [cudaMemcpyFromArrayAsync cudaMemcpyFromArrayAsync_ptsz]
        (dst: Address, array: Handle, x: usize, y: usize, bytes: usize, kind: c_int, stream: Handle)
        |call, real| call.copy(Transfer::from_array(dst, bytes, kind), Some(stream), real);
    runtime () [cudaMemcpy2DToArray cudaMemcpy2DToArray_ptds]
        (array: Handle, x: usize, y: usize, src: Address, pitch: usize, width: usize, height: usize, kind: c_int)
        |call, real| call.copy(Transfer::to_array(src, pitch.saturating_mul(height), kind), None, real);
    runtime () [cudaMemcpy2DToArrayAsync cudaMemcpy2DToArrayAsync_ptsz]
        (array: Handle, x: usize, y: usize, src: Address, pitch: usize, width: usize, height: usize, kind: c_int, stream: Handle)
        |call, real| call.copy(Transfer::to_array(src, pitch.saturating_mul(height), kind), Some(stream), real);
    runtime () [cudaMemcpy2DFromArray cudaMemcpy2DFromArray_ptds]
        (dst: Address, pitch: usize, array: Handle, x: usize, y: usize, width: usize, height: usize, kind: c_int)
        |call, real| call.copy(Transfer::from_array(dst, pitch.saturating_mul(height), kind), None, real);
    runtime () [cudaMemcpy2DFromArrayAsync cudaMemcpy2DFromArrayAsync_ptsz]
        (dst: Address, pitch: usize, array: Handle, x: usize, y: usize, width: usize, height: usize, kind: c_int, stream: Handle)
        |call, real| call.copy(Transfer::from_array(dst, pitch.saturating_mul(height), kind), Some(stream), real);
    // CUDA 12.8 has one argument more than CUDA 13 under this name; what isn't the function's own is passed on unread.
    runtime () [cudaMemcpyBatchAsync cudaMemcpyBatchAsync_ptsz]
        (dsts: *const Address, srcs: *const Address, sizes: *const usize, count: usize, attributes: Address, indices: Address,
         attribute_count: usize, eighth: usize, ninth: usize)
        |call, real| call.copy_batch(dsts, srcs, sizes, count, real);
    runtime () [cudaGraphAddMemcpyNode1D]
        (node: Address, graph: Handle, before: Address, before_count: usize, dst: Address, src: Address, bytes: usize, kind: c_int)
        |call, real| call.queries(&[dst, src], real);
    runtime () [cudaGraphMemcpyNodeSetParams1D](node: Handle, dst: Address, src: Address, bytes: usize, kind: c_int)
        |call, real| call.queries(&[dst, src], real);
    runtime () [cudaGraphExecMemcpyNodeSetParams1D](graph: Handle, node: Handle, dst: Address, src: Address, bytes: usize, kind: c_int)
        |call, real| call.queries(&[dst, src], real);
    runtime () [cudaGraphAddMemcpyNode](node: Address, graph: Handle, before: Address, before_count: usize, what: *const CudaMemcpy3D)
        |call, real| call.graph_copy(CudaMemcpy3D::transfer(what), real);
    runtime () [cudaGraphMemcpyNodeSetParams](node: Handle, what: *const CudaMemcpy3D)
        |call, real| call.graph_copy(CudaMemcpy3D::transfer(what), real);
    runtime () [cudaGraphExecMemcpyNodeSetParams](graph: Handle, node: Handle, what: *const CudaMemcpy3D)
        |call, real| call.graph_copy(CudaMemcpy3D::transfer(what), real);
    runtime () [cudaGraphAddMemcpyNodeToSymbol]
        (node: Address, graph: Handle, before: Address, before_count: usize, symbol: Address, src: Address, bytes: usize, offset: usize, kind: c_int)
        |call, real| call.queries(&[src], real);
    runtime () [cudaGraphAddMemcpyNodeFromSymbol]
        (node: Address, graph: Handle, before: Address, before_count: usize, dst: Address, symbol: Address, bytes: usize, offset: usize, kind: c_int)
        |call, real| call.queries(&[dst], real);
    runtime () [cudaGraphMemcpyNodeSetParamsToSymbol](node: Handle, symbol: Address, src: Address, bytes: usize, offset: usize, kind: c_int)
        |call, real| call.queries(&[src], real);
    runtime () [cudaGraphMemcpyNodeSetParamsFromSymbol](node: Handle, dst: Address, symbol: Address, bytes: usize, offset: usize, kind: c_int)
        |call, real| call.queries(&[dst], real);
    runtime () [cudaGraphExecMemcpyNodeSetParamsToSymbol]
        (graph: Handle, node: Handle, symbol: Address, src: Address, bytes: usize, offset: usize, kind: c_int)
        |call, real| call.queries(&[src], real);
    runtime () [cudaGraphExecMemcpyNodeSetParamsFromSymbol]
        (graph: Handle, node: Handle, dst: Address, symbol: Address, bytes: usize, offset: usize, kind: c_int)
        |call, real| call.queries(&[dst], real);

    // ---- Runtime: work ---------------------------------------------------------------------------------------------------------------
    runtime () [cudaMemset cudaMemset_ptds](dst: Address, value: c_int, bytes: usize)
        |call, real| call.set(dst, bytes, 0, real);
    runtime () [cudaMemsetAsync cudaMemsetAsync_ptsz](dst: Address, value: c_int, bytes: usize, stream: Handle)
        |call, real| call.set(dst, bytes, stream, real);
    runtime () [cudaMemset2D cudaMemset2D_ptds](dst: Address, pitch: usize, value: c_int, width: usize, height: usize)
        |call, real| call.set(dst, pitch.saturating_mul(height), 0, real);
    runtime () [cudaMemset2DAsync cudaMemset2DAsync_ptsz](dst: Address, pitch: usize, value: c_int, width: usize, height: usize, stream: Handle)
        |call, real| call.set(dst, pitch.saturating_mul(height), stream, real);
    runtime () [cudaMemset3D cudaMemset3D_ptds](dst: CudaPitched, value: c_int, extent: CudaExtent)
        |call, real| call.set(dst.address, dst.bytes(extent), 0, real);
    runtime () [cudaMemset3DAsync cudaMemset3DAsync_ptsz](dst: CudaPitched, value: c_int, extent: CudaExtent, stream: Handle)
        |call, real| call.set(dst.address, dst.bytes(extent), stream, real);
    runtime () [cudaLaunchKernel cudaLaunchKernel_ptsz cudaLaunchCooperativeKernel cudaLaunchCooperativeKernel_ptsz
             __cudaLaunchKernel __cudaLaunchKernel_ptsz]
        (function: Handle, grid: Dim3, block: Dim3, arguments: Address, shared: usize, stream: Handle)
        |call, real| call.launch(stream, real);
    runtime () [cudaLaunchKernelExC cudaLaunchKernelExC_ptsz](config: *const crate::abi::CudaLaunchConfig, function: Handle, arguments: Address)
        |call, real| call.launch(crate::abi::CudaLaunchConfig::stream(config), real);
    runtime () [cudaGraphLaunch cudaGraphLaunch_ptsz](graph: Handle, stream: Handle)
        |call, real| call.launch(stream, real);
    runtime () [cudaLaunchHostFunc cudaLaunchHostFunc_ptsz](stream: Handle, function: Address, data: Address)
        |call, real| call.host_function(stream, real);
    runtime () [cudaStreamAddCallback cudaStreamAddCallback_ptsz](stream: Handle, function: Address, data: Address, flags: u32)
        |call, real| call.host_function(stream, real);

    // ---- Runtime: order --------------------------------------------------------------------------------------------------------------
    runtime () [cudaDeviceSynchronize]()
        |call, real| call.plain(Call::Wait { on: WaitFor::Device }, real);
    runtime () [cudaStreamSynchronize cudaStreamSynchronize_ptsz cudaStreamQuery cudaStreamQuery_ptsz](stream: Handle)
        |call, real| call.plain(Call::Wait { on: WaitFor::Stream(call.stream(stream)) }, real);
    runtime () [cudaEventSynchronize cudaEventQuery](event: Handle)
        |call, real| call.plain(Call::Wait { on: WaitFor::Event(event as u64) }, real);
    runtime () [cudaEventRecord cudaEventRecord_ptsz](event: Handle, stream: Handle)
        |call, real| call.plain(Call::EventRecord { event: event as u64, stream: call.stream(stream) }, real);
    runtime () [cudaEventRecordWithFlags cudaEventRecordWithFlags_ptsz](event: Handle, stream: Handle, flags: u32)
        |call, real| call.plain(Call::EventRecord { event: event as u64, stream: call.stream(stream) }, real);
    runtime () [cudaStreamWaitEvent cudaStreamWaitEvent_ptsz](stream: Handle, event: Handle, flags: u32)
        |call, real| call.plain(Call::StreamWait { stream: call.stream(stream), event: event as u64 }, real);
    runtime () [cudaStreamCreate](out: *mut Handle)
        |call, real| call.stream_create(out, 0, real);
    runtime () [cudaStreamCreateWithFlags](out: *mut Handle, flags: u32)
        |call, real| call.stream_create(out, flags, real);
    runtime () [cudaStreamCreateWithPriority](out: *mut Handle, flags: u32, priority: c_int)
        |call, real| call.stream_create(out, flags, real);
    runtime () [cudaStreamDestroy](stream: Handle)
        |call, real| call.plain(Call::StreamDestroy { stream: call.stream(stream) }, real);
    runtime () [cudaStreamBeginCapture cudaStreamBeginCapture_ptsz](stream: Handle, mode: c_int)
        |call, real| call.plain(Call::Capture { stream: call.stream(stream), begin: true }, real);
    runtime () [cudaStreamBeginCaptureToGraph cudaStreamBeginCaptureToGraph_ptsz]
        (stream: Handle, graph: Handle, before: Address, edges: Address, before_count: usize, mode: c_int)
        |call, real| call.plain(Call::Capture { stream: call.stream(stream), begin: true }, real);
    runtime () [cudaStreamEndCapture cudaStreamEndCapture_ptsz](stream: Handle, graph: Address)
        |call, real| call.plain(Call::Capture { stream: call.stream(stream), begin: false }, real);

    // ---- Runtime: devices and questions ----------------------------------------------------------------------------------------------
    runtime () [cudaDeviceReset]()
        |call, real| call.reset(real);
    runtime () [cudaSetDevice](device: c_int)
        |call, real| call.plain(Call::SetDevice { device }, real);
    runtime () [cudaSetDeviceFlags](flags: u32)
        |call, real| call.plain(Call::Setup { what: Setup::BeforeInitialisation }, real);
    runtime () [cudaSetValidDevices](devices: Address, count: c_int)
        |call, real| call.plain(Call::Setup { what: Setup::BeforeInitialisation }, real);
    runtime () [cudaPointerGetAttributes](attributes: Address, address: Address)
        |call, real| call.queries(&[address], real);
    runtime () [cudaHostGetDevicePointer](out: Address, address: Address, flags: u32)
        |call, real| call.queries(&[address], real);
    runtime () [cudaHostGetFlags](out: Address, address: Address)
        |call, real| call.queries(&[address], real);
    runtime () [cudaIpcGetMemHandle](out: Address, address: Address)
        |call, real| call.queries(&[address], real);
    // CUDA 12 has a device number, or nothing, where CUDA 13 has a location; both are one register.
    runtime () [cudaMemAdvise](address: Address, bytes: usize, advice: c_int, location: usize)
        |call, real| call.queries(&[address], real);
    runtime () [cudaMemPrefetchAsync cudaMemPrefetchAsync_ptsz](address: Address, bytes: usize, location: usize, fourth: usize, fifth: usize)
        |call, real| call.queries(&[address], real);
    runtime () [cudaMemRangeGetAttributes](data: Address, sizes: Address, attributes: Address, attribute_count: usize, address: Address, count: usize)
        |call, real| call.queries(&[address], real);
    runtime () [cudaMemRangeGetAttribute](data: Address, bytes: usize, attribute: c_int, address: Address, count: usize)
        |call, real| call.queries(&[address], real);
    runtime () [cudaStreamAttachMemAsync cudaStreamAttachMemAsync_ptsz](stream: Handle, address: Address, bytes: usize, flags: u32)
        |call, real| call.queries(&[address], real);

    // ---- Driver: memory --------------------------------------------------------------------------------------------------------------
    driver (3020..) [cuMemAlloc_v2](out: *mut Address, bytes: usize)
        |call, real| call.device_alloc(out, bytes, DeviceKind::Plain, real);
    driver () [cuMemAllocAsync cuMemAllocAsync_ptsz](out: *mut Address, bytes: usize, stream: Handle)
        |call, real| call.device_alloc(out, bytes, DeviceKind::Pooled, real);
    driver () [cuMemAllocFromPoolAsync cuMemAllocFromPoolAsync_ptsz](out: *mut Address, bytes: usize, pool: Handle, stream: Handle)
        |call, real| call.device_alloc(out, bytes, DeviceKind::Pooled, real);
    driver () [cuMemAllocManaged](out: *mut Address, bytes: usize, flags: u32)
        |call, real| call.device_alloc(out, bytes, DeviceKind::Managed, real);
    driver (3020..) [cuMemAllocPitch_v2](out: *mut Address, pitch: *mut usize, width: usize, height: usize, element: u32)
        |call, real| call.pitched_alloc(out, pitch, height, real);
    driver (3020..) [cuMemAllocHost_v2](out: *mut Address, bytes: usize)
        |call, real| call.page_locked_alloc(out, bytes, real);
    driver () [cuMemHostAlloc](out: *mut Address, bytes: usize, flags: u32)
        |call, real| call.page_locked_alloc(out, bytes, real);
    driver (3020..) [cuMemFree_v2](address: Address)
        |call, real| call.device_free(address, false, real);
    driver () [cuMemFreeAsync cuMemFreeAsync_ptsz](address: Address, stream: Handle)
        |call, real| call.device_free(address, true, real);
    driver () [cuMemFreeHost](address: Address)
        |call, real| call.page_locked_free(address, real);
    driver (6050..) [cuMemHostRegister_v2](address: Address, bytes: usize, flags: u32)
        |call, real| call.plain(Call::HostRegister { ptr: address as u64, bytes: bytes as u64 }, real);
    driver () [cuMemHostUnregister](address: Address)
        |call, real| call.plain(Call::HostRegister { ptr: address as u64, bytes: 0 }, real);

    // ---- Driver: copies --------------------------------------------------------------------------------------------------------------
    driver () [cuMemcpy cuMemcpy_ptds](dst: Address, src: Address, bytes: usize)
        |call, real| call.copy(Transfer::of(CopyKind::Default, dst, src, bytes), None, real);
    driver () [cuMemcpyAsync cuMemcpyAsync_ptsz](dst: Address, src: Address, bytes: usize, stream: Handle)
        |call, real| call.copy(Transfer::of(CopyKind::Default, dst, src, bytes), Some(stream), real);
    driver () [cuMemcpyPeer cuMemcpyPeer_ptds](dst: Address, dst_context: Handle, src: Address, src_context: Handle, bytes: usize)
        |call, real| call.copy(Transfer::between_devices(dst, src, bytes), None, real);
    driver () [cuMemcpyPeerAsync cuMemcpyPeerAsync_ptsz]
        (dst: Address, dst_context: Handle, src: Address, src_context: Handle, bytes: usize, stream: Handle)
        |call, real| call.copy(Transfer::between_devices(dst, src, bytes), Some(stream), real);
    driver (3020..) [cuMemcpyHtoD_v2 cuMemcpyHtoD_v2_ptds](dst: Address, src: Address, bytes: usize)
        |call, real| call.copy(Transfer::of(CopyKind::HostToDevice, dst, src, bytes), None, real);
    driver (3020..) [cuMemcpyHtoDAsync_v2 cuMemcpyHtoDAsync_v2_ptsz](dst: Address, src: Address, bytes: usize, stream: Handle)
        |call, real| call.copy(Transfer::of(CopyKind::HostToDevice, dst, src, bytes), Some(stream), real);
    driver (3020..) [cuMemcpyDtoH_v2 cuMemcpyDtoH_v2_ptds](dst: Address, src: Address, bytes: usize)
        |call, real| call.copy(Transfer::of(CopyKind::DeviceToHost, dst, src, bytes), None, real);
    driver (3020..) [cuMemcpyDtoHAsync_v2 cuMemcpyDtoHAsync_v2_ptsz](dst: Address, src: Address, bytes: usize, stream: Handle)
        |call, real| call.copy(Transfer::of(CopyKind::DeviceToHost, dst, src, bytes), Some(stream), real);
    driver (3020..) [cuMemcpyDtoD_v2 cuMemcpyDtoD_v2_ptds](dst: Address, src: Address, bytes: usize)
        |call, real| call.copy(Transfer::of(CopyKind::DeviceToDevice, dst, src, bytes), None, real);
    driver (3020..) [cuMemcpyDtoDAsync_v2 cuMemcpyDtoDAsync_v2_ptsz](dst: Address, src: Address, bytes: usize, stream: Handle)
        |call, real| call.copy(Transfer::of(CopyKind::DeviceToDevice, dst, src, bytes), Some(stream), real);
    driver (3020..) [cuMemcpy2D_v2 cuMemcpy2D_v2_ptds cuMemcpy2DUnaligned_v2 cuMemcpy2DUnaligned_v2_ptds](what: *const DriverMemcpy2D)
        |call, real| call.copy_of(DriverMemcpy2D::transfer(what), None, real);
    driver (3020..) [cuMemcpy2DAsync_v2 cuMemcpy2DAsync_v2_ptsz](what: *const DriverMemcpy2D, stream: Handle)
        |call, real| call.copy_of(DriverMemcpy2D::transfer(what), Some(stream), real);
    // The structure of the peer variant has a context where the plain one has a reserved word.
    driver (3020..) [cuMemcpy3D_v2 cuMemcpy3D_v2_ptds cuMemcpy3DPeer cuMemcpy3DPeer_ptds](what: *const DriverMemcpy3D)
        |call, real| call.copy_of(DriverMemcpy3D::transfer(what), None, real);
    driver (3020..) [cuMemcpy3DAsync_v2 cuMemcpy3DAsync_v2_ptsz cuMemcpy3DPeerAsync cuMemcpy3DPeerAsync_ptsz]
        (what: *const DriverMemcpy3D, stream: Handle)
        |call, real| call.copy_of(DriverMemcpy3D::transfer(what), Some(stream), real);
    driver (3020..) [cuMemcpyHtoA_v2 cuMemcpyHtoA_v2_ptds](array: Handle, offset: usize, src: Address, bytes: usize)
        |call, real| call.copy(Transfer::to_array(src, bytes, crate::abi::HOST_TO_DEVICE), None, real);
    driver (3020..) [cuMemcpyHtoAAsync_v2 cuMemcpyHtoAAsync_v2_ptsz]
        (array: Handle, offset: usize, src: Address, bytes: usize, stream: Handle)
        |call, real| call.copy(Transfer::to_array(src, bytes, crate::abi::HOST_TO_DEVICE), Some(stream), real);
    driver (3020..) [cuMemcpyAtoH_v2 cuMemcpyAtoH_v2_ptds](dst: Address, array: Handle, offset: usize, bytes: usize)
        |call, real| call.copy(Transfer::from_array(dst, bytes, crate::abi::DEVICE_TO_HOST), None, real);
    driver (3020..) [cuMemcpyAtoHAsync_v2 cuMemcpyAtoHAsync_v2_ptsz]
        (dst: Address, array: Handle, offset: usize, bytes: usize, stream: Handle)
        |call, real| call.copy(Transfer::from_array(dst, bytes, crate::abi::DEVICE_TO_HOST), Some(stream), real);
    driver (3020..) [cuMemcpyDtoA_v2 cuMemcpyDtoA_v2_ptds](array: Handle, offset: usize, src: Address, bytes: usize)
        |call, real| call.copy(Transfer::to_array(src, bytes, crate::abi::DEVICE_TO_DEVICE), None, real);
    driver (3020..) [cuMemcpyAtoD_v2 cuMemcpyAtoD_v2_ptds](dst: Address, array: Handle, offset: usize, bytes: usize)
        |call, real| call.copy(Transfer::from_array(dst, bytes, crate::abi::DEVICE_TO_DEVICE), None, real);
    driver (12080..13000) [cuMemcpyBatchAsync cuMemcpyBatchAsync_ptsz]
        (dsts: *const Address, srcs: *const Address, sizes: *const usize, count: usize, attributes: Address, indices: Address,
         attribute_count: usize, failed: Address, stream: Handle)
        |call, real| call.copy_batch(dsts, srcs, sizes, count, real);
    driver (13000..) [cuMemcpyBatchAsync_v2 cuMemcpyBatchAsync_v2_ptsz]
        (dsts: *const Address, srcs: *const Address, sizes: *const usize, count: usize, attributes: Address, indices: Address,
         attribute_count: usize, stream: Handle)
        |call, real| call.copy_batch(dsts, srcs, sizes, count, real);
    driver () [cuGraphAddMemcpyNode]
        (node: Address, graph: Handle, before: Address, before_count: usize, what: *const DriverMemcpy3D, context: Handle)
        |call, real| call.graph_copy(DriverMemcpy3D::transfer(what), real);
    driver () [cuGraphMemcpyNodeSetParams](node: Handle, what: *const DriverMemcpy3D)
        |call, real| call.graph_copy(DriverMemcpy3D::transfer(what), real);
    driver () [cuGraphExecMemcpyNodeSetParams](graph: Handle, node: Handle, what: *const DriverMemcpy3D, context: Handle)
        |call, real| call.graph_copy(DriverMemcpy3D::transfer(what), real);

    // ---- Driver: work ----------------------------------------------------------------------------------------------------------------
    driver (3020..) [cuMemsetD8_v2 cuMemsetD8_v2_ptds](dst: Address, value: u8, count: usize)
        |call, real| call.set(dst, count, 0, real);
    driver (3020..) [cuMemsetD16_v2 cuMemsetD16_v2_ptds](dst: Address, value: u16, count: usize)
        |call, real| call.set(dst, count.saturating_mul(2), 0, real);
    driver (3020..) [cuMemsetD32_v2 cuMemsetD32_v2_ptds](dst: Address, value: u32, count: usize)
        |call, real| call.set(dst, count.saturating_mul(4), 0, real);
    driver () [cuMemsetD8Async cuMemsetD8Async_ptsz](dst: Address, value: u8, count: usize, stream: Handle)
        |call, real| call.set(dst, count, stream, real);
    driver () [cuMemsetD16Async cuMemsetD16Async_ptsz](dst: Address, value: u16, count: usize, stream: Handle)
        |call, real| call.set(dst, count.saturating_mul(2), stream, real);
    driver () [cuMemsetD32Async cuMemsetD32Async_ptsz](dst: Address, value: u32, count: usize, stream: Handle)
        |call, real| call.set(dst, count.saturating_mul(4), stream, real);
    driver (3020..) [cuMemsetD2D8_v2 cuMemsetD2D8_v2_ptds](dst: Address, pitch: usize, value: u8, width: usize, height: usize)
        |call, real| call.set(dst, pitch.saturating_mul(height), 0, real);
    driver (3020..) [cuMemsetD2D16_v2 cuMemsetD2D16_v2_ptds](dst: Address, pitch: usize, value: u16, width: usize, height: usize)
        |call, real| call.set(dst, pitch.saturating_mul(height), 0, real);
    driver (3020..) [cuMemsetD2D32_v2 cuMemsetD2D32_v2_ptds](dst: Address, pitch: usize, value: u32, width: usize, height: usize)
        |call, real| call.set(dst, pitch.saturating_mul(height), 0, real);
    driver () [cuMemsetD2D8Async cuMemsetD2D8Async_ptsz](dst: Address, pitch: usize, value: u8, width: usize, height: usize, stream: Handle)
        |call, real| call.set(dst, pitch.saturating_mul(height), stream, real);
    driver () [cuMemsetD2D16Async cuMemsetD2D16Async_ptsz](dst: Address, pitch: usize, value: u16, width: usize, height: usize, stream: Handle)
        |call, real| call.set(dst, pitch.saturating_mul(height), stream, real);
    driver () [cuMemsetD2D32Async cuMemsetD2D32Async_ptsz](dst: Address, pitch: usize, value: u32, width: usize, height: usize, stream: Handle)
        |call, real| call.set(dst, pitch.saturating_mul(height), stream, real);
    driver () [cuLaunchKernel cuLaunchKernel_ptsz]
        (function: Handle, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32, shared: u32, stream: Handle,
         arguments: Address, extra: Address)
        |call, real| call.launch(stream, real);
    driver () [cuLaunchCooperativeKernel cuLaunchCooperativeKernel_ptsz]
        (function: Handle, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32, shared: u32, stream: Handle,
         arguments: Address)
        |call, real| call.launch(stream, real);
    driver () [cuLaunchKernelEx cuLaunchKernelEx_ptsz]
        (config: *const crate::abi::DriverLaunchConfig, function: Handle, arguments: Address, extra: Address)
        |call, real| call.launch(crate::abi::DriverLaunchConfig::stream(config), real);
    driver () [cuLaunch](function: Handle)
        |call, real| call.launch(0, real);
    driver () [cuLaunchGrid](function: Handle, width: c_int, height: c_int)
        |call, real| call.launch(0, real);
    driver () [cuLaunchGridAsync](function: Handle, width: c_int, height: c_int, stream: Handle)
        |call, real| call.launch(stream, real);
    // Small as it is, what a stream writes is work that the host doesn't do.
    driver (..11070) [cuStreamWriteValue32 cuStreamWriteValue32_ptsz](stream: Handle, address: Address, value: u32, flags: u32)
        |call, real| call.launch(stream, real);
    driver (11070..) [cuStreamWriteValue32_v2 cuStreamWriteValue32_v2_ptsz](stream: Handle, address: Address, value: u32, flags: u32)
        |call, real| call.launch(stream, real);
    driver (..11070) [cuStreamWriteValue64 cuStreamWriteValue64_ptsz](stream: Handle, address: Address, value: u64, flags: u32)
        |call, real| call.launch(stream, real);
    driver (11070..) [cuStreamWriteValue64_v2 cuStreamWriteValue64_v2_ptsz](stream: Handle, address: Address, value: u64, flags: u32)
        |call, real| call.launch(stream, real);
    driver (..11070) [cuStreamBatchMemOp cuStreamBatchMemOp_ptsz](stream: Handle, count: u32, operations: Address, flags: u32)
        |call, real| call.launch(stream, real);
    driver (11070..) [cuStreamBatchMemOp_v2 cuStreamBatchMemOp_v2_ptsz](stream: Handle, count: u32, operations: Address, flags: u32)
        |call, real| call.launch(stream, real);
    driver () [cuGraphLaunch cuGraphLaunch_ptsz](graph: Handle, stream: Handle)
        |call, real| call.launch(stream, real);
    driver () [cuLaunchHostFunc cuLaunchHostFunc_ptsz](stream: Handle, function: Address, data: Address)
        |call, real| call.host_function(stream, real);
    driver () [cuStreamAddCallback cuStreamAddCallback_ptsz](stream: Handle, function: Address, data: Address, flags: u32)
        |call, real| call.host_function(stream, real);

    // ---- Driver: order ---------------------------------------------------------------------------------------------------------------
    driver (..13000) [cuCtxSynchronize]()
        |call, real| call.plain(Call::Wait { on: WaitFor::Device }, real);
    driver (13000..) [cuCtxSynchronize_v2](context: Handle)
        |call, real| call.plain(Call::Wait { on: WaitFor::Device }, real);
    driver () [cuStreamSynchronize cuStreamSynchronize_ptsz cuStreamQuery cuStreamQuery_ptsz](stream: Handle)
        |call, real| call.plain(Call::Wait { on: WaitFor::Stream(call.stream(stream)) }, real);
    driver () [cuEventSynchronize cuEventQuery](event: Handle)
        |call, real| call.plain(Call::Wait { on: WaitFor::Event(event as u64) }, real);
    driver () [cuEventRecord cuEventRecord_ptsz](event: Handle, stream: Handle)
        |call, real| call.plain(Call::EventRecord { event: event as u64, stream: call.stream(stream) }, real);
    driver () [cuEventRecordWithFlags cuEventRecordWithFlags_ptsz](event: Handle, stream: Handle, flags: u32)
        |call, real| call.plain(Call::EventRecord { event: event as u64, stream: call.stream(stream) }, real);
    driver () [cuStreamWaitEvent cuStreamWaitEvent_ptsz](stream: Handle, event: Handle, flags: u32)
        |call, real| call.plain(Call::StreamWait { stream: call.stream(stream), event: event as u64 }, real);
    driver () [cuStreamCreate](out: *mut Handle, flags: u32)
        |call, real| call.stream_create(out, flags, real);
    driver () [cuStreamCreateWithPriority](out: *mut Handle, flags: u32, priority: c_int)
        |call, real| call.stream_create(out, flags, real);
    driver (4000..) [cuStreamDestroy_v2](stream: Handle)
        |call, real| call.plain(Call::StreamDestroy { stream: call.stream(stream) }, real);
    driver (10010..) [cuStreamBeginCapture_v2 cuStreamBeginCapture_v2_ptsz](stream: Handle, mode: c_int)
        |call, real| call.plain(Call::Capture { stream: call.stream(stream), begin: true }, real);
    driver () [cuStreamBeginCaptureToGraph cuStreamBeginCaptureToGraph_ptsz]
        (stream: Handle, graph: Handle, before: Address, edges: Address, before_count: usize, mode: c_int)
        |call, real| call.plain(Call::Capture { stream: call.stream(stream), begin: true }, real);
    driver () [cuStreamEndCapture cuStreamEndCapture_ptsz](stream: Handle, graph: Address)
        |call, real| call.plain(Call::Capture { stream: call.stream(stream), begin: false }, real);

    // ---- Driver: contexts and questions ----------------------------------------------------------------------------------------------
    driver (4000..) [cuCtxDestroy_v2](context: Handle)
        |call, real| call.context_destroy(context, real);
    driver () [cuCtxDetach](context: Handle)
        |call, real| call.reset(real);
    driver (..11000) [cuDevicePrimaryCtxReset](device: c_int)
        |call, real| call.reset(real);
    driver (11000..) [cuDevicePrimaryCtxReset_v2](device: c_int)
        |call, real| call.reset(real);
    driver (..11000) [cuDevicePrimaryCtxRelease](device: c_int)
        |call, real| call.release(real);
    driver (11000..) [cuDevicePrimaryCtxRelease_v2](device: c_int)
        |call, real| call.release(real);
    // A context of the program's own is another one than the device's first, which memory that comes before it is in.
    driver (3020..11040) [cuCtxCreate_v2](out: Address, flags: u32, device: c_int)
        |call, real| call.context_create(real);
    driver (11040..12050) [cuCtxCreate_v3](out: Address, affinity: Address, count: c_int, flags: u32, device: c_int)
        |call, real| call.context_create(real);
    driver (12050..) [cuCtxCreate_v4](out: Address, parameters: Address, flags: u32, device: c_int)
        |call, real| call.context_create(real);
    driver (4000..) [cuCtxSetCurrent cuCtxPushCurrent_v2](context: Handle)
        |call, real| call.context_change(real);
    driver (4000..) [cuCtxPopCurrent_v2](out: Address)
        |call, real| call.context_change(real);
    driver () [cuPointerGetAttribute](data: Address, attribute: c_int, address: Address)
        |call, real| call.queries(&[address], real);
    driver () [cuPointerGetAttributes](count: u32, attributes: Address, data: Address, address: Address)
        |call, real| call.queries(&[address], real);
    driver (3020..) [cuMemHostGetDevicePointer_v2](out: Address, address: Address, flags: u32)
        |call, real| call.queries(&[address], real);
    driver () [cuMemHostGetFlags](out: Address, address: Address)
        |call, real| call.queries(&[address], real);
    driver (3020..) [cuMemGetAddressRange_v2](base: Address, bytes: Address, address: Address)
        |call, real| call.queries(&[address], real);
    driver () [cuIpcGetMemHandle](out: Address, address: Address)
        |call, real| call.queries(&[address], real);
    driver (..12020) [cuMemAdvise](address: Address, bytes: usize, advice: c_int, device: c_int)
        |call, real| call.queries(&[address], real);
    driver (12020..) [cuMemAdvise_v2](address: Address, bytes: usize, advice: c_int, location: u64)
        |call, real| call.queries(&[address], real);
    driver (..12020) [cuMemPrefetchAsync cuMemPrefetchAsync_ptsz](address: Address, bytes: usize, device: c_int, stream: Handle)
        |call, real| call.queries(&[address], real);
    driver (12020..) [cuMemPrefetchAsync_v2 cuMemPrefetchAsync_v2_ptsz]
        (address: Address, bytes: usize, location: u64, flags: u32, stream: Handle)
        |call, real| call.queries(&[address], real);
    driver () [cuMemRangeGetAttributes](data: Address, sizes: Address, attributes: Address, attribute_count: usize, address: Address, count: usize)
        |call, real| call.queries(&[address], real);
    driver () [cuMemGetHandleForAddressRange](out: Address, address: Address, bytes: usize, kind: c_int, flags: u64)
        |call, real| call.queries(&[address], real);
    driver () [cuPointerSetAttribute](value: Address, attribute: c_int, address: Address)
        |call, real| call.queries(&[address], real);
    driver () [cuMemRangeGetAttribute](data: Address, bytes: usize, attribute: c_int, address: Address, count: usize)
        |call, real| call.queries(&[address], real);
    driver () [cuStreamAttachMemAsync cuStreamAttachMemAsync_ptsz](stream: Handle, address: Address, bytes: usize, flags: u32)
        |call, real| call.queries(&[address], real);

    }
    by_hand {
    proc_address driver () [cuGetProcAddress cuGetProcAddress_v2];
    unmodelled runtime () [cudaGraphAddNode cudaGraphNodeSetParams cudaGraphExecNodeSetParams cudaLaunchCooperativeKernelMultiDevice
        cudaMemcpy3DBatchAsync cudaMemcpy3DBatchAsync_ptsz cudaMemPrefetchBatchAsync cudaMemPrefetchBatchAsync_ptsz
        cudaMemDiscardBatchAsync cudaMemDiscardBatchAsync_ptsz
        cudaMemDiscardAndPrefetchBatchAsync cudaMemDiscardAndPrefetchBatchAsync_ptsz];
    unmodelled driver (..12030) [cuGraphAddNode];
    unmodelled driver (12030..) [cuGraphAddNode_v2];
    unmodelled driver (..13000) [cuMemcpy3DBatchAsync cuMemcpy3DBatchAsync_ptsz];
    unmodelled driver (13000..) [cuMemcpy3DBatchAsync_v2 cuMemcpy3DBatchAsync_v2_ptsz];
    unmodelled driver () [cuGraphNodeSetParams cuGraphExecNodeSetParams cuLaunchCooperativeKernelMultiDevice
        cuMemPrefetchBatchAsync cuMemPrefetchBatchAsync_ptsz cuMemDiscardBatchAsync cuMemDiscardBatchAsync_ptsz
        cuMemDiscardAndPrefetchBatchAsync cuMemDiscardAndPrefetchBatchAsync_ptsz
        cuMemBatchDecompressAsync cuMemBatchDecompressAsync_ptsz];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;

    use super::{HOOKS, Layer};

    /// The table in `docs/hooks.md`: a line for each function, with all its names.
    fn table() -> String {
        let mut text = String::from("| function | API | symbols that are hooked |\n| --- | --- | --- |\n");
        let mut functions: BTreeMap<(bool, &str), Vec<&str>> = BTreeMap::new();
        for hook in HOOKS {
            functions.entry((hook.layer == Layer::Driver, hook.base())).or_default().push(hook.name);
        }
        for ((is_driver, base), mut names) in functions {
            let api = if is_driver { "driver" } else { "runtime" };
            names.sort_unstable();
            writeln!(text, "| `{base}` | {api} | `{}` |", names.join("` `")).expect("text");
        }
        text
    }

    #[test]
    fn the_page_has_all_hooks() {
        const MARK: &str = "<!-- written by the tests of echo-dr-preload -->\n\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/hooks.md");
        let page = std::fs::read_to_string(path).expect("the page");
        let (head, found) = page.split_once(MARK).expect("its mark");
        if std::env::var_os("ECHO_BLESS").is_some() {
            std::fs::write(path, format!("{head}{MARK}{}", table())).expect("written");
            return;
        }
        assert_eq!(found, table(), "docs/hooks.md is another table; ECHO_BLESS=1 writes it");
    }
}
