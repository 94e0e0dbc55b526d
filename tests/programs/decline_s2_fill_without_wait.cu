// EXPECT h d decline S2
// The next fill starts while the kernel of this round may still read.
#include "common.h"
__global__ void accumulate(const float *d, float *sum, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        for (int r = 0; r < rounds; r++) sum[i] += d[i] * 0.5f;
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *out = (float *)malloc(bytes), *d, *sum;
    CHECK(cudaMalloc(&d, bytes));
    CHECK(cudaMalloc(&sum, bytes));
    CHECK(cudaMemset(sum, 0, bytes));
    for (int t = 0; t < 5; t++) {
        for (int i = 0; i < n; i++) h[i] = t * i;
        CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
        accumulate<<<blocks(n), BLOCK>>>(d, sum, n, 30);
    }
    CHECK(cudaMemcpy(out, sum, bytes, cudaMemcpyDeviceToHost));
    print_sum("out", out, bytes);
    CHECK(cudaFree(d));
    CHECK(cudaFree(sum));
    free(h);
    free(out);
}
