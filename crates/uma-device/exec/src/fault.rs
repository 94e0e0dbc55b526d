//! Why a launch failed.

/// Why a launch failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelFault {
    /// The grid, the block or the shared memory is not one that the device can run; nothing has run.
    #[error("kernel {kernel}: {problem}")]
    Configuration {
        /// Mangled name.
        kernel: String,
        /// What is wrong, with the numbers.
        problem: String,
    },
    /// `__trap()`, or an undefined path of the kernel was reached.
    #[error("kernel {kernel}: trap in {place}")]
    Trap {
        /// Mangled name.
        kernel: String,
        /// The block and, where it is known, the thread.
        place: Place,
    },
    /// `assert()` failed.
    #[error("kernel {kernel}: {message} in {place}")]
    Assert {
        /// Mangled name.
        kernel: String,
        /// File, line, function and the asserted expression.
        message: String,
        /// The block and, where it is known, the thread.
        place: Place,
    },
    /// No thread of a block can go on: each waits for another.
    #[error("kernel {kernel}: deadlock in {place}: {waits}")]
    Deadlock {
        /// Mangled name.
        kernel: String,
        /// The block, and the first thread that waits.
        place: Place,
        /// How many threads wait for what.
        waits: String,
    },
    /// A thread called a warp operation with a mask that does not name it.
    #[error("kernel {kernel}: the mask {mask:#010x} of a warp operation does not name the calling lane, in {place}")]
    LaneNotInMask {
        /// Mangled name.
        kernel: String,
        /// The mask.
        mask: u32,
        /// The thread.
        place: Place,
    },
    /// The host could not give the stacks that the threads of a block need.
    #[error("kernel {kernel}: no memory for the stacks of its threads: {problem}")]
    NoStack {
        /// Mangled name.
        kernel: String,
        /// What the operating system said.
        problem: String,
    },
}

/// Where in the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// blockIdx
    pub block: [u32; 3],
    /// threadIdx, where it is known.
    pub thread: Option<[u32; 3]>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [x, y, z] = self.block;
        write!(f, "block ({x},{y},{z})")?;
        match self.thread {
            Some([x, y, z]) => write!(f, ", thread ({x},{y},{z})"),
            None => Ok(()),
        }
    }
}
