// EXPECT h d accept
// The same with a kernel that loops over the grid, whatever that is.
#include "common.h"

__global__ void count_up(float *d, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) d[i] = i * 0.5f;
}

int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    h[0] = 999;
    count_up<<<7, 96>>>(d, n);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    CHECK(cudaFree(d));
    free(h);
}
