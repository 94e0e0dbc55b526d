// EXPECT h d decline
// A kernel keeps the pointer in a device variable; a later kernel that is not given it writes through it.
#include "common.h"
__device__ float *kept;
__global__ void keep(float *d) { kept = d; }
__global__ void use_kept(int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) kept[i] = -1;
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    keep<<<1, 1>>>(d);
    CHECK(cudaDeviceSynchronize());
    use_kept<<<blocks(n), BLOCK>>>(n);
    CHECK(cudaDeviceSynchronize());
    print_sum("h", h, bytes);
    CHECK(cudaFree(d));
    free(h);
}
