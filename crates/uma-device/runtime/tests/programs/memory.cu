// Allocation, registration, attributes of memory and of the device, error codes.
#include "common.h"
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <sys/wait.h>
#include <unistd.h>

__global__ void add_one(int *data, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] += 1;
}
__global__ void __launch_bounds__(128) bounded(int *data) { *data = 1; }
__global__ void dynamic(int *data) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    data[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}
__global__ void says(int what) { printf("kernel %d\n", what); }

static void allocation() {
    void *a, *b;
    OK(cudaMalloc(&a, 1));
    OK(cudaMalloc(&b, 1));
    EXPECT(a != b && size_t(a) % 256 == 0 && size_t(b) % 256 == 0);
    OK(cudaFree(a));
    IS(cudaErrorInvalidValue, cudaFree(a));
    IS(cudaErrorInvalidValue, cudaFree(static_cast<char *>(b) + 1));
    IS(cudaErrorInvalidValue, cudaFreeHost(b));
    OK(cudaFree(b));
    OK(cudaFree(nullptr));
    OK(cudaFreeHost(nullptr));
    OK(cudaMalloc(&a, 0));
    EXPECT(a == nullptr);
    IS(cudaErrorInvalidValue, cudaMalloc(static_cast<void **>(nullptr), 10));
    IS(cudaErrorMemoryAllocation, cudaMalloc(&a, size_t(1) << 50));
    IS(cudaErrorInvalidValue, cudaMallocManaged(&a, 0));
    IS(cudaErrorInvalidValue, cudaMallocManaged(&a, 10, 4));
    size_t free1, free2, total;
    OK(cudaMemGetInfo(&free1, &total));
    OK(cudaMalloc(&a, 10 << 20));
    OK(cudaMemGetInfo(&free2, &total));
    EXPECT(free1 - free2 == 10 << 20);
    OK(cudaFree(a));
    OK(cudaMemGetInfo(&free2, &total));
    EXPECT(free1 == free2 && free1 <= total);
}

static void async_allocation() {
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    cudaMemPool_t pool;
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    unsigned long long threshold = 12345, got = 0;
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &got));
    EXPECT(got == threshold);
    for (int round = 0; round < 200; ++round) {
        int *data;
        OK(cudaMallocAsync(&data, 4 << 20, stream));
        OK(cudaMemsetAsync(data, 0, 4000, stream));
        add_one<<<4, 256, 0, stream>>>(data, 1000);
        int first = 0;
        OK(cudaMemcpyAsync(&first, data + 999, sizeof first, cudaMemcpyDeviceToHost, stream));
        OK(cudaFreeAsync(data, stream));
        IS(cudaErrorInvalidValue, cudaMemsetAsync(data, 0, 4, stream));
        OK(cudaStreamSynchronize(stream));
        EXPECT(first == 1);
    }
}

static void registration() {
    const int count = 5000;
    std::vector<int> before(3000, 7), data(count), after(3000, 8);
    for (int i = 0; i < count; ++i) data[i] = i;
    OK(cudaHostRegister(data.data(), count * sizeof(int), cudaHostRegisterMapped));
    IS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(data.data() + 5, 8, 0));
    int *device;
    OK(cudaHostGetDevicePointer(&device, data.data(), 0));
    add_one<<<(count + 127) / 128, 128>>>(device, count);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < count; ++i) EXPECT(data[i] == i + 1);
    // A neighbour on the same page.
    char *block = static_cast<char *>(std::malloc(8192));
    std::memset(block, 1, 8192);
    OK(cudaHostRegister(block + 100, 100, 0));
    OK(cudaHostRegister(block + 300, 100, 0));
    OK(cudaMemset(block + 300, 5, 100));
    OK(cudaHostUnregister(block + 100));
    OK(cudaMemset(block + 300, 6, 50));
    IS(cudaErrorInvalidValue, cudaMemset(block + 100, 6, 50));
    OK(cudaHostUnregister(block + 300));
    IS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(block + 300));
    for (int i = 0; i < 8192; ++i) EXPECT(block[i] == (i < 300 || i >= 400 ? 1 : i < 350 ? 6 : 5));
    OK(cudaHostUnregister(data.data()));
    IS(cudaErrorInvalidValue, cudaHostGetDevicePointer(&device, data.data(), 0));
    for (int i = 0; i < count; ++i) EXPECT(data[i] == i + 1);
    for (int i = 0; i < 3000; ++i) EXPECT(before[i] == 7 && after[i] == 8);
    IS(cudaErrorInvalidValue, cudaHostRegister(reinterpret_cast<void *>(&registration), 10, 0));
}

static void pointers() {
    void *device, *managed, *pinned;
    int local;
    OK(cudaMalloc(&device, 100));
    OK(cudaMallocManaged(&managed, 100));
    OK(cudaHostAlloc(&pinned, 100, cudaHostAllocMapped | cudaHostAllocPortable));
    cudaPointerAttributes a;
    OK(cudaPointerGetAttributes(&a, static_cast<char *>(device) + 50));
    EXPECT(a.type == cudaMemoryTypeDevice && a.device == 0 && a.hostPointer == nullptr);
    OK(cudaPointerGetAttributes(&a, managed));
    EXPECT(a.type == cudaMemoryTypeManaged && a.hostPointer == managed && a.devicePointer == managed);
    OK(cudaPointerGetAttributes(&a, pinned));
    EXPECT(a.type == cudaMemoryTypeHost && a.devicePointer == pinned);
    OK(cudaPointerGetAttributes(&a, &local));
    EXPECT(a.type == cudaMemoryTypeUnregistered);
    unsigned flags;
    OK(cudaHostGetFlags(&flags, pinned));
    EXPECT(flags == (cudaHostAllocMapped | cudaHostAllocPortable));
    IS(cudaErrorInvalidValue, cudaHostGetFlags(&flags, device));
}

static void hints() {
    int concurrent;
    OK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    int *managed, *device;
    OK(cudaMallocManaged(&managed, 1 << 20));
    OK(cudaMalloc(&device, 100));
    cudaMemLocation host = {cudaMemLocationTypeHost, 0}, gpu = {cudaMemLocationTypeDevice, 0};
    OK(cudaMemPrefetchAsync(managed, 1 << 20, host, 0, 0));
    IS(concurrent ? cudaSuccess : cudaErrorInvalidDevice, cudaMemPrefetchAsync(managed, 1 << 20, gpu, 0, 0));
    IS(concurrent ? cudaSuccess : cudaErrorInvalidDevice, cudaMemAdvise(managed, 1000, cudaMemAdviseSetPreferredLocation, gpu));
    OK(cudaMemAdvise(managed, 1000, cudaMemAdviseSetReadMostly, gpu));
    IS(cudaErrorInvalidValue, cudaMemAdvise(device, 100, cudaMemAdviseSetReadMostly, gpu));
    IS(cudaErrorInvalidValue, cudaMemPrefetchAsync(managed, (1 << 20) + 1, host, 0, 0));
    OK(cudaDeviceSynchronize());
}

static void device() {
    int count, current, version, value;
    OK(cudaGetDeviceCount(&count));
    OK(cudaGetDevice(&current));
    EXPECT(count == 1 && current == 0);
    OK(cudaSetDevice(0));
    IS(cudaErrorInvalidDevice, cudaSetDevice(1));
    OK(cudaRuntimeGetVersion(&version));
    EXPECT(version == CUDART_VERSION);
    cudaDeviceProp p;
    OK(cudaGetDeviceProperties(&p, 0));
    EXPECT(std::strstr(p.name, "Echo CPU device"));
    struct { cudaDeviceAttr attribute; long long value; } rows[] = {
        {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock}, {cudaDevAttrMaxBlockDimZ, p.maxThreadsDim[2]},
        {cudaDevAttrMaxGridDimX, p.maxGridSize[0]}, {cudaDevAttrWarpSize, p.warpSize},
        {cudaDevAttrMultiProcessorCount, p.multiProcessorCount}, {cudaDevAttrIntegrated, p.integrated},
        {cudaDevAttrMaxSharedMemoryPerBlock, (long long)p.sharedMemPerBlock},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, (long long)p.sharedMemPerBlockOptin},
        {cudaDevAttrComputeCapabilityMajor, p.major}, {cudaDevAttrComputeCapabilityMinor, p.minor},
        {cudaDevAttrConcurrentManagedAccess, p.concurrentManagedAccess}, {cudaDevAttrManagedMemory, p.managedMemory},
        {cudaDevAttrUnifiedAddressing, p.unifiedAddressing}, {cudaDevAttrCanMapHostMemory, p.canMapHostMemory},
        {cudaDevAttrHostRegisterSupported, p.hostRegisterSupported}, {cudaDevAttrMemoryPoolsSupported, p.memoryPoolsSupported},
        {cudaDevAttrPageableMemoryAccess, p.pageableMemoryAccess}, {cudaDevAttrHostNumaId, p.hostNumaId},
        {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
        {cudaDevAttrMaxBlocksPerMultiprocessor, p.maxBlocksPerMultiProcessor},
    };
    for (auto &row : rows) {
        OK(cudaDeviceGetAttribute(&value, row.attribute, 0));
        EXPECT(value == row.value);
    }
    EXPECT(p.warpSize == 32 && p.totalGlobalMem > (64u << 20));
    IS(cudaErrorInvalidValue, cudaDeviceGetAttribute(&value, cudaDeviceAttr(100000), 0));
    std::printf("integrated %d concurrent %d\n", p.integrated, p.concurrentManagedAccess);
    cudaChannelFormatDesc desc = cudaCreateChannelDesc(8, 16, 0, 0, cudaChannelFormatKindUnsigned);
    EXPECT(desc.x == 8 && desc.y == 16 && desc.f == cudaChannelFormatKindUnsigned);
    size_t limit;
    OK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 4 << 20));
    OK(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
    EXPECT(limit == 4 << 20);
    cudaGraph_t graph;
    IS(cudaErrorNotSupported, cudaGraphCreate(&graph, 0));
    IS(cudaErrorNotSupported, cudaGraphCreate(&graph, 0));
}

static void launches() {
    int *data;
    OK(cudaMalloc(&data, 4096));
    add_one<<<0, 1>>>(data, 1);
    IS(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
    IS(cudaErrorInvalidConfiguration, cudaGetLastError());
    OK(cudaGetLastError());
    add_one<<<1, 1025>>>(data, 1);
    IS(cudaErrorInvalidConfiguration, cudaGetLastError());
    add_one<<<dim3(1, 65536), 1>>>(data, 1);
    IS(cudaErrorInvalidConfiguration, cudaGetLastError());
    add_one<<<1, 32, 300 << 10>>>(data, 1);
    IS(cudaErrorInvalidConfiguration, cudaGetLastError());
    add_one<<<1, 32, 100 << 10>>>(data, 1); // more than the default, not allowed for this kernel
    IS(cudaErrorInvalidValue, cudaGetLastError());
    bounded<<<1, 129>>>(data);
    IS(cudaErrorLaunchOutOfResources, cudaGetLastError());
    OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
    dynamic<<<1, 64, 100 << 10>>>(data);
    OK(cudaGetLastError());
    int host[64];
    OK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; ++i) EXPECT(host[i] == 63 - i);
    int number = 5;
    void *arguments[] = {&data, &number};
    IS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&number, dim3(1), dim3(1), arguments, 0, 0));
    OK(cudaMemset(data, 0, 4096));
    OK(cudaLaunchKernel(add_one, dim3(1), dim3(32), arguments, 0, 0));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(32);
    OK(cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(add_one), arguments));
    cudaLaunchAttribute attribute[2] = {};
    attribute[0].id = cudaLaunchAttributePriority;
    attribute[1].id = cudaLaunchAttributeClusterDimension;
    attribute[1].val.clusterDim.x = attribute[1].val.clusterDim.y = attribute[1].val.clusterDim.z = 1;
    config.attrs = attribute;
    config.numAttrs = 2;
    OK(cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(add_one), arguments));
    attribute[1].val.clusterDim.x = 2;
    IS(cudaErrorNotSupported, cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(add_one), arguments));
    attribute[1].id = cudaLaunchAttributeCooperative;
    attribute[1].val.cooperative = 1;
    IS(cudaErrorNotSupported, cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(add_one), arguments));
    OK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT(host[0] == 3 && host[4] == 3 && host[5] == 0);
    cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, bounded));
    EXPECT(attributes.maxThreadsPerBlock == 128 && attributes.numRegs > 0);
    OK(cudaFuncGetAttributes(&attributes, dynamic));
    EXPECT(attributes.maxDynamicSharedSizeBytes == 100 << 10);
    const char *name;
    OK(cudaFuncGetName(&name, reinterpret_cast<const void *>(bounded)));
    EXPECT(std::strstr(name, "bounded"));
    int blocks, grid, block;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_one, 256, 0));
    EXPECT(blocks == 8);
    OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, bounded));
    EXPECT(block == 128 && grid > 0);
}

static void errors() {
    EXPECT(std::strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue") == 0);
    EXPECT(std::strcmp(cudaGetErrorName(cudaError_t(12345)), "unrecognized error code") == 0);
    for (int code = 0; code < 1000; ++code) EXPECT(cudaGetErrorString(cudaError_t(code))[0] != 0);
}

// Text of kernels and of the program, in order.
static void text() {
    std::printf("a\n");
    says<<<1, 1>>>(1);
    std::printf("b\n");
    OK(cudaDeviceSynchronize());
    std::printf("c\n");
    says<<<1, 2>>>(2);
    OK(cudaStreamSynchronize(0));
    std::printf("d\n");
}

static void reset() {
    int *data, *managed;
    OK(cudaMalloc(&data, 4096));
    OK(cudaMallocManaged(&managed, 4096));
    std::vector<int> registered(5000, 3);
    OK(cudaHostRegister(registered.data(), 20000, 0));
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    add_one<<<1, 1, 0, stream>>>(data, 1);
    OK(cudaDeviceReset());
    EXPECT(registered[4999] == 3);
    IS(cudaErrorInvalidValue, cudaFree(data));
    IS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
    OK(cudaMallocManaged(&managed, 4096));
    EXPECT(managed[0] == 0);
    add_one<<<1, 1>>>(managed, 1);
    OK(cudaDeviceSynchronize());
    EXPECT(managed[0] == 1);
    OK(cudaDeviceReset());
    OK(cudaDeviceReset());
}

// A child that was forked after the first call has no device, and does no harm to the parent's.
static void forked() {
    int *data;
    OK(cudaMalloc(&data, 4096));
    OK(cudaMemset(data, 0, 4096));
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int *other, count;
        if (cudaMalloc(&other, 10) != cudaErrorInitializationError) _exit(1);
        if (cudaGetDeviceCount(&count) != cudaErrorInitializationError) _exit(2);
        add_one<<<1, 1>>>(data, 1);
        if (cudaGetLastError() != cudaErrorInitializationError) _exit(3);
        std::exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    add_one<<<1, 1>>>(data, 1);
    int value;
    OK(cudaMemcpy(&value, data, sizeof value, cudaMemcpyDeviceToHost));
    EXPECT(value == 1);
    // The device process is no child of the program.
    EXPECT(wait(&status) == -1);
}

// New memory shows the pattern (UMA_DEVICE_POISON=1).
static void poison() {
    unsigned char *data, *managed, got[64];
    OK(cudaMalloc(&data, 64));
    OK(cudaMallocManaged(&managed, 64));
    OK(cudaMemcpy(got, data, 64, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; ++i) EXPECT(got[i] == 0xCB && managed[i] == 0xCB);
}

// With a slow link copies take their time and managed memory moves at each launch; prints what is slow.
static void link() {
    auto quickest = [](auto call) {
        double best = 1e9;
        for (int i = 0; i < 20; ++i) {
            auto start = std::chrono::steady_clock::now();
            call();
            best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
        }
        return best;
    };
    int *data, *managed, host;
    OK(cudaMalloc(&data, 4));
    double copy = quickest([&] { OK(cudaMemcpy(&host, data, 4, cudaMemcpyDeviceToHost)); });
    OK(cudaMallocManaged(&managed, 64 << 20));
    double launch = quickest([&] {
        add_one<<<1, 1>>>(data, 1);
        OK(cudaDeviceSynchronize());
    });
    std::printf("copy %s, launch %s\n", copy < 8 ? "quick" : "slow", launch < 11000 ? "quick" : "slow");
}

MAIN(CASE(allocation), CASE(async_allocation), CASE(registration), CASE(pointers), CASE(hints), CASE(device), CASE(launches),
     CASE(errors), CASE(text), CASE(reset), CASE(forked), CASE(poison), CASE(link))
