// EXPECT h d accept
// Figure 2, S2: the host uses the result right behind the download, whose wait has to stay.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i * 0.25f;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    slow_twice<<<blocks(n), BLOCK>>>(d, n, 50);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    std::printf("first %.3f\n", h[0]);
    print_sum("h", h, bytes);
    free(h);
    CHECK(cudaFree(d));
}
