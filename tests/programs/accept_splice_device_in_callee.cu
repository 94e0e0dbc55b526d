// EXPECT h d accept
// The device buffer is made in a function that stays a call; the pass looks through it.
#include "common.h"
__attribute__((noinline)) static float *make(size_t bytes) {
    float *d;
    CHECK(cudaMalloc(&d, bytes));
    return d;
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d = make(bytes);
    for (int i = 0; i < n; i++) h[i] = i * 0.25f;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    free(h);
    CHECK(cudaFree(d));
}
