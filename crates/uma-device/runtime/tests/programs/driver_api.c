// The driver API from C: `driver_api CASE IMAGE`, the image being that of driver_kernels.cu. A failed check says where and ends with 1.
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(CUresult code) {
    const char *name = NULL;
    return cuGetErrorName(code, &name) == CUDA_SUCCESS ? name : "no error of CUDA";
}

#define IS(expected, call)                                                                                         \
    do {                                                                                                           \
        CUresult code_ = (call);                                                                                   \
        if (code_ != (expected)) {                                                                                 \
            printf("%s:%d: %s is %s, not %s\n", __FILE__, __LINE__, #call, name_of(code_), #expected);             \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)
#define OK(call) IS(CUDA_SUCCESS, call)
#define EXPECT(condition)                                                                                          \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                         \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

static const char *image_path;

static void *image(void) {
    FILE *file = fopen(image_path, "rb");
    EXPECT(file);
    EXPECT(fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    rewind(file);
    char *bytes = malloc((size_t)size);
    EXPECT(fread(bytes, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    return bytes;
}

static CUcontext start(void) {
    CUcontext context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}

static void contexts(void) {
    int count, version;
    CUdeviceptr memory;
    CUcontext primary, made, current;
    OK(cuDriverGetVersion(&version));
    EXPECT(version == CUDA_VERSION);
    IS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    IS(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&memory, 16));
    IS(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    EXPECT(count == 1);
    IS(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&primary, 1));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&memory, 16));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)0x10));

    unsigned flags;
    int active;
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT(!active);
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT(active);
    OK(cuCtxGetCurrent(&current));
    EXPECT(current == NULL);
    OK(cuCtxSetCurrent(primary));
    OK(cuCtxCreate(&made, NULL, CU_CTX_SCHED_SPIN, 0));
    OK(cuCtxGetCurrent(&current));
    EXPECT(current == made && made != primary);
    OK(cuCtxGetFlags(&flags));
    EXPECT(flags & CU_CTX_SCHED_SPIN);
    OK(cuCtxSynchronize_v2(made));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize_v2(NULL));
    OK(cuCtxPushCurrent(primary));
    OK(cuCtxPopCurrent(&current));
    EXPECT(current == primary);
    OK(cuCtxDestroy(made));
    OK(cuCtxGetCurrent(&current));
    EXPECT(current == primary);
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(made));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(made));

    OK(cuMemAlloc(&memory, 16));
    OK(cuDevicePrimaryCtxRelease(0));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
    // The last release reset the device.
    IS(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));
}

static void device(void) {
    char name[64];
    CUuuid uuid;
    size_t bytes;
    int value, major, minor;
    start();
    OK(cuDeviceGetName(name, sizeof name, 0));
    EXPECT(strstr(name, "Echo CPU device"));
    OK(cuDeviceGetName(name, 5, 0));
    EXPECT(strcmp(name, "Echo") == 0);
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(name, 0, 0));
    OK(cuDeviceGetUuid(&uuid, 0));
    OK(cuDeviceTotalMem(&bytes, 0));
    EXPECT(bytes > 1 << 20);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_INTEGRATED, 0));
    EXPECT(value == 1);
    OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    OK(cuDeviceComputeCapability(&value, &minor, 0));
    EXPECT(value == major);
    IS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, (CUdevice_attribute)100000, 0));
    IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_INTEGRATED, 1));
    const char *text = name;
    IS(CUDA_ERROR_INVALID_VALUE, cuGetErrorString((CUresult)12345, &text));
    EXPECT(text == NULL);
    OK(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
    EXPECT(strcmp(text, "invalid value") == 0);
    CUarray array;
    IS(CUDA_ERROR_NOT_SUPPORTED, cuArrayCreate(&array, NULL));
}

static void memory(void) {
    enum { N = 1000 };
    unsigned char in[N], out[N];
    CUdeviceptr a, b, base, managed;
    size_t bytes, free_before, free_after, total;
    start();
    for (int i = 0; i < N; ++i) in[i] = (unsigned char)(i * 7 + 3);
    IS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&a, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, N));
    IS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&a, (size_t)1 << 50));
    OK(cuMemGetInfo(&free_before, &total));
    OK(cuMemAlloc(&a, N));
    OK(cuMemAlloc(&b, N));
    OK(cuMemcpyHtoD(a, in, N));
    OK(cuMemcpyDtoD(b, a, N));
    OK(cuMemcpyDtoH(out, b, N));
    EXPECT(memcmp(in, out, N) == 0);
    OK(cuMemcpy(a, (CUdeviceptr)(size_t)(in + 1), N - 1));
    OK(cuMemcpy((CUdeviceptr)(size_t)out, a, N));
    EXPECT(memcmp(in + 1, out, N - 1) == 0);
    IS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a, in, N + 1));
    IS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD((CUdeviceptr)(size_t)out, in, N));
    IS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(out, (CUdeviceptr)(size_t)in, N));

    OK(cuMemGetAddressRange(&base, &bytes, a + 17));
    EXPECT(base == a && bytes == N);
    IS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)(size_t)in));

    // Boxes: 3 rows of 5 bytes from (2, 1) in rows of 10 to (1, 2) in rows of 8, which lie in the middle of zeroes.
    OK(cuMemsetD8(b, 0, N));
    OK(cuMemcpyHtoD(a, in, N));
    CUDA_MEMCPY2D box = {0};
    box.srcXInBytes = 2, box.srcY = 1, box.srcMemoryType = CU_MEMORYTYPE_HOST, box.srcHost = in, box.srcPitch = 10;
    box.dstXInBytes = 1, box.dstY = 2, box.dstMemoryType = CU_MEMORYTYPE_DEVICE, box.dstDevice = b, box.dstPitch = 8;
    box.WidthInBytes = 5, box.Height = 3;
    OK(cuMemcpy2D(&box));
    OK(cuMemcpyDtoH(out, b, N));
    for (int i = 0; i < N; ++i) {
        int x = i % 8, y = i / 8, inside = x >= 1 && x < 6 && y >= 2 && y < 5;
        EXPECT(out[i] == (inside ? in[(y - 1) * 10 + x + 1] : 0));
    }
    box.dstMemoryType = box.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    box.srcDevice = a;
    OK(cuMemcpy2DUnaligned(&box));
    box.dstPitch = 4;
    IS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&box));
    box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    IS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&box));

    OK(cuMemsetD32(a, 0x04030201, 8));
    OK(cuMemsetD16(a + 32, 0x0605, 4));
    OK(cuMemsetD2D8(a + 64, 16, 9, 3, 2));
    OK(cuMemcpyDtoH(out, a, N));
    for (int i = 0; i < 32; ++i) EXPECT(out[i] == i % 4 + 1);
    for (int i = 32; i < 40; ++i) EXPECT(out[i] == 5 + i % 2);
    EXPECT(out[40] == in[40] && out[66] == 9 && out[67] == in[67] && out[80] == 9 && out[83] == in[83]);
    IS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a + 2, 1, 1));
    IS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a, 1, N / 4 + 1));

    OK(cuMemFree(a));
    OK(cuMemFree(b));
    OK(cuMemFree(0));
    IS(CUDA_ERROR_INVALID_VALUE, cuMemFree(a));
    OK(cuMemGetInfo(&free_after, &total));
    EXPECT(free_after == free_before);

    IS(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&managed, N, 0));
    OK(cuMemAllocManaged(&managed, N, CU_MEM_ATTACH_GLOBAL));
    memset((void *)(size_t)managed, 7, N);
    OK(cuMemcpyDtoH(out, managed, N));
    EXPECT(out[0] == 7 && out[N - 1] == 7);
    OK(cuMemFree(managed));
}

static void pointers(void) {
    CUdeviceptr device, managed, address;
    void *pinned;
    int is_managed, ordinal;
    CUmemorytype type;
    start();
    OK(cuMemAlloc(&device, 100));
    OK(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemHostAlloc(&pinned, 100, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 5));
    EXPECT(type == CU_MEMORYTYPE_DEVICE);
    IS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&address, CU_POINTER_ATTRIBUTE_HOST_POINTER, device));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(size_t)pinned));
    EXPECT(type == CU_MEMORYTYPE_HOST);
    OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
    EXPECT(is_managed == 1);
    OK(cuPointerGetAttribute(&address, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, managed + 40));
    EXPECT(address == managed);
    OK(cuMemHostGetDevicePointer(&address, pinned, 0));
    EXPECT(address == (CUdeviceptr)(size_t)pinned);
    int local;
    IS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(size_t)&local));
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *data[] = {&type, &ordinal};
    OK(cuPointerGetAttributes(2, asked, data, (CUdeviceptr)(size_t)&local));
    EXPECT(type == 0 && ordinal == -2);
    OK(cuPointerGetAttributes(2, asked, data, device));
    EXPECT(type == CU_MEMORYTYPE_DEVICE && ordinal == 0);
    OK(cuMemFreeHost(pinned));

    void *own = aligned_alloc(4096, 8192);
    OK(cuMemHostRegister(own, 8192, 0));
    IS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(own, 8192, 0));
    OK(cuMemHostUnregister(own));
    IS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own));
}

static void check_sums(CUdeviceptr data, int count, int expected) {
    int *out = malloc(sizeof(int) * (size_t)count);
    OK(cuMemcpyDtoH(out, data, sizeof(int) * (size_t)count));
    for (int i = 0; i < count; ++i) EXPECT(out[i] == i + expected);
    free(out);
}

static void modules(void) {
    enum { COUNT = 300 };
    int in[COUNT], value = 10, count = COUNT, number;
    unsigned functions;
    CUmodule module, other;
    CUfunction add, none, bump;
    CUdeviceptr data, global;
    size_t bytes;
    start();
    // What is loaded is copied, so the program may forget it.
    char *bytes_of_image = image();
    OK(cuModuleLoadData(&module, bytes_of_image));
    memset(bytes_of_image, 0, 64);
    OK(cuModuleGetFunction(&add, module, "add"));
    IS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&none, module, "subtract"));
    IS(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&none, (CUmodule)0x10, "add"));
    OK(cuModuleGetFunctionCount(&functions, module));
    EXPECT(functions == 3);
    const char *name;
    OK(cuFuncGetName(&name, add));
    EXPECT(strcmp(name, "add") == 0);
    size_t offset, size;
    OK(cuFuncGetParamInfo(add, 2, &offset, &size));
    EXPECT(offset == 12 && size == 4);
    IS(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(add, 3, &offset, &size));
    OK(cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add));
    EXPECT(number == 1024);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, add, 1024, 0));
    EXPECT(number == 2);
    int blocks, threads;
    OK(cuOccupancyMaxPotentialBlockSize(&blocks, &threads, add, NULL, 0, 0));
    EXPECT(threads == 1024 && blocks >= 2);
    OK(cuOccupancyMaxPotentialBlockSize(&blocks, &threads, add, NULL, 0, 100));
    // 32 blocks of 64 fill a multiprocessor; of 96 or 100 it holds fewer threads.
    EXPECT(threads == 64);
    IS(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialBlockSize(&blocks, NULL, add, NULL, 0, 0));

    for (int i = 0; i < COUNT; ++i) in[i] = i;
    OK(cuMemAlloc(&data, sizeof in));
    OK(cuMemcpyHtoD(data, in, sizeof in));
    void *arguments[] = {&data, &count, &value};
    OK(cuLaunchKernel(add, 3, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
    check_sums(data, COUNT, 15);
    // The same with a block that the program packs, through the other call.
    struct {
        CUdeviceptr data;
        int count, value;
    } packed = {data, COUNT, 20};
    size_t packed_size = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_size, CU_LAUNCH_PARAM_END};
    CUlaunchConfig config = {.gridDimX = 3, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 128, .blockDimY = 1, .blockDimZ = 1};
    OK(cuLaunchKernelEx(&config, add, NULL, extra));
    check_sums(data, COUNT, 40);
    packed_size = 8;
    IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, add, NULL, extra));
    IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(add, 3, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(add, 0, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(add, 1, 1, 1, 2048, 1, 1, 0, NULL, arguments, NULL));

    OK(cuModuleGetGlobal(&global, &bytes, module, "offset_of_all"));
    EXPECT(bytes == 4);
    number = -5;
    OK(cuMemcpyHtoD(global, &number, 4));
    OK(cuLaunchKernel(add, 3, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
    check_sums(data, COUNT, 45);
    IS(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&global, &bytes, module, "offset_of_none"));

    OK(cuModuleUnload(module));
    IS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(add, 3, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
    IS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));

    IS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&other, ".version 8.0\n.target sm_80\n"));
    IS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&other, "no such file"));
    OK(cuModuleLoad(&other, image_path));
    OK(cuModuleGetFunction(&bump, other, "bump"));
    OK(cuModuleGetGlobal(&global, NULL, other, "counter"));
    OK(cuLaunchKernel(bump, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(&number, global, 4));
    EXPECT(number == 42);
}

static void libraries(void) {
    CUlibrary library;
    CUkernel kernel, all[3];
    CUfunction function;
    CUdeviceptr global;
    size_t bytes;
    unsigned count;
    int number;
    OK(cuInit(0));
    // A library needs no context until something of it is used.
    void *kept = image();
    CUlibraryOption options[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
    void *values[] = {(void *)1};
    OK(cuLibraryLoadData(&library, kept, NULL, NULL, 0, options, values, 1));
    OK(cuLibraryGetKernel(&kernel, library, "bump"));
    OK(cuLibraryGetKernelCount(&count, library));
    OK(cuLibraryEnumerateKernels(all, 3, library));
    EXPECT(count == 3 && (all[0] == kernel || all[1] == kernel || all[2] == kernel));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    start();
    OK(cuKernelGetFunction(&function, kernel));
    OK(cuLibraryGetGlobal(&global, &bytes, library, "counter"));
    // It is no managed variable; clang makes none for CUDA (registration.cpp has one made by hand).
    IS(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&global, &bytes, library, "counter"));
    OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuMemcpyDtoH(&number, global, 4));
    EXPECT(bytes == 4 && number == 43);
    OK(cuLibraryUnload(library));
    IS(CUDA_ERROR_INVALID_HANDLE, cuKernelGetFunction(&function, kernel));
}

static void called(void *data) { *(int *)data += 1; }

static void streams(void) {
    enum { N = 1 << 16 };
    CUstream stream;
    CUevent event, later;
    CUdeviceptr data;
    unsigned char *in, *out;
    int calls = 0;
    float time;
    start();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&later, CU_EVENT_DEFAULT));
    OK(cuMemAllocHost((void **)&in, N));
    OK(cuMemAllocHost((void **)&out, N));
    OK(cuMemAllocAsync(&data, N, stream));
    memset(in, 3, N);
    OK(cuEventRecord(event, stream));
    OK(cuMemcpyHtoDAsync(data, in, N, stream));
    OK(cuMemsetD8Async(data, 4, N / 2, stream));
    OK(cuMemcpyDtoHAsync(out, data, N, stream));
    OK(cuLaunchHostFunc(stream, called, &calls));
    OK(cuEventRecord(later, stream));
    OK(cuStreamWaitEvent(CU_STREAM_PER_THREAD, later, 0));
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    EXPECT(calls == 1 && out[0] == 4 && out[N / 2] == 3);
    OK(cuEventSynchronize(later));
    OK(cuEventElapsedTime(&time, event, later));
    EXPECT(time >= 0);
    OK(cuMemFreeAsync(data, stream));
    OK(cuStreamQuery(CU_STREAM_LEGACY));
    OK(cuStreamDestroy(stream));
    IS(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    OK(cuEventDestroy(event));
    IS(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
}

static void *found(const char *symbol, int version, cuuint64_t flags, CUdriverProcAddressQueryResult expected) {
    void *function = (void *)1;
    CUdriverProcAddressQueryResult status;
    OK(cuGetProcAddress(symbol, &function, version, flags, &status));
    EXPECT(status == expected);
    return function;
}

static void entry_points(void) {
    // By themselves and through what the loader says; neither needs cuInit.
    void *self = dlopen("libcuda.so.1", RTLD_NOW);
    EXPECT(self);
    EXPECT(found("cuMemcpyHtoD", 13000, CU_GET_PROC_ADDRESS_DEFAULT, 0) == dlsym(self, "cuMemcpyHtoD_v2"));
    EXPECT(found("cuMemcpyHtoD", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, 0) == dlsym(self, "cuMemcpyHtoD_v2"));
    cuuint64_t own = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    EXPECT(found("cuMemcpyHtoD", 13000, own, 0) == dlsym(self, "cuMemcpyHtoD_v2_ptds"));
    EXPECT(found("cuLaunchKernel", 13000, own, 0) == dlsym(self, "cuLaunchKernel_ptsz"));
    EXPECT(found("cuMemAlloc", 13000, own, 0) == dlsym(self, "cuMemAlloc_v2"));
    EXPECT(found("cuGetProcAddress", 13000, 0, 0) == dlsym(self, "cuGetProcAddress_v2"));
    EXPECT(found("cuMemAlloc", 3000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) == NULL);
    EXPECT(found("cuMemAlloc_v2", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == NULL);
    EXPECT(found("cuGraphCreate", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == NULL);
    void *function;
    IS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &function, 14000, 0, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &function, 13000, 8, NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress(NULL, &function, 13000, 0, NULL));
}

static void faults(void) {
    CUmodule module;
    CUfunction follow;
    CUdeviceptr memory;
    CUdevice device;
    int local = 0, *bad = &local;
    start();
    OK(cuModuleLoadData(&module, image()));
    OK(cuModuleGetFunction(&follow, module, "follow"));
    void *arguments[] = {&bad};
    OK(cuLaunchKernel(follow, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&memory, 16));
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxGetDevice(&device));
    OK(cuDevicePrimaryCtxReset(0));
    // The module is still there, and its kernels run on the new device process.
    OK(cuMemAlloc(&memory, 16));
    arguments[0] = &memory;
    OK(cuLaunchKernel(follow, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    OK(cuMemcpyDtoH(&local, memory, sizeof local));
    EXPECT(local == 1);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"contexts", contexts}, {"device", device},   {"memory", memory},
                 {"pointers", pointers}, {"modules", modules}, {"libraries", libraries},
                 {"streams", streams},   {"faults", faults},   {"entry_points", entry_points}};
    EXPECT(argc == 3);
    image_path = argv[2];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return 0;
        }
    }
    printf("no such case\n");
    return 2;
}
