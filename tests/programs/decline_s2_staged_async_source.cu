// EXPECT h d decline
// An asynchronous upload of pageable memory has read its source when it returns; of a merged buffer it has not.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d, *other;
    cudaStream_t s;
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaMalloc(&d, bytes));
    CHECK(cudaMalloc(&other, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpyAsync(other, h, bytes, cudaMemcpyHostToDevice, s));
    for (int i = 0; i < n; i++) h[i] = -i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK, 0, s>>>(other, n);
    CHECK(cudaStreamSynchronize(s));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    CHECK(cudaMemcpy(h, other, bytes, cudaMemcpyDeviceToHost));
    print_sum("other", h, bytes);
    CHECK(cudaFree(d));
    CHECK(cudaFree(other));
    CHECK(cudaStreamDestroy(s));
    free(h);
}
