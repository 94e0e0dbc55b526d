// Counts the byte values of one frame after another. Host buffers are std::vector, and errors throw.

#include <cstdio>
#include <exception>
#include <vector>

#include "common/checksum.h"
#include "common/cuda_throw.h"
#include "common/options.h"
#include "common/timer.h"
#include "histogram.cuh"

static void run(size_t size, int frames) {
    std::vector<unsigned char> frame(size);
    std::vector<unsigned int> bins(BINS);
    unsigned char *d_frame = nullptr;
    unsigned int *d_bins = nullptr;
    CUDA_CHECK(cudaMalloc(&d_frame, size));
    CUDA_CHECK(cudaMalloc(&d_bins, BINS * sizeof(unsigned int)));

    uint64_t hash = fnv1a(nullptr, 0);
    Timer timer;
    for (int t = 0; t < frames; t++) {
        read_frame(frame.data(), frame.size(), t);
        CUDA_CHECK(cudaMemcpy(d_frame, frame.data(), size, cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemset(d_bins, 0, BINS * sizeof(unsigned int)));
        histogram<<<blocks_for(size), 256>>>(d_frame, size, d_bins);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaMemcpy(bins.data(), d_bins, BINS * sizeof(unsigned int), cudaMemcpyDeviceToHost));
        hash = fnv1a(bins.data(), BINS * sizeof(unsigned int), hash);
    }
    timer.report();

    printf("bin 0: %u, checksum %016llx\n", bins[0], (unsigned long long)hash);
    CUDA_CHECK(cudaFree(d_frame));
    CUDA_CHECK(cudaFree(d_bins));
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
