// Kernels and host work that prefix_sum.cu and prefix_sum_merged.cu share.
#pragma once

#include <cuda_runtime.h>

constexpr int THREADS = 256;
constexpr int PER_THREAD = 8;
constexpr int PER_BLOCK = THREADS * PER_THREAD;

// Inclusive scan of one value a thread over the block, in shared memory (Hillis and Steele).
__device__ unsigned int scan_block(unsigned int value, unsigned int *scratch) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (unsigned int distance = 1; distance < THREADS; distance *= 2) {
        const unsigned int left = threadIdx.x >= distance ? scratch[threadIdx.x - distance] : 0;
        __syncthreads();
        scratch[threadIdx.x] += left;
        __syncthreads();
    }
    return scratch[threadIdx.x];
}

// Scans PER_BLOCK values a block and leaves each block's total in `totals`.
__global__ void scan_parts(const unsigned int *in, unsigned int *out, unsigned int *totals, int n) {
    extern __shared__ unsigned int scratch[];
    const int first = blockIdx.x * PER_BLOCK + threadIdx.x * PER_THREAD;
    unsigned int values[PER_THREAD];
    unsigned int sum = 0;
    for (int i = 0; i < PER_THREAD; i++) {
        values[i] = first + i < n ? in[first + i] : 0;
        sum += values[i];
    }
    unsigned int before = scan_block(sum, scratch) - sum;
    for (int i = 0; i < PER_THREAD; i++) {
        before += values[i];
        if (first + i < n) out[first + i] = before;
    }
    if (threadIdx.x == THREADS - 1) totals[blockIdx.x] = before;
}

// Adds to each part what all earlier parts sum to. Every block adds that up itself: there are few parts.
__global__ void add_offsets(unsigned int *out, const unsigned int *totals, int n) {
    extern __shared__ unsigned int scratch[];
    unsigned int sum = 0;
    for (unsigned int block = threadIdx.x; block < blockIdx.x; block += THREADS) sum += totals[block];
    scan_block(sum, scratch);
    const unsigned int offset = scratch[THREADS - 1];
    const int first = blockIdx.x * PER_BLOCK + threadIdx.x;
    for (int i = first; i < n && i < first + PER_BLOCK; i += THREADS) out[i] += offset;
}

static inline void produce(unsigned int *in, int n, int t) {
    for (int i = 0; i < n; i++) in[i] = (unsigned int)(i ^ t) & 7;
}
