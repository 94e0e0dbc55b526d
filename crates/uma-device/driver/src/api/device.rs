//! The device as a whole: there is one, number 0.

use super::attributes::{COMPUTE_CAPABILITY, LAST, attribute};
use super::{Context, put, put_if};
use crate::error::{self, CuError, Result};
use crate::host::engine::settings;
use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::{AtomicBool, Ordering};

/// The CUDA version whose functions this library has.
pub const VERSION: c_int = 13_000;

const NAME: &[u8] = b"Echo CPU device (uma)\0";
const UUID: [u8; 16] = *b"echo-uma-device\0";
/// A name of the usual form; the device is on no bus.
const PCI_BUS_ID: &[u8] = b"0000:00:00.0\0";

static INITIALISED: AtomicBool = AtomicBool::new(false);

/// Checks that `cuInit` was called.
pub fn check_initialised() -> Result {
    if INITIALISED.load(Ordering::Relaxed) { Ok(()) } else { Err(CuError::NOT_INITIALIZED) }
}

/// Checks a device number.
pub fn check(device: c_int) -> Result {
    if device == 0 { Ok(()) } else { Err(CuError::INVALID_DEVICE) }
}

/// `cuInit`: only the modes are read; the first context starts the device.
pub unsafe fn init(_: Context, flags: c_uint) -> Result {
    if flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    if !INITIALISED.load(Ordering::Relaxed) {
        settings()?;
        INITIALISED.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// `cuDriverGetVersion`
pub unsafe fn get_version(_: Context, target: *mut c_int) -> Result {
    // SAFETY: see the parent module.
    unsafe { put(target, VERSION) }
}

/// `cuGetErrorName`
pub unsafe fn get_error_name(_: Context, code: c_int, target: *mut *const c_char) -> Result {
    let name = error::name(code);
    // SAFETY: see the parent module.
    unsafe { put(target, name.map_or(std::ptr::null(), |name| name.as_ptr())) }?;
    name.map(drop).ok_or(CuError::INVALID_VALUE)
}

/// `cuGetErrorString`
pub unsafe fn get_error_string(_: Context, code: c_int, target: *mut *const c_char) -> Result {
    let text = error::text(code);
    // SAFETY: see the parent module.
    unsafe { put(target, text.map_or(std::ptr::null(), |text| text.as_ptr())) }?;
    text.map(drop).ok_or(CuError::INVALID_VALUE)
}

/// `cuDeviceGet`
pub unsafe fn get(_: Context, target: *mut c_int, ordinal: c_int) -> Result {
    check(ordinal)?;
    // SAFETY: see the parent module.
    unsafe { put(target, 0) }
}

/// `cuDeviceGetCount`
pub unsafe fn get_count(_: Context, target: *mut c_int) -> Result {
    // SAFETY: see the parent module.
    unsafe { put(target, 1) }
}

/// Gives a text with its NUL to the program, cut where its room ends.
unsafe fn put_text(target: *mut c_char, room: c_int, text: &[u8]) -> Result {
    let room = usize::try_from(room).ok().filter(|room| *room > 0 && !target.is_null());
    let count = room.ok_or(CuError::INVALID_VALUE)?.min(text.len());
    // SAFETY: the program says that `target` has room for at least `count` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), target, count);
        target.add(count - 1).write(0);
    }
    Ok(())
}

/// `cuDeviceGetName`
pub unsafe fn get_name(_: Context, target: *mut c_char, room: c_int, device: c_int) -> Result {
    check(device)?;
    // SAFETY: see the parent module.
    unsafe { put_text(target, room, NAME) }
}

/// `cuDeviceGetPCIBusId`
pub unsafe fn get_pci_bus_id(_: Context, target: *mut c_char, room: c_int, device: c_int) -> Result {
    check(device)?;
    if room < PCI_BUS_ID.len() as c_int {
        return Err(CuError::INVALID_VALUE);
    }
    // SAFETY: see the parent module.
    unsafe { put_text(target, room, PCI_BUS_ID) }
}

/// `cuDeviceGetUuid`
pub unsafe fn get_uuid(_: Context, target: *mut [u8; 16], device: c_int) -> Result {
    check(device)?;
    // SAFETY: see the parent module.
    unsafe { put(target, UUID) }
}

/// `cuDeviceTotalMem`
pub unsafe fn total_mem(_: Context, target: *mut usize, device: c_int) -> Result {
    check(device)?;
    let total = settings()?.total_memory();
    // SAFETY: see the parent module.
    unsafe { put(target, total) }
}

/// `cuDeviceGetAttribute`
pub unsafe fn get_attribute(_: Context, target: *mut c_int, number: c_int, device: c_int) -> Result {
    check(device)?;
    if !(1..=LAST).contains(&number) {
        return Err(CuError::INVALID_VALUE);
    }
    let value = attribute(number, &settings()?);
    // SAFETY: see the parent module.
    unsafe { put(target, value) }
}

/// `cuDeviceComputeCapability`
pub unsafe fn compute_capability(_: Context, major: *mut c_int, minor: *mut c_int, device: c_int) -> Result {
    check(device)?;
    // SAFETY: see the parent module.
    unsafe {
        put_if(major, COMPUTE_CAPABILITY / 10)?;
        put_if(minor, COMPUTE_CAPABILITY % 10)
    }
}

/// `cuDeviceCanAccessPeer`: there is no peer.
pub unsafe fn can_access_peer(_: Context, target: *mut c_int, device: c_int, peer: c_int) -> Result {
    check(device)?;
    check(peer)?;
    // SAFETY: see the parent module.
    unsafe { put(target, 0) }
}
