// EXPECT h d decline
// The host reads h while the kernel writes d; harmless with two buffers.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    slow_twice<<<blocks(n), BLOCK>>>(d, n, 50);
    print_sum("before", h, bytes);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("after", h, bytes);
    CHECK(cudaFree(d));
    free(h);
}
