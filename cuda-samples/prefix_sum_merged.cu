// prefix_sum.cu merged by hand.

#include <cstdio>
#include <cstdlib>

#include "common/check_cuda_errors.h"
#include "common/checksum.h"
#include "common/options.h"
#include "common/timer.h"
#include "prefix_sum.cuh"

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "elements", 2 << 20, 128 << 20, 6);
    const int n = (int)options.size;
    const size_t bytes = n * sizeof(unsigned int);
    const int parts = (n + PER_BLOCK - 1) / PER_BLOCK;
    const size_t shared = THREADS * sizeof(unsigned int);

    unsigned int *in, *out, *totals;
    checkCudaErrors(cudaMallocManaged(&in, bytes));
    checkCudaErrors(cudaMallocManaged(&out, bytes));
    checkCudaErrors(cudaMalloc(&totals, parts * sizeof(unsigned int)));

    unsigned int result = 0;
    Timer timer;
    for (int t = 0; t < options.iterations; t++) {
        produce(in, n, t);
        scan_parts<<<parts, THREADS, shared>>>(in, out, totals, n);
        add_offsets<<<parts, THREADS, shared>>>(out, totals, n);
        checkCudaErrors(cudaGetLastError());
        checkCudaErrors(cudaDeviceSynchronize());
        result = result * 31 + word_sum(out, n);
    }
    timer.report();

    unsigned int sum = 0;
    for (int i = 0; i < n; i++) {
        sum += in[i];
        if (out[i] != sum) {
            fprintf(stderr, "element %d is %u, not %u\n", i, out[i], sum);
            exit(EXIT_FAILURE);
        }
    }
    printf("result %08x last %u checksum %016llx\n", result, out[n - 1], (unsigned long long)fnv1a(out, bytes));
    checkCudaErrors(cudaFree(in));
    checkCudaErrors(cudaFree(out));
    checkCudaErrors(cudaFree(totals));
    return 0;
}
