// EXPECT h d decline S1
// What breaks the pair is two calls deep: the upload's source is changed while the kernel still needs the old value.
#include "common.h"
__attribute__((noinline)) void touch(float *data, int n) { data[n / 2] = 999; }
__attribute__((noinline)) void solve(float *data, float *result, int n) {
    float *d;
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    CHECK(cudaMemcpy(d, data, n * sizeof(float), cudaMemcpyHostToDevice));
    touch(data, n);
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(result, d, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d));
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    float *h = (float *)malloc(n * sizeof(float));
    float *r = new float[2 * n];
    for (int i = 0; i < n; i++) h[i] = i;
    solve(h, r, n);
    print_sum("h", h, n * sizeof(float));
    print_sum("r", r, n * sizeof(float));
    free(h);
    delete[] r;
}
