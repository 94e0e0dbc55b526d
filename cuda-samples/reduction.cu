// Sums a stream of arrays: the array only goes in, the total is one number that comes back to a variable on the stack.

#include <cstdio>
#include <cstdlib>

#include "common/checksum.h"
#include "common/gpu_errchk.h"
#include "common/options.h"
#include "common/timer.h"
#include "reduction.cuh"

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "elements", 8 << 20, 256 << 20, 8);
    const int N = (int)options.size;
    const size_t bytes = sizeof(unsigned int) * N;

    unsigned int *h_in = (unsigned int *)malloc(bytes);
    unsigned int *d_in;
    unsigned long long *d_total;
    gpuErrchk(cudaMalloc((void **)&d_in, bytes));
    gpuErrchk(cudaMalloc((void **)&d_total, sizeof(unsigned long long)));

    uint64_t hash = fnv1a(NULL, 0);
    unsigned long long total = 0;
    Timer timer;
    for (int t = 0; t < options.iterations; t++) {
        produce(h_in, N, t);
        gpuErrchk(cudaMemcpy(d_in, h_in, bytes, cudaMemcpyHostToDevice));
        gpuErrchk(cudaMemset(d_total, 0, sizeof(unsigned long long)));
        deviceReduce<<<blocks_for(N), 256>>>(d_in, d_total, N);
        gpuErrchk(cudaPeekAtLastError());
        gpuErrchk(cudaMemcpy(&total, d_total, sizeof total, cudaMemcpyDeviceToHost));
        hash = fnv1a(&total, sizeof total, hash);
    }
    timer.report();

    printf("total %llu checksum %016llx\n", total, (unsigned long long)hash);
    gpuErrchk(cudaFree(d_in));
    gpuErrchk(cudaFree(d_total));
    free(h_in);
    return 0;
}
