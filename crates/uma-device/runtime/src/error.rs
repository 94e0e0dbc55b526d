//! CUDA's error codes: one table of names and numbers. What an error means is said in our own words, derived from its name.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// A `cudaError_t` that is not `cudaSuccess`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CudaError(pub i32);

/// What an API function returns.
pub type Result<T = ()> = std::result::Result<T, CudaError>;

macro_rules! errors {
    ($($name:ident = $code:literal,)*) => {
        #[allow(non_upper_case_globals, missing_docs, reason = "the names are CUDA's")]
        impl CudaError {
            $(pub const $name: CudaError = CudaError($code);)*
        }

        /// Code and name of every error.
        const NAMES: &[(i32, &str)] = &[(0, "Success"), $(($code, stringify!($name)),)*];
    };
}

errors! {
    ErrorInvalidValue = 1,
    ErrorMemoryAllocation = 2,
    ErrorInitializationError = 3,
    ErrorCudartUnloading = 4,
    ErrorProfilerDisabled = 5,
    ErrorProfilerNotInitialized = 6,
    ErrorProfilerAlreadyStarted = 7,
    ErrorProfilerAlreadyStopped = 8,
    ErrorInvalidConfiguration = 9,
    ErrorInvalidPitchValue = 12,
    ErrorInvalidSymbol = 13,
    ErrorInvalidHostPointer = 16,
    ErrorInvalidDevicePointer = 17,
    ErrorInvalidTexture = 18,
    ErrorInvalidTextureBinding = 19,
    ErrorInvalidChannelDescriptor = 20,
    ErrorInvalidMemcpyDirection = 21,
    ErrorAddressOfConstant = 22,
    ErrorTextureFetchFailed = 23,
    ErrorTextureNotBound = 24,
    ErrorSynchronizationError = 25,
    ErrorInvalidFilterSetting = 26,
    ErrorInvalidNormSetting = 27,
    ErrorMixedDeviceExecution = 28,
    ErrorNotYetImplemented = 31,
    ErrorMemoryValueTooLarge = 32,
    ErrorStubLibrary = 34,
    ErrorInsufficientDriver = 35,
    ErrorCallRequiresNewerDriver = 36,
    ErrorInvalidSurface = 37,
    ErrorDuplicateVariableName = 43,
    ErrorDuplicateTextureName = 44,
    ErrorDuplicateSurfaceName = 45,
    ErrorDevicesUnavailable = 46,
    ErrorIncompatibleDriverContext = 49,
    ErrorMissingConfiguration = 52,
    ErrorPriorLaunchFailure = 53,
    ErrorLaunchMaxDepthExceeded = 65,
    ErrorLaunchFileScopedTex = 66,
    ErrorLaunchFileScopedSurf = 67,
    ErrorSyncDepthExceeded = 68,
    ErrorLaunchPendingCountExceeded = 69,
    ErrorInvalidDeviceFunction = 98,
    ErrorNoDevice = 100,
    ErrorInvalidDevice = 101,
    ErrorDeviceNotLicensed = 102,
    ErrorSoftwareValidityNotEstablished = 103,
    ErrorStartupFailure = 127,
    ErrorInvalidKernelImage = 200,
    ErrorDeviceUninitialized = 201,
    ErrorMapBufferObjectFailed = 205,
    ErrorUnmapBufferObjectFailed = 206,
    ErrorArrayIsMapped = 207,
    ErrorAlreadyMapped = 208,
    ErrorNoKernelImageForDevice = 209,
    ErrorAlreadyAcquired = 210,
    ErrorNotMapped = 211,
    ErrorNotMappedAsArray = 212,
    ErrorNotMappedAsPointer = 213,
    ErrorECCUncorrectable = 214,
    ErrorUnsupportedLimit = 215,
    ErrorDeviceAlreadyInUse = 216,
    ErrorPeerAccessUnsupported = 217,
    ErrorInvalidPtx = 218,
    ErrorInvalidGraphicsContext = 219,
    ErrorNvlinkUncorrectable = 220,
    ErrorJitCompilerNotFound = 221,
    ErrorUnsupportedPtxVersion = 222,
    ErrorJitCompilationDisabled = 223,
    ErrorUnsupportedExecAffinity = 224,
    ErrorUnsupportedDevSideSync = 225,
    ErrorContained = 226,
    ErrorInvalidSource = 300,
    ErrorFileNotFound = 301,
    ErrorSharedObjectSymbolNotFound = 302,
    ErrorSharedObjectInitFailed = 303,
    ErrorOperatingSystem = 304,
    ErrorInvalidResourceHandle = 400,
    ErrorIllegalState = 401,
    ErrorLossyQuery = 402,
    ErrorSymbolNotFound = 500,
    ErrorNotReady = 600,
    ErrorIllegalAddress = 700,
    ErrorLaunchOutOfResources = 701,
    ErrorLaunchTimeout = 702,
    ErrorLaunchIncompatibleTexturing = 703,
    ErrorPeerAccessAlreadyEnabled = 704,
    ErrorPeerAccessNotEnabled = 705,
    ErrorSetOnActiveProcess = 708,
    ErrorContextIsDestroyed = 709,
    ErrorAssert = 710,
    ErrorTooManyPeers = 711,
    ErrorHostMemoryAlreadyRegistered = 712,
    ErrorHostMemoryNotRegistered = 713,
    ErrorHardwareStackError = 714,
    ErrorIllegalInstruction = 715,
    ErrorMisalignedAddress = 716,
    ErrorInvalidAddressSpace = 717,
    ErrorInvalidPc = 718,
    ErrorLaunchFailure = 719,
    ErrorCooperativeLaunchTooLarge = 720,
    ErrorTensorMemoryLeak = 721,
    ErrorNotPermitted = 800,
    ErrorNotSupported = 801,
    ErrorSystemNotReady = 802,
    ErrorSystemDriverMismatch = 803,
    ErrorCompatNotSupportedOnDevice = 804,
    ErrorMpsConnectionFailed = 805,
    ErrorMpsRpcFailure = 806,
    ErrorMpsServerNotReady = 807,
    ErrorMpsMaxClientsReached = 808,
    ErrorMpsMaxConnectionsReached = 809,
    ErrorMpsClientTerminated = 810,
    ErrorCdpNotSupported = 811,
    ErrorCdpVersionMismatch = 812,
    ErrorStreamCaptureUnsupported = 900,
    ErrorStreamCaptureInvalidated = 901,
    ErrorStreamCaptureMerge = 902,
    ErrorStreamCaptureUnmatched = 903,
    ErrorStreamCaptureUnjoined = 904,
    ErrorStreamCaptureIsolation = 905,
    ErrorStreamCaptureImplicit = 906,
    ErrorCapturedEvent = 907,
    ErrorStreamCaptureWrongThread = 908,
    ErrorTimeout = 909,
    ErrorGraphExecUpdateFailure = 910,
    ErrorExternalDevice = 911,
    ErrorInvalidClusterSize = 912,
    ErrorFunctionNotLoaded = 913,
    ErrorInvalidResourceType = 914,
    ErrorInvalidResourceConfiguration = 915,
    ErrorUnknown = 999,
    ErrorApiFailureBase = 10000,
}

/// Where the name alone says too little.
const HINTS: &[(CudaError, &str)] = &[
    (CudaError::ErrorIllegalAddress, "a kernel touched an address that is not memory of the device"),
    (CudaError::ErrorAssert, "an assert in a kernel failed"),
    (CudaError::ErrorLaunchFailure, "a kernel stopped: trap, deadlock or an operation that the CPU refuses"),
    (CudaError::ErrorInvalidDeviceFunction, "the kernel is not in the program's image for the CPU device"),
    (CudaError::ErrorInitializationError, "the CPU device could not be started, or this is a forked child"),
    (CudaError::ErrorNotSupported, "the CPU device does not do this"),
    (CudaError::ErrorNotReady, "not finished yet"),
];

impl CudaError {
    /// From a number; `None` for 0, success.
    pub fn from_code(code: i32) -> Option<CudaError> {
        (code != 0).then_some(CudaError(code))
    }

    /// Whether only `cudaDeviceReset` ends it: the device process is gone.
    pub fn is_sticky(self) -> bool {
        matches!(
            self,
            CudaError::ErrorIllegalAddress
                | CudaError::ErrorLaunchFailure
                | CudaError::ErrorAssert
                | CudaError::ErrorIllegalInstruction
                | CudaError::ErrorUnknown
        )
    }
}

impl std::fmt::Debug for CudaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", name(self.0).to_string_lossy())
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
        let make = |(code, name): &(i32, &str)| {
            let hint = HINTS.iter().find(|(error, _)| error.0 == *code).map(|(_, text)| (*text).to_owned());
            let text = hint.unwrap_or_else(|| in_words(name));
            // Neither names nor texts hold a NUL.
            Some(Texts { code: *code, name: CString::new(format!("cuda{name}")).ok()?, text: CString::new(text).ok()? })
        };
        NAMES.iter().filter_map(make).collect()
    })
}

/// `ErrorInvalidValue` -> `invalid value`.
fn in_words(name: &str) -> String {
    let name = name.strip_prefix("Error").unwrap_or(name);
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

/// What `cudaGetErrorName` returns.
pub fn name(code: i32) -> &'static CStr {
    texts().iter().find(|row| row.code == code).map_or(c"unrecognized error code", |row| &row.name)
}

/// What `cudaGetErrorString` returns.
pub fn text(code: i32) -> &'static CStr {
    texts().iter().find(|row| row.code == code).map_or(c"unrecognized error code", |row| &row.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts() {
        assert_eq!(name(0), c"cudaSuccess");
        assert_eq!(name(700), c"cudaErrorIllegalAddress");
        assert_eq!(text(1), c"invalid value");
        assert_eq!(text(0), c"success");
        assert_eq!(name(-5), c"unrecognized error code");
        assert_eq!(texts().len(), NAMES.len());
    }
}
