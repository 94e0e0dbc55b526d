// EXPECT h d accept
// main has the host buffer; everything about the device buffer is in a function that is not inlined.
#include "common.h"
__attribute__((noinline)) void solve(float *a, int n) {
    float *d;
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    CHECK(cudaMemcpy(d, a, n * sizeof(float), cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(a, d, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d));
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    float *h = (float *)malloc(n * sizeof(float));
    for (int i = 0; i < n; i++) h[i] = i;
    solve(h, n);
    print_sum("h", h, n * sizeof(float));
    free(h);
}
