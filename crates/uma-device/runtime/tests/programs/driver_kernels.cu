// Kernels of driver_api.c, compiled to an image without a host half.
extern "C" {
__device__ int offset_of_all = 5;
__device__ int counter = 41;

__global__ void add(int *data, int count, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] += value + offset_of_all;
}
__global__ void bump() { counter += 1; }
__global__ void follow(int *address) { *address = 1; }
}
