//! The decision: which pairs of an event program can be merged, and what has to stay where the copies were.
//!
//! No LLVM type is known here. Input is a [`program::Program`], output one [`verdict::Verdict`] a candidate pair.

pub mod program;
pub mod symbolic;
pub mod verdict;
