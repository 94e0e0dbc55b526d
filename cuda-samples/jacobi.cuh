// Kernel and host work that jacobi.cu and jacobi_merged.cu share.
#pragma once

#include <cuda_runtime.h>

// One sweep over the inner points. `change` collects the largest change: for floats that are not negative, the order of the values is
// the order of their bits.
__global__ void sweep(const float *from, float *to, int n, unsigned int *change) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    const int at = y * n + x;
    if (x == 0 || y == 0 || x == n - 1 || y == n - 1) {
        to[at] = from[at];
        return;
    }
    const float next = 0.25f * (from[at - 1] + from[at + 1] + from[at - n] + from[at + n]);
    to[at] = next;
    if (x % 64 == 1) atomicMax(change, __float_as_uint(fabsf(next - from[at])));
}

// Plate number `round`: its upper edge is hot.
static inline void set_boundary(float *u, int n, int round) {
    for (int i = 0; i < n * n; i++) u[i] = 0.0f;
    for (int x = 0; x < n; x++) u[x] = 100.0f + (float)round;
}
