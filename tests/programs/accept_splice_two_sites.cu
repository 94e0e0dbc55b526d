// EXPECT a d accept
// EXPECT b d accept
// One function is called at two places, each with a host buffer of its own; it counts its calls in a static variable.
#include "common.h"
__attribute__((noinline)) int solve(float *data, int n) {
    static int calls = 0;
    float *d;
    CHECK(cudaMalloc(&d, n * sizeof(float)));
    CHECK(cudaMemcpy(d, data, n * sizeof(float), cudaMemcpyHostToDevice));
    twice<<<blocks(n), BLOCK>>>(d, n);
    CHECK(cudaMemcpy(data, d, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d));
    return ++calls;
}
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    float *a = (float *)malloc(n * sizeof(float));
    for (int i = 0; i < n; i++) a[i] = i;
    int first = solve(a, n);
    print_sum("a", a, n * sizeof(float));
    float *b = (float *)malloc(2 * n * sizeof(float));
    for (int i = 0; i < 2 * n; i++) b[i] = a[i % n] + i;
    int second = solve(b, 2 * n);
    print_sum("b", b, 2 * n * sizeof(float));
    std::printf("%d %d\n", first, second);
    free(a);
    free(b);
}
