// EXPECT h d decline S1-device-value-overwritten
// Figure 2, S1: the kernel must see what was uploaded, not 999.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i * 0.25f;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    h[0] = 999;
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    free(h);
    CHECK(cudaFree(d));
}
