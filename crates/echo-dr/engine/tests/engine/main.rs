//! Tests of the engine through its public interface.

mod analysis;
mod common;
mod exhaustive;
mod gpu;
mod malformed;
mod outside;
mod streams;
mod unifier;
mod windows;
