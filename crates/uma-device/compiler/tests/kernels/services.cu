// Printing, failing, time.
#include <cassert>
#include <cstdio>

extern "C" __global__ void prints(int a, double b, unsigned long long c, const char *unused) {
    if (threadIdx.x == 1) printf("block %d: %5d|%-6.2f|%llx|%s|%c%%\n", (int)blockIdx.x, a, b, c, "text", 'z');
    if (threadIdx.x == 2) printf("no arguments\n");
}
extern "C" __global__ void asserts(const int *in) { assert(in[blockIdx.x] < 10); }
extern "C" __global__ void traps(int at) {
    __shared__ int x;
    x = 1;
    __syncthreads();
    if (threadIdx.x == at) __trap();
}
extern "C" __global__ void times(long long *out) {
    long long start = clock64();
    __nanosleep(100);
    out[threadIdx.x] = clock64() - start;
}
extern "C" __global__ void __launch_bounds__(64) bounded(int *out) { out[threadIdx.x] = 1; }
