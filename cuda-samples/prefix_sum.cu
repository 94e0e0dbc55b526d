// Inclusive prefix sums of one array after another: scan in parts, then add the parts' offsets.

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

    unsigned int *in = (unsigned int *)malloc(bytes);
    unsigned int *out = (unsigned int *)calloc(n, sizeof(unsigned int));
    unsigned int *d_in, *d_out, *d_totals;
    checkCudaErrors(cudaMalloc(&d_in, bytes));
    checkCudaErrors(cudaMalloc(&d_out, bytes));
    checkCudaErrors(cudaMalloc(&d_totals, parts * sizeof(unsigned int)));

    unsigned int result = 0;
    Timer timer;
    for (int t = 0; t < options.iterations; t++) {
        produce(in, n, t);
        checkCudaErrors(cudaMemcpy(d_in, in, bytes, cudaMemcpyHostToDevice));
        scan_parts<<<parts, THREADS, shared>>>(d_in, d_out, d_totals, n);
        add_offsets<<<parts, THREADS, shared>>>(d_out, d_totals, n);
        checkCudaErrors(cudaGetLastError());
        checkCudaErrors(cudaMemcpy(out, d_out, bytes, cudaMemcpyDeviceToHost));
        result = result * 31 + word_sum(out, n);
    }
    timer.report();

    // The last round's input is still here: check it with the obvious loop.
    unsigned int sum = 0;
    for (int i = 0; i < n; i++) {
        sum += in[i];
        if (out[i] != sum) {
            fprintf(stderr, "element %d is %u, not %u\n", i, out[i], sum);
            exit(EXIT_FAILURE);
        }
    }
    printf("result %08x last %u checksum %016llx\n", result, out[n - 1], (unsigned long long)fnv1a(out, bytes));
    checkCudaErrors(cudaFree(d_in));
    checkCudaErrors(cudaFree(d_out));
    checkCudaErrors(cudaFree(d_totals));
    free(in);
    free(out);
    return 0;
}
