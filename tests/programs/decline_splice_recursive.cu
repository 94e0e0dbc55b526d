// EXPECT * d decline S4-different-functions
// The function that makes the device buffer calls itself: how many buffers there are at a time is not known.
#include "common.h"
__attribute__((noinline)) void solve(float *data, int n, int rounds) {
    float *d;
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    CHECK(cudaMemcpy(d, data, n * sizeof(float), cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(data, d, n * sizeof(float), cudaMemcpyDeviceToHost));
    if (rounds > 1) solve(data, n, rounds - 1);
    CHECK(cudaFree(d));
    data[0] += 1;
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    float *h = (float *)malloc(n * sizeof(float));
    for (int i = 0; i < n; i++) h[i] = i;
    solve(h, n, 3);
    print_sum("h", h, n * sizeof(float));
    free(h);
}
