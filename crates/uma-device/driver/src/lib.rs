//! The driver library of the CPU device (`libcuda.so.1`) and its device process. The runtime library is a thin layer on top of it.
//!
//! | where | what |
//! | --- | --- |
//! | [`exports`] | the table of exported functions; each decides nothing and calls into [`api`] |
//! | [`refused`] | the functions that are not there |
//! | [`proc_address`] | finds functions of that table by name and version, as `cuGetProcAddress` does |
//! | [`api`] | what each call does: checks its arguments, then uses [`host`] |
//! | [`host`] | the program's side: memory, streams, events, modules, waits |
//! | [`sync_table`] | when a copy or memset returns and who makes it, as data |
//! | [`coverage`] | what the program has waited for (vector clocks) |
//! | [`command`], [`ring`], [`control`] | what both processes share |
//! | [`streams`] | CUDA's stream order and the schedules, as a pure data structure |
//! | [`device_process`] | takes commands, runs kernels, reports faults |
//! | [`statistics`] | what the program did, counted |
//! | [`layout`], [`mapping`], [`settings`], [`error`] | addresses, pages, modes, error codes |
//!
//! Both processes map the same memory files at the same addresses. The program's mapping of device memory is closed (`PROT_NONE`); the device
//! process has no other memory of the program. So a kernel that uses a host pointer and a host that uses a device pointer fail as on a GPU.
//!
//! Limits: one command runs at a time (a kernel that waits for another stream's work hangs); contexts share all memory and work; no graphs,
//! arrays, textures, IPC, virtual memory management: those calls return `CUDA_ERROR_NOT_SUPPORTED` and name themselves once.

pub mod api;
pub mod command;
pub mod control;
pub mod copies;
pub mod coverage;
pub mod device_process;
pub mod error;
pub mod exports;
pub mod host;
pub mod layout;
pub mod mapping;
pub mod proc_address;
pub mod refused;
pub mod ring;
pub mod settings;
pub mod statistics;
pub mod streams;
pub mod sync_table;
