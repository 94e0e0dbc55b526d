// EXPECT h d decline S5-host-access-in-flight
// A kernel that has nothing to do with the pair is running while the host fills h. Where access is exclusive, h must not be managed memory.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *h = (float *)malloc(bytes), *d, *other;
    CHECK(cudaMalloc(&other, bytes));
    CHECK(cudaMalloc(&d, bytes));
    CHECK(cudaMemset(other, 0, bytes));
    CHECK(cudaDeviceSynchronize());
    slow_twice<<<blocks(n), BLOCK, 0, stream>>>(other, n, 50);
    for (int i = 0; i < n; i++) h[i] = i * 0.25f;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    free(h);
    CHECK(cudaFree(d));
    CHECK(cudaFree(other));
    CHECK(cudaStreamDestroy(stream));
}
