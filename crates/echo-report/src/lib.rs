//! What is told of each pair, as plain data: [`PairReport`], its text form and its JSON Lines form.
//!
//! A crate of its own, because two programs share it: the plugin writes reports, and leaves LLVM's symbols to the compiler that loads it;
//! the command `echo-sr` reads them, and must link without LLVM.

mod json;
mod pair;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
mod text;

pub use json::{append, parse};
pub use pair::{Buffer, Outcome, PairReport, Place, ReasonReport, Step, Wait};
