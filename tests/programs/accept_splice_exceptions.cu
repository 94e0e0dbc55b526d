// EXPECT h d accept
// The function that is spliced throws on a bad argument, and main catches.
#include "common.h"
#include <stdexcept>
__attribute__((noinline)) float sum_of_twice(float *data, int n) {
    if (n > 100000000) throw std::runtime_error("too many");
    float *d;
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    CHECK(cudaMemcpy(d, data, n * sizeof(float), cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(data, d, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d));
    float sum = 0;
    for (int i = 0; i < n; i++) sum += data[i];
    return sum;
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    float *h = (float *)malloc(n * sizeof(float));
    for (int i = 0; i < n; i++) h[i] = i % 7;
    try {
        std::printf("%f\n", sum_of_twice(h, n));
    } catch (const std::exception &error) {
        std::printf("%s\n", error.what());
    }
    free(h);
}
