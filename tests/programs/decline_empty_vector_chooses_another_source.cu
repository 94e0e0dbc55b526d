// EXPECT b d decline S3
// A vector that may be empty: where it is, the upload comes from another buffer. (LLVM makes one branch of both, and the way around the vector's
// allocation was once taken for none.)
#include "common.h"
#include <vector>
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    int none = argc > 2 ? std::atoi(argv[2]) : 0;
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes);
    for (int i = 0; i < n; i++) {
        a[i] = i;
        b[i] = -i;
    }
    float *d;
    CHECK(cudaMalloc(&d, bytes));
    std::vector<float> extra(none);
    float *source = none == 0 ? a : b;
    CHECK(cudaMemcpy(d, source, bytes, cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(b, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("b", b, bytes);
    print_sum("extra", extra.data(), none * sizeof(float));
    CHECK(cudaFree(d));
    free(a);
    free(b);
}
