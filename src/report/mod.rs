//! What the user is told of each pair: one description ([`pair::PairReport`]), shown as text, JSON Lines and LLVM remarks.
//!
//! | file | |
//! | --- | --- |
//! | `pair.rs` | from a verdict and its program to a description of plain data |
//! | `text.rs` | a block of text a pair |
//! | `json.rs` | one JSON object a pair and line, appended to a file |
//! | `remark.rs` | title and text of the remark (`-Rpass=echo-sr`, `-Rpass-missed=echo-sr`) |

pub mod json;
pub mod pair;
pub mod remark;
pub mod text;
