// saxpy.cu merged by hand.

#include <cstdio>

#include "common/check_cuda_errors.h"
#include "common/checksum.h"
#include "common/options.h"
#include "common/timer.h"
#include "saxpy.cuh"

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "elements", 16 << 20, 1u << 30, 6);
    const size_t n = options.size;

    float *x, *y;
    checkCudaErrors(cudaMallocManaged(&x, n * sizeof(float)));
    checkCudaErrors(cudaMallocManaged(&y, n * sizeof(float)));

    const unsigned int block = 256;
    const unsigned int grid = (unsigned int)((n + block - 1) / block);
    uint32_t result = 0;

    Timer timer;
    for (int round = 0; round < options.iterations; ++round) {
        produce(x, y, n, round);
        saxpy<<<grid, block>>>(n, 2.0f, x, y);
        checkCudaErrors(cudaGetLastError());
        checkCudaErrors(cudaDeviceSynchronize());
        result = result * 31 + word_sum(y, n);
    }
    timer.report();

    printf("result %08x checksum %016llx\n", result, (unsigned long long)fnv1a(y, n * sizeof(float)));
    checkCudaErrors(cudaFree(x));
    checkCudaErrors(cudaFree(y));
    return 0;
}
