//! Judging by happens-before: each path runs once, in the order of its steps, and every pair of accesses is asked whether it is ordered.
//!
//! Faster a program than running every interleaving, and another idea of the same thing: a fault of one judge shows as a disagreement.

pub mod generate;
pub mod judge;
pub mod order;
pub mod sample;
