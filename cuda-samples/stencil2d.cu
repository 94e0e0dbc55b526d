// Smooths one frame after another: a frame goes to the device, a 5-point stencil runs on it, the result comes back.

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

    float *frame = (float *)malloc(bytes);
    float *smoothed = (float *)malloc(bytes);
    if (!frame || !smoothed) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, bytes));
    CHECK(cudaMalloc(&d_out, bytes));

    const dim3 block(TILE, TILE);
    const dim3 grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE);
    uint32_t result = 0;

    Timer timer;
    for (int t = 0; t < frames; t++) {
        load_frame(frame, width, height, t);
        CHECK(cudaMemcpy(d_in, frame, bytes, cudaMemcpyHostToDevice));
        stencil<<<grid, block>>>(d_in, d_out, width, height);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(smoothed, d_out, bytes, cudaMemcpyDeviceToHost));
        result = result * 31 + word_sum(smoothed, pixels);
    }
    timer.report();

    printf("result %08x checksum %016llx\n", result, (unsigned long long)fnv1a(smoothed, bytes));
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    free(frame);
    free(smoothed);
}

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "width", 2048, 16384, 5);
    smooth_frames((int)options.size, (int)options.size, options.iterations);
    return 0;
}
