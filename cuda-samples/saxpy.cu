// y = a x + y for a stream of inputs: x only goes in, y goes in and comes back.

#include <cstdio>
#include <cstdlib>

#include "common/check_cuda_errors.h"
#include "common/checksum.h"
#include "common/options.h"
#include "common/timer.h"
#include "saxpy.cuh"

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "elements", 16 << 20, 1u << 30, 6);
    const size_t n = options.size;

    float *x = static_cast<float *>(malloc(n * sizeof(float)));
    float *y = static_cast<float *>(malloc(n * sizeof(float)));
    float *d_x, *d_y;
    checkCudaErrors(cudaMalloc(&d_x, n * sizeof(float)));
    checkCudaErrors(cudaMalloc(&d_y, n * sizeof(float)));

    const unsigned int block = 256;
    const unsigned int grid = (unsigned int)((n + block - 1) / block);
    uint32_t result = 0;

    Timer timer;
    for (int round = 0; round < options.iterations; ++round) {
        produce(x, y, n, round);
        checkCudaErrors(cudaMemcpy(d_x, x, n * sizeof(float), cudaMemcpyHostToDevice));
        checkCudaErrors(cudaMemcpy(d_y, y, n * sizeof(float), cudaMemcpyHostToDevice));
        saxpy<<<grid, block>>>(n, 2.0f, d_x, d_y);
        checkCudaErrors(cudaGetLastError());
        checkCudaErrors(cudaMemcpy(y, d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
        result = result * 31 + word_sum(y, n);
    }
    timer.report();

    printf("result %08x checksum %016llx\n", result, (unsigned long long)fnv1a(y, n * sizeof(float)));
    checkCudaErrors(cudaFree(d_x));
    checkCudaErrors(cudaFree(d_y));
    free(x);
    free(y);
    return 0;
}
