// EXPECT h * decline
// Two device buffers change roles each round: which one h belongs to changes.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *a, *b;
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));
    for (int i = 0; i < n; i++) h[i] = i * 0.5f;
    CHECK(cudaMemcpy(a, h, bytes, cudaMemcpyHostToDevice));
    int rounds = 3 + n % 2;
    for (int t = 0; t < rounds; t++) {
        square<<<blocks(n), BLOCK>>>(a, b, n);
        float *swap = a;
        a = b;
        b = swap;
    }
    CHECK(cudaMemcpy(h, a, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    free(h);
}
