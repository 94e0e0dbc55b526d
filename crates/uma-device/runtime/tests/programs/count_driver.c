// A library to preload: stands between a program's runtime and the driver, as a tool would, by taking dlsym's and cuGetProcAddress's place.
// When the program ends, the file COUNT_DRIVER has a line `name count` for each driver function that was called, under its exported name. It also
// has a cudaMalloc, which a program with the runtime in itself never calls.
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef CUresult (*GetProcAddress)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static GetProcAddress get_proc_address;
static int runtime_mallocs;

// Name without version, exported name, parameters, arguments. S: for functions with two kinds of null stream.
#define FUNCTIONS(F, S)                                                                                            \
    F(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr * to, size_t bytes), (to, bytes))                                    \
    F(cuMemAllocManaged, cuMemAllocManaged, (CUdeviceptr * to, size_t bytes, unsigned flags), (to, bytes, flags))  \
    F(cuMemAllocHost, cuMemAllocHost_v2, (void **to, size_t bytes), (to, bytes))                                   \
    F(cuMemHostAlloc, cuMemHostAlloc, (void **to, size_t bytes, unsigned flags), (to, bytes, flags))               \
    F(cuMemFree, cuMemFree_v2, (CUdeviceptr address), (address))                                                   \
    F(cuMemFreeHost, cuMemFreeHost, (void *address), (address))                                                    \
    F(cuCtxSynchronize, cuCtxSynchronize, (void), ())                                                              \
    S(cuMemcpy, cuMemcpy, ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes))               \
    S(cuMemcpyHtoD, cuMemcpyHtoD_v2, ptds, (CUdeviceptr to, const void *from, size_t bytes), (to, from, bytes))    \
    S(cuMemcpyDtoH, cuMemcpyDtoH_v2, ptds, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))          \
    S(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, ptsz,                                                               \
      (void *to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream))                      \
    S(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, ptsz,                                                               \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream))                \
    S(cuMemsetD8, cuMemsetD8_v2, ptds, (CUdeviceptr to, unsigned char value, size_t count), (to, value, count))    \
    S(cuStreamSynchronize, cuStreamSynchronize, ptsz, (CUstream stream), (stream))                                 \
    S(cuLaunchKernel, cuLaunchKernel, ptsz,                                                                        \
      (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
       CUstream stream, void **arguments, void **extra),                                                           \
      (f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra))

#define DEFINE(id, parameters, arguments)                                                                          \
    static CUresult(*real_##id) parameters;                                                                        \
    static int count_##id;                                                                                         \
    static CUresult counted_##id parameters {                                                                      \
        ++count_##id;                                                                                              \
        return real_##id arguments;                                                                                \
    }
// The names are cuda.h's macros, so they are pasted and not expanded.
#define DEFINE_F(base, name, parameters, arguments) DEFINE(name##_, parameters, arguments)
#define DEFINE_S(base, name, kind, parameters, arguments)                                                          \
    DEFINE(name##_, parameters, arguments) DEFINE(name##_##kind##_, parameters, arguments)
FUNCTIONS(DEFINE_F, DEFINE_S)

#define TAKE(id)                                                                                                   \
    {                                                                                                              \
        memcpy(&real_##id, function, sizeof *function);                                                            \
        *function = (void *)counted_##id;                                                                          \
    }
#define TAKE_F(base, name, parameters, arguments)                                                                  \
    if (strcmp(symbol, #base) == 0) TAKE(name##_)
#define TAKE_S(base, name, kind, parameters, arguments)                                                            \
    if (strcmp(symbol, #base) == 0) {                                                                              \
        if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) TAKE(name##_##kind##_)                          \
        else TAKE(name##_)                                                                                         \
    }

static CUresult counted_get_proc_address(const char *symbol, void **function, int version, cuuint64_t flags,
                                         CUdriverProcAddressQueryResult *status) {
    CUresult result = get_proc_address(symbol, function, version, flags, status);
    if (result == CUDA_SUCCESS && *function) {
        FUNCTIONS(TAKE_F, TAKE_S)
        // A runtime asks it for itself first, and then only what it got.
        if (strcmp(symbol, "cuGetProcAddress") == 0 && version >= 12000) *function = (void *)counted_get_proc_address;
    }
    return result;
}

void *dlsym(void *library, const char *symbol) {
    static void *(*real)(void *, const char *);
    // It has had three versions: of today's glibc, and the first ones of the two architectures.
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (int i = 0; i < 3 && !real; ++i) *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (!real) abort();
    void *found = real(library, symbol);
    if (found && strcmp(symbol, "cuGetProcAddress_v2") == 0) {
        memcpy(&get_proc_address, &found, sizeof found);
        return (void *)counted_get_proc_address;
    }
    return found;
}

int cudaMalloc(void **to, size_t bytes) {
    static int (*real)(void **, size_t);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "cudaMalloc");
    ++runtime_mallocs;
    return real(to, bytes);
}

#define PRINT(id, name)                                                                                            \
    if (count_##id) fprintf(file, "%s %d\n", name, count_##id);
#define PRINT_F(base, name, parameters, arguments) PRINT(name##_, #name)
#define PRINT_S(base, name, kind, parameters, arguments) PRINT(name##_, #name) PRINT(name##_##kind##_, #name "_" #kind)

__attribute__((destructor)) static void print(void) {
    // Programs that run this one are preloaded, too, and have nothing to say.
    const char *path = get_proc_address ? getenv("COUNT_DRIVER") : NULL;
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    if (runtime_mallocs) fprintf(file, "cudaMalloc %d\n", runtime_mallocs);
    FUNCTIONS(PRINT_F, PRINT_S)
    fclose(file);
}
