// Kernel and host work that stencil2d.cu and stencil2d_merged.cu share.
#pragma once

#include <cuda_runtime.h>

constexpr int TILE = 16;

// Five-point smoothing of an image; every block stages its tile and a rim of one pixel in shared memory. Pixels outside count as 0.
__global__ void stencil(const float *in, float *out, int width, int height) {
    __shared__ float tile[TILE + 2][TILE + 2];
    const int x = blockIdx.x * TILE + threadIdx.x;
    const int y = blockIdx.y * TILE + threadIdx.y;
    const int tx = threadIdx.x + 1;
    const int ty = threadIdx.y + 1;
    const bool inside = x < width && y < height;

    tile[ty][tx] = inside ? in[(size_t)y * width + x] : 0.0f;
    if (threadIdx.x == 0) tile[ty][0] = (x > 0 && y < height) ? in[(size_t)y * width + x - 1] : 0.0f;
    if (threadIdx.x == TILE - 1) tile[ty][TILE + 1] = (x + 1 < width && y < height) ? in[(size_t)y * width + x + 1] : 0.0f;
    if (threadIdx.y == 0) tile[0][tx] = (y > 0 && x < width) ? in[(size_t)(y - 1) * width + x] : 0.0f;
    if (threadIdx.y == TILE - 1) tile[TILE + 1][tx] = (y + 1 < height && x < width) ? in[(size_t)(y + 1) * width + x] : 0.0f;
    __syncthreads();

    if (inside) {
        const float sum = tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx];
        out[(size_t)y * width + x] = 0.5f * tile[ty][tx] + 0.125f * sum;
    }
}

// Frame `t` of a moving test picture.
static inline void load_frame(float *image, int width, int height, int t) {
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) image[(size_t)y * width + x] = (float)(((x + t) ^ y) & 255);
    }
}
