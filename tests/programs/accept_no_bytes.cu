// EXPECT h d accept
// Of no bytes cudaMallocManaged fails, where malloc and cudaMalloc succeed.
#include "common.h"

static void run(int n) {
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes);
    float *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    if (n > 0) twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    if (d) CHECK(cudaFree(d));
    free(h);
}

int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    // Of n, of no, of n elements.
    for (int round = 0; round < 3; round++) run(round % 2 == 0 ? n : n / 1000000);
}
