// EXPECT h d accept
// EXPECT out d_out accept
// Figure 2, S4: h is freed when its bytes are on the device. The merged buffer has to live until the kernel is done.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *out = (float *)malloc(bytes), *d, *d_out;
    CHECK(cudaMalloc(&d, bytes));
    CHECK(cudaMalloc(&d_out, bytes));
    for (int i = 0; i < n; i++) h[i] = i * 0.25f;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    free(h);
    square<<<blocks(n), BLOCK>>>(d, d_out, n);
    CHECK(cudaMemcpy(out, d_out, bytes, cudaMemcpyDeviceToHost));
    print_sum("out", out, bytes);
    CHECK(cudaFree(d));
    CHECK(cudaFree(d_out));
    free(out);
}
