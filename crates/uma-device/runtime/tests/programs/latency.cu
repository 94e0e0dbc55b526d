// What calls cost: prints `name microseconds` lines (medians, except for the first call).
#include "common.h"
#include <algorithm>
#include <chrono>
#include <functional>

__global__ void empty() {}

static double once(const std::function<void()> &call) {
    auto start = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}
static void median(const char *name, int rounds, const std::function<void()> &call) {
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) times.push_back(once(call));
    std::sort(times.begin(), times.end());
    std::printf("%s %.2f\n", name, times[times.size() / 2]);
}

int main() {
    std::printf("first_call %.2f\n", once([] { OK(cudaFree(nullptr)); }));
    empty<<<1, 1>>>();
    OK(cudaDeviceSynchronize());
    median("launch_and_synchronize", 3000, [] {
        empty<<<1, 1>>>();
        cudaDeviceSynchronize();
    });
    int *device, host = 0;
    OK(cudaMalloc(&device, 4));
    median("small_copy", 3000, [&] { cudaMemcpy(&host, device, 4, cudaMemcpyDeviceToHost); });
    std::vector<char> big(64 << 20);
    char *target;
    OK(cudaMalloc(&target, big.size()));
    median("copy_64_mib", 5, [&] { cudaMemcpy(target, big.data(), big.size(), cudaMemcpyHostToDevice); });
    std::vector<char> other(64 << 20);
    median("memcpy_64_mib", 5, [&] { std::memcpy(other.data(), big.data(), big.size()); });
    OK(cudaGetLastError());
}
