//! Tests of the engine through its public interface.

mod analysis;
mod common;
mod exhaustive;
mod malformed;
mod unifier;
mod windows;
