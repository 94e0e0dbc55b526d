// What every program of this folder uses: error checks and a checksum, so that two builds can be compared by their output.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                              \
    do {                                                                                                                         \
        cudaError_t status = (call);                                                                                             \
        if (status != cudaSuccess) {                                                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));                                 \
            std::exit(1);                                                                                                        \
        }                                                                                                                        \
    } while (0)

constexpr int BLOCK = 256;
inline int blocks(int n) { return (n + BLOCK - 1) / BLOCK; }

// FNV-1a over the bytes of a buffer.
inline void print_sum(const char *name, const void *data, size_t bytes) {
    const unsigned char *p = static_cast<const unsigned char *>(data);
    unsigned long long sum = 1469598103934665603ull;
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ p[i]) * 1099511628211ull;
    std::printf("%s %016llx\n", name, sum);
}

inline int size_argument(int argc, char **argv, int otherwise) { return argc > 1 ? std::atoi(argv[1]) : otherwise; }

static __global__ void twice(float *d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] = 2 * d[i] + 1;
}

static __global__ void square(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * in[i];
}

// Long enough that a host that does not wait is seen.
static __global__ void slow_twice(float *d, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        for (int r = 0; r < rounds; r++) d[i] = d[i] * 1.0001f + 0.5f;
}
