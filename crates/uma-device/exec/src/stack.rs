//! Stacks of kernel threads.

use corosensei::stack::{DefaultStack, Stack, StackPointer};

/// Bytes of a stack; only touched pages cost memory. A GPU gives 1 KiB unless told otherwise; printf needs a few KiB here.
const BYTES: usize = 256 * 1024;
/// Different starting points of stacks: an odd number of cache lines apart, so that they spread over all lines of a page.
const COLORS: usize = 64;
const COLOR_STEP: usize = 3 * 64;

/// A stack with a guard page.
///
/// The threads of a block take turns, and each uses the first few lines of its stack. Stacks that all start at the same place in a page
/// would fight for the same lines of the cache (measured: 200 ns a switch instead of 20), so their starts differ.
pub(crate) struct ThreadStack {
    memory: DefaultStack,
    offset: usize,
}

impl ThreadStack {
    /// A new stack; `number` is any count of stacks.
    pub(crate) fn new(number: usize) -> std::io::Result<ThreadStack> {
        Ok(ThreadStack { memory: DefaultStack::new(BYTES)?, offset: number % COLORS * COLOR_STEP })
    }
}

// SAFETY: base and limit lie within the memory of `DefaultStack`, which has a guard page below the limit; the offset is a multiple of 16
// and much smaller than the stack.
unsafe impl Stack for ThreadStack {
    fn base(&self) -> StackPointer {
        StackPointer::new(self.memory.base().get() - self.offset).unwrap_or(self.memory.base())
    }

    fn limit(&self) -> StackPointer {
        self.memory.limit()
    }
}
