//! The runtime library of the CPU device (`libcudart.so.13`): a thin layer on top of its driver library, as NVIDIA's is on theirs.
//!
//! | where | what |
//! | --- | --- |
//! | [`exports`] | the table of exported functions; each decides nothing and calls into [`api`] |
//! | [`api`] | what each call does: the runtime's arguments become the driver's |
//! | [`driver`] | finds the driver's functions, and gives each thread its context |
//! | [`registry`] | what compiled programs register at start: images, kernels, device globals |
//! | [`error`] | the runtime's error codes |
//!
//! All else (memory, streams, synchronization rules, the device process, the modes) is the driver's: `crates/uma-device/driver`.
//!
//! Limits: no graphs, arrays, textures, IPC: those calls return `cudaErrorNotSupported` and name themselves once.

pub mod api;
pub mod driver;
pub mod error;
pub mod exports;
pub mod registry;
