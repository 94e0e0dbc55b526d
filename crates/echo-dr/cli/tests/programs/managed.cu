// A program that shares its buffer already: there is nothing to merge.

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

__global__ void add_one(int *p, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += 1;
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 4;
    const int n = 1 << 18;
    int *p = nullptr;
    if (cudaMallocManaged(&p, n * sizeof(int)) != cudaSuccess) return 1;
    unsigned sum = 0;
    for (int t = 0; t < rounds; t++) {
        for (int i = 0; i < n; i++) p[i] = i ^ t;
        add_one<<<n / 256, 256>>>(p, n);
        if (cudaDeviceSynchronize() != cudaSuccess) return 1;
        for (int i = 0; i < n; i++) sum = sum * 31 + p[i];
    }
    printf("sum %08x\n", sum);
    return cudaFree(p) == cudaSuccess ? 0 : 1;
}
