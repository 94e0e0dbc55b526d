// One program with both libraries.
#include "common.h"
#include <cuda.h>
#include <cuda_runtime.h>
#include <thread>

__global__ void add(int *data, int value) { data[threadIdx.x] += value; }

#define CU(call) EXPECT((call) == CUDA_SUCCESS)

int main() {
    // The runtime takes the primary context, and the program finds it current.
    int *data, values[4] = {1, 2, 3, 4};
    OK(cudaMalloc(&data, sizeof values));
    CUcontext current, primary;
    CU(cuCtxGetCurrent(&current));
    CU(cuDevicePrimaryCtxRetain(&primary, 0));
    EXPECT(current == primary);

    // Memory and kernels of one library in the calls of the other.
    CU(cuMemcpyHtoD((CUdeviceptr)data, values, sizeof values));
    cudaKernel_t kernel;
    OK(cudaGetKernel(&kernel, (const void *)add));
    int value = 10;
    void *arguments[] = {&data, &value};
    CU(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 4, 1, 1, 0, nullptr, arguments, nullptr));
    OK(cudaLaunchKernel((const void *)add, dim3(1), dim3(4), arguments, 0, nullptr));
    OK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(4), arguments, 0, nullptr));
    CUdeviceptr managed;
    CU(cuMemAllocManaged(&managed, sizeof values, CU_MEM_ATTACH_GLOBAL));
    OK(cudaMemcpy((void *)managed, data, sizeof values, cudaMemcpyDefault));
    for (int i = 0; i < 4; ++i) EXPECT(((int *)managed)[i] == i + 31);
    cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, (void *)managed));
    EXPECT(attributes.type == cudaMemoryTypeManaged);
    OK(cudaFree((void *)managed));
    CU(cuMemFree((CUdeviceptr)data));

    // A program that takes the context away gets the primary one again with its next call of the runtime.
    CU(cuCtxSetCurrent(nullptr));
    OK(cudaMalloc(&data, 16));
    CU(cuCtxGetCurrent(&current));
    EXPECT(current == primary);

    // A context that the program made current itself stays.
    CUcontext own;
    CU(cuCtxCreate(&own, nullptr, 0, 0));
    std::thread([own] {
        CUcontext current;
        CU(cuCtxSetCurrent(own));
        OK(cudaDeviceSynchronize());
        CU(cuCtxGetCurrent(&current));
        EXPECT(current == own);
    }).join();

    // The runtime's way to the driver's functions.
    CUresult (*synchronize)();
    cudaDriverEntryPointQueryResult status;
    OK(cudaGetDriverEntryPointByVersion("cuCtxSynchronize", (void **)&synchronize, 12000, cudaEnableDefault, &status));
    EXPECT(status == cudaDriverEntryPointSuccess && synchronize == cuCtxSynchronize);
    void *none;
    OK(cudaGetDriverEntryPointByVersion("cuNothing", &none, 12000, cudaEnableDefault, &status));
    EXPECT(status == cudaDriverEntryPointSymbolNotFound && !none);

    // After a reset through the driver the runtime goes on.
    CU(cuDevicePrimaryCtxReset(0));
    OK(cudaMalloc(&data, sizeof values));
    OK(cudaMemcpy(data, values, sizeof values, cudaMemcpyHostToDevice));
    add<<<1, 4>>>(data, 1);
    OK(cudaMemcpy(values, data, sizeof values, cudaMemcpyDeviceToHost));
    EXPECT(values[0] == 2 && values[3] == 5);
    OK(cudaDeviceReset());
    OK(cudaMalloc(&data, sizeof values));
    IS(cudaErrorInvalidValue, cudaMemcpy(data, values, 17, cudaMemcpyHostToDevice));
    std::printf("done\n");
}
