//! What a kernel does with each of its pointer parameters.
//!
//! The record is made on the device half of a translation unit, travels inside the fat binary, and is read on the host half.
//! A kernel without a record may read, write and capture every pointer it is given ([`KernelEffects::unknown`]).

use serde::{Deserialize, Serialize};

/// Effects of every kernel of one translation unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectTable {
    /// Kernels by mangled name.
    pub kernels: std::collections::BTreeMap<String, KernelEffects>,
}

/// What one kernel does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelEffects {
    /// One entry a parameter, in order. `None`: the parameter holds no pointer.
    pub params: Vec<Option<ParamEffect>>,
    /// The kernel may touch memory that it did not get through a parameter: a captured pointer, a device global, a pointer loaded
    /// from memory.
    pub touches_other_memory: bool,
}

/// What a kernel does with the memory that one pointer parameter points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParamEffect {
    /// Some byte may be read.
    pub reads: bool,
    /// Some byte may be written.
    pub writes: bool,
    /// The pointer may outlive the launch: it is stored somewhere. Later launches may then use it.
    pub captures: bool,
    /// Every launch writes every byte of `[0, n·scale)`, where `n` is the value of integer parameter `count_param`, whatever the grid.
    pub writes_all: Option<WritesAll>,
}

/// See [`ParamEffect::writes_all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritesAll {
    /// Index of the integer parameter that gives the count.
    pub count_param: u32,
    /// Bytes a unit of count.
    pub scale: u64,
}

impl ParamEffect {
    /// May do anything with the pointer.
    pub const UNKNOWN: Self = Self { reads: true, writes: true, captures: true, writes_all: None };
}
