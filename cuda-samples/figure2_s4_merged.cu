// figure2_s4.cu merged by hand: one cudaFree, after the kernel.

#include "common/figure2.h"

static void case_S4(int N) {
    float *p;
    CHECK(cudaMallocManaged(&p, N));
    fill(p, data, N);
    kernel<<<G, B>>>(p, N);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(p));
}

int main(int argc, char **argv) {
    return run_figure2(argc, argv, case_S4);
}
