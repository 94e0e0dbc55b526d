// Shared by the test programs: each is a table of cases; `program CASE` runs one. A failed check says where and ends with 1.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>
#include <cuda_runtime.h>

#define OK(call)                                                                                                   \
    do {                                                                                                           \
        cudaError_t error_ = (call);                                                                               \
        if (error_ != cudaSuccess) {                                                                               \
            std::printf("%s:%d: %s is %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(error_));                 \
            std::exit(1);                                                                                          \
        }                                                                                                          \
    } while (0)

#define IS(expected, call)                                                                                         \
    do {                                                                                                           \
        cudaError_t error_ = (call);                                                                               \
        if (error_ != (expected)) {                                                                                \
            std::printf("%s:%d: %s is %s, not %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(error_), #expected); \
            std::exit(1);                                                                                          \
        }                                                                                                          \
    } while (0)

#define EXPECT(condition)                                                                                          \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            std::exit(1);                                                                                          \
        }                                                                                                          \
    } while (0)

struct Case {
    const char *name;
    void (*run)();
};

static int run_case(const Case *cases, size_t count, int argc, char **argv) {
    for (size_t i = 0; i < count && argc > 1; ++i) {
        if (std::strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            std::fflush(stdout);
            return 0;
        }
    }
    std::printf("no such case\n");
    return 2;
}
#define MAIN(...)                                                                                                  \
    int main(int argc, char **argv) {                                                                              \
        static const Case cases[] = {__VA_ARGS__};                                                                 \
        return run_case(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);                                      \
    }
#define CASE(function) {#function, function}

static std::mt19937 &generator() {
    // Fresh inputs in every run; the seed is printed only when something fails to match (see `same`).
    static unsigned seed = std::random_device{}();
    static std::mt19937 engine(seed);
    return engine;
}

static std::vector<unsigned char> random_bytes(size_t count) {
    std::vector<unsigned char> bytes(count);
    for (auto &byte : bytes) byte = static_cast<unsigned char>(generator()());
    return bytes;
}
