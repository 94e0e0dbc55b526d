// EXPECT h d accept
// Output only: the host clears h before the kernel ever writes d.
#include "common.h"
__global__ void ramp(float *d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] = i * 3.0f;
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    float *h = (float *)malloc(n * sizeof(float)), *d;
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    memset(h, 0, n * sizeof(float));
    ramp<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(h, d, n * sizeof(float), cudaMemcpyDeviceToHost));
    print_sum("h", h, n * sizeof(float));
    CHECK(cudaFree(d));
    free(h);
}
