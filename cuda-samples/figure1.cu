// The discrete-GPU idiom of the paper's Figure 1(a): a host buffer, a device buffer, and copies in both directions.
// `infer` is the figure with its middle in a loop, as a program that handles one input after another has it.

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

    float *h = (float *)malloc(N);
    float *d;
    CHECK(cudaMalloc(&d, N));

    uint32_t result = 0;
    Timer timer;
    for (int t = 0; t < iterations; t++) {
        fill(h, input, n, (float)t);
        CHECK(cudaMemcpy(d, h, N, cudaMemcpyHostToDevice));
        kernel<<<G, B>>>(d, n);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(h, d, N, cudaMemcpyDeviceToHost));
        result = result * 31 + process(h, n);
    }
    timer.report();

    printf("result %08x checksum %016llx\n", result, (unsigned long long)fnv1a(h, N));
    free(h);
    CHECK(cudaFree(d));
}

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "floats", 8 << 20, 256 << 20, 10);
    std::vector<float> input(options.size);
    for (size_t i = 0; i < input.size(); i++) input[i] = (float)(i % 1000) * 0.25f;
    infer(input.data(), (int)(options.size * sizeof(float)), options.iterations);
    return 0;
}
