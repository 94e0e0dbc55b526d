// EXPECT in d_in decline S1
// The kernel is chosen at run time, so nothing is known of it: it may write to its input, which the host reads later.
#include "common.h"
static __global__ void cube(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * in[i] * in[i];
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *in = (float *)malloc(bytes), *out = (float *)malloc(bytes);
    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, bytes));
    CHECK(cudaMalloc(&d_out, bytes));
    for (int i = 0; i < n; i++) in[i] = i * 0.5f;
    CHECK(cudaMemcpy(d_in, in, bytes, cudaMemcpyHostToDevice));
    void (*kernel)(const float *, float *, int) = n % 2 ? square : cube;
    void *arguments[] = {&d_in, &d_out, &n};
    CHECK(cudaLaunchKernel((const void *)kernel, dim3(blocks(n)), dim3(BLOCK), arguments, 0, 0));
    CHECK(cudaMemcpy(out, d_out, bytes, cudaMemcpyDeviceToHost));
    print_sum("in", in, bytes);
    print_sum("out", out, bytes);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    free(in);
    free(out);
}
