// EXPECT h d accept
// The functions of the file share their buffers through static variables.
#include "common.h"
static float *h, *d;
static int n;
__attribute__((noinline)) static void make() {
    h = (float *)malloc(n * sizeof(float));
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    for (int i = 0; i < n; i++) h[i] = i;
}
__attribute__((noinline)) static void upload() { CHECK(cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice)); }
__attribute__((noinline)) static void run() { twice<<<blocks(n), BLOCK>>>(d, n); }
__attribute__((noinline)) static void download() { CHECK(cudaMemcpy(h, d, n * sizeof(float), cudaMemcpyDeviceToHost)); }
__attribute__((noinline)) static void verify() { print_sum("h", h, n * sizeof(float)); }
__attribute__((noinline)) static void clean() {
    free(h);
    CHECK(cudaFree(d));
}
int main(int argc, char **argv) {
    n = size_argument(argc, argv, 100000);
    make();
    upload();
    run();
    download();
    verify();
    clean();
}
