// EXPECT h d decline
// The upload on the legacy stream is the only thing that orders the work of two blocking streams.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *out = (float *)malloc(bytes), *d, *x;
    cudaStream_t s, t;
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamCreate(&t));
    CHECK(cudaMalloc(&d, bytes));
    CHECK(cudaMalloc(&x, bytes));
    CHECK(cudaMemset(x, 0, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    slow_twice<<<blocks(n), BLOCK, 0, s>>>(x, n, 50);
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK, 0, t>>>(x, n);
    square<<<blocks(n), BLOCK, 0, t>>>(d, d, n);
    CHECK(cudaStreamSynchronize(t));
    CHECK(cudaMemcpy(out, x, bytes, cudaMemcpyDeviceToHost));
    print_sum("x", out, bytes);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    CHECK(cudaFree(d));
    CHECK(cudaFree(x));
    CHECK(cudaStreamDestroy(s));
    CHECK(cudaStreamDestroy(t));
    free(h);
    free(out);
}
