// Figure 2, S2: the D2H copy makes the host wait for the kernel; use(h[0]) still needs that wait when the copy is gone.

#include "common/figure2.h"

static void use(float value) {
    printf("h[0] = %g\n", value);
}

static void case_S2(int N) {
    float *h = (float *)malloc(N);
    float *d;
    CHECK(cudaMalloc(&d, N));
    fill(h, data, N);
    CHECK(cudaMemcpy(d, h, N, H2D));
    kernel<<<G, B>>>(d, N);
    CHECK(cudaMemcpy(h, d, N, D2H));
    use(h[0]);
    free(h);
    CHECK(cudaFree(d));
}

int main(int argc, char **argv) {
    return run_figure2(argc, argv, case_S2);
}
