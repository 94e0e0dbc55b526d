// Kernel and host work that matmul_tiled.cu and matmul_tiled_merged.cu share.
#pragma once

#include <cuda_runtime.h>

template <int BLOCK>
__global__ void matmul(const float *A, const float *B, float *C, int n) {
    __shared__ float As[BLOCK][BLOCK];
    __shared__ float Bs[BLOCK][BLOCK];
    const int row = blockIdx.y * BLOCK + threadIdx.y;
    const int col = blockIdx.x * BLOCK + threadIdx.x;

    float sum = 0.0f;
    for (int k = 0; k < n; k += BLOCK) {
        const int a_col = k + threadIdx.x;
        const int b_row = k + threadIdx.y;
        As[threadIdx.y][threadIdx.x] = (row < n && a_col < n) ? A[row * n + a_col] : 0.0f;
        Bs[threadIdx.y][threadIdx.x] = (b_row < n && col < n) ? B[b_row * n + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < BLOCK; i++) sum += As[threadIdx.y][i] * Bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < n && col < n) C[row * n + col] = sum;
}

// Small whole numbers: every product and sum is exact in float.
static inline void fill_matrix(float *m, int n, int seed) {
    for (int i = 0; i < n * n; i++) m[i] = (float)((i * 7 + seed) % 13 - 6);
}
