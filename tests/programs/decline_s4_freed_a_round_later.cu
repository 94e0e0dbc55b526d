// EXPECT h d decline
// Each round's device buffer is freed in the next round: two of them live at a time, and would be one.
#include "common.h"

int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes);
    for (int i = 0; i < n; i++) h[i] = i * 0.25f;
    float *last = NULL;
    for (int round = 0; round < 2 + n % 3; round++) {
        float *d;
        CHECK(cudaMalloc(&d, bytes));
        CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
        if (last) {
            square<<<blocks(n), BLOCK>>>(last, d, n);
            CHECK(cudaFree(last));
        }
        CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
        twice<<<blocks(n), BLOCK>>>(d, n);
        last = d;
    }
    CHECK(cudaFree(last));
    print_sum("h", h, bytes);
    free(h);
}
