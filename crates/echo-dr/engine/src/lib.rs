//! What Echo-DR decides, without the means: no preload, no foreign call, no `unsafe`.
//!
//! - [`analyze()`]: a trace becomes a plan.
//! - [`Unifier`]: in an optimised run, which allocation gets merged memory, which copy is skipped and what wait stays.
//! - [`Windows`]: in a validation run, when the pages of a host buffer are closed to the host, and what an access there means.
//!
//! The library that is preloaded tells them each call in plain data ([`calls`]) and does what they say. It brings the real functions as traits
//! ([`echo_rt::Cuda`], [`Memory`]), so that everything here is tested against a device that is made up.
//!
//! The engine is called from inside malloc. What every call passes through neither allocates nor locks; where it does lock, it allocates
//! nothing and calls nothing of the program's or CUDA's while it holds the lock.

mod analyze;
pub mod calls;
mod matcher;
mod pending;
mod unifier;
mod windows;

pub use analyze::{DEFAULT_THRESHOLD, Options, OtherRun, analyze, judge, possible_backends};
pub use pending::WaitToken;
pub use unifier::Unifier;
pub use windows::{Fault, Loan, Memory, Protection, Windows};
