// Figure 2, S3: the program can tell h and d apart, and in a merged buffer it would see that they are one. Must be declined.

#include "common/figure2.h"

static void reportSame() {
    printf("h and d are the same buffer\n");
}

static void case_S3(int N) {
    float *h = (float *)malloc(N);
    float *d;
    CHECK(cudaMalloc(&d, N));
    fill(h, data, N);
    if (h == d) reportSame();
    CHECK(cudaMemcpy(d, h, N, H2D));
    kernel<<<G, B>>>(d, N);
    CHECK(cudaMemcpy(h, d, N, D2H));
    free(h);
    CHECK(cudaFree(d));
}

int main(int argc, char **argv) {
    return run_figure2(argc, argv, case_S3);
}
