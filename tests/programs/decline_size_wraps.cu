// EXPECT h d decline
// 32-bit arithmetic wraps: the host buffer is larger than the device buffer although the texts look alike.
#include "common.h"
int main(int argc, char **argv) {
    unsigned n = 0x40000000u + (unsigned)size_argument(argc, argv, 1000);
    unsigned small = n * 4;                         // wraps to 4 * argument
    size_t large = (size_t)(n - 0x40000000u) * 8;   // what the host really uses
    float *h = (float *)malloc(large), *d;
    CHECK(cudaMalloc(&d, small));
    int count = (int)(small / 4);
    for (int i = 0; i < 2 * count; i++) h[i] = i;
    CHECK(cudaMemcpy(d, h, small, cudaMemcpyHostToDevice));
    twice<<<blocks(count), BLOCK>>>(d, count);
    CHECK(cudaMemcpy(h, d, small, cudaMemcpyDeviceToHost));
    print_sum("h", h, large);
    CHECK(cudaFree(d));
    free(h);
}
