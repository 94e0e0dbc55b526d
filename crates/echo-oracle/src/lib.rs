//! A second judge of the prover in `echo_sr::analysis`, which shares no code with it: it runs small programs.
//!
//! A [`sample::Sample`] is a program of a few steps whose every access is known to the byte. `analyse` sees it only as an event program
//! (ranges, may or must, streams perhaps unknown). Where it accepts the pair, [`judge::judge`] runs P and the P' of its plan on every path of
//! the sample and compares: every event must read the same values, P' must have no race, no access of p outside its life, and, where the
//! plan says so, no host access while GPU work may be running.
//!
//! Samples that break the theorem's premises (P has a race, reads what was never written, touches a dead buffer) prove nothing and are
//! left out. What CUDA leaves open is run both ways ([`order::Rules`]).

pub mod generate;
pub mod judge;
pub mod order;
pub mod sample;
