// EXPECT h d accept
// Filled, uploaded, worked on, downloaded, round after round: each download waits, so the next fill is in order.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    float *h = (float *)malloc(n * sizeof(float)), *d;
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    double total = 0;
    for (int t = 0; t < 5; t++) {
        for (int i = 0; i < n; i++) h[i] = t + i * 0.125f;
        CHECK(cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice));
        slow_twice<<<blocks(n), BLOCK>>>(d, n, 20);
        CHECK(cudaMemcpy(h, d, n * sizeof(float), cudaMemcpyDeviceToHost));
        total += h[n / 2];
    }
    std::printf("total %.9g\n", total);
    print_sum("h", h, n * sizeof(float));
    CHECK(cudaFree(d));
    free(h);
}
