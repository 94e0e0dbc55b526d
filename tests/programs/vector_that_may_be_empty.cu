// EXPECT h d accept
// The test runs it with 60001, so without elements: neither buffer has a byte, the vector allocates nothing, and all calls go on as they did.
#include "common.h"
#include <vector>
static double work(size_t n) {
    std::vector<float> h(n);
    float *d;
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    for (size_t i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    if (n > 0) twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(h.data(), d, n * sizeof(float), cudaMemcpyDeviceToHost));
    double sum = 0;
    for (float x : h) sum += x;
    CHECK(cudaFree(d));
    return sum;
}
int main(int argc, char **argv) {
    size_t n = size_argument(argc, argv, 100000) % 60001;
    std::printf("%.1f\n", work(n));
}
