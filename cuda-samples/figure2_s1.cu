// Figure 2, S1: the kernel still needs the value in d that h[0] = 999 would overwrite in a merged buffer. Must be declined.

#include "common/figure2.h"

static void case_S1(int N) {
    float *h = (float *)malloc(N);
    float *d;
    CHECK(cudaMalloc(&d, N));
    fill(h, data, N);
    CHECK(cudaMemcpy(d, h, N, H2D));
    h[0] = 999.0f;
    kernel<<<G, B>>>(d, N);
    CHECK(cudaMemcpy(h, d, N, D2H));
    free(h);
    CHECK(cudaFree(d));
}

int main(int argc, char **argv) {
    return run_figure2(argc, argv, case_S1);
}
