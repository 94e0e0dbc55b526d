// Registers images by hand, as a compiler's start-up code does: `registration IMAGE` reads the image from a file.
#include "common.h"

extern "C" {
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
char __cudaInitModule(void **);
}

struct Wrapper {
    int magic = 0x466243b1, version = 1;
    const void *data;
    void *rest = nullptr;
};

static void stub() {}
static void other_stub() {}
static int *counter;

int main(int argc, char **argv) {
    EXPECT(argc == 2);
    std::vector<char> image;
    std::FILE *file = std::fopen(argv[1], "rb");
    EXPECT(file);
    for (int c; (c = std::fgetc(file)) != EOF;) image.push_back(char(c));
    Wrapper wrapper;
    wrapper.data = image.data();
    void **module = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(module, (const char *)stub, nullptr, "bump", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterManagedVar(module, (void **)&counter, nullptr, "counter", 0, sizeof(int), 0, 0);
    __cudaRegisterFatBinaryEnd(module);

    EXPECT(__cudaInitModule(module));
    EXPECT(*counter == 41);
    int by = 2;
    void *arguments[] = {&by};
    OK(cudaLaunchKernel((const void *)stub, dim3(1), dim3(1), arguments, 0, 0));
    OK(cudaDeviceSynchronize());
    EXPECT(*counter == 43);
    OK(cudaDeviceReset());
    EXPECT(__cudaInitModule(module));
    EXPECT(*counter == 41);
    IS(cudaErrorInvalidValue, cudaFree(counter));
    __cudaUnregisterFatBinary(module);
    IS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel((const void *)stub, dim3(1), dim3(1), arguments, 0, 0));

    // What a compiler for GPUs registers.
    const unsigned long long gpu[4] = {0x00100001ba55ed50, 0};
    Wrapper foreign;
    foreign.data = gpu;
    module = __cudaRegisterFatBinary(&foreign);
    __cudaRegisterFunction(module, (const char *)other_stub, nullptr, "bump", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    for (int i = 0; i < 2; ++i)
        IS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel((const void *)other_stub, dim3(1), dim3(1), arguments, 0, 0));
    std::printf("done\n");
}
