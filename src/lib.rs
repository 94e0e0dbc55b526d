//! Echo-SR: an LLVM pass that merges a host and a device buffer of a CUDA program into one where that cannot change what
//! the program does.
//!
//! The way of one pair through the rooms of this crate:
//!
//! ```text
//! device half of a .cu file                    host half
//!   pass → effects (what each kernel does) ──→ effects (read from the fat binary)
//!                                              lower    LLVM IR  → event program
//!                                              analysis event program → verdicts; the only maker of a MergePlan
//!                                              rewrite  MergePlan → LLVM IR (R1 allocation … R4 deallocation)
//!                                              report   verdicts → text, JSON Lines, remarks
//! ```
//!
//! `calls` says what CUDA and libc calls mean. `mutants` lets tests switch checks off. `ir` is the view of LLVM IR through which the others read it. `analysis`, `calls`, `report` and the data half of `effects` know no LLVM type.

pub mod analysis;
pub mod calls;
pub mod effects;
pub mod mutants;
pub mod options;
pub mod report;

#[cfg(all(feature = "llvm19", feature = "llvm22"))]
compile_error!("choose one LLVM version: --no-default-features --features llvm19, or the default llvm22");

#[cfg(any(feature = "llvm19", feature = "llvm22"))]
pub mod ir;
#[cfg(any(feature = "llvm19", feature = "llvm22"))]
pub mod lower;
#[cfg(any(feature = "llvm19", feature = "llvm22"))]
pub mod pass;
#[cfg(any(feature = "llvm19", feature = "llvm22"))]
pub mod rewrite;
