// EXPECT h d accept
// The paper's figure 1 (a): fill, upload, kernel, download, use, once a round.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int t = 0; t < 4; t++) {
        for (int i = 0; i < n; i++) h[i] = i * 0.25f + t;
        CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
        twice<<<blocks(n), BLOCK>>>(d, n);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
        print_sum("h", h, bytes);
    }
    free(h);
    CHECK(cudaFree(d));
}
