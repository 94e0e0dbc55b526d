// jacobi.cu merged by hand. The second grid never leaves the device, so it stays device memory.

#include <cstdio>
#include <cstdlib>

#include "common/check.h"
#include "common/checksum.h"
#include "common/options.h"
#include "common/timer.h"
#include "jacobi.cuh"

static const int SWEEPS = 20;
static const float TOLERANCE = 3.0f;

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "n", 1536, 16384, 4);
    const int n = (int)options.size;
    const size_t bytes = (size_t)n * n * sizeof(float);

    float *u, *d_next;
    unsigned int *d_change;
    CHECK(cudaMallocManaged(&u, bytes));
    CHECK(cudaMalloc(&d_next, bytes));
    CHECK(cudaMalloc(&d_change, sizeof(unsigned int)));

    const dim3 block(64, 4);
    const dim3 grid((n + block.x - 1) / block.x, (n + block.y - 1) / block.y);
    unsigned int result = 0;
    int sweeps = 0;
    Timer timer;
    for (int round = 0; round < options.iterations; round++) {
        set_boundary(u, n, round);
        for (int done = 0; done < SWEEPS; done += 2) {
            CHECK(cudaMemset(d_change, 0, sizeof(unsigned int)));
            sweep<<<grid, block>>>(u, d_next, n, d_change);
            sweep<<<grid, block>>>(d_next, u, n, d_change);
            CHECK(cudaGetLastError());
            float change = 0.0f;
            CHECK(cudaMemcpy(&change, d_change, sizeof(float), cudaMemcpyDeviceToHost));
            sweeps += 2;
            if (change < TOLERANCE) break;
        }
        CHECK(cudaDeviceSynchronize());
        result = result * 31 + word_sum(u, (size_t)n * n);
    }
    timer.report();

    printf("%d sweeps, result %08x checksum %016llx\n", sweeps, result, (unsigned long long)fnv1a(u, bytes));
    CHECK(cudaFree(u));
    CHECK(cudaFree(d_next));
    CHECK(cudaFree(d_change));
    return 0;
}
