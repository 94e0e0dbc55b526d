//! A second judge of the prover in `echo_sr::analysis`, which shares no code with it: it runs small programs.
//!
//! A [`case::Case`] is a program of a few steps whose every access is known to the byte. The prover sees it only as an event program
//! ([`mod@event`]: ranges, may or must, streams perhaps unknown). Where it accepts a pair, P and the P' of its plan are made ready to run
//! ([`original`], [`merged`], on [`build`] and [`trace`]) and run in *every* interleaving of host and GPU ([`explore`]); [`judge`] compares
//! them in every world (input) and on every [`machine`] (reading of what CUDA leaves open).
//!
//! What must hold, in every run in which P keeps the theorem's premises (nothing unordered conflicts, nothing reads what was never written
//! but linking copies, nothing touches what is not alive):
//! - every output of P' is an output of P: what the host reads, what kernels read (a kernel may write it to memory that nobody models), and
//!   what others' buffers hold at the end;
//! - in P' nothing unordered conflicts, and nothing touches p outside its life;
//! - p is freed once, and if P freed both halves it is freed;
//! - if the plan says that p may be managed memory where access is exclusive, the host does not touch it while work may be running.
//!
//! Whether a premise holds is asked of each run, not of the program: bad input of one run is no excuse for breaking another.
//!
//! [`enumerate`] runs all programs of each of the [`families`] up to a length, one for all that differ in names ([`symmetry`]), [`random`] longer ones.
//! [`examine`] also measures what the prover declines although the obvious plan would be right: the incompleteness.
//!
//! [`canonical`] is an older judge of happens-before on one order of each path. Both must come to the same verdict.

pub mod alphabet;
pub mod build;
pub mod canonical;
pub mod case;
pub mod count;
pub mod enumerate;
pub mod event;
pub mod examine;
pub mod explore;
pub mod families;
pub mod job;
pub mod judge;
pub mod machine;
pub mod merged;
pub mod minimise;
pub mod original;
pub mod plan;
pub mod random;
pub mod report;
pub mod symmetry;
pub mod text;
pub mod trace;
