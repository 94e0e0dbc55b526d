//! What a kernel does with each of its pointer parameters.
//!
//! The record is made on the device half of a translation unit, travels inside the fat binary, and is read on the host half.
//! A kernel without a record may read, write and capture every pointer it is given: it is not in the [`EffectTable`].
//!
//! | file | |
//! | --- | --- |
//! | `derive.rs` | device half: what each kernel does, from its IR |
//! | `writes_all.rs` | device half: which kernels write all of a parameter |
//! | `record.rs` | the bytes in which that travels |
//! | `fatbin.rs` | finds the records in what the host half embeds |
//! | `host.rs` | host half: which launch stub stands for which kernel, and the table of a module |

use serde::{Deserialize, Serialize};

#[cfg(any(feature = "llvm19", feature = "llvm22"))]
pub mod derive;
pub mod fatbin;
#[cfg(any(feature = "llvm19", feature = "llvm22"))]
pub mod host;
pub mod record;
#[cfg(any(feature = "llvm19", feature = "llvm22"))]
mod writes_all;

/// Effects of every kernel of one translation unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectTable {
    /// Kernels by mangled name.
    pub kernels: std::collections::BTreeMap<String, KernelEffects>,
}

/// What one kernel does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelEffects {
    /// One entry a parameter, in order: entry `i` is about `args[i]` of the launch. (A struct that is passed by value is one parameter on
    /// the device and one element of `args` on the host, even where the host's launch stub gets it in several registers, and even where it
    /// is empty.) `None`: no byte of the parameter is a pointer. For a struct that holds pointers the entry is about all memory that these
    /// pointers point into.
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
    /// What a launch is certain to write, given what it takes.
    pub writes_all: Option<WritesAll>,
}

/// A launch writes every byte of `[0, n·scale)`: thread `t` of the grid's x dimension writes element `t`. That takes `n ≤ limit`, at least n
/// threads in the x dimension (unless `whatever_grid`), and, if `block` is given, blocks of just that width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritesAll {
    /// n.
    pub count: Count,
    /// Bytes an element.
    pub scale: u64,
    /// Elements from this one on are not claimed: the kernel's arithmetic wraps.
    pub limit: u64,
    /// The width of a block that the kernel was written for.
    pub block: Option<u32>,
    /// The kernel loops until all is written.
    pub whatever_grid: bool,
}

/// See [`WritesAll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Count {
    /// As many as the x dimension has threads.
    Threads,
    /// Just these.
    Constant(u64),
    /// The value of an integer parameter.
    Param {
        /// Which.
        index: u32,
        /// Its width.
        bits: u32,
        /// It is read in two's complement; else as a natural number. (A negative one counts nothing.)
        signed: bool,
    },
}

impl ParamEffect {
    /// May do anything with the pointer.
    pub const UNKNOWN: Self = Self { reads: true, writes: true, captures: true, writes_all: None };

    /// Does not use the pointer.
    pub const NOTHING: Self = Self { reads: false, writes: false, captures: false, writes_all: None };

    /// What either of two kernels may do.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            reads: self.reads || other.reads,
            writes: self.writes || other.writes,
            captures: self.captures || other.captures,
            writes_all: self.writes_all.filter(|claim| other.writes_all == Some(*claim)),
        }
    }
}

impl KernelEffects {
    /// What either of two kernels may do; `None` where they do not take the same parameters.
    #[must_use]
    pub fn join(&self, other: &Self) -> Option<Self> {
        if self.params.len() != other.params.len() {
            return None;
        }
        let params = self.params.iter().zip(&other.params).map(|pair| match pair {
            (Some(left), Some(right)) => Some(left.join(*right)),
            (one, other) => one.or(*other).map(|effect| ParamEffect { writes_all: None, ..effect }),
        });
        Some(Self {
            params: params.collect(),
            touches_other_memory: self.touches_other_memory || other.touches_other_memory,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<ParamEffect> {
        let claim = |count| WritesAll { count, scale: 4, limit: 1 << 31, block: None, whatever_grid: false };
        let claims = [None, Some(claim(Count::Threads)), Some(claim(Count::Constant(7)))];
        (0..8)
            .flat_map(|bits| {
                claims.map(|writes_all| ParamEffect {
                    reads: bits & 1 != 0,
                    writes: bits & 2 != 0,
                    captures: bits & 4 != 0,
                    writes_all,
                })
            })
            .collect()
    }

    #[test]
    fn join_is_a_least_upper_bound() {
        for a in all() {
            assert_eq!(a.join(a), a);
            for b in all() {
                let joined = a.join(b);
                assert_eq!(joined, b.join(a));
                assert_eq!(joined.join(a), joined);
                assert!(joined.reads >= a.reads && joined.writes >= a.writes && joined.captures >= a.captures);
                for c in all() {
                    assert_eq!(a.join(b).join(c), a.join(b.join(c)));
                }
            }
        }
    }

    #[test]
    fn kernels_of_different_shape_have_no_join() {
        let kernel =
            |params: &[Option<ParamEffect>]| KernelEffects { params: params.to_vec(), touches_other_memory: false };
        assert_eq!(kernel(&[None]).join(&kernel(&[])), None);
        let reads = ParamEffect { reads: true, ..ParamEffect::NOTHING };
        assert_eq!(kernel(&[None]).join(&kernel(&[Some(reads)])), Some(kernel(&[Some(reads)])));
    }
}
