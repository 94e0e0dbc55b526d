//! `cuGetProcAddress`: functions by name and version. The runtime library gets every function of the driver here.

use crate::api::device::VERSION;
use crate::api::{Context, put, put_if};
use crate::error::{CuError, Result};
use crate::exports;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// A function: its exported name and its address.
pub type Exported = (&'static str, usize);

/// A function of the driver in one of its forms.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name without a version.
    pub base: &'static str,
    /// First CUDA version that has this form.
    pub since: c_int,
    /// The function.
    pub plain: Exported,
    /// The variant whose null stream is the thread's own.
    pub per_thread: Option<Exported>,
}

/// `CU_GET_PROC_ADDRESS_LEGACY_STREAM`, `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

/// `CUdriverProcAddressQueryResult`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The function's address.
    Address(usize),
    /// There is no function of this name.
    NoSuchName,
    /// Each form is newer than the version asked for.
    TooNew,
}

/// The rows of each name, oldest first.
fn table() -> &'static HashMap<&'static str, Vec<Row>> {
    static TABLE: OnceLock<HashMap<&'static str, Vec<Row>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table: HashMap<&'static str, Vec<Row>> = HashMap::new();
        for row in exports::rows() {
            table.entry(row.base).or_default().push(row);
        }
        for rows in table.values_mut() {
            rows.sort_by_key(|row| row.since);
        }
        table
    })
}

/// Finds the newest form of a function that `version` has.
pub fn find(name: &str, version: c_int, per_thread: bool) -> Found {
    let Some(rows) = table().get(name) else { return Found::NoSuchName };
    let Some(row) = rows.iter().rev().find(|row| row.since <= version) else { return Found::TooNew };
    Found::Address(row.per_thread.filter(|_| per_thread).unwrap_or(row.plain).1)
}

/// `cuGetProcAddress_v2`
///
/// # Safety
/// The arguments are what CUDA's documentation says, or null.
pub unsafe fn get_proc_address_v2(
    _: Context,
    symbol: *const c_char,
    target: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> Result {
    if symbol.is_null() || target.is_null() || version > VERSION || flags & !(LEGACY | PER_THREAD) != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    // SAFETY: the caller vouches for a symbol that is not null.
    let name = unsafe { CStr::from_ptr(symbol) }.to_str().unwrap_or_default();
    let (address, code) = match find(name, version, flags & PER_THREAD != 0) {
        Found::Address(address) => (address, 0),
        Found::NoSuchName => (0, 1),
        Found::TooNew => (0, 2),
    };
    // SAFETY: the caller vouches for both targets.
    unsafe {
        put_if(status, code)?;
        put(target, address as *mut c_void)
    }
}

/// `cuGetProcAddress` before CUDA 12: what is not found is an error.
///
/// # Safety
/// As for [`get_proc_address_v2`].
pub unsafe fn get_proc_address(
    context: Context,
    symbol: *const c_char,
    target: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> Result {
    let mut status = 0;
    // SAFETY: the caller's promise is passed on; the status is ours.
    unsafe { get_proc_address_v2(context, symbol, target, version, flags, &mut status) }?;
    if status == 0 { Ok(()) } else { Err(CuError::NOT_FOUND) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::*;

    #[test]
    fn the_version_says_which_form() {
        let address = |found: *const ()| Found::Address(found as usize);
        assert_eq!(find("cuMemAlloc", 13_000, false), address(cuMemAlloc_v2 as *const ()));
        assert_eq!(find("cuMemAlloc", 3_000, false), Found::TooNew);
        assert_eq!(find("cuMemAlloc_v2", 13_000, false), Found::NoSuchName);
        assert_eq!(find("cuMemPrefetchAsync", 12_010, false), address(cuMemPrefetchAsync as *const ()));
        assert_eq!(find("cuMemPrefetchAsync", 12_020, false), address(cuMemPrefetchAsync_v2 as *const ()));
        assert_eq!(find("cuMemPrefetchAsync", 12_020, true), address(cuMemPrefetchAsync_v2_ptsz as *const ()));
        assert_eq!(find("cuMemAlloc", 13_000, true), address(cuMemAlloc_v2 as *const ()));
    }
}
