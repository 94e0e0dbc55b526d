// stencil2d.cu merged by hand.

#include <cstdio>
#include <cstdlib>

#include "common/check.h"
#include "common/checksum.h"
#include "common/options.h"
#include "common/timer.h"
#include "stencil2d.cuh"

static void smooth_frames(int width, int height, int frames) {
    const size_t pixels = (size_t)width * height;
    const size_t bytes = pixels * sizeof(float);

    float *frame, *smoothed;
    CHECK(cudaMallocManaged(&frame, bytes));
    CHECK(cudaMallocManaged(&smoothed, bytes));

    const dim3 block(TILE, TILE);
    const dim3 grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE);
    uint32_t result = 0;

    Timer timer;
    for (int t = 0; t < frames; t++) {
        load_frame(frame, width, height, t);
        stencil<<<grid, block>>>(frame, smoothed, width, height);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        result = result * 31 + word_sum(smoothed, pixels);
    }
    timer.report();

    printf("result %08x checksum %016llx\n", result, (unsigned long long)fnv1a(smoothed, bytes));
    CHECK(cudaFree(frame));
    CHECK(cudaFree(smoothed));
}

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "width", 2048, 16384, 5);
    smooth_frames((int)options.size, (int)options.size, options.iterations);
    return 0;
}
