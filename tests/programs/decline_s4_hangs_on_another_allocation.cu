// EXPECT h d decline S4-allocations-unordered
// h is allocated only if an unrelated allocation succeeded, and the failure is looked at later: h need not exist where d is allocated.
#include "common.h"

int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *x, *d, *h;
    bool works = true;
    if (cudaMalloc(&x, bytes) == cudaSuccess) {
        h = (float *)malloc(bytes);
    } else {
        std::fprintf(stderr, "no memory for x\n");
        works = false;
    }
    std::printf("x is there\n");
    if (cudaMalloc(&d, bytes) != cudaSuccess) works = false;
    std::printf("d is there\n");
    if (!works) return 1;
    for (int i = 0; i < n; i++) h[i] = i * 0.5f;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    square<<<blocks(n), BLOCK>>>(d, x, n);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    float one;
    CHECK(cudaMemcpy(&one, x + 7, sizeof(float), cudaMemcpyDeviceToHost));
    std::printf("x[7] %g\n", one);
    CHECK(cudaFree(d));
    CHECK(cudaFree(x));
    free(h);
}
