// Makes a known number of each call, and prints what it computed. nvcc's default is to link the runtime into such a program.
#include "common.h"

__global__ void twice(int *to, const int *from, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = 2 * from[i];
}

int main() {
    const int count = 1000, bytes = count * sizeof(int);
    std::vector<int> in(count), out(count);
    for (int i = 0; i < count; ++i) in[i] = i;
    int *from, *to, *managed, *pinned, *host;
    OK(cudaMalloc(&from, bytes));
    OK(cudaMalloc(&to, bytes));
    OK(cudaMallocManaged(&managed, bytes));
    OK(cudaMallocHost((void **)&pinned, bytes));
    OK(cudaHostAlloc(&host, bytes, cudaHostAllocMapped));
    OK(cudaMemset(to, 0, bytes));
    for (int i = 0; i < 3; ++i) OK(cudaMemcpy(from, in.data(), bytes, cudaMemcpyHostToDevice));
    OK(cudaMemcpyAsync(managed, from, bytes, cudaMemcpyDeviceToDevice));
    for (int i = 0; i < 4; ++i) twice<<<8, 128>>>(to, managed, count);
    OK(cudaGetLastError());
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 2; ++i) OK(cudaMemcpy(out.data(), to, bytes, cudaMemcpyDeviceToHost));
    OK(cudaMemcpyAsync(pinned, to, bytes, cudaMemcpyDeviceToHost));
    OK(cudaStreamSynchronize(0));
    OK(cudaMemcpy(host, to, bytes, cudaMemcpyDefault));
    long sum = 0;
    for (int i = 0; i < count; ++i) sum += out[i] + pinned[i] + host[i];
    OK(cudaFree(from));
    OK(cudaFree(to));
    OK(cudaFree(managed));
    OK(cudaFreeHost(pinned));
    OK(cudaFreeHost(host));
    std::printf("%ld\n", sum);
}
