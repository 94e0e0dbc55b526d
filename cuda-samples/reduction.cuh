// Kernel and host work that reduction.cu and reduction_merged.cu share.
#pragma once

#include <cuda_runtime.h>

__inline__ __device__ unsigned int warpReduceSum(unsigned int val) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2) val += __shfl_down_sync(0xffffffff, val, offset);
    return val;
}

// Adds up all of `in`: a running sum a thread, shuffles in the warp, shared memory in the block, one atomic a block. The values are whole
// numbers, so any order of the additions gives the same total.
__global__ void deviceReduce(const unsigned int *in, unsigned long long *total, int N) {
    __shared__ unsigned int partial[32];
    unsigned int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += blockDim.x * gridDim.x) sum += in[i];

    sum = warpReduceSum(sum);
    const int lane = threadIdx.x % warpSize;
    const int warp = threadIdx.x / warpSize;
    if (lane == 0) partial[warp] = sum;
    __syncthreads();

    sum = threadIdx.x < blockDim.x / warpSize ? partial[lane] : 0;
    if (warp == 0) sum = warpReduceSum(sum);
    if (threadIdx.x == 0) atomicAdd(total, (unsigned long long)sum);
}

// Enough blocks to fill a GPU, and none without work.
static inline int blocks_for(int N) { return N < 64 * 256 ? (N + 255) / 256 : 64; }

static inline void produce(unsigned int *in, int N, int t) {
    for (int i = 0; i < N; i++) in[i] = (unsigned int)(i + t) & 15;
}
