// Kernel and host work that histogram.cu and histogram_merged.cu share.
#pragma once

#include <cuda_runtime.h>

constexpr int BINS = 256;

__global__ void histogram(const unsigned char *data, size_t size, unsigned int *bins) {
    __shared__ unsigned int local[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) local[bin] = 0;
    __syncthreads();

    const size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += stride) atomicAdd(&local[data[i]], 1u);
    __syncthreads();

    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) atomicAdd(&bins[bin], local[bin]);
}

// Enough blocks to fill a GPU, and none without work.
static inline int blocks_for(size_t size) { return size < 64 * 256 ? (int)((size + 255) / 256) : 64; }

// A cheap stand-in for a camera: the next frame's bytes.
static inline void read_frame(unsigned char *data, size_t size, unsigned int t) {
    for (size_t i = 0; i < size; i++) data[i] = (unsigned char)((i * 37u) ^ (i >> 8) ^ t);
}
