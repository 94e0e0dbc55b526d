//! The program's side: what the library knows between calls.

pub mod arena;
pub mod blocks;
pub mod engine;
pub mod events;
pub mod hostcalls;
pub mod launching;
pub mod link;
pub mod regions;
pub mod registered;
pub mod registry;
pub mod state;
pub mod streams;
pub mod waits;
