// A CUDA runtime whose calls do nothing, so that what a counted call costs is what Echo adds to it.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct dim { unsigned x, y, z; };

int cudaMalloc(void **out, size_t bytes) { return posix_memalign(out, 4096, bytes) != 0; }
int cudaMallocManaged(void **out, size_t bytes, unsigned flags) { (void)flags; return cudaMalloc(out, bytes); }
int cudaFree(void *address) { free(address); return 0; }
int cudaMemcpy(void *dst, const void *src, size_t bytes, int kind) { (void)dst, (void)src, (void)bytes, (void)kind; return 0; }
int cudaDeviceSynchronize(void) { return 0; }
int cudaLaunchKernel(const void *function, struct dim grid, struct dim block, void **arguments, size_t shared, void *stream) {
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared, (void)stream;
    return 0;
}
int cudaRuntimeGetVersion(int *version) { *version = 13000; return 0; }
int cudaDriverGetVersion(int *version) { *version = 13000; return 0; }
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaDeviceGetAttribute(int *value, int attribute, int device) { (void)attribute, (void)device; *value = 1; return 0; }
int cudaGetDeviceProperties(char *properties, int device) { (void)device; strcpy(properties, "nothing"); return 0; }
int cudaPeekAtLastError(void) { return 0; }
int cudaGetLastError(void) { return 0; }
