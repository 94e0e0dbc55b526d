// EXPECT h d decline S1
// The kernel updates d in place while the host still needs what h held.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *out = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(out, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("out", out, bytes);
    print_sum("h", h, bytes);
    CHECK(cudaFree(d));
    free(h);
    free(out);
}
