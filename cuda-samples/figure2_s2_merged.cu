// figure2_s2.cu merged by hand: the wait stands where the D2H copy was.

#include "common/figure2.h"

static void use(float value) {
    printf("h[0] = %g\n", value);
}

static void case_S2(int N) {
    float *p;
    CHECK(cudaMallocManaged(&p, N));
    fill(p, data, N);
    kernel<<<G, B>>>(p, N);
    CHECK(cudaDeviceSynchronize());
    use(p[0]);
    CHECK(cudaFree(p));
}

int main(int argc, char **argv) {
    return run_figure2(argc, argv, case_S2);
}
