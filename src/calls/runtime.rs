//! The CUDA runtime: one row a call, by chapter of the CUDA Runtime API reference.
//!
//! Sources: each function's page in the chapter that its section names; for waits, the reference's chapters "API synchronization behavior"
//! (when copies and memsets return) and "Stream synchronization behavior" (legacy and per-thread default streams). Where the reference says
//! "may" (an asynchronous copy of pageable memory *may* be synchronous), no wait is assumed: the program cannot rely on it either.
//! The functions with two underscores are what compilers emit for `<<<…>>>` and for a unit's kernels and variables (crt/host_runtime.h).

use super::cuda::Meaning::{self, *};
use super::cuda::{CopyKind, Row, Size, StreamArg};
use crate::analysis::program::Allocator;

/// The functions of one chapter.
#[derive(Debug)]
pub struct Section {
    /// The chapter.
    pub title: &'static str,
    /// Its functions.
    pub rows: &'static [Row],
}

const fn row(name: &'static str, meaning: Meaning) -> Row {
    Row { name, meaning }
}

const fn allocate(allocator: Allocator) -> Meaning {
    Allocate { out: 0, bytes: 1, allocator }
}

/// `dst, src, bytes, kind`, and a stream if it is asynchronous.
const fn copy(stream: StreamArg) -> Meaning {
    let asynchronous = matches!(stream, StreamArg::Arg(_));
    Copy { dst: 0, src: 1, bytes: Size::Arg(2), kind: CopyKind::Arg(3), stream, asynchronous }
}

/// `dst, dpitch, src, spitch, width, height, kind`, and a stream if it is asynchronous.
const fn copy_rows(stream: StreamArg) -> Meaning {
    let asynchronous = matches!(stream, StreamArg::Arg(_));
    let bytes = Size::Rows { dst_pitch: Some(1), src_pitch: Some(3), width: 4, height: 5 };
    Copy { dst: 0, src: 2, bytes, kind: CopyKind::Arg(6), stream, asynchronous }
}

const fn to_symbol(pointer: u8, bytes: Size, stream: StreamArg) -> Meaning {
    SymbolCopy { pointer, bytes, kind: CopyKind::ToSymbol, stream, asynchronous: matches!(stream, StreamArg::Arg(_)) }
}

const fn from_symbol(bytes: Size, stream: StreamArg) -> Meaning {
    let asynchronous = matches!(stream, StreamArg::Arg(_));
    SymbolCopy { pointer: 0, bytes, kind: CopyKind::FromSymbol, stream, asynchronous }
}

/// Rows between an array and linear memory, whose pitch is argument `pitch`.
const fn array_rows(pitch: u8, width: u8) -> Size {
    Size::Rows { dst_pitch: None, src_pitch: Some(pitch), width, height: width + 1 }
}

const DEFAULT: StreamArg = StreamArg::Default;

const fn on(argument: u8) -> StreamArg {
    StreamArg::Arg(argument)
}

/// The table.
pub static SECTIONS: &[Section] = &[
    Section {
        title: "Device Management",
        rows: &[
            row("cudaChooseDevice", Keeps),
            row("cudaDeviceGetAttribute", Harmless),
            row("cudaDeviceGetByPCIBusId", Harmless),
            row("cudaDeviceGetCacheConfig", Harmless),
            row("cudaDeviceGetDefaultMemPool", Harmless),
            row("cudaDeviceGetLimit", Harmless),
            row("cudaDeviceGetMemPool", Harmless),
            row("cudaDeviceGetP2PAttribute", Harmless),
            row("cudaDeviceGetPCIBusId", Harmless),
            row("cudaDeviceGetSharedMemConfig", Harmless),
            row("cudaDeviceGetStreamPriorityRange", Harmless),
            row("cudaDeviceReset", DeviceReset),
            row("cudaDeviceSetCacheConfig", Harmless),
            row("cudaDeviceSetLimit", Harmless),
            row("cudaDeviceSetMemPool", Harmless),
            row("cudaDeviceSetSharedMemConfig", Harmless),
            row("cudaDeviceSynchronize", WaitDevice),
            row("cudaGetDevice", Harmless),
            row("cudaGetDeviceCount", Harmless),
            row("cudaGetDeviceFlags", Harmless),
            row("cudaGetDeviceProperties", Harmless),
            row("cudaGetDeviceProperties_v2", Harmless),
            // Makes the device's context and, as of CUDA 12, the device current.
            row("cudaInitDevice", SelectDevice { device: 0 }),
            row("cudaIpcCloseMemHandle", Keeps),
            row("cudaIpcGetEventHandle", Keeps),
            row("cudaIpcGetMemHandle", Keeps),
            row("cudaIpcOpenEventHandle", Harmless),
            row("cudaIpcOpenMemHandle", Harmless),
            row("cudaSetDevice", SelectDevice { device: 0 }),
            row("cudaSetDeviceFlags", Harmless),
        ],
    },
    Section {
        title: "Thread Management (deprecated)",
        rows: &[row("cudaThreadExit", DeviceReset), row("cudaThreadSynchronize", WaitDevice)],
    },
    Section {
        title: "Error Handling",
        rows: &[
            row("cudaGetErrorName", Harmless),
            row("cudaGetErrorString", Harmless),
            row("cudaGetLastError", Harmless),
            row("cudaPeekAtLastError", Harmless),
        ],
    },
    Section {
        title: "Stream Management",
        rows: &[
            row("cudaCtxResetPersistingL2Cache", Harmless),
            // A callback is host code in stream order; it may not call CUDA, and reaches what it was given and what has escaped.
            row("cudaStreamAddCallback", OtherWork),
            row("cudaStreamAttachMemAsync", OtherWork),
            row("cudaStreamBeginCapture", StreamCapture),
            row("cudaStreamBeginCaptureToGraph", StreamCapture),
            row("cudaStreamCopyAttributes", Harmless),
            row("cudaStreamCreate", CreateStream { out: 0, flags: None }),
            row("cudaStreamCreateWithFlags", CreateStream { out: 0, flags: Some(1) }),
            row("cudaStreamCreateWithPriority", CreateStream { out: 0, flags: Some(1) }),
            // Destroying does not wait: the stream's work goes on.
            row("cudaStreamDestroy", Harmless),
            row("cudaStreamEndCapture", StreamCapture),
            row("cudaStreamGetAttribute", Harmless),
            row("cudaStreamGetCaptureInfo_v2", Harmless),
            row("cudaStreamGetFlags", Harmless),
            row("cudaStreamGetId", Harmless),
            row("cudaStreamGetPriority", Harmless),
            row("cudaStreamIsCapturing", Harmless),
            row("cudaStreamQuery", Harmless),
            // An access policy window has the address of memory in it.
            row("cudaStreamSetAttribute", Keeps),
            row("cudaStreamSynchronize", WaitStream { stream: 0 }),
            row("cudaStreamUpdateCaptureDependencies", StreamCapture),
            row("cudaStreamWaitEvent", StreamWait { stream: 0, event: 1 }),
            row("cudaThreadExchangeStreamCaptureMode", StreamCapture),
        ],
    },
    Section {
        title: "Event Management",
        rows: &[
            row("cudaEventCreate", CreateEvent { out: 0 }),
            row("cudaEventCreateWithFlags", CreateEvent { out: 0 }),
            row("cudaEventDestroy", Harmless),
            row("cudaEventElapsedTime", Harmless),
            row("cudaEventElapsedTime_v2", Harmless),
            row("cudaEventQuery", Harmless),
            row("cudaEventRecord", Record { event: 0, stream: on(1) }),
            row("cudaEventRecordWithFlags", Record { event: 0, stream: on(1) }),
            row("cudaEventSynchronize", WaitEvent { event: 0 }),
        ],
    },
    Section {
        title: "Execution Control",
        rows: &[
            row("__cudaLaunchKernel", Launch { function: 0, args: 5, stream: Some(7), configured: Some((1, 3)) }),
            row("__cudaPopCallConfiguration", PopConfiguration { stream: 3 }),
            row("__cudaPushCallConfiguration", PushConfiguration { grid: 0, block: 2, stream: 5 }),
            row("cudaFuncGetAttributes", Harmless),
            row("cudaFuncGetName", Harmless),
            row("cudaFuncSetAttribute", Harmless),
            row("cudaFuncSetCacheConfig", Harmless),
            row("cudaFuncSetSharedMemConfig", Harmless),
            row("cudaGetFuncBySymbol", Harmless),
            row(
                "cudaLaunchCooperativeKernel",
                Launch { function: 0, args: 5, stream: Some(7), configured: Some((1, 3)) },
            ),
            // As cudaStreamAddCallback.
            row("cudaLaunchHostFunc", OtherWork),
            row("cudaLaunchKernel", Launch { function: 0, args: 5, stream: Some(7), configured: Some((1, 3)) }),
            row("cudaLaunchKernelExC", Launch { function: 1, args: 2, stream: None, configured: None }),
        ],
    },
    Section {
        title: "Occupancy",
        rows: &[
            row("cudaOccupancyAvailableDynamicSMemPerBlock", Harmless),
            row("cudaOccupancyMaxActiveBlocksPerMultiprocessor", Harmless),
            row("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", Harmless),
            row("cudaOccupancyMaxActiveClusters", Harmless),
            row("cudaOccupancyMaxPotentialClusterSize", Harmless),
        ],
    },
    Section {
        title: "Memory Management",
        rows: &[
            // An array is device memory that no pointer names: it is not followed, and only these functions and textures reach it.
            row("cudaArrayGetInfo", Harmless),
            row("cudaFree", Free { pointer: 0, waits: true, stream: None }),
            row("cudaFreeArray", Harmless),
            row("cudaFreeHost", Free { pointer: 0, waits: false, stream: None }),
            row("cudaFreeMipmappedArray", Harmless),
            row("cudaGetMipmappedArrayLevel", Harmless),
            // The symbol's address is handed out: buffers are not concerned, a kernel that uses the symbol is seen by its own effects.
            row("cudaGetSymbolAddress", Harmless),
            row("cudaGetSymbolSize", Harmless),
            row("cudaHostAlloc", allocate(Allocator::PinnedHost)),
            row("cudaHostGetDevicePointer", Keeps),
            row("cudaHostGetFlags", Keeps),
            row("cudaHostRegister", Keeps),
            row("cudaHostUnregister", Keeps),
            row("cudaMalloc", allocate(Allocator::CudaMalloc)),
            // Their pointer is stored in a structure, which is not followed.
            row("cudaMalloc3D", Harmless),
            row("cudaMalloc3DArray", Harmless),
            row("cudaMallocArray", Harmless),
            row("cudaMallocHost", allocate(Allocator::PinnedHost)),
            row("cudaMallocManaged", allocate(Allocator::CudaMallocManaged)),
            row("cudaMallocMipmappedArray", Harmless),
            row("cudaMallocPitch", MallocPitch { out: 0 }),
            row("cudaMemAdvise", Keeps),
            row("cudaMemAdvise_v2", Keeps),
            row("cudaMemGetInfo", Harmless),
            row("cudaMemPrefetchAsync", OtherWork),
            row("cudaMemPrefetchAsync_v2", OtherWork),
            row("cudaMemRangeGetAttribute", Keeps),
            row("cudaMemcpy", copy(DEFAULT)),
            row("cudaMemcpy2D", copy_rows(DEFAULT)),
            row("cudaMemcpy2DArrayToArray", OtherWork),
            row("cudaMemcpy2DAsync", copy_rows(on(7))),
            row("cudaMemcpy2DFromArray", from_symbol(array_rows(1, 5), DEFAULT)),
            row("cudaMemcpy2DFromArrayAsync", from_symbol(array_rows(1, 5), on(8))),
            row("cudaMemcpy2DToArray", to_symbol(3, array_rows(4, 5), DEFAULT)),
            row("cudaMemcpy2DToArrayAsync", to_symbol(3, array_rows(4, 5), on(8))),
            // Their pointers are in a structure.
            row("cudaMemcpy3D", OtherWork),
            row("cudaMemcpy3DAsync", OtherWork),
            row("cudaMemcpy3DPeer", OtherWork),
            row("cudaMemcpy3DPeerAsync", OtherWork),
            row("cudaMemcpyAsync", copy(on(4))),
            row("cudaMemcpyFromSymbol", from_symbol(Size::Arg(2), DEFAULT)),
            row("cudaMemcpyFromSymbolAsync", from_symbol(Size::Arg(2), on(5))),
            row("cudaMemcpyPeer", OtherWork),
            row("cudaMemcpyPeerAsync", OtherWork),
            row("cudaMemcpyToSymbol", to_symbol(1, Size::Arg(2), DEFAULT)),
            row("cudaMemcpyToSymbolAsync", to_symbol(1, Size::Arg(2), on(5))),
            row("cudaMemset", Memset { dst: 0, bytes: Some(2), stream: DEFAULT }),
            row("cudaMemset2D", Memset { dst: 0, bytes: None, stream: DEFAULT }),
            row("cudaMemset2DAsync", Memset { dst: 0, bytes: None, stream: on(5) }),
            row("cudaMemset3D", OtherWork),
            row("cudaMemset3DAsync", OtherWork),
            row("cudaMemsetAsync", Memset { dst: 0, bytes: Some(2), stream: on(3) }),
        ],
    },
    Section {
        title: "Memory Management (deprecated)",
        rows: &[
            row("cudaMemcpyArrayToArray", OtherWork),
            row("cudaMemcpyFromArray", from_symbol(Size::Arg(4), DEFAULT)),
            row("cudaMemcpyFromArrayAsync", from_symbol(Size::Arg(4), on(6))),
            row("cudaMemcpyToArray", to_symbol(3, Size::Arg(4), DEFAULT)),
            row("cudaMemcpyToArrayAsync", to_symbol(3, Size::Arg(4), on(6))),
        ],
    },
    Section {
        title: "Stream Ordered Memory Allocator",
        rows: &[
            row("cudaFreeAsync", Free { pointer: 0, waits: false, stream: Some(on(1)) }),
            row("cudaMallocAsync", allocate(Allocator::CudaMallocAsync)),
            row("cudaMallocFromPoolAsync", allocate(Allocator::CudaMallocAsync)),
            row("cudaMemPoolCreate", Keeps),
            row("cudaMemPoolDestroy", Harmless),
            row("cudaMemPoolExportPointer", Keeps),
            row("cudaMemPoolExportToShareableHandle", Harmless),
            row("cudaMemPoolGetAccess", Harmless),
            row("cudaMemPoolGetAttribute", Harmless),
            row("cudaMemPoolImportFromShareableHandle", Harmless),
            row("cudaMemPoolImportPointer", Keeps),
            row("cudaMemPoolSetAccess", Keeps),
            row("cudaMemPoolSetAttribute", Harmless),
            row("cudaMemPoolTrimTo", Harmless),
        ],
    },
    Section { title: "Unified Addressing", rows: &[row("cudaPointerGetAttributes", Keeps)] },
    Section {
        title: "Peer Device Memory Access",
        rows: &[
            row("cudaDeviceCanAccessPeer", Harmless),
            row("cudaDeviceDisablePeerAccess", Harmless),
            row("cudaDeviceEnablePeerAccess", Harmless),
        ],
    },
    Section {
        title: "OpenGL, EGL and Graphics Interoperability",
        rows: &[
            row("cudaGraphicsGLRegisterBuffer", Keeps),
            row("cudaGraphicsGLRegisterImage", Keeps),
            row("cudaGraphicsMapResources", OtherWork),
            // The memory belongs to the graphics library.
            row("cudaGraphicsResourceGetMappedPointer", Harmless),
            row("cudaGraphicsResourceSetMapFlags", Harmless),
            row("cudaGraphicsSubResourceGetMappedArray", Harmless),
            row("cudaGraphicsUnmapResources", OtherWork),
            row("cudaGraphicsUnregisterResource", Harmless),
        ],
    },
    Section {
        title: "Texture and Surface Object Management",
        rows: &[
            row("cudaCreateChannelDesc", Harmless),
            // A resource may be linear memory: its address is in a structure.
            row("cudaCreateSurfaceObject", Keeps),
            row("cudaCreateTextureObject", Keeps),
            row("cudaDestroySurfaceObject", Harmless),
            row("cudaDestroyTextureObject", Harmless),
            row("cudaGetChannelDesc", Harmless),
            row("cudaGetSurfaceObjectResourceDesc", Harmless),
            row("cudaGetTextureObjectResourceDesc", Harmless),
            row("cudaGetTextureObjectTextureDesc", Harmless),
        ],
    },
    Section {
        title: "Version Management",
        rows: &[row("cudaDriverGetVersion", Harmless), row("cudaRuntimeGetVersion", Harmless)],
    },
    Section {
        title: "Graph Management",
        rows: &[
            // What a node is to do stands in structures, which the graph copies; it does it when the graph is launched.
            row("cudaGraphAddChildGraphNode", Keeps),
            row("cudaGraphAddDependencies", Keeps),
            row("cudaGraphAddEmptyNode", Keeps),
            row("cudaGraphAddEventRecordNode", Keeps),
            row("cudaGraphAddEventWaitNode", Keeps),
            row("cudaGraphAddHostNode", Keeps),
            row("cudaGraphAddKernelNode", Keeps),
            row("cudaGraphAddMemAllocNode", Keeps),
            row("cudaGraphAddMemFreeNode", Keeps),
            row("cudaGraphAddMemcpyNode", Keeps),
            row("cudaGraphAddMemcpyNode1D", Keeps),
            row("cudaGraphAddMemsetNode", Keeps),
            row("cudaGraphAddNode", Keeps),
            row("cudaGraphClone", Harmless),
            row("cudaGraphCreate", Harmless),
            row("cudaGraphDebugDotPrint", Keeps),
            row("cudaGraphDestroy", Harmless),
            row("cudaGraphExecDestroy", Harmless),
            row("cudaGraphExecKernelNodeSetParams", Keeps),
            row("cudaGraphExecUpdate", Keeps),
            row("cudaGraphGetNodes", Keeps),
            row("cudaGraphInstantiate", Keeps),
            row("cudaGraphInstantiateWithFlags", Keeps),
            row("cudaGraphKernelNodeSetParams", Keeps),
            row("cudaGraphLaunch", OtherWork),
            row("cudaGraphUpload", OtherWork),
        ],
    },
    Section {
        title: "Profiler Control",
        rows: &[row("cudaProfilerStart", Harmless), row("cudaProfilerStop", Harmless)],
    },
    Section {
        title: "Registration of a unit's kernels and variables (crt/host_runtime.h)",
        rows: &[
            // nvcc's stubs ask for the kernel's handle, once.
            row("__cudaGetKernel", Harmless),
            row("__cudaInitModule", Harmless),
            row("__cudaRegisterFatBinary", Harmless),
            row("__cudaRegisterFatBinaryEnd", Harmless),
            row("__cudaRegisterFunction", Harmless),
            row("__cudaRegisterManagedVar", Harmless),
            row("__cudaRegisterSurface", Harmless),
            row("__cudaRegisterTexture", Harmless),
            row("__cudaRegisterVar", Harmless),
            row("__cudaUnregisterFatBinary", Harmless),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> impl Iterator<Item = &'static Row> {
        SECTIONS.iter().flat_map(|section| section.rows)
    }

    #[test]
    fn every_chapter_is_sorted_and_every_function_has_one_row() {
        for section in SECTIONS {
            for pair in section.rows.windows(2) {
                assert!(pair[0].name < pair[1].name, "{}: {} is out of order", section.title, pair[1].name);
            }
        }
        let mut names: Vec<_> = rows().map(|row| row.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn an_asynchronous_call_promises_no_wait() {
        for row in rows().filter(|row| row.name.contains("Async")) {
            match row.meaning {
                Copy { asynchronous, stream, .. } | SymbolCopy { asynchronous, stream, .. } => {
                    assert!(asynchronous && stream != DEFAULT, "{}", row.name);
                }
                Memset { stream, .. } => assert!(stream != DEFAULT, "{}", row.name),
                Free { waits, .. } => assert!(!waits, "{}", row.name),
                Allocate { .. } | OtherWork => {}
                _ => panic!("{} is asynchronous and has no stream", row.name),
            }
        }
    }

    #[test]
    fn what_takes_a_structure_with_addresses_in_it_is_not_taken_for_harmless() {
        for name in ["cudaCreateTextureObject", "cudaStreamSetAttribute", "cudaGraphAddKernelNode", "cudaMemcpy3D"] {
            let row = rows().find(|row| row.name == name).expect(name);
            assert!(matches!(row.meaning, Keeps | OtherWork), "{name}");
        }
    }
}
