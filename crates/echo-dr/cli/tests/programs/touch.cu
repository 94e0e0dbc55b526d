// One pair in a loop, and a host access between the upload and the download, of the kind that the first argument names. In a merged buffer
// each of them would be seen by the kernel, or see what the kernel does.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

#include <cuda_runtime.h>

__global__ void add_one(int *d, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] += 1;
}

// Another name for the buffer, which the compiler knows nothing of.
struct View {
    volatile char *bytes;
};
static View view;

__attribute__((noinline)) static void by_write(int *h) {
    *(volatile int *)h = 999;  // HERE write
}

__attribute__((noinline)) static void by_alias() {
    view.bytes[4096] = 9;  // HERE alias
}

__attribute__((noinline)) static void by_thread(int *h) {
    std::thread writer([h] {
        *(volatile int *)(h + 5000) = 999;  // HERE thread
    });
    writer.join();
}

__attribute__((noinline)) static void by_read_call(int *h) {
    const int zero = open("/dev/zero", O_RDONLY);
    const ssize_t got = read(zero, h, 8192);  // HERE read-call
    close(zero);
    if (got != 8192) printf("read gave %zd\n", got);
}

__attribute__((noinline)) static void by_fread(int *h) {
    FILE *zero = fopen("/dev/zero", "rb");
    const size_t got = fread(h, 1, 65536, zero);  // HERE fread
    fclose(zero);
    if (got != 65536) printf("fread gave %zu\n", got);
}

__attribute__((noinline)) static int by_load(const int *h) {
    return *(const volatile int *)(h + 17);  // HERE load
}

static int seen;
__attribute__((noinline)) static void by_function(void *h) {
    seen = *(const volatile int *)h;  // HERE host-function
}

static int touch(const char *how, int *h) {
    if (strcmp(how, "write") == 0) by_write(h);
    if (strcmp(how, "alias") == 0) by_alias();
    if (strcmp(how, "thread") == 0) by_thread(h);
    if (strcmp(how, "read-call") == 0) by_read_call(h);
    if (strcmp(how, "fread") == 0) by_fread(h);
    return strcmp(how, "load") == 0 ? by_load(h) : 0;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "none";
    const int rounds = argc > 2 ? atoi(argv[2]) : 6;
    const int n = 1 << 18;
    const size_t bytes = n * sizeof(int);

    int *h = (int *)malloc(bytes);
    int *d = nullptr;
    if (cudaMalloc(&d, bytes) != cudaSuccess) return 1;
    view.bytes = (volatile char *)h;
    unsigned sum = 0;
    for (int t = 0; t < rounds; t++) {
        for (int i = 0; i < n; i++) h[i] = i ^ t;
        if (cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice) != cudaSuccess) return 1;
        sum = sum * 31 + touch(how, h);
        add_one<<<n / 256, 256>>>(d, n);
        // The GPU calls it when the kernel is done and before the download, so while the host waits in that.
        if (strcmp(how, "host-function") == 0 && cudaLaunchHostFunc(0, by_function, h) != cudaSuccess) return 1;
        if (cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
        for (int i = 0; i < n; i++) sum = sum * 31 + h[i];
        sum += seen;
    }
    printf("sum %08x\n", sum);
    free(h);
    return cudaFree(d) == cudaSuccess ? 0 : 1;
}
