// EXPECT h d accept
// The device buffer exists only on one path. Where there is no device, P on its other path runs all the same, and so must P'.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes);
    for (int i = 0; i < n; i++) h[i] = i;
    if (n % 2 == 1) {
        float *d;
        CHECK(cudaMalloc(&d, bytes));
        CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
        twice<<<blocks(n), BLOCK>>>(d, n);
        CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
        CHECK(cudaFree(d));
    }
    print_sum("h", h, bytes);
    free(h);
}
