// Figure 1(b): what a programmer who knows that both processors share one DRAM writes instead of figure1.cu.

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/check.h"
#include "common/checksum.h"
#include "common/options.h"
#include "common/timer.h"

__global__ void kernel(float *d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] = d[i] * 0.5f + 1.0f;
}

static void fill(float *h, const float *input, int n, float bias) {
    for (int i = 0; i < n; i++) h[i] = input[i] + bias;
}

static uint32_t process(const float *h, int n) {
    return word_sum(h, n);
}

static void infer(const float *input, int N, int iterations) {
    const int n = N / sizeof(float);
    const int B = 256;
    const int G = (n + B - 1) / B;

    float *ptr;
    CHECK(cudaMallocManaged(&ptr, N));

    uint32_t result = 0;
    Timer timer;
    for (int t = 0; t < iterations; t++) {
        fill(ptr, input, n, (float)t);
        kernel<<<G, B>>>(ptr, n);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        result = result * 31 + process(ptr, n);
    }
    timer.report();

    printf("result %08x checksum %016llx\n", result, (unsigned long long)fnv1a(ptr, N));
    CHECK(cudaFree(ptr));
}

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "floats", 8 << 20, 256 << 20, 10);
    std::vector<float> input(options.size);
    for (size_t i = 0; i < input.size(); i++) input[i] = (float)(i % 1000) * 0.25f;
    infer(input.data(), (int)(options.size * sizeof(float)), options.iterations);
    return 0;
}
