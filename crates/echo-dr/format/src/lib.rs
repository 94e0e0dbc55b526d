//! What Echo-DR writes to files and reads from them. `docs/formats.md` describes each file for other programs; this crate is what reads and
//! writes them, in the preloaded library and in the command alike.
//!
//! | file | types | written by |
//! | --- | --- | --- |
//! | trace, JSON Lines | [`trace::Record`], [`event::Event`] | the library in the modes profile and validate |
//! | plan, JSON | [`plan::Plan`] | `echo-dr analyze`, `validate`, `calibrate` |
//! | counters, JSON | [`counters::Counters`] | the library at exit |
//! | report of `tune`, JSON | [`report::TuneReport`] | `echo-dr tune --json` |
//!
//! A file is input from outside: nothing here trusts a length, an order or a number, and nothing panics on any text. Numbers are integers
//! (nanoseconds, bytes, parts per million), so that reading back what was written gives the same value.

pub mod context;
pub mod counters;
pub mod event;
pub mod finding;
pub mod functions;
mod line;
pub mod measure;
pub mod plan;
pub mod reason;
pub mod report;
pub mod site;
pub mod trace;

/// Version of all formats. A file of another version is refused.
pub const SCHEMA: u32 = 1;
