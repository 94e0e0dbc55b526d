//! What LLVM sees of Echo-SR: the plugin's entry, its three passes and where they run, options, diagnostics.
//!
//! | pass | on | where |
//! | --- | --- | --- |
//! | `echo-sr-effects` | device modules | end of the optimisation pipeline ([`crate::effects::derive`]) |
//! | `echo-sr-prepare` | host modules | before simplification: thin wrappers become `alwaysinline` ([`prepare`]) |
//! | `echo-sr` | host modules | after simplification, before vectorisation; again at link time under LTO ([`pipeline`]) |
//!
//! The only C++ is `shim.cpp`, and it decides nothing.

pub mod diagnostics;
pub mod entry;
pub mod pipeline;
pub mod prepare;
pub mod splice;

// Test programs run without an `opt` or `clang` around them, so they bring LLVM themselves. (build.rs does it for integration tests.)
#[cfg(all(test, feature = "llvm22"))]
#[link(name = "LLVM-22")]
unsafe extern "C" {}
#[cfg(all(test, feature = "llvm19"))]
#[link(name = "LLVM-19")]
unsafe extern "C" {}
