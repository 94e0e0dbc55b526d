// CUDA_CHECK(call): an error check that throws.
#pragma once

#include <stdexcept>
#include <string>

#include <cuda_runtime.h>

inline void throw_on_error(cudaError_t status, const char *what, const char *file, int line) {
    if (status != cudaSuccess) {
        throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + what + ": " +
                                 cudaGetErrorString(status));
    }
}

#define CUDA_CHECK(call) throw_on_error((call), #call, __FILE__, __LINE__)
