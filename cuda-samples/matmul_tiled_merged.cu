// matmul_tiled.cu merged by hand.

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

    float *A, *B, *C;
    CHECK(cudaMallocManaged(&A, bytes));
    CHECK(cudaMallocManaged(&B, bytes));
    CHECK(cudaMallocManaged(&C, bytes));
    fill_matrix(B, n, 5);

    const dim3 threads(16, 16);
    const dim3 blocks((n + 15) / 16, (n + 15) / 16);
    uint32_t result = 0;
    Timer timer;
    for (int t = 0; t < options.iterations; t++) {
        fill_matrix(A, n, t);
        matmul<16><<<blocks, threads>>>(A, B, C, n);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        result = result * 31 + word_sum(C, count);
    }
    timer.report();

    printf("result %08x checksum %016llx\n", result, (unsigned long long)fnv1a(C, bytes));
    CHECK(cudaFree(A));
    CHECK(cudaFree(B));
    CHECK(cudaFree(C));
    return 0;
}
