// EXPECT h d decline S1-device
// There are enough threads, and not each writes.
#include "common.h"

__global__ void count_up(float *d, int n, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % step == 0) d[i] = i * 0.5f;
}

int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    h[1] = 999;
    count_up<<<blocks(n), BLOCK>>>(d, n, 3);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    CHECK(cudaFree(d));
    free(h);
}
