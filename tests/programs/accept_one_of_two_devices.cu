// EXPECT h * one
// One host buffer uploaded to two device buffers: one pair is merged, the other copy stays.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *out = (float *)malloc(bytes), *a, *b;
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(a, h, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b, h, bytes, cudaMemcpyHostToDevice));
    square<<<blocks(n), BLOCK>>>(a, b, n);
    CHECK(cudaMemcpy(out, b, bytes, cudaMemcpyDeviceToHost));
    print_sum("out", out, bytes);
    print_sum("h", h, bytes);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    free(h);
    free(out);
}
