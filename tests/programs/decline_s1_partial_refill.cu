// EXPECT h d decline S1
// The host refills only a part of h each round, the kernel works in place: the rest of h keeps the first values, d does not.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *out = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    for (int t = 0; t < 4; t++) {
        for (int i = 0; i < n / 2; i++) h[i] = t * i;
        CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
        twice<<<blocks(n), BLOCK>>>(d, n);
        CHECK(cudaMemcpy(out, d, bytes, cudaMemcpyDeviceToHost));
        print_sum("out", out, bytes);
    }
    CHECK(cudaFree(d));
    free(h);
    free(out);
}
