//! What the user is told of each pair: one description ([`pair::PairReport`]), shown as text, JSON Lines and LLVM remarks.
//!
//! | file | |
//! | --- | --- |
//! | `pair.rs` | from a verdict and its program to a description of plain data |
//! | `remark.rs` | title and text of the remark (`-Rpass=echo-sr`, `-Rpass-missed=echo-sr`) |
//!
//! The description itself, its text and its JSON Lines are in `crates/echo-report`, which the command `echo-sr` shares.

pub mod pair;
pub mod remark;
