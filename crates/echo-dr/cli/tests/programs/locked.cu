// A pair whose host buffer is page-locked, and one whose host buffer is not, each copied up and down in a loop. The first argument says what
// happens to the page-locked one besides.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

// A program that does not look at errors runs on, and ends well.
static bool strict = true;
#define CHECK(call)                                                        \
    do {                                                                   \
        if ((call) != cudaSuccess && strict) return 1;                     \
    } while (0)

__global__ void add_one(int *d, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] += 1;
}

__global__ void add_other(int *d, const int *other, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] += other[i];
}

// The host's address is nowhere among the arguments of this one.
__global__ void add_hidden(int *d, const int *const *other, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] += (*other)[i];
}

__attribute__((noinline)) static void by_write(int *h) {
    *(volatile int *)h = 999;  // HERE write
}

__attribute__((noinline)) static unsigned sum_of(const int *h, int n) {
    unsigned sum = 0;
    for (int i = 0; i < n; i++) sum = sum * 31 + h[i];  // HERE late
    return sum;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "none";
    const int rounds = argc > 2 ? atoi(argv[2]) : 4;
    const int n = 1 << 17;
    const size_t bytes = n * sizeof(int);
    auto is = [how](const char *name) { return strcmp(how, name) == 0; };
    strict = !is("hidden");

    int *h, *d, *e, **holder;
    const unsigned flags = cudaHostAllocWriteCombined | cudaHostAllocPortable;
    CHECK(is("flags") ? cudaHostAlloc((void **)&h, bytes, flags) : cudaMallocHost((void **)&h, bytes));  // HERE h
    CHECK(cudaMalloc(&d, bytes));
    int *g = (int *)malloc(bytes);
    CHECK(cudaMalloc(&e, bytes));
    CHECK(cudaMalloc(&holder, sizeof *holder));
    CHECK(cudaMemcpy(holder, &h, sizeof h, cudaMemcpyHostToDevice));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (is("asked")) {
        cudaPointerAttributes attributes;
        CHECK(cudaPointerGetAttributes(&attributes, h));
    }

    unsigned sum = 0;
    for (int t = 0; t < rounds; t++) {
        for (int i = 0; i < n; i++) g[i] = i ^ t;
        CHECK(cudaMemcpy(e, g, bytes, cudaMemcpyHostToDevice));
        add_one<<<n / 256, 256>>>(e, n);
        CHECK(cudaMemcpy(g, e, bytes, cudaMemcpyDeviceToHost));
        sum = sum * 31 + sum_of(g, n);
        if (is("set")) {
            CHECK(cudaMemset(h, t, bytes));
            CHECK(cudaDeviceSynchronize());
        }
        for (int i = 0; i < n; i++) h[i] = i ^ t;
        if (is("async") || is("late")) {
            CHECK(cudaMemcpyAsync(d, h, bytes, cudaMemcpyHostToDevice, stream));
            add_one<<<n / 256, 256, 0, stream>>>(d, n);
            CHECK(cudaMemcpyAsync(h, d, bytes, cudaMemcpyDeviceToHost, stream));
            // Changes the device buffer when the host buffer has its value already.
            if (is("late")) add_one<<<n / 256, 256, 0, stream>>>(d, n);
            CHECK(cudaStreamSynchronize(stream));
        } else if (is("kept")) {
            // The copy is done when it returns, so the kernel comes after it in any stream. The result stays on the device.
            CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
            add_one<<<n / 256, 256, 0, stream>>>(d, n);
            CHECK(cudaStreamSynchronize(stream));
        } else {
            CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
            if (is("write")) by_write(h);
            add_one<<<n / 256, 256>>>(d, n);
            if (is("kernel")) add_other<<<n / 256, 256>>>(d, h, n);
            if (is("hidden")) add_hidden<<<n / 256, 256>>>(d, holder, n);
            CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
        }
        sum = sum * 31 + sum_of(h, n);
    }
    printf("sum %08x\n", sum);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(holder));
    CHECK(cudaFree(d));
    CHECK(cudaFree(e));
    CHECK(cudaFreeHost(h));
    free(g);
    return 0;
}
