//! What calls mean: the CUDA runtime (`cuda`, `runtime`), and the functions of libc, libstdc++ and friends (`models`).
//!
//! Pure data: a call is known by its symbol name, arguments by position. What a row does not say about an argument is not known, and
//! the lowering treats it so. [`classify`] is the only way in.

pub mod cuda;
pub mod models;
pub mod runtime;

/// What a symbol's call means.
#[derive(Clone, Copy, Debug)]
pub enum Callee {
    /// A function of the CUDA runtime with a row in the table; `per_thread` is true for the `_ptsz` and `_ptds` variants, whose
    /// default stream is the per-thread one.
    Cuda {
        /// The row.
        row: &'static cuda::Row,
        /// Null means the per-thread default stream.
        per_thread: bool,
    },
    /// A function of the CUDA runtime or driver without a row: it may do anything to the device.
    UnmodelledCuda,
    /// A host function with a model.
    Modelled(&'static models::Model),
    /// Anything else.
    Unknown,
}

/// What a call of the symbol `name` means.
#[must_use]
pub fn classify(name: &str) -> Callee {
    let (base, per_thread) = match name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")) {
        Some(base) => (base, true),
        None => (name, false),
    };
    if let Some(row) = cuda::row_of(base) {
        return Callee::Cuda { row, per_thread };
    }
    if is_cuda_api(name) {
        return Callee::UnmodelledCuda;
    }
    models::model(name).map_or(Callee::Unknown, Callee::Modelled)
}

/// Does the name belong to the CUDA runtime (`cudaX`, `__cudaX`) or driver (`cuX`) API? Libraries (`cublasX`, `cufftX`) do not.
fn is_cuda_api(name: &str) -> bool {
    let upper_after = |prefix: &str| {
        name.strip_prefix(prefix).and_then(|rest| rest.chars().next()).is_some_and(|first| first.is_ascii_uppercase())
    };
    upper_after("cuda") || upper_after("__cuda") || upper_after("cu")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_thread_variants_share_the_row_but_not_the_default_stream() {
        let Callee::Cuda { row, per_thread: false } = classify("cudaMemcpyAsync") else { panic!("not a row") };
        let Callee::Cuda { row: same, per_thread: true } = classify("cudaMemcpyAsync_ptsz") else {
            panic!("not a row")
        };
        assert_eq!(row.name, same.name);
        assert!(matches!(classify("cudaMemcpy_ptds"), Callee::Cuda { per_thread: true, .. }));
    }

    #[test]
    fn unknown_functions_of_the_runtime_and_driver_are_not_taken_for_harmless() {
        assert!(matches!(classify("cudaFrobnicate"), Callee::UnmodelledCuda));
        assert!(matches!(classify("cuLaunchKernel"), Callee::UnmodelledCuda));
        assert!(matches!(classify("__cudaFrobnicate"), Callee::UnmodelledCuda));
    }

    #[test]
    fn other_names_are_unknown() {
        assert!(matches!(classify("cublasXtSgemm"), Callee::Unknown));
        assert!(matches!(classify("custom"), Callee::Unknown));
        assert!(matches!(classify("fill"), Callee::Unknown));
        assert!(matches!(classify("malloc"), Callee::Modelled(_)));
    }
}
