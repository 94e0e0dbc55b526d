// Figure 2, S4: h is freed before the kernel uses d; a merged buffer must live until both are free and the kernel is done.

#include "common/figure2.h"

static void case_S4(int N) {
    float *h = (float *)malloc(N);
    float *d;
    CHECK(cudaMalloc(&d, N));
    fill(h, data, N);
    CHECK(cudaMemcpy(d, h, N, H2D));
    free(h);
    kernel<<<G, B>>>(d, N);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(d));
}

int main(int argc, char **argv) {
    return run_figure2(argc, argv, case_S4);
}
