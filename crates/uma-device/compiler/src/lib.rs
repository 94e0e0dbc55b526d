//! uma-clang++: compiles CUDA device code for the CPU device.
