// EXPECT h d decline S3-passed
// strtol hands out a pointer into the text; numbers are read through it while the next kernel writes the device's text.
#include "common.h"

static __global__ void digits(char *d, int n, int factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] = i % 4 == 3 ? ' ' : '0' + i * factor % 9 + 1;
}

int main(int argc, char **argv) {
    int n = 4 * size_argument(argc, argv, 100000);
    char *h = (char *)malloc(n), *d;
    CHECK(cudaMalloc(&d, n));
    digits<<<blocks(n), BLOCK>>>(d, n, 7);
    CHECK(cudaMemcpy(h, d, n, cudaMemcpyDeviceToHost));
    char *end;
    long sum = strtol(h, &end, 10);
    digits<<<blocks(n), BLOCK>>>(d, n, 5);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 20; i++) sum = (sum * 31 + strtol(end, &end, 10)) % 1000003;
    std::printf("sum %ld\n", sum);
    CHECK(cudaMemcpy(h, d, n, cudaMemcpyDeviceToHost));
    print_sum("h", h, n);
    CHECK(cudaFree(d));
    free(h);
}
