// EXPECT * * decline
// A function that runs after main, registered by its address, uses the static variables too.
#include "common.h"
static float *h, *d;
static int n;
__attribute__((noinline)) static void last() {
    std::printf("%g %d\n", h ? h[1] : -1.0f, n);
    free(h);
}
__attribute__((noinline)) static void run() {
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    CHECK(cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(h, d, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d));
}
int main(int argc, char **argv) {
    n = size_argument(argc, argv, 100000);
    std::atexit(last);
    h = (float *)malloc(n * sizeof(float));
    for (int i = 0; i < n; i++) h[i] = i;
    run();
    print_sum("h", h, n * sizeof(float));
}
