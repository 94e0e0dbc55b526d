//! `echo-dr` from end to end, with the CPU device.
//!
//! | file | |
//! | --- | --- |
//! | `commands.rs` | help, exit codes, what is refused, `doctor` |
//! | `report.rs` | the HTML page |
//! | `locked.rs` | page-locked host buffers |
//! | `validation.rs` | accesses of the host that must end a pair |
//! | `run.rs` | where a plan is followed, and where not |
//! | `samples.rs` | the samples, against what Echo-SR merges |

mod commands;
mod common;
mod locked;
mod report;
mod run;
mod samples;
mod validation;
