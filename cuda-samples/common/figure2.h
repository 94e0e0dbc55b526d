// What the four functions of the paper's Figure 2 take for granted: data, fill, kernel, G, B, and a main that calls one of them.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.h"
#include "options.h"
#include "timer.h"

static const cudaMemcpyKind H2D = cudaMemcpyHostToDevice;
static const cudaMemcpyKind D2H = cudaMemcpyDeviceToHost;
static const int G = 256;
static const int B = 256;

static const float *data;

// What the kernels saw, so that the device's values can be observed even where the figure never copies them back: a sum over every
// 1024th word of d, the first one included.
static __device__ unsigned int seen;

static __global__ void kernel(float *d, int N) {
    const int n = N / (int)sizeof(float);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float value = d[i] * 0.5f + 1.0f;
        d[i] = value;
        if (i % 1024 == 0) atomicAdd(&seen, __float_as_uint(value));
    }
}

static inline void fill(float *h, const float *from, int N) {
    const int n = N / (int)sizeof(float);
    for (int i = 0; i < n; i++) h[i] = from[i];
}

static inline int run_figure2(int argc, char **argv, void (*figure)(int)) {
    const Options options = parse_options(argc, argv, "floats", 4 << 20, 256 << 20, 5);
    std::vector<float> input(options.size);
    for (size_t i = 0; i < input.size(); i++) input[i] = (float)(i % 1000) * 0.25f;
    data = input.data();
    CHECK(cudaFree(nullptr));  // start the device before the clock

    Timer timer;
    for (int t = 0; t < options.iterations; t++) figure((int)(options.size * sizeof(float)));
    timer.report();

    unsigned int sum = 0;
    CHECK(cudaMemcpyFromSymbol(&sum, seen, sizeof sum));
    printf("seen %08x\n", sum);
    return 0;
}
