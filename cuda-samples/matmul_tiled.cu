// C = A * B with tiles in shared memory. The weights B go to the device once, a new A each round.

#include <cstdio>
#include <cstdlib>

#include "common/check.h"
#include "common/checksum.h"
#include "common/options.h"
#include "common/timer.h"
#include "matmul_tiled.cuh"

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "n", 512, 8192, 4);
    const int n = (int)options.size;
    const size_t count = (size_t)n * n;
    const size_t bytes = count * sizeof(float);

    float *A = (float *)malloc(bytes);
    float *B = (float *)malloc(bytes);
    float *C = (float *)malloc(bytes);
    float *dA, *dB, *dC;
    CHECK(cudaMalloc(&dA, bytes));
    CHECK(cudaMalloc(&dB, bytes));
    CHECK(cudaMalloc(&dC, bytes));

    fill_matrix(B, n, 5);
    CHECK(cudaMemcpy(dB, B, bytes, cudaMemcpyHostToDevice));

    const dim3 threads(16, 16);
    const dim3 blocks((n + 15) / 16, (n + 15) / 16);
    uint32_t result = 0;
    Timer timer;
    for (int t = 0; t < options.iterations; t++) {
        fill_matrix(A, n, t);
        CHECK(cudaMemcpy(dA, A, bytes, cudaMemcpyHostToDevice));
        matmul<16><<<blocks, threads>>>(dA, dB, dC, n);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(C, dC, bytes, cudaMemcpyDeviceToHost));
        result = result * 31 + word_sum(C, count);
    }
    timer.report();

    printf("result %08x checksum %016llx\n", result, (unsigned long long)fnv1a(C, bytes));
    CHECK(cudaFree(dA));
    CHECK(cudaFree(dB));
    CHECK(cudaFree(dC));
    free(A);
    free(B);
    free(C);
    return 0;
}
