// EXPECT h d decline
// The device pointer is copied to the device inside a table of pointers.
#include "common.h"
__global__ void negate(float **table, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) table[0][i] = -table[0][i];
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d, **table;
    CHECK(cudaMalloc(&d, bytes));
    CHECK(cudaMalloc(&table, sizeof(float *)));
    CHECK(cudaMemcpy(table, &d, sizeof(float *), cudaMemcpyHostToDevice));
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    negate<<<blocks(n), BLOCK>>>(table, n);
    CHECK(cudaDeviceSynchronize());
    print_sum("h", h, bytes);
    CHECK(cudaFree(d));
    CHECK(cudaFree(table));
    free(h);
}
