// EXPECT h d accept
// Figure 2, S3, with null in place of the other pointer: comparing with null tells nothing of the merge.
#include "common.h"
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes), *d = NULL;
    if (h == NULL) {
        std::fprintf(stderr, "out of memory\n");
        return 1;
    }
    CHECK(cudaMalloc(&d, bytes));
    for (int i = 0; i < n; i++) h[i] = i * 0.25f;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    free(h);
    if (d != NULL) CHECK(cudaFree(d));
}
