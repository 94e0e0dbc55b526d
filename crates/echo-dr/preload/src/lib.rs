//! `libecho_dr.so`: the half of Echo-DR that is preloaded into the program.
//!
//! A call of the program comes in through a hook, is told to the mode of this run, and goes on to the real function unless the engine says
//! otherwise. From outside in:
//!
//! | part | modules |
//! | --- | --- |
//! | hooks, which decide nothing | `malloc` (the family), `table` (CUDA), `unmodelled` and `unknown` (CUDA's others), `dlsym` and `proc_address` (look-ups), `io`, `outside` and `syscall` (system calls), `signals`, `exit` |
//! | what a call means | `heap`, `ops`, `abi` |
//! | what is done with it | `session`: `record` (profile, and with `validate` validate) or `merge` (optimise) |
//! | call sites | `sites`, `modules`, `elf`, `stack` |
//! | what the program could call | `imports` |
//! | the trace | `recorder`, `ring`, `local`, `trace` |
//! | validation's means | `pages`, `fault`, `hostmem`, `lend`, `rings` |
//! | CUDA as Echo calls it | `device` |
//! | ground | `phase`, `thread`, `lookup`, `arena`, `tracked`, `fork`, `settings`, `identity`, `contain`, `say`, `sys`, `jump` |
//!
//! Rules: nothing allocates, locks or records before the phase is `Ready`, nor inside another hooked call of the same thread. The library's own
//! memory comes from a heap of its own, never from the program's. It needs no CUDA library, and is silent but for sentences at the start.
//! Decisions are `echo-dr-engine`'s.

#![cfg_attr(test, allow(dead_code, reason = "in a test the hooks are not exported, and nothing calls them"))]

mod abi;
mod arena;
mod contain;
mod device;
mod dlsym;
mod elf;
mod exit;
mod fault;
mod first;
mod fork;
mod heap;
mod hostmem;
mod identity;
mod imports;
mod io;
mod jump;
mod lend;
mod local;
mod lookup;
mod malloc;
mod merge;
mod modules;
mod ops;
mod outside;
mod pages;
mod phase;
mod proc_address;
mod record;
mod recorder;
mod reserve;
mod ring;
mod rings;
mod say;
mod session;
mod settings;
mod signals;
mod sites;
mod stack;
mod start;
mod sys;
mod syscall;
mod table;
mod thread;
mod trace;
mod tracked;
mod unknown;
mod unmodelled;
mod validate;

#[global_allocator]
static HEAP: reserve::Heap = reserve::Heap;
