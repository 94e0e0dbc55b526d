//! `libcudart_static.a`: the runtime of `uma-runtime`, for programs that have it in themselves, as nvcc's have by default. Such a program calls
//! no `cudaMalloc` that another library could stand before; what it asks of the driver still goes through `libcuda.so.1`.
//!
//! `cargo xtask build` hides the archive's symbols, as NVIDIA's are, so that the program exports none of them.

pub use cudart::exports;
