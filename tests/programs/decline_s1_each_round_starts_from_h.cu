// EXPECT h d decline S1
// Each round's device buffer starts from the same h, which the kernel would change if it were the merged buffer.
#include "common.h"

int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes);
    float *out = (float *)malloc(bytes);
    for (int i = 0; i < n; i++) h[i] = i * 0.25f;
    for (int round = 0; round < 2 + n % 3; round++) {
        float *d;
        CHECK(cudaMalloc(&d, bytes));
        CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
        slow_twice<<<blocks(n), BLOCK>>>(d, n, round + 1);
        CHECK(cudaMemcpy(out, d, bytes, cudaMemcpyDeviceToHost));
        print_sum("out", out, bytes);
        CHECK(cudaFree(d));
    }
    free(out);
    free(h);
}
