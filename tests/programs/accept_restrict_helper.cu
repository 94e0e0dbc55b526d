// EXPECT h d accept
// The inliner notes of a __restrict__ pointer that no call before the copy touches it; with one buffer the launch does.
#include "common.h"

static __global__ void fill(float *d, int n, int round) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] = 3 * i + round;
}

static float step(float *__restrict h, float *__restrict d, int n, int round) {
    fill<<<blocks(n), BLOCK>>>(d, n, round);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(h, d, n * sizeof(float), cudaMemcpyDeviceToHost));
    return h[5] + h[6];
}

int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    float *h = (float *)malloc(n * sizeof(float)), *d;
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    float sum = 0;
    for (int round = 0; round < 3 + n % 2; round++) sum = 2 * sum + step(h, d, n, round);
    std::printf("sum %.9g\n", sum);
    print_sum("h", h, n * sizeof(float));
    CHECK(cudaFree(d));
    free(h);
}
