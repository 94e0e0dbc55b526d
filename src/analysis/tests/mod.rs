//! The prover on whole programs: what must be accepted, and how; what must not be.

mod declines;
mod examples;
mod lifetimes;
mod loops;
mod repairs;
mod rules;
mod traps;
