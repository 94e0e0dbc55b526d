// EXPECT h d decline S1-device
// The kernel counts to another number than the buffer has elements.
#include "common.h"

__global__ void count_up(float *d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] = i * 0.5f;
}

int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    int m = n - argc;
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    h[n - 1] = 999;
    count_up<<<blocks(m), BLOCK>>>(d, m);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    CHECK(cudaFree(d));
    free(h);
}
