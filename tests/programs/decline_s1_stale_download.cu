// EXPECT h d decline S1
// The host writes h after the upload and then reads back what d still holds.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    for (int i = 0; i < n; i++) h[i] = 7;
    print_sum("changed", h, bytes);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("restored", h, bytes);
    CHECK(cudaFree(d));
    free(h);
}
