// EXPECT h d decline S5
// cudaFree of stream-ordered memory does not wait, and of other memory it only may: the kernel may still run when the host reads h.
#include "common.h"
static __global__ void add_squares(const float *in, float *out, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        for (int r = 0; r < rounds; r++) out[i] = out[i] + in[i] * in[i];
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes);
    float *d, *sums, *scratch;
    CHECK(cudaMalloc(&d, bytes));
    CHECK(cudaMalloc(&sums, bytes));
    CHECK(cudaMemset(sums, 0, bytes));
    CHECK(cudaMallocAsync((void **)&scratch, bytes, 0));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    add_squares<<<blocks(n), BLOCK>>>(d, sums, n, 20);
    CHECK(cudaFree(scratch));
    print_sum("h", h, bytes);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(d));
    CHECK(cudaFree(sums));
    free(h);
}
