//! LLVM's intrinsics that host code uses on buffers: one list for all parts of the lowering.

use crate::ir::passes_pointer_on;

/// What an intrinsic does with the pointers that it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Intrinsic {
    /// Nothing: a note to the compiler.
    Harmless,
    /// Its result is its first argument, as far as memory goes; `same`: it is exactly that address.
    PassesOn {
        /// See the variant.
        same: bool,
    },
    /// Copies from the second argument to the first.
    Copy,
    /// Sets the bytes behind the first argument.
    Set,
    /// Reads some of the lanes behind the pointer.
    MaskedLoad,
    /// Writes some of the lanes behind the pointer.
    MaskedStore,
    /// Anything.
    Other,
}

/// What an intrinsic does, by its name (`llvm.…`).
#[must_use]
pub(super) fn intrinsic(name: &str) -> Intrinsic {
    const HARMLESS: [&str; 10] = [
        "llvm.lifetime.",
        "llvm.dbg.",
        "llvm.assume",
        "llvm.invariant.",
        "llvm.prefetch",
        "llvm.objectsize.",
        "llvm.is.constant.",
        "llvm.experimental.noalias.",
        "llvm.fake.use",
        "llvm.donothing",
    ];
    let starts = |prefix: &str| name.starts_with(prefix);
    if passes_pointer_on(name) {
        Intrinsic::PassesOn { same: !starts("llvm.ptrmask.") }
    } else if HARMLESS.iter().any(|prefix| starts(prefix)) {
        Intrinsic::Harmless
    } else if starts("llvm.memcpy.") || starts("llvm.memmove.") {
        Intrinsic::Copy
    } else if starts("llvm.memset.") {
        Intrinsic::Set
    } else if starts("llvm.masked.load") {
        Intrinsic::MaskedLoad
    } else if starts("llvm.masked.store") {
        Intrinsic::MaskedStore
    } else {
        Intrinsic::Other
    }
}
