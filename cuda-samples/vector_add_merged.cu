// vector_add.cu merged by hand: three managed buffers, no copies, one wait a round.

#include <cstdio>
#include <cstdlib>

#include "common/check.h"
#include "common/checksum.h"
#include "common/options.h"
#include "common/timer.h"
#include "vector_add.cuh"

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "elements", 4 << 20, 256 << 20, 10);
    const int numElements = (int)options.size;
    const size_t size = numElements * sizeof(float);

    float *A, *B, *C;
    CHECK(cudaMallocManaged(&A, size));
    CHECK(cudaMallocManaged(&B, size));
    CHECK(cudaMallocManaged(&C, size));

    const int threadsPerBlock = 256;
    const int blocksPerGrid = (numElements + threadsPerBlock - 1) / threadsPerBlock;
    unsigned int result = 0;

    Timer timer;
    for (int t = 0; t < options.iterations; t++) {
        produce(A, B, numElements, t);
        vectorAdd<<<blocksPerGrid, threadsPerBlock>>>(A, B, C, numElements);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        result = result * 31 + word_sum(C, numElements);
    }
    timer.report();

    for (int i = 0; i < numElements; i++) {
        if (A[i] + B[i] != C[i]) {
            fprintf(stderr, "Result verification failed at element %d!\n", i);
            exit(EXIT_FAILURE);
        }
    }
    printf("result %08x checksum %016llx\n", result, (unsigned long long)fnv1a(C, size));

    CHECK(cudaFree(A));
    CHECK(cudaFree(B));
    CHECK(cudaFree(C));
    return 0;
}
