//! CUDA's driver error codes (`CUresult`): one table of names and numbers. What an error means is said in our own words, derived from its name.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// A `CUresult` that is not `CUDA_SUCCESS`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CuError(pub i32);

/// What an API function returns.
pub type Result<T = ()> = std::result::Result<T, CuError>;

macro_rules! errors {
    ($($name:ident = $code:literal,)*) => {
        #[allow(missing_docs, reason = "the names are CUDA's")]
        impl CuError {
            $(pub const $name: CuError = CuError($code);)*
        }

        /// Code and name of every error.
        const NAMES: &[(i32, &str)] = &[$(($code, stringify!($name)),)*];
    };
}

errors! {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    DEINITIALIZED = 4,
    PROFILER_DISABLED = 5,
    PROFILER_NOT_INITIALIZED = 6,
    PROFILER_ALREADY_STARTED = 7,
    PROFILER_ALREADY_STOPPED = 8,
    STUB_LIBRARY = 34,
    CALL_REQUIRES_NEWER_DRIVER = 36,
    DEVICE_UNAVAILABLE = 46,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    DEVICE_NOT_LICENSED = 102,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    CONTEXT_ALREADY_CURRENT = 202,
    MAP_FAILED = 205,
    UNMAP_FAILED = 206,
    ARRAY_IS_MAPPED = 207,
    ALREADY_MAPPED = 208,
    NO_BINARY_FOR_GPU = 209,
    ALREADY_ACQUIRED = 210,
    NOT_MAPPED = 211,
    NOT_MAPPED_AS_ARRAY = 212,
    NOT_MAPPED_AS_POINTER = 213,
    ECC_UNCORRECTABLE = 214,
    UNSUPPORTED_LIMIT = 215,
    CONTEXT_ALREADY_IN_USE = 216,
    PEER_ACCESS_UNSUPPORTED = 217,
    INVALID_PTX = 218,
    INVALID_GRAPHICS_CONTEXT = 219,
    NVLINK_UNCORRECTABLE = 220,
    JIT_COMPILER_NOT_FOUND = 221,
    UNSUPPORTED_PTX_VERSION = 222,
    JIT_COMPILATION_DISABLED = 223,
    UNSUPPORTED_EXEC_AFFINITY = 224,
    UNSUPPORTED_DEVSIDE_SYNC = 225,
    CONTAINED = 226,
    INVALID_SOURCE = 300,
    FILE_NOT_FOUND = 301,
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
    SHARED_OBJECT_INIT_FAILED = 303,
    OPERATING_SYSTEM = 304,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    LOSSY_QUERY = 402,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_OUT_OF_RESOURCES = 701,
    LAUNCH_TIMEOUT = 702,
    LAUNCH_INCOMPATIBLE_TEXTURING = 703,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    PEER_ACCESS_NOT_ENABLED = 705,
    PRIMARY_CONTEXT_ACTIVE = 708,
    CONTEXT_IS_DESTROYED = 709,
    ASSERT = 710,
    TOO_MANY_PEERS = 711,
    HOST_MEMORY_ALREADY_REGISTERED = 712,
    HOST_MEMORY_NOT_REGISTERED = 713,
    HARDWARE_STACK_ERROR = 714,
    ILLEGAL_INSTRUCTION = 715,
    MISALIGNED_ADDRESS = 716,
    INVALID_ADDRESS_SPACE = 717,
    INVALID_PC = 718,
    LAUNCH_FAILED = 719,
    COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    TENSOR_MEMORY_LEAK = 721,
    NOT_PERMITTED = 800,
    NOT_SUPPORTED = 801,
    SYSTEM_NOT_READY = 802,
    SYSTEM_DRIVER_MISMATCH = 803,
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    MPS_CONNECTION_FAILED = 805,
    MPS_RPC_FAILURE = 806,
    MPS_SERVER_NOT_READY = 807,
    MPS_MAX_CLIENTS_REACHED = 808,
    MPS_MAX_CONNECTIONS_REACHED = 809,
    MPS_CLIENT_TERMINATED = 810,
    CDP_NOT_SUPPORTED = 811,
    CDP_VERSION_MISMATCH = 812,
    STREAM_CAPTURE_UNSUPPORTED = 900,
    STREAM_CAPTURE_INVALIDATED = 901,
    STREAM_CAPTURE_MERGE = 902,
    STREAM_CAPTURE_UNMATCHED = 903,
    STREAM_CAPTURE_UNJOINED = 904,
    STREAM_CAPTURE_ISOLATION = 905,
    STREAM_CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    STREAM_CAPTURE_WRONG_THREAD = 908,
    TIMEOUT = 909,
    GRAPH_EXEC_UPDATE_FAILURE = 910,
    EXTERNAL_DEVICE = 911,
    INVALID_CLUSTER_SIZE = 912,
    FUNCTION_NOT_LOADED = 913,
    INVALID_RESOURCE_TYPE = 914,
    INVALID_RESOURCE_CONFIGURATION = 915,
    KEY_ROTATION = 916,
    UNKNOWN = 999,
}

/// Where the name alone says too little.
const HINTS: &[(CuError, &str)] = &[
    (CuError::ILLEGAL_ADDRESS, "a kernel touched an address that is not memory of the device"),
    (CuError::ASSERT, "an assert in a kernel failed"),
    (CuError::LAUNCH_FAILED, "a kernel stopped: trap, deadlock or an operation that the CPU refuses"),
    (CuError::NO_BINARY_FOR_GPU, "the module has no image for the CPU device"),
    (CuError::NOT_INITIALIZED, "cuInit was not called, the CPU device could not be started, or this is a forked child"),
    (CuError::INVALID_CONTEXT, "no context is current on this thread"),
    (CuError::NOT_SUPPORTED, "the CPU device does not do this"),
    (CuError::NOT_READY, "not finished yet"),
];

impl CuError {
    /// From a number; `None` for 0, success.
    pub fn from_code(code: i32) -> Option<CuError> {
        (code != 0).then_some(CuError(code))
    }
}

impl std::fmt::Debug for CuError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match texts().iter().find(|row| row.code == self.0) {
            Some(row) => write!(f, "{}", row.name.to_string_lossy()),
            None => write!(f, "CUresult {}", self.0),
        }
    }
}

struct Texts {
    code: i32,
    name: CString,
    text: CString,
}

/// The texts as C strings, made once: programs keep the pointers.
fn texts() -> &'static [Texts] {
    static TEXTS: OnceLock<Vec<Texts>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let make = |code: i32, name: String, text: String| {
            // Neither names nor texts hold a NUL.
            Some(Texts { code, name: CString::new(name).ok()?, text: CString::new(text).ok()? })
        };
        let success = make(0, "CUDA_SUCCESS".to_owned(), "no error".to_owned());
        let errors = NAMES.iter().filter_map(|(code, name)| {
            let hint = HINTS.iter().find(|(error, _)| error.0 == *code).map(|(_, text)| (*text).to_owned());
            make(*code, format!("CUDA_ERROR_{name}"), hint.unwrap_or_else(|| name.to_lowercase().replace('_', " ")))
        });
        success.into_iter().chain(errors).collect()
    })
}

/// What `cuGetErrorName` gives; `None` for a number that is no error.
pub fn name(code: i32) -> Option<&'static CStr> {
    texts().iter().find(|row| row.code == code).map(|row| row.name.as_c_str())
}

/// What `cuGetErrorString` gives; `None` for a number that is no error.
pub fn text(code: i32) -> Option<&'static CStr> {
    texts().iter().find(|row| row.code == code).map(|row| row.text.as_c_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts() {
        assert_eq!(name(0), Some(c"CUDA_SUCCESS"));
        assert_eq!(name(700), Some(c"CUDA_ERROR_ILLEGAL_ADDRESS"));
        assert_eq!(text(1), Some(c"invalid value"));
        assert_eq!(name(-5), None);
        assert_eq!(texts().len(), NAMES.len() + 1);
    }
}
