//! Loads compiled kernels and runs their blocks.
