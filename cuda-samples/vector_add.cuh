// Kernel and host work that vector_add.cu and vector_add_merged.cu share.
#pragma once

#include <cuda_runtime.h>

__global__ void vectorAdd(const float *A, const float *B, float *C, int numElements) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < numElements) C[i] = A[i] + B[i];
}

// Inputs of round `t`: small whole numbers, so that sums are exact.
static void produce(float *A, float *B, int numElements, int t) {
    for (int i = 0; i < numElements; i++) {
        A[i] = (float)((i + t) & 1023);
        B[i] = (float)((i * 3) & 511);
    }
}
