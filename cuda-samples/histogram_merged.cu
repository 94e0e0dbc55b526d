// histogram.cu merged by hand.

#include <cstdio>
#include <cstring>
#include <exception>

#include "common/checksum.h"
#include "common/cuda_throw.h"
#include "common/options.h"
#include "common/timer.h"
#include "histogram.cuh"

static void run(size_t size, int frames) {
    unsigned char *frame = nullptr;
    unsigned int *bins = nullptr;
    CUDA_CHECK(cudaMallocManaged(&frame, size));
    CUDA_CHECK(cudaMallocManaged(&bins, BINS * sizeof(unsigned int)));

    uint64_t hash = fnv1a(nullptr, 0);
    Timer timer;
    for (int t = 0; t < frames; t++) {
        read_frame(frame, size, t);
        memset(bins, 0, BINS * sizeof(unsigned int));
        histogram<<<blocks_for(size), 256>>>(frame, size, bins);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaDeviceSynchronize());
        hash = fnv1a(bins, BINS * sizeof(unsigned int), hash);
    }
    timer.report();

    printf("bin 0: %u, checksum %016llx\n", bins[0], (unsigned long long)hash);
    CUDA_CHECK(cudaFree(frame));
    CUDA_CHECK(cudaFree(bins));
}

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "bytes", 32 << 20, 1u << 30, 6);
    try {
        run(options.size, options.iterations);
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
