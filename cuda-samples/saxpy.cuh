// Kernel and host work that saxpy.cu and saxpy_merged.cu share.
#pragma once

#include <cuda_runtime.h>

__global__ void saxpy(size_t n, float a, const float *x, float *y) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

static inline void produce(float *x, float *y, size_t n, int round) {
    const int shift = round & 7;
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((int)(i & 255) + shift);
        y[i] = (float)((int)(i & 63) - shift);
    }
}
