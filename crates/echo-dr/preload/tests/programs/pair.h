// The two APIs of CUDA as far as `pair.c` needs them; no toolkit is needed to compile it.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                            \
    do {                                                                       \
        int code = (call);                                                     \
        if (code != 0) {                                                       \
            fprintf(stderr, "%s: error %d\n", #call, code);                    \
            exit(3);                                                           \
        }                                                                      \
    } while (0)

#ifdef DRIVER
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(void **address, size_t bytes);
int cuMemFree_v2(void *address);
int cuMemcpyHtoD_v2(void *dst, const void *src, size_t bytes);
int cuMemcpyDtoH_v2(void *dst, const void *src, size_t bytes);
int cuMemsetD8Async(void *dst, unsigned char value, size_t bytes, void *stream);
int cuCtxSynchronize(void);
static void begin(void) {
    void *context;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
}
#ifdef LOCKED
int cuMemAllocHost_v2(void **address, size_t bytes);
int cuMemFreeHost(void *address);
#define locked_alloc cuMemAllocHost_v2
#define locked_free cuMemFreeHost
#endif
#define device_alloc cuMemAlloc_v2
#define device_free cuMemFree_v2
#define upload cuMemcpyHtoD_v2
#define download cuMemcpyDtoH_v2
#define work(scratch, value, bytes) cuMemsetD8Async(scratch, value, bytes, NULL)
#define synchronize cuCtxSynchronize
#elif defined LOOKED_UP
// By name, at run time: LOOKED_UP is dlsym or dlvsym.
#include <assert.h>
#include <dlfcn.h>
#define dlsym_of(library, name) dlsym(library, name)
#define dlvsym_of(library, name) dlvsym(library, name, "libcudart.so.13")
#define PASTE(a, b) a##b
#define OF(a) PASTE(a, _of)
static int (*malloc_function)(void **, size_t);
static int (*free_function)(void *);
static int (*copy_function)(void *, const void *, size_t, int);
static int (*set_function)(void *, int, size_t, void *);
static int (*wait_function)(void);
static void begin(void) {
    void *library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
    assert(library);
    *(void **)&malloc_function = OF(LOOKED_UP)(library, "cudaMalloc");
    *(void **)&free_function = OF(LOOKED_UP)(library, "cudaFree");
    *(void **)&copy_function = OF(LOOKED_UP)(library, "cudaMemcpy");
    *(void **)&set_function = OF(LOOKED_UP)(library, "cudaMemsetAsync");
    *(void **)&wait_function = OF(LOOKED_UP)(library, "cudaDeviceSynchronize");
    assert(malloc_function && free_function && copy_function && set_function && wait_function);
    assert(!OF(LOOKED_UP)(library, "cudaMallocOfNobody") && dlerror());
}
#define device_alloc malloc_function
#define device_free free_function
#define upload(dst, src, bytes) copy_function(dst, src, bytes, 1)
#define download(dst, src, bytes) copy_function(dst, src, bytes, 2)
#define work(scratch, value, bytes) set_function(scratch, value, bytes, NULL)
#define synchronize wait_function
#else
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMemcpy(void *dst, const void *src, size_t bytes, int kind);
int cudaMemsetAsync(void *dst, int value, size_t bytes, void *stream);
int cudaDeviceSynchronize(void);
static void begin(void) {}
#ifdef LOCKED
int cudaMallocHost(void **address, size_t bytes);
int cudaFreeHost(void *address);
#define locked_alloc cudaMallocHost
#define locked_free cudaFreeHost
#endif
#define device_alloc cudaMalloc
#define device_free cudaFree
#define upload(dst, src, bytes) cudaMemcpy(dst, src, bytes, 1)
#define download(dst, src, bytes) cudaMemcpy(dst, src, bytes, 2)
#define work(scratch, value, bytes) cudaMemsetAsync(scratch, value, bytes, NULL)
#define synchronize cudaDeviceSynchronize
#endif

#ifdef LOCKED
#define host_alloc(address, bytes) CHECK(locked_alloc((void **)(address), bytes))
#define host_free(address) CHECK(locked_free(address))
#else
#define host_alloc(address, bytes) (*(address) = malloc(bytes))
#define host_free(address) free(address)
#endif
