// reduction.cu merged by hand.

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

    unsigned int *in;
    unsigned long long *total;
    gpuErrchk(cudaMallocManaged((void **)&in, bytes));
    gpuErrchk(cudaMallocManaged((void **)&total, sizeof(unsigned long long)));

    uint64_t hash = fnv1a(NULL, 0);
    Timer timer;
    for (int t = 0; t < options.iterations; t++) {
        produce(in, N, t);
        *total = 0;
        deviceReduce<<<blocks_for(N), 256>>>(in, total, N);
        gpuErrchk(cudaPeekAtLastError());
        gpuErrchk(cudaDeviceSynchronize());
        hash = fnv1a(total, sizeof *total, hash);
    }
    timer.report();

    printf("total %llu checksum %016llx\n", *total, (unsigned long long)hash);
    gpuErrchk(cudaFree(in));
    gpuErrchk(cudaFree(total));
    return 0;
}
