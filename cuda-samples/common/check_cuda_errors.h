// checkCudaErrors(call): the other usual shape of an error check, a macro over a template function.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

template <typename Status>
void check(Status result, const char *call, const char *file, int line) {
    if (result) {
        fprintf(stderr, "CUDA error at %s:%d code=%u(%s) \"%s\"\n", file, line, static_cast<unsigned>(result),
                cudaGetErrorName(result), call);
        exit(EXIT_FAILURE);
    }
}

#define checkCudaErrors(call) check((call), #call, __FILE__, __LINE__)
