// EXPECT h d accept
// EXPECT out d_out accept
// Which free is the last of a pair depends on the path; all ways out meet at one cleanup.
#include "common.h"

// 0: all is well; 1: the device buffers are freed early; 2: nothing was computed and h is freed early.
__attribute__((always_inline)) static int run(int n, int way) {
    size_t bytes = n * sizeof(float);
    int status = 1;
    float *h = NULL, *out = NULL, *d = NULL, *d_out = NULL;
    h = (float *)malloc(bytes);
    if (h == NULL) goto cleanup;
    if (cudaMalloc(&d, bytes) != cudaSuccess) goto cleanup;
    out = (float *)malloc(bytes);
    if (out == NULL) goto cleanup;
    if (cudaMalloc(&d_out, bytes) != cudaSuccess) goto cleanup;
    for (int i = 0; i < n; i++) h[i] = i * 0.5f;
    if (cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice) != cudaSuccess) goto cleanup;
    if (way == 2) {
        free(h);
        square<<<blocks(n), BLOCK>>>(d, d_out, n);
        if (cudaMemcpy(out, d_out, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) goto early;
        print_sum("out after h", out, bytes);
        status = 2;
        goto early;
    }
    square<<<blocks(n), BLOCK>>>(d, d_out, n);
    if (cudaGetLastError() != cudaSuccess) goto cleanup;
    if (way == 1) {
        cudaFree(d);
        d = NULL;
    }
    if (cudaMemcpy(out, d_out, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) goto cleanup;
    print_sum("out", out, bytes);
    print_sum("h", h, bytes);
    status = 0;
cleanup:
    free(h);
early:
    free(out);
    if (d) cudaFree(d);
    if (d_out) cudaFree(d_out);
    return status;
}

int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    // The ways are not known when the program is compiled.
    std::printf("the first ends with %d\n", run(n, n % 3));
    std::printf("the second ends with %d\n", run(n, (n + 1) % 3));
    std::printf("the third ends with %d\n", run(n, (n + 2) % 3));
}
