// EXPECT h d accept
// Both buffers are made in one branch, and freed behind it whether they were made or not.
#include "common.h"

int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = NULL, *d = NULL;
    if (n % 2 == 1) {
        h = (float *)malloc(bytes);
        CHECK(cudaMalloc(&d, bytes));
        for (int i = 0; i < n; i++) h[i] = i;
        CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
        twice<<<blocks(n), BLOCK>>>(d, n);
        CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
        print_sum("h", h, bytes);
    }
    CHECK(cudaFree(d));
    free(h);
}
