// EXPECT h d accept
// The device buffer is made and freed in each round, the host buffer lives outside: each d is the one merged buffer.
#include "common.h"

int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes);
    for (int i = 0; i < n; i++) h[i] = i * 0.25f;
    for (int round = 0; round < 2 + n % 3; round++) {
        float *d;
        CHECK(cudaMalloc(&d, bytes));
        CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
        slow_twice<<<blocks(n), BLOCK>>>(d, n, 20);
        CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
        h[round] += 1;
        CHECK(cudaFree(d));
    }
    print_sum("h", h, bytes);
    free(h);
}
