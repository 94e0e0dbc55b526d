// EXPECT in d_in accept
// EXPECT out d_out accept
// The kernel only reads its input, so the host may read it later.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *in = (float *)malloc(bytes), *out = (float *)malloc(bytes);
    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, bytes));
    CHECK(cudaMalloc(&d_out, bytes));
    for (int i = 0; i < n; i++) in[i] = i * 0.5f;
    CHECK(cudaMemcpy(d_in, in, bytes, cudaMemcpyHostToDevice));
    square<<<blocks(n), BLOCK>>>(d_in, d_out, n);
    CHECK(cudaMemcpy(out, d_out, bytes, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += out[i] != in[i] * in[i];
    std::printf("wrong %d\n", wrong);
    print_sum("out", out, bytes);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    free(in);
    free(out);
}
