//! The structures of CUDA that calls pass by address or by value, as far as they are read here, and what a copy call asks for.

use std::ffi::c_int;

use echo_dr_format::event::{CopyKind, Shape};

/// `cudaMemcpyHostToDevice`.
pub(crate) const HOST_TO_DEVICE: c_int = 1;
/// `cudaMemcpyDeviceToHost`.
pub(crate) const DEVICE_TO_HOST: c_int = 2;
/// `cudaMemcpyDeviceToDevice`.
pub(crate) const DEVICE_TO_DEVICE: c_int = 3;

/// `dim3`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Dim3([u32; 3]);

/// `cudaExtent`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct CudaExtent {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// `cudaPitchedPtr`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct CudaPitched {
    pub(crate) address: usize,
    pub(crate) pitch: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl CudaPitched {
    /// From the first byte to the end of the last row.
    pub(crate) fn bytes(&self, extent: CudaExtent) -> usize {
        self.pitch.saturating_mul(extent.height).saturating_mul(extent.depth)
    }

    fn at(&self, position: [usize; 3]) -> usize {
        let rows = position[1].wrapping_add(self.height.wrapping_mul(position[2]));
        self.address.wrapping_add(position[0]).wrapping_add(self.pitch.wrapping_mul(rows))
    }
}

/// `cudaMemcpy3DParms`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CudaMemcpy3D {
    src_array: usize,
    src_position: [usize; 3],
    src: CudaPitched,
    dst_array: usize,
    dst_position: [usize; 3],
    dst: CudaPitched,
    extent: CudaExtent,
    kind: c_int,
}

/// `cudaMemcpy3DPeerParms`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CudaMemcpy3DPeer {
    src_array: usize,
    src_position: [usize; 3],
    src: CudaPitched,
    src_device: c_int,
    dst_array: usize,
    dst_position: [usize; 3],
    dst: CudaPitched,
    dst_device: c_int,
    extent: CudaExtent,
}

/// `CUDA_MEMCPY2D`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct DriverMemcpy2D {
    src_x: usize,
    src_y: usize,
    src: DriverSide,
    src_pitch: usize,
    dst_x: usize,
    dst_y: usize,
    dst: DriverSide,
    dst_pitch: usize,
    width: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER`, which has contexts in the place of the reserved words.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct DriverMemcpy3D {
    src_position: [usize; 3],
    src_level: usize,
    src: DriverSide,
    src_context: usize,
    src_pitch: usize,
    src_height: usize,
    dst_position: [usize; 3],
    dst_level: usize,
    dst: DriverSide,
    dst_context: usize,
    dst_pitch: usize,
    dst_height: usize,
    width: usize,
    height: usize,
    depth: usize,
}

/// One side of a driver copy.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct DriverSide {
    kind: c_int,
    host: usize,
    device: usize,
    array: usize,
}

impl DriverSide {
    const HOST: c_int = 1;
    const DEVICE: c_int = 2;
    const ARRAY: c_int = 3;

    /// Address and whether it is host memory; `None` of unified memory, whose address says.
    fn address(&self) -> (usize, Option<bool>) {
        match self.kind {
            Self::HOST => (self.host, Some(true)),
            Self::DEVICE => (self.device, Some(false)),
            Self::ARRAY => (0, Some(false)),
            _ => (self.device, None),
        }
    }

    fn is_array(&self) -> bool {
        self.kind == Self::ARRAY
    }
}

/// `cudaLaunchConfig_t`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CudaLaunchConfig {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: usize,
}

/// `CUlaunchConfig`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct DriverLaunchConfig {
    grid: Dim3,
    block: Dim3,
    shared: u32,
    stream: usize,
}

macro_rules! stream_of {
    ($($type:ident)*) => {$(
        impl $type {
            /// The stream; 0 for a call without a configuration, which CUDA refuses.
            pub(crate) fn stream(config: *const Self) -> usize {
                // SAFETY: the program passes its configuration to a launch, or null.
                unsafe { config.as_ref() }.map_or(0, |config| config.stream)
            }
        }
    )*};
}

stream_of!(CudaLaunchConfig DriverLaunchConfig);

/// What a copy call asks for. An array or a symbol has the address 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) dst: usize,
    pub(crate) src: usize,
    /// Bytes that move.
    pub(crate) bytes: usize,
    /// From the first to the last byte of the wider side.
    pub(crate) extent: usize,
    pub(crate) kind: CopyKind,
    pub(crate) shape: Shape,
}

fn kind_of(kind: c_int) -> CopyKind {
    match kind {
        0 => CopyKind::HostToHost,
        HOST_TO_DEVICE => CopyKind::HostToDevice,
        DEVICE_TO_HOST => CopyKind::DeviceToHost,
        DEVICE_TO_DEVICE => CopyKind::DeviceToDevice,
        _ => CopyKind::Default,
    }
}

impl Transfer {
    /// One run of bytes.
    pub(crate) fn of(kind: CopyKind, dst: usize, src: usize, bytes: usize) -> Self {
        Self { dst, src, bytes, extent: bytes, kind, shape: Shape::Linear }
    }

    /// One run of bytes, with the runtime's number for the way.
    pub(crate) fn linear(dst: usize, src: usize, bytes: usize, kind: c_int) -> Self {
        Self::of(kind_of(kind), dst, src, bytes)
    }

    /// Between two devices.
    pub(crate) fn between_devices(dst: usize, src: usize, bytes: usize) -> Self {
        Self::of(CopyKind::DeviceToDevice, dst, src, bytes)
    }

    /// To an array or a symbol.
    pub(crate) fn to_array(src: usize, bytes: usize, kind: c_int) -> Self {
        Self { shape: Shape::Array, ..Self::linear(0, src, bytes, kind) }
    }

    /// From an array or a symbol.
    pub(crate) fn from_array(dst: usize, bytes: usize, kind: c_int) -> Self {
        Self { shape: Shape::Array, ..Self::linear(dst, 0, bytes, kind) }
    }

    /// Rows of `size[0]` bytes with pitches.
    pub(crate) fn pitched(dst: usize, src: usize, size: [usize; 3], pitches: [usize; 2], kind: c_int) -> Self {
        let rows = size[1].saturating_mul(size[2]);
        let bytes = size[0].saturating_mul(rows);
        let extent = pitches[0].max(pitches[1]).saturating_mul(rows).max(bytes);
        Self { dst, src, bytes, extent, kind: kind_of(kind), shape: Shape::Pitched }
    }

    /// Of a structure with arrays in it.
    fn with_arrays(self, any: bool) -> Self {
        if any { Self { shape: Shape::Array, ..self } } else { self }
    }
}

impl CudaMemcpy3D {
    /// What the call asks for; `None` of null, which CUDA refuses.
    pub(crate) fn transfer(what: *const Self) -> Option<Transfer> {
        // SAFETY: the program passes its parameters to a copy call, or null.
        let what = unsafe { what.as_ref() }?;
        let (src, dst) = (what.src.at(what.src_position), what.dst.at(what.dst_position));
        let size = [what.extent.width, what.extent.height, what.extent.depth];
        let transfer = Transfer::pitched(
            if what.dst_array == 0 { dst } else { 0 },
            if what.src_array == 0 { src } else { 0 },
            size,
            [what.dst.pitch, what.src.pitch],
            what.kind,
        );
        Some(transfer.with_arrays(what.src_array != 0 || what.dst_array != 0))
    }
}

impl CudaMemcpy3DPeer {
    /// What the call asks for; `None` of null, which CUDA refuses.
    pub(crate) fn transfer(what: *const Self) -> Option<Transfer> {
        // SAFETY: the program passes its parameters to a copy call, or null.
        let what = unsafe { what.as_ref() }?;
        let (src, dst) = (what.src.at(what.src_position), what.dst.at(what.dst_position));
        let size = [what.extent.width, what.extent.height, what.extent.depth];
        let transfer = Transfer::pitched(dst, src, size, [what.dst.pitch, what.src.pitch], DEVICE_TO_DEVICE);
        Some(transfer.with_arrays(what.src_array != 0 || what.dst_array != 0))
    }
}

fn driver_transfer(dst: (DriverSide, usize, usize), src: (DriverSide, usize, usize), size: [usize; 3]) -> Transfer {
    let ((dst_side, dst_offset, dst_pitch), (src_side, src_offset, src_pitch)) = (dst, src);
    let ((dst, to_host), (src, from_host)) = (dst_side.address(), src_side.address());
    let offset = |address: usize, offset| if address == 0 { 0 } else { address.wrapping_add(offset) };
    let kind = match (from_host, to_host) {
        (Some(true), Some(true)) => CopyKind::HostToHost,
        (Some(true), Some(false)) => CopyKind::HostToDevice,
        (Some(false), Some(true)) => CopyKind::DeviceToHost,
        (Some(false), Some(false)) => CopyKind::DeviceToDevice,
        _ => CopyKind::Default,
    };
    let transfer = Transfer::pitched(offset(dst, dst_offset), offset(src, src_offset), size, [dst_pitch, src_pitch], 0);
    Transfer { kind, ..transfer }.with_arrays(dst_side.is_array() || src_side.is_array())
}

impl DriverMemcpy2D {
    /// What the call asks for; `None` of null, which CUDA refuses.
    pub(crate) fn transfer(what: *const Self) -> Option<Transfer> {
        // SAFETY: the program passes its parameters to a copy call, or null.
        let what = unsafe { what.as_ref() }?;
        let dst_offset = what.dst_x.wrapping_add(what.dst_y.wrapping_mul(what.dst_pitch));
        let src_offset = what.src_x.wrapping_add(what.src_y.wrapping_mul(what.src_pitch));
        Some(driver_transfer(
            (what.dst, dst_offset, what.dst_pitch),
            (what.src, src_offset, what.src_pitch),
            [what.width, what.height, 1],
        ))
    }
}

impl DriverMemcpy3D {
    /// What the call asks for; `None` of null, which CUDA refuses.
    pub(crate) fn transfer(what: *const Self) -> Option<Transfer> {
        // SAFETY: the program passes its parameters to a copy call, or null.
        let what = unsafe { what.as_ref() }?;
        let offset = |[x, y, z]: [usize; 3], pitch: usize, height: usize| {
            x.wrapping_add(pitch.wrapping_mul(y.wrapping_add(height.wrapping_mul(z))))
        };
        Some(driver_transfer(
            (what.dst, offset(what.dst_position, what.dst_pitch, what.dst_height), what.dst_pitch),
            (what.src, offset(what.src_position, what.src_pitch, what.src_height), what.src_pitch),
            [what.width, what.height, what.depth],
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn the_structures_have_the_layout_of_cuda_h() {
        assert_eq!(size_of::<CudaMemcpy3D>(), 160);
        assert_eq!(offset_of!(CudaMemcpy3D, kind), 152);
        assert_eq!(size_of::<CudaMemcpy3DPeer>(), 168);
        assert_eq!(offset_of!(CudaMemcpy3DPeer, extent), 144);
        assert_eq!(size_of::<DriverMemcpy2D>(), 128);
        assert_eq!(size_of::<DriverMemcpy3D>(), 200);
        assert_eq!(offset_of!(CudaLaunchConfig, stream), 32);
        assert_eq!(offset_of!(DriverLaunchConfig, stream), 32);
    }

    #[test]
    fn a_driver_copy_goes_where_its_sides_say() {
        let side = |kind, address| DriverSide { kind, host: address, device: address, array: 0 };
        let copy = |src, dst| driver_transfer((dst, 3, 64), (src, 5, 32), [10, 4, 1]);
        let up = copy(side(DriverSide::HOST, 0x1000), side(DriverSide::DEVICE, 0x9000));
        assert_eq!((up.kind, up.shape, up.bytes, up.extent), (CopyKind::HostToDevice, Shape::Pitched, 40, 256));
        assert_eq!((up.src, up.dst), (0x1005, 0x9003));
        let down = copy(side(DriverSide::ARRAY, 0x1000), side(DriverSide::HOST, 0x9000));
        assert_eq!((down.kind, down.shape, down.src), (CopyKind::DeviceToHost, Shape::Array, 0));
        let unified = copy(side(4, 0x1000), side(DriverSide::DEVICE, 0x9000));
        assert_eq!(unified.kind, CopyKind::Default);
    }
}
