// EXPECT h d decline S3-compared
// Figure 2, S3: the program asks whether the two pointers are one.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d;
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i * 0.25f;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    std::printf("%s\n", h == d ? "one buffer" : "two buffers");
    print_sum("h", h, bytes);
    free(h);
    CHECK(cudaFree(d));
}
