// EXPECT h d decline S5
// OPTIONS repair=on
// A callee starts work on another buffer and then touches h: a wait would have to stand in its middle. (It stays a call, as it is variadic.)
#include "common.h"
#include <cstdarg>
__attribute__((noinline)) static void step(float *h, float *other, int n, ...) {
    va_list more;
    va_start(more, n);
    int by = va_arg(more, int);
    va_end(more);
    slow_twice<<<blocks(n), BLOCK>>>(other, n, 20);
    for (int i = 0; i < n; i++) h[i] += by;
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    size_t bytes = n * sizeof(float);
    float *h = (float *)malloc(bytes);
    float *d, *other;
    CHECK(cudaMalloc(&d, bytes));
    CHECK(cudaMalloc(&other, bytes));
    CHECK(cudaMemset(other, 0, bytes));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) h[i] = i;
    step(h, other, n, 1);
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    print_sum("h", h, bytes);
    CHECK(cudaFree(other));
    CHECK(cudaFree(d));
    free(h);
}
