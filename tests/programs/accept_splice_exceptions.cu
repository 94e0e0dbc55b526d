// EXPECT h d accept
// The function that is spliced throws when a result is bad, and main catches.
#include "common.h"
__attribute__((noinline)) float sum_of_twice(float *data, int n) {
    float *d;
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    CHECK(cudaMemcpy(d, data, n * sizeof(float), cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(data, d, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d));
    float sum = 0;
    for (int i = 0; i < n; i++) sum += data[i];
    if (sum < 0) throw 7;
    return sum;
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    float *h = (float *)malloc(n * sizeof(float));
    for (int i = 0; i < n; i++) h[i] = i % 7;
    try {
        std::printf("%f\n", sum_of_twice(h, n));
    } catch (int code) {
        std::printf("%d\n", code);
    }
    free(h);
}
