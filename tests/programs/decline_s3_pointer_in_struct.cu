// EXPECT h d decline
// The device pointer reaches the kernel inside a structure.
#include "common.h"
struct View { float *data; int n; };
__global__ void negate(View v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < v.n) v.data[i] = -v.data[i];
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    negate<<<blocks(n), BLOCK>>>(View{d, n});
    CHECK(cudaDeviceSynchronize());
    print_sum("h", h, bytes);
    CHECK(cudaFree(d));
    free(h);
}
