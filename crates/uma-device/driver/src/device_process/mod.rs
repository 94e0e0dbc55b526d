//! The device process: takes commands from the ring, orders them by stream, runs them.

mod end;
mod faults;
mod kernels;
mod main_loop;
pub mod startup;

pub use main_loop::run;
