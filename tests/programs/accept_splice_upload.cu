// EXPECT in d_in accept
// EXPECT out d_out accept
// A function returns the device buffer that it fills, another allocates through an out-parameter and reports failure by its result, a third
// reads the host buffer; none is inlined.
#include "common.h"
__attribute__((noinline)) float *upload(const float *from, int n) {
    float *to;
    CHECK(cudaMalloc(&to, n * sizeof(float)));
    CHECK(cudaMemcpy(to, from, n * sizeof(float), cudaMemcpyHostToDevice));
    return to;
}
__attribute__((noinline)) int allocate(float **where, int n) {
    if (cudaMalloc(where, n * sizeof(float)) != cudaSuccess) return -1;
    return 0;
}
__attribute__((noinline)) void verify(const char *name, const float *data, int n) { print_sum(name, data, n * sizeof(float)); }
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    float *in = (float *)malloc(n * sizeof(float)), *out = (float *)malloc(n * sizeof(float));
    for (int i = 0; i < n; i++) in[i] = i;
    float *d_in = upload(in, n), *d_out;
    if (allocate(&d_out, n) != 0) return 1;
    square<<<blocks(n), BLOCK>>>(d_in, d_out, n);
    CHECK(cudaMemcpy(out, d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    verify("out", out, n);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    free(in);
    free(out);
}
