//! libcudart drop-in and device process of the CPU device.
